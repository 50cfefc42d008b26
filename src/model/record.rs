//! What is remembered about one instance: its current object, deposed ones, and the open intent.
//!
//! A record is the only memory between runs. `store` keeps it; `execute` is the only writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Address, ConfigDigest, DataRef, DeposedKey, Operation, ProviderUse, RecordedHook, Revision, Value};

/// The compare-and-swap version of a stored record: the resourceVersion of the Secret, or a row's counter.
/// A later write has a greater version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Whether an object is what it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectStatus {
    /// As far as we know it is complete.
    #[default]
    Ready,
    /// Its creation failed half way: the next plan replaces it.
    Tainted,
    /// Our own stop cut its creation: it is read first, and kept if it is complete.
    Interrupted,
}

/// One object that exists, as it was last seen. The default is one of which nothing is recorded yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedObject {
    /// All attributes, `id` included. Sensitive places are marked.
    pub value: Value,
    /// Bytes that only the driver understands.
    pub private: Arc<[u8]>,
    /// What the driver finds the object by, when it has such a thing.
    pub identity: Option<Value>,
    /// Version of the schema that `value` follows.
    pub schema_version: u64,
    /// Whether it is complete.
    pub status: ObjectStatus,
    /// Direct dependencies at the time of its last change, in address order; a whole family is one entry. Each object has
    /// its own.
    pub dependencies: Arc<[Address]>,
    /// The effective create-before-destroy flag.
    pub create_before_destroy: bool,
    /// The `lifecycle.preventDestroy` of the last change; decides when there is no live spec.
    pub prevent_destroy: bool,
    /// `deletionPolicy: Orphan` of the last change: forget instead of destroy.
    pub skip_destroy: bool,
    /// Of a deposed object: it is kept until the postconditions of its successor hold.
    pub awaits_postconditions: bool,
    /// The hooks to run before it is destroyed when its Resource is gone, in the order in which they run.
    pub hooks: Arc<[RecordedHook]>,
    /// It was made, and the hooks after its creation have not all run yet.
    pub hooks_pending: bool,
    /// It was made or changed, and is not ready yet as far as is known.
    pub readiness: Option<Readiness>,
    /// Hash of the provider configuration that last read it; empty for built-in drivers.
    pub provider_config: Arc<str>,
    /// The provider that manages it, with its settings; `None` for built-in drivers.
    pub provider: Option<Arc<ProviderUse>>,
    /// As which service account (or local user: empty) it was made; a destroy acts as the same.
    pub service_account: Arc<str>,
    /// Which create or update made it what it is.
    pub revision: Revision,
    /// What `lifecycle.replaceTriggeredBy` saw last; `None` without it.
    pub triggers: Option<Arc<Triggers>>,
    /// Of which configuration the driver has last said, or shown by carrying it out, that the object is as it asks.
    /// `None` when nobody can tell: it was imported, changed by somebody else, or its last update failed.
    pub agrees_with: Option<ConfigDigest>,
}

/// The mark of an object whose call has ended and that is still to get ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Until when it may take.
    pub until: Timestamp,
    /// The call has made the object, and not only changed it: should it not get ready, it is tainted.
    pub is_new: bool,
    /// The object that was deposed for it; should it disappear before it is ready, that one is current again.
    pub deposed: Option<DeposedKey>,
}

/// What an object has seen of those that trigger its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Drawn for this object, so that fingerprints tell nothing about values.
    pub salt: u64,
    /// One for each entry.
    pub seen: Vec<SeenTrigger>,
}

/// One entry of `replaceTriggeredBy`, as it was seen last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTrigger {
    /// The entry as it was written.
    pub entry: Arc<str>,
    /// The objects that it meant, each with a fingerprint.
    pub targets: Vec<(Address, u64)>,
}

impl RecordedObject {
    /// Whether a missing object is gone when it was looked for under this configuration of its provider: the one that
    /// last saw it, or nobody knows which that was.
    pub fn is_known_to(&self, configuration: &str) -> bool {
        self.provider_config.is_empty() || *self.provider_config == *configuration
    }

    /// The `id` attribute, when it is a known text and not sensitive.
    pub fn visible_id(&self) -> Option<&str> {
        match self.value.get("id") {
            Some(Value::String(id)) if !matches!(self.value, Value::Sensitive(_)) => Some(id),
            _ => None,
        }
    }

    /// The `id` attribute, when it is a known text.
    pub fn id(&self) -> Option<&str> {
        self.value.get("id").and_then(Value::as_str)
    }
}

/// Who wrote an intent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// UID of the Pod, or the state file's host for local runs; empty outside of a Pod.
    pub pod: Arc<str>,
    /// Drawn at the start of the process.
    pub process: Arc<str>,
}

