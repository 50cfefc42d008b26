//! Planning: `Config` + `Recorded` -> `Plan`, without I/O.
//!
//! The planner is a state machine: [`Planner::ready_calls`] returns the driver calls that can be made now,
//! [`Planner::handle_response`] takes a response, and [`Planner::finish`] returns the plan once no call is open. The
//! caller calls the drivers.

pub mod approval;
pub mod driver_calls;
mod assemble;
pub mod conditions;
mod conform;
mod contract;
mod data;
pub mod cycle;
mod decision;
mod seed;
mod drift;
mod families;
pub mod finalize;
pub mod hooks;
mod ignore;
pub mod inherit;
mod driver_call;
mod destroys;
mod marks;
pub mod response_cache;
pub mod options;
pub mod planner;
mod missing_record;
mod missing_reference;
pub mod moves;
mod policy;
mod preflight;
mod progress;
mod protect;
mod publish;
mod readiness;
pub mod published;
pub mod render;
mod input;
mod eval_scope;
pub mod select;
mod provider;
mod constraints;
mod data_dependencies;
pub mod trigger;
mod desired;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{
    Address, Change, ChangeApproval, DeposedKey, Diagnostics, Name, Path, ReadResult, Reason, RecordedObject, Value,
    encoding,
};

pub use constraints::identity_hash;
pub use data_dependencies::DataDependencies;
pub use driver_calls::{CallId, DriverCall, DriverRequest, DriverResponse, Types};
pub use missing_record::Loss;
pub use options::{
    MissingCount, Mode, ObjectBlock, ObjectQuota, OtherComponents, PendingImport, PlanOptions, ProviderConfigId,
    Refresh, RunningStep,
};
pub use planner::Planner;
pub use response_cache::ResponseCache;

/// Why an object is left unchanged that may have been removed from the configuration.
pub const UNDECIDED: &str = "left unchanged, because Purlin cannot determine whether it is still configured";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Every desired or recorded object, and the families whose instances are not known. In boxes, because most plans are
    /// small, and a node of the tree has space for eleven objects.
    pub objects: BTreeMap<Address, Box<PlannedObject>>,
    /// In address order.
    pub diagnostics: Diagnostics,
}

/// All that a plan says about one address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlannedObject {
    /// `None` if only deposed objects are left.
    pub change: Option<Arc<Change>>,
    /// The changes of its deposed objects.
    pub deposed: Vec<Change>,
    /// What the executor needs beyond `change`, if there is a create, update or record step. A blocked object has a record
    /// step when its record and its manifest differ on whether to keep the object.
    pub prepared: Option<Arc<PreparedStep>>,
    /// Set for a desired object, and for a recorded object that is no longer desired.
    pub lifecycle: Option<EffectiveLifecycle>,
    /// The direct dependencies that exist, in address order. Set for a desired object.
    pub dependencies: Option<Arc<[Address]>>,
    /// If the change would fail as things are now: the objects whose steps may resolve that.
    pub remedies: Vec<Address>,
    /// The reading of a data source that needs no step.
    pub reading: Option<Arc<ReadResult>>,
    /// It was read for this plan, whether it exists or not.
    pub is_read: bool,
    /// It was read, and no longer exists.
    pub is_missing: bool,
    /// Its manifest cannot be planned because of an error.
    pub is_faulty: bool,
    /// The approval of the change, if it needs one.
    pub approval: Option<ChangeApproval>,
}

impl Plan {
    /// The changes of current and of deposed objects, in address order: the deposed ones follow that of their object.
    pub fn changes(&self) -> impl Iterator<Item = &Change> + Clone {
        self.objects.values().flat_map(|object| object.changes())
    }

    /// The changes of current objects, in address order.
    pub fn current_changes(&self) -> impl Iterator<Item = &Change> + Clone {
        self.objects.values().filter_map(|object| object.change.as_deref())
    }

    /// The change of the current object.
    pub fn change(&self, address: &Address) -> Option<&Change> {
        self.objects.get(address)?.change.as_deref()
    }

    pub fn prepared(&self, address: &Address) -> Option<&Arc<PreparedStep>> {
        self.objects.get(address)?.prepared.as_ref()
    }

    /// Leaves out what the steps would make of their objects. Then the plan is only one to compare with.
    pub fn forget_configurations(&mut self) {
        for prepared in self.objects.values_mut().filter_map(|object| object.prepared.as_mut()) {
            Arc::make_mut(prepared).config = Value::Unknown;
        }
    }

