//! Records: the recorded state of an instance with its current object, deposed objects and open intent.
//!
//! Records are the only state between runs. `store` stores them; only `execute` writes them. A record is stored as its
//! fields, with short names, because a cluster can have a hundred thousand of them. A field that is added later has a
//! default; `store::codec` has the number of the format.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::encoding::{self, is_default};
use super::{
    Address, ApprovedObject, Cause, ChangeKind, ChangeOutcome, ConfigDigest, DataRef, DeposedKey, History,
    HistoryEntry, ImportRequest, Namespace, Operation, ProviderUse, RecordedHook, TypeName, Uid, Value, shared,
};

/// The compare-and-swap version of a stored record: the resourceVersion of the Secret, or the counter of the row. It
/// increases with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Whether an object is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectStatus {
    #[default]
    Ready,
    /// Its creation failed. The next plan replaces it.
    Tainted,
    /// Purlin's shutdown interrupted its creation. The next plan reads the object and keeps it if it is complete.
    Interrupted,
}

/// The recorded state of an existing object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedObject {
    /// All attributes, including `id`. Sensitive values are marked.
    #[serde(rename = "v")]
    pub value: Value,
    /// Opaque bytes of the driver.
    #[serde(rename = "p", default, skip_serializing_if = "is_default", with = "encoding::bytes")]
    pub private: Arc<[u8]>,
    /// The identity by which the driver finds the object, if its type has one.
    #[serde(rename = "i", default, skip_serializing_if = "is_default", deserialize_with = "encoding::some")]
    pub identity: Option<Value>,
    /// The schema version of `value`.
    #[serde(rename = "sv", default, skip_serializing_if = "is_default")]
    pub schema_version: u64,
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    pub status: ObjectStatus,
    /// Direct dependencies at the time of the last change, in address order. All instances of a family are one entry.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub dependencies: Arc<[Address]>,
    /// The effective value, which can be inherited.
    #[serde(rename = "cb", default, skip_serializing_if = "is_default")]
    pub create_before_destroy: bool,
    /// `lifecycle.preventDestroy` at the time of the last change. It is used when the Resource no longer exists.
    #[serde(rename = "pd", default, skip_serializing_if = "is_default")]
    pub prevent_destroy: bool,
    /// `deletionPolicy: Orphan` at the time of the last change: forget instead of destroy.
    #[serde(rename = "sd", default, skip_serializing_if = "is_default")]
    pub skip_destroy: bool,
    /// Only for deposed objects: keep the object until the postconditions of the new object are true.
    #[serde(rename = "ap", default, skip_serializing_if = "is_default")]
    pub awaits_postconditions: bool,
    /// The hooks to run before a destroy if the Resource no longer exists, in order of execution.
    #[serde(rename = "h", default, skip_serializing_if = "is_default")]
    pub hooks: Arc<[RecordedHook]>,
    /// The object was created, but not all `AfterCreate` hooks have run.
    #[serde(rename = "hp", default, skip_serializing_if = "is_default")]
    pub hooks_pending: bool,
    /// Set while a created or updated object is not ready.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub readiness: Option<Readiness>,
    /// The digest of the provider configuration of the last read; empty for built-in drivers.
    #[serde(rename = "pc", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub provider_config: Arc<str>,
    /// The provider and its configuration; `None` for built-in drivers.
    #[serde(rename = "pr", default, skip_serializing_if = "is_default", deserialize_with = "shared::provider")]
    pub provider: Option<Arc<ProviderUse>>,
    /// The service account of the create, which a destroy uses too; empty for local runs.
    #[serde(rename = "sa", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub service_account: Arc<str>,
    /// The last create or update.
    #[serde(rename = "rv", default, skip_serializing_if = "is_default")]
    pub revision: Revision,
    /// The last observed state of `lifecycle.replaceTriggeredBy`; `None` without it.
    #[serde(rename = "t", default, skip_serializing_if = "is_default")]
    pub triggers: Option<Arc<Triggers>>,
    /// The configuration that the object matches, because the driver applied it or planned no change for it. `None` if
    /// unknown: the object was imported or changed outside of Purlin, or its last update failed.
    #[serde(rename = "mc", default, skip_serializing_if = "is_default")]
    pub matching_config: Option<ConfigDigest>,
}

