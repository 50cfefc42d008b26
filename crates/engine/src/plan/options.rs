//! The options of planning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::load::Instance;
use model::text::split_hint;
use model::{
    Address, ChangeCause, Diagnostic, Drift, Health, ImportRequest, Name, ObjectStatus, ReadResult, Reason, Record,
    RecordedObject, Step, Stored, TypeName, Value,
};

/// The target state of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The configuration.
    #[default]
    Normal,
    /// No objects (`purlin destroy`).
    Destroy,
    /// The existing objects (`--refresh-only`): they are read, and only the records change.
    RefreshOnly,
}

/// Which recorded objects are read before they are compared.
#[derive(Clone, Debug, Default)]
pub enum Refresh {
    #[default]
    All,
    None,
    /// Those whose drift interval has passed.
    Due(BTreeSet<Address>),
}

/// Why an object must not be changed now although its configuration is valid: back-off after a failed step, a running
/// recovery, or a record that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectBlock {
    pub reason: Reason,
    pub message: String,
}

impl ObjectBlock {
    /// The error of an object that is blocked.
    pub fn error(&self, address: &Address) -> Diagnostic {
        let (what, hint) = split_hint(&self.message);
        let error = Diagnostic::error(address, self.reason, what);
        Diagnostic { hint: hint.map(str::to_owned), ..error }
    }
}

/// A step that is running during planning. It is a fixed node of the new graph.
#[derive(Clone, Debug)]
pub struct RunningStep {
    pub step: Step,
    /// The planned value of the object. `None` for a destroy.
    pub planned: Option<Value>,
    /// The object to record, with its dependencies and flags.
    pub recorded: Option<Arc<RecordedObject>>,
    /// It only writes the record, possibly of a blocked object: planning ignores it.
    pub record_only: bool,
    /// The drift that its plan has found and only reports. It is there until the step ends: nothing reads the object before.
    pub reported_drift: Option<Drift>,
}

/// Identifies a configuration of a provider. A wrong configuration makes all its objects appear to be missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderConfigId {
    /// The prefix of the provider's types.
    pub provider: Arc<str>,
    /// The hash of the configuration.
    pub hash: Arc<str>,
}

impl ProviderConfigId {
    /// The configuration that an object was last read with.
    pub fn of(type_name: &str, object: &RecordedObject) -> Self {
        let provider = type_name.split('_').next().unwrap_or_default().into();
        Self { provider, hash: Arc::clone(&object.provider_config) }
    }

    /// The configuration of the current object, if there is one.
    pub fn of_record(record: &Record) -> Option<Self> {
        Some(Self::of(&record.type_name, record.current.as_ref()?))
    }
}

/// The objects of a provider configuration that the plan does not cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingCount {
    /// How many exist or are missing.
    pub objects: usize,
    /// How many are missing.
    pub missing: usize,
}

/// The objects that the plan does not cover. They are needed because an object must belong to one address only.
#[derive(Clone, Debug, Default)]
pub struct OtherComponents {
    /// Records, each with whether a Resource configures the object.
    pub records: Vec<(Stored, bool)>,
    pub imports: Vec<PendingImport>,
    /// Desired instances without an object, of the types of which this plan may destroy an object.
    pub creates: Vec<Arc<Instance>>,
}

/// An import that is not recorded yet.
#[derive(Clone, Debug)]
pub struct PendingImport {
    pub address: Address,
    pub type_name: TypeName,
    pub request: ImportRequest,
    /// It is being planned or applied, so it takes precedence.
    pub started: bool,
}

/// The limit of objects in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectQuota {
    /// The maximum number.
    pub limit: usize,
    /// How many objects this plan may create.
    pub left: usize,
}

/// All input of planning besides configuration and records, including randomness and time.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    pub mode: Mode,
    pub refresh: Refresh,
    /// Plan only these and their dependencies (`--target`): instances or whole Resources. Empty: everything.
    pub targets: BTreeSet<Address>,
    /// Replace these even if no change requires it (`--replace`).
    pub replace: BTreeSet<Address>,
    /// Objects that have not changed since they were last up to date, and neither have their inputs. No driver is
    /// called for them unless this plan changes a dependency.
    pub up_to_date: BTreeSet<Address>,
    /// Earlier readings of data sources. They are reused until a refresh is due or the request changes.
    pub readings: BTreeMap<Address, Arc<ReadResult>>,
    /// Objects whose record had another address or type until now, each with the cause to show.
    pub moved: BTreeMap<Address, ChangeCause>,
    /// Instances that have a record according to the index of their family. If the record does not exist, it is lost.
    pub indexed: BTreeSet<Address>,
    /// The Resources whose index was lost and replaced. Their instances without a record may have lost it.
    pub rebuilt_indexes: BTreeSet<Name>,
    pub blocked: BTreeMap<Address, ObjectBlock>,
    /// Configured objects that must not be replaced, because another address claims them.
    pub claimed: BTreeMap<Address, ObjectBlock>,
    /// The objects that are not ready, as far as the caller knows. What a plan reads takes precedence.
    pub health: BTreeMap<Address, Health>,
    /// The objects outside of a partial plan by provider configuration, to detect that many objects are missing.
    pub missing_counts: BTreeMap<ProviderConfigId, MissingCount>,
    /// The objects outside of a partial plan, which this plan must not import or destroy. Only needed for types of
    /// which this plan imports or removes an object.
    pub other_components: OtherComponents,
    pub running: Vec<RunningStep>,
    /// The seed of random values (deposed keys, ids, name suffixes).
    pub seed: u64,
    /// The configuration is only proposed. Its data sources send no sensitive values to providers: the author of the
    /// proposal could choose where to.
    pub preview: bool,
    /// Nothing is read. An object to observe counts as existing, with unknown values.
    pub offline: bool,
    /// Nothing may be created because the namespace is terminating.
    pub namespace_terminating: bool,
    /// Why nothing may be destroyed, such as a CRD of Purlin that is being deleted.
    pub hold_destroys: Option<ObjectBlock>,
    /// The variable `ns` of expressions.
    pub namespace_value: Value,
    /// Whether an object without a Resource is destroyed (on files) or abandoned (in a cluster).
    pub destroy_orphans: bool,
    /// The limit of consecutive failed creations. `None` for one-off runs, which only warn.
    pub max_failed_creates: Option<u32>,
    /// `None`: there is no limit.
    pub object_quota: Option<ObjectQuota>,
}

/// The state of a recorded object in CLI output.
pub fn state_word(object: &RecordedObject) -> &'static str {
    match object.status {
        ObjectStatus::Ready if object.hooks_pending => "hooks pending",
        ObjectStatus::Ready if object.readiness.is_some() => "not ready",
        status => status_word(status),
    }
}

/// The status of a recorded object.
pub fn status_word(status: ObjectStatus) -> &'static str {
    match status {
        ObjectStatus::Ready => "ready",
        ObjectStatus::Tainted => "tainted",
        ObjectStatus::Interrupted => "interrupted",
    }
}