    /// The desired objects, each with its direct dependencies that exist.
    pub fn dependencies(&self) -> impl Iterator<Item = (&Address, &Arc<[Address]>)> {
        self.objects.iter().filter_map(|(address, object)| Some((address, object.dependencies.as_ref()?)))
    }

    /// The direct dependencies of an object that exist; none if it is not desired.
    pub fn dependencies_of(&self, address: &Address) -> &[Address] {
        self.objects.get(address).and_then(|object| object.dependencies.as_deref()).unwrap_or_default()
    }

    /// The readings of the data sources that need no step.
    pub fn readings(&self) -> impl Iterator<Item = (Address, Arc<ReadResult>)> {
        self.objects.iter().filter_map(|(address, object)| Some((address.clone(), object.reading.clone()?)))
    }

    /// Whether objects wait for changes of this plan, so that the next plan goes on.
    pub fn is_deferred(&self) -> bool {
        self.diagnostics.iter().any(|found| found.address.is_none() && found.reason == Reason::Waiting)
    }

    /// Takes the objects of these names out of the plan, with the diagnostics of them and of the plan as a whole.
    #[must_use]
    pub fn take(&mut self, names: &BTreeSet<Name>) -> Self {
        let diagnostics = self
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.address.as_ref().is_none_or(|address| names.contains(address.name())));
        Self {
            diagnostics: diagnostics.cloned().collect(),
            objects: self.objects.extract_if(.., |address, _| names.contains(address.name())).collect(),
        }
    }
}

impl PlannedObject {
    /// The changes of the current object and of its deposed objects.
    pub fn changes(&self) -> impl Iterator<Item = &Change> + Clone {
        self.change.as_deref().into_iter().chain(&self.deposed)
    }
}

/// A plan of nothing but changes. What a client has written may name an object twice: no change is lost.
impl FromIterator<Change> for Plan {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        let mut plan = Self::default();
        for change in changes {
            let object = plan.objects.entry(change.address.clone()).or_default();
            match (&object.change, change.deposed) {
                (None, None) => object.change = Some(Arc::new(change)),
                _ => object.deposed.push(change),
            }
        }
        plan
    }
}

/// The effective create-before-destroy flag of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveLifecycle {
    pub create_before_destroy: bool,
    /// The chain of objects that forces the flag, from this object's direct dependent to the object that sets it. It is
    /// empty when this object sets it or the flag is off. A chain of more than sixteen objects holds the first fifteen
    /// and the last, because complete chains would need quadratic space.
    pub forced_by: Vec<Address>,
}

/// The message for an object that is missing after the provider configuration has changed.
pub const MISSING_AFTER_CONFIG_CHANGE: &str = "the object was not found, but the provider configuration has changed \
                                               since it was last read, so it may still exist";

/// A planned create, update or record-only change, ready to be finalized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreparedStep {
    /// The refreshed object, which an update starts from. `None` for a create and for the new object of a replacement.
    pub prior: Option<Arc<RecordedObject>>,
    /// The refreshed object that a replacement or a destroy removes. It has no record yet if this plan imports it.
    pub replaced: Option<Arc<RecordedObject>>,
    /// The evaluated configuration, which may contain unknown values. `Null` for a record-only step.
    pub config: Value,
    /// May contain unknown values.
    pub planned: Value,
    #[serde(with = "encoding::bytes")]
    pub private: Arc<[u8]>,
    /// The private data of the driver's plan for the object that a replacement destroys: the plan of an update that is
    /// impossible, or of the new object if the old one is tainted. Empty if the driver made none.
    #[serde(with = "encoding::bytes")]
    pub destroy_private: Arc<[u8]>,
    /// Random bytes for the driver. The final plan gets the same bytes.
    pub entropy: [u8; 16],
    pub replace_paths: Vec<Path>,
    /// Something changes that no value shows, such as a write-only argument: the driver is called in any case.
    pub requires_update: bool,
    /// The identity of the new object, if the driver knows it before the object exists.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "encoding::some")]
    pub identity: Option<Value>,
    /// Published copies are written even if they match the record, because another client changed them.
    pub publish_again: bool,
    /// Flags, dependencies and status to record with the result. `value`, `private` and `identity` are placeholders,
    /// except in a record-only step.
    pub recorded: RecordedObject,
    /// The key of the old object if this replacement creates first. Unused in other steps.
    pub deposed_key: DeposedKey,
    /// The step only records the read object and whether to keep it. It checks no conditions, runs no hooks and
    /// publishes nothing.
    pub record_only: bool,
    /// The step waits until the object is ready, and its drift is known: it is only reported.
    #[serde(default)]
    pub is_drift_reported: bool,
}