/// The state of an object that is not ready after its create or update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// The deadline.
    #[serde(rename = "u")]
    pub until: Timestamp,
    /// The call created the object.
    #[serde(rename = "n", default, skip_serializing_if = "is_default")]
    pub is_new: bool,
    /// The object that the create deposed. It becomes current again if the new object disappears before it is ready.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub deposed: Option<DeposedKey>,
}

/// The last observed state of the objects in `replaceTriggeredBy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Triggers {
    /// A random salt, so that fingerprints do not reveal values.
    #[serde(rename = "s")]
    pub salt: u64,
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    pub entries: Vec<ObservedTrigger>,
}

/// The last observed state of an entry of `replaceTriggeredBy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedTrigger {
    /// The entry as in the spec.
    #[serde(rename = "e", deserialize_with = "shared::text")]
    pub entry: Arc<str>,
    /// The referenced objects, each with a fingerprint.
    #[serde(rename = "t", default, skip_serializing_if = "is_default")]
    pub targets: Vec<(Address, u64)>,
}

impl RecordedObject {
    /// Whether the last read used the provider configuration with this digest, or an unknown one. Only then does a read
    /// that finds no object prove that the object is missing.
    pub fn was_last_read_with(&self, configuration: &str) -> bool {
        self.provider_config.is_empty() || *self.provider_config == *configuration
    }

    /// Returns the `id` attribute if it is a known string and not sensitive.
    pub fn visible_id(&self) -> Option<&str> {
        match self.value.get("id") {
            Some(Value::String(id)) if !matches!(self.value, Value::Sensitive(_)) => Some(id),
            _ => None,
        }
    }

    /// Returns the `id` attribute if it is a known string.
    pub fn id(&self) -> Option<&str> {
        self.value.get("id").and_then(Value::as_str)
    }
}

/// The process that makes the call of an intent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    /// The UID of the Pod, or the host of the state file for local runs; empty outside of a Pod.
    pub pod: Arc<str>,
    /// A random ID that is generated when the process starts.
    pub process: Arc<str>,
}

/// A durable note that is written before a call. While an intent is open, no other step of the object starts, and the
/// object that it deposed is not destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// Create, update or destroy.
    #[serde(rename = "o")]
    pub operation: Operation,
    /// A random ID. Drivers store it with the object if they can, to find the object again.
    #[serde(rename = "i")]
    pub operation_id: Arc<str>,
    /// The process that makes the call: the one that wrote the intent, or that took it over for a recovery.
    #[serde(rename = "h")]
    pub holder: Holder,
    /// The number of this intent in the record, starting at 1.
    #[serde(rename = "e")]
    pub epoch: u64,
    /// When the holder began.
    #[serde(rename = "s")]
    pub started: Timestamp,
    /// The deadline of the call. It is extended while the call runs beyond its time limit.
    #[serde(rename = "d")]
    pub deadline: Timestamp,
    /// Create: the object that this write deposed. It becomes current again if no object was created.
    /// Destroy: the deposed object to destroy; `None` for the current object.
    #[serde(rename = "k", default, skip_serializing_if = "is_default")]
    pub deposed: Option<DeposedKey>,
    /// Create and update: the configuration and the planned value with all generated names and IDs, so that recovery
    /// can repeat the same call.
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub planned: Option<PlannedObject>,
    /// Create: how to import the object, if its outcome was unknown and the user named it (`purlin state recover`).
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    pub import: Option<ImportRequest>,
    /// Why the operation is performed, for the history.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub cause: Cause,
}