/// What is about to be done, durable before the call. While it is open no other step of the object starts,
/// nor a destroy of what it deposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Create, update or destroy.
    pub operation: Operation,
    /// Drawn for this operation; drivers that can, leave it at the object to find it again.
    pub operation_id: Arc<str>,
    /// Who does it.
    pub holder: Holder,
    /// Counts the intents of this record, from 1.
    pub epoch: u64,
    /// When it was written.
    pub started: Timestamp,
    /// Until when the call may run. Moved, as long as it runs on past its limit.
    pub deadline: Timestamp,
    /// Create: the object that this write deposed, which becomes current again when nothing was made.
    /// Destroy: the leftover that is destroyed; `None` for the current object.
    pub deposed: Option<DeposedKey>,
    /// Create and update: the configuration and the planned value, with everything drawn for it (names, ids),
    /// so that recovery can make the very same call again.
    pub planned: Option<PlannedObject>,
}

/// What a create or update will make: enough to make the call again after a crash, and to record its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedObject {
    /// The evaluated configuration.
    pub config: Value,
    /// The planned value; what the driver sets is unknown (`Value::Unknown`).
    pub planned: Value,
    /// The driver's private bytes of the plan.
    pub private: Arc<[u8]>,
    /// Flags and edges to record with the result; `value`, `private`, `identity`, `status` are the driver's.
    pub recorded: Box<RecordedObject>,
}

/// A copy of outputs that was published, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedCopy {
    /// The `ConfigMap` or Secret.
    pub target: DataRef,
    /// The UID it was made with; empty while it is not known whether it was made.
    pub uid: Arc<str>,
    /// The UID of the Resource that it was made for.
    pub owner: Arc<str>,
    /// As which service account it was written.
    pub service_account: Arc<str>,
    /// The texts it holds, by key.
    pub data: Value,
}

/// All that is remembered about one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Namespace of the Resource. Local records carry the namespace of their files.
    pub namespace: Arc<str>,
    /// Name and instance.
    pub address: Address,
    /// UID of the Resource; empty in local mode.
    pub uid: Arc<str>,
    /// The resource type. It changes only when the driver of another type takes the object over.
    pub type_name: Arc<str>,
    /// The object in use.
    pub current: Option<Arc<RecordedObject>>,
    /// Objects that were replaced and not destroyed yet.
    pub deposed: BTreeMap<DeposedKey, Arc<RecordedObject>>,
    /// Copies of outputs in ConfigMaps and Secrets.
    pub published: Vec<PublishedCopy>,
    /// The operation under way, or cut by a crash.
    pub intent: Option<Box<Intent>>,
    /// The epoch of the last intent.
    pub epoch: u64,
    /// Failed creations of a replacement in a row; the cap on them must survive a restart.
    pub failed_creates: u32,
    /// The generation of the Resource that `failed_creates` counts for: a newer one starts anew.
    pub failed_generation: i64,
    /// A delete-first replacement destroyed the old object and the new one is still missing.
    pub replacement_pending: bool,
    /// Value of the annotation `purlin.dev/replace-requested-at` that was last carried out.
    pub handled_replace_request: Arc<str>,
    /// The object belongs to this address from now on; a record there is being written, or is written already.
    pub moving_to: Option<Box<Address>>,
    /// Where the object was recorded before, the newest last: these moves were asked for and made. Unknown of moves that
    /// earlier versions made.
    pub came_from: Vec<Address>,
}

impl Record {
    /// A record of nothing yet.
    pub fn empty(namespace: Arc<str>, address: Address, uid: Arc<str>, type_name: Arc<str>) -> Self {
        Self {
            namespace,
            address,
            uid,
            type_name,
            current: None,
            deposed: BTreeMap::new(),
            published: Vec::new(),
            intent: None,
            epoch: 0,
            failed_creates: 0,
            failed_generation: 0,
            replacement_pending: false,
            handled_replace_request: Arc::from(""),
            moving_to: None,
            came_from: Vec::new(),
        }
    }

    /// Whether the record holds neither an object nor an open operation.
    pub fn is_empty(&self) -> bool {
        !self.has_objects() && self.intent.is_none()
    }

    /// Counts a failed creation of a Resource of that generation; a changed Resource starts anew.
    pub fn count_failed_create(&mut self, generation: i64) {
        self.failed_creates = if self.failed_generation == generation { self.failed_creates + 1 } else { 1 };
        self.failed_generation = generation;
    }

    /// Whether the record holds any object.
    pub fn has_objects(&self) -> bool {
        self.current.is_some() || !self.deposed.is_empty()
    }
}

/// A record together with its version in the store.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What is remembered.
    pub record: Arc<Record>,
    /// At which version it was read or written.
    pub version: Version,
}

impl Stored {
    /// Whether a record that was found under another version is still the one that we know, so that a change of ours may
    /// follow it. While an operation is open, only who carries it out changes the record: what holds our operation is ours.
    pub fn is_still(&self, found: &Record) -> bool {
        match (&self.record.intent, &found.intent) {
            (Some(ours), Some(found)) => ours.operation_id == found.operation_id,
            _ => *self.record == *found,
        }
    }
}

/// All records of one namespace, by address.
pub type Recorded = BTreeMap<Address, Stored>;
