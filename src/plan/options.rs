//! How to plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{Address, ImportRequest, ObjectStatus, Reading, Reason, RecordedObject, Step, Stored, Value};

/// What the plan is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Towards the configuration.
    #[default]
    Normal,
    /// Towards nothing (`purlin destroy`).
    Destroy,
    /// Nowhere (`--refresh-only`): what is recorded is read, and the records follow. No configuration is evaluated.
    RefreshOnly,
}

/// Which recorded objects are read before they are compared.
#[derive(Clone, Debug, Default)]
pub enum Refresh {
    /// All of them.
    #[default]
    All,
    /// None.
    None,
    /// Those named: their drift interval has passed.
    Due(BTreeSet<Address>),
}

/// An object that must not be touched now, though nothing is wrong with its configuration: its last step failed and
/// it backs off, its recovery is under way, or its record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The condition reason.
    pub reason: Reason,
    /// The text.
    pub message: String,
}

/// A step that is running while a new plan is made. It is a fixed node of the new graph.
#[derive(Clone, Debug)]
pub struct RunningStep {
    /// Which step.
    pub step: Step,
    /// What the object will look like as far as is known; `None` for a destroy.
    pub planned: Option<Value>,
    /// What it will be recorded with, for its dependencies and flags.
    pub recorded: Option<Arc<RecordedObject>>,
    /// It only writes the record, of an object that may be blocked: planning goes on as if it did not run.
    pub only_follows: bool,
}

/// One configuration of a provider: what was seen under it may be gone all at once when it leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configuration {
    /// The provider, by the prefix of its types.
    pub provider: Arc<str>,
    /// Its hash.
    pub hash: Arc<str>,
}

impl Configuration {
    /// The one that last saw an object.
    pub fn of(type_name: &str, object: &RecordedObject) -> Self {
        let provider = type_name.split('_').next().unwrap_or_default().into();
        Self { provider, hash: Arc::clone(&object.provider_config) }
    }
}

/// What is known of a configuration's objects that the plan does not cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How many there are, those that are gone included.
    pub objects: usize,
    /// How many of them went missing lately.
    pub gone: usize,
}

/// What objects that the plan does not cover have: one object in the world belongs to one address.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// Records, each with whether a Resource wants it.
    pub records: Vec<(Stored, bool)>,
    /// Imports that are not recorded yet.
    pub imports: Vec<PendingImport>,
}

/// An import that is to come.
#[derive(Clone, Debug)]
pub struct PendingImport {
    /// Of which object.
    pub address: Address,
    /// Its type.
    pub type_name: Arc<str>,
    /// What is to be imported.
    pub request: ImportRequest,
    /// It is being planned or carried out, so nobody comes before it.
    pub begun: bool,
}

/// Everything besides configuration and records that planning depends on. Randomness and time come in here.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Normal or destroy.
    pub mode: Mode,
    /// What is read first.
    pub refresh: Refresh,
    /// Only these, with what they need (`--target`): instances, or names of whole Resources. Empty: everything.
    pub targets: BTreeSet<Address>,
    /// Replace these though nothing requires it (`--replace`).
    pub replace: BTreeSet<Address>,
    /// Objects that the caller vouches for: neither they nor what they read has changed since they were last found
    /// settled, so no driver is asked about them as long as their dependencies do not change in this plan either.
    pub settled: BTreeSet<Address>,
    /// What was read of data sources before. Until that is due, or something else is asked, it is not read again.
    pub readings: BTreeMap<Address, Arc<Reading>>,
    /// Objects whose record was another until now, under another address or of another type, with what to say of it.
    pub moved: BTreeMap<Address, String>,
    /// Instances of families that had a record, as the index of their family says. One that is wanted and has none has
    /// lost it.
    pub indexed: BTreeSet<Address>,
    /// Objects that must wait.
    pub held: BTreeMap<Address, Held>,
    /// Objects outside of this plan, where it covers a part only: whether an object went alone or with many others.
    pub others: BTreeMap<Configuration, Others>,
    /// Objects outside of this plan, where it covers a part only: what they have nobody here may take, or destroy. Only
    /// those matter that are of a type of which something here is imported, or leaves.
    pub elsewhere: Elsewhere,
    /// Steps under way.
    pub running: Vec<RunningStep>,
    /// Seed of everything drawn (deposed keys, ids, name suffixes).
    pub seed: u64,
    /// The namespace is terminating: nothing may be created.
    pub namespace_terminating: bool,
    /// Nothing may be destroyed at all, and why (one of our CRDs is being deleted).
    pub hold_destroys: Option<Held>,
    /// `ns` of expressions.
    pub namespace_value: Value,
    /// Whether a record without a Resource is an orphan to destroy (local mode) or abandoned (cluster).
    pub destroy_orphans: bool,
    /// Cap on failed creations in a row (3 in the controller and `dev`; `None` for one-off runs, which only warn).
    pub max_failed_creates: Option<u32>,
}

/// The status word of a recorded object in outputs.
pub fn status_word(status: ObjectStatus) -> &'static str {
    match status {
        ObjectStatus::Ready => "ready",
        ObjectStatus::Tainted => "tainted",
        ObjectStatus::Interrupted => "interrupted",
    }
}