/// The planned result of a create or update, from which recovery can repeat the call and record its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedObject {
    /// The evaluated configuration.
    #[serde(rename = "c")]
    pub config: Value,
    /// The planned value. Attributes that the driver sets are `Value::Unknown`.
    #[serde(rename = "p")]
    pub planned: Value,
    /// Opaque bytes of the driver's plan.
    #[serde(rename = "b", default, skip_serializing_if = "is_default", with = "encoding::bytes")]
    pub private: Arc<[u8]>,
    /// Flags and dependencies to record with the result. The driver sets `value`, `private`, `identity` and `status`.
    #[serde(rename = "r")]
    pub recorded: Box<RecordedObject>,
}

/// A ConfigMap or Secret with published outputs, or the intent to write one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCopy {
    #[serde(rename = "t")]
    pub target: DataRef,
    /// The UID of the ConfigMap or Secret; empty while it is unknown whether it was created.
    #[serde(rename = "u", default, skip_serializing_if = "is_default")]
    pub uid: Uid,
    /// The UID of the Resource.
    #[serde(rename = "o", default, skip_serializing_if = "is_default")]
    pub owner: Uid,
    /// The service account that wrote it.
    #[serde(rename = "s", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub service_account: Arc<str>,
    /// The strings by key.
    #[serde(rename = "d")]
    pub data: Value,
}

/// The recorded state of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The namespace of the Resource. On files, the namespace in the files.
    #[serde(rename = "n", deserialize_with = "shared::text")]
    pub namespace: Namespace,
    #[serde(rename = "a")]
    pub address: Address,
    /// The UID of the Resource; empty on files.
    #[serde(rename = "u", default, skip_serializing_if = "is_default")]
    pub uid: Uid,
    /// The resource type. It changes only if the driver of another type takes over the object in a move.
    #[serde(rename = "t", deserialize_with = "shared::text")]
    pub type_name: TypeName,
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub current: Option<Arc<RecordedObject>>,
    /// Objects that were replaced but not destroyed yet.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub deposed: BTreeMap<DeposedKey, Arc<RecordedObject>>,
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub published: Vec<PublishedCopy>,
    /// The operation that is in progress or was interrupted by a crash.
    #[serde(rename = "i", default, skip_serializing_if = "is_default")]
    pub intent: Option<Box<Intent>>,
    /// The epoch of the last intent.
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    pub epoch: u64,
    /// The number of consecutive failed creates of a replacement. It is recorded so that the limit survives a restart.
    #[serde(rename = "fc", default, skip_serializing_if = "is_default")]
    pub failed_creates: u32,
    /// The generation of the Resource that `failed_creates` counts.
    #[serde(rename = "fg", default, skip_serializing_if = "is_default")]
    pub failed_generation: i64,
    /// A destroy-before-create replacement destroyed the old object, but has not created the new one.
    #[serde(rename = "rp", default, skip_serializing_if = "is_default")]
    pub replacement_pending: bool,
    /// What was approved as the new object of the replacement that has begun last, if that needed an approval.
    #[serde(rename = "ao", default, skip_serializing_if = "is_default")]
    pub approved_object: Option<Box<ApprovedObject>>,
    /// The last handled value of the annotation `purlin.dev/replace-requested-at`.
    #[serde(rename = "hr", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub handled_replace_request: Arc<str>,
    /// The last `spec.import` that was compared with the object; empty without one.
    #[serde(rename = "hi", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub handled_import: Arc<str>,
    /// The new address of a moved object. The record at that address is being written or exists already.
    #[serde(rename = "mt", default, skip_serializing_if = "is_default")]
    pub moving_to: Option<Box<Address>>,
    /// The former addresses of the object, newest last. Moves by earlier versions of Purlin are not included.
    #[serde(rename = "mf", default, skip_serializing_if = "is_default")]
    pub moved_from: Vec<Address>,
    /// The last changes. It is written only together with something else.
    #[serde(rename = "h", default, skip_serializing_if = "is_default")]
    pub history: History,
    /// The file that the manifest was last read from, as a state file stores it. `None` in a cluster, and in the records
    /// of earlier versions. Only a state file stores it, beside the encoded record.
    #[serde(skip)]
    pub source: Option<Arc<str>>,
}

impl Record {
    /// Whether a call for one of its objects may run in a Pod of its own.
    pub fn has_runner(&self) -> bool {
        let planned = self.intent.as_ref().and_then(|intent| intent.planned.as_ref());
        let objects = self.current.iter().chain(self.deposed.values()).map(|object| &**object);
        let recorded = objects.chain(planned.map(|planned| &*planned.recorded));
        recorded.filter_map(|object| object.provider.as_ref()).any(|used| used.runner.is_some())
    }

    pub fn empty(namespace: Namespace, address: Address, uid: Uid, type_name: TypeName) -> Self {
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
            approved_object: None,
            handled_replace_request: Arc::from(""),
            handled_import: Arc::from(""),
            moving_to: None,
            moved_from: Vec::new(),
            history: History::default(),
            source: None,
        }
    }

    /// Whether the record has neither an object nor an open intent.
    pub fn is_empty(&self) -> bool {
        !self.has_objects() && self.intent.is_none()
    }

    /// The new object of a replacement exists.
    pub fn end_replacement(&mut self) {
        (self.replacement_pending, self.approved_object) = (false, None);
    }

    /// Counts a failed create. A new generation restarts the count.
    pub fn count_failed_create(&mut self, generation: i64) {
        self.failed_creates = if self.failed_generation == generation { self.failed_creates + 1 } else { 1 };
        self.failed_generation = generation;
    }

    /// Adds the end of an operation to the history.
    pub fn add_ended(&mut self, intent: &Intent, now: Timestamp, outcome: ChangeOutcome) {
        let kind = ChangeKind::of(intent.operation);
        let entry = HistoryEntry::new(kind, intent.cause.clone(), intent.started, now, outcome);
        let deposed = intent.deposed.filter(|_| kind == ChangeKind::Destroy);
        self.history.add(HistoryEntry { deposed, ..entry.of_operation(&intent.operation_id) });
    }

    /// Whether the record has a current or deposed object.
    pub fn has_objects(&self) -> bool {
        self.current.is_some() || !self.deposed.is_empty()
    }
}

/// A record and its version in the store.
#[derive(Clone, Debug)]
pub struct Stored {
    pub record: Arc<Record>,
    pub version: Version,
}

impl Stored {
    /// Whether a record with another version is still equivalent, so that a write can be based on it. While an
    /// operation is open, only its holder changes the record, so it is sufficient to compare operation and holder.
    pub fn is_equivalent_to(&self, found: &Record) -> bool {
        match (&self.record.intent, &found.intent) {
            (Some(ours), Some(found)) => ours.operation_id == found.operation_id && ours.holder == found.holder,
            _ => *self.record == *found,
        }
    }
}

/// The encoding of a record together with its source.
pub mod with_source {
    use super::{Arc, Deserialize, Record, Serialize};
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(record: &Record, serializer: S) -> Result<S::Ok, S::Error> {
        (record, &record.source).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Record>, D::Error> {
        let (record, source) = <(Record, Option<Arc<str>>)>::deserialize(deserializer)?;
        Ok(Arc::new(Record { source, ..record }))
    }
}

/// The records of a namespace.
pub type Recorded = BTreeMap<Address, Stored>;

/// Identifies the last create or update of an object. It is zero for an imported object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The epoch of the intent, which increases in a record.
    #[serde(rename = "e")]
    pub epoch: u64,
    /// A digest of the operation ID, because a recreated record starts with epoch 1 again.
    #[serde(rename = "o")]
    pub operation: u64,
}

impl Revision {
    pub fn new(epoch: u64, operation_id: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(operation_id).into();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { epoch, operation: u64::from_le_bytes(*first) }
    }
}
