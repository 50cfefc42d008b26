//! What a record looks like as a Secret, and back. No calls here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{Address, Record, Stored, Version};
use crate::store::{Strings, Unreadable, codec};

/// The type of all our Secrets.
pub const SECRET_TYPE: &str = "purlin.dev/record.v1";

/// Selects our Secrets by type.
pub const FIELD_SELECTOR: &str = "type=purlin.dev/record.v1";

/// Selects records and indexes, not the parts of large records: what a watch needs.
pub const LABEL_SELECTOR: &str = "purlin.dev/record in (head,family)";

/// `head`, `family` or `part`.
pub(super) const KIND_LABEL: &str = "purlin.dev/record";
pub(super) const NAMESPACE_LABEL: &str = "purlin.dev/namespace";
/// On a head: which parts it is made of. On a part: which ones it belongs to.
pub(super) const PARTS_LABEL: &str = "purlin.dev/parts";
/// On a part: the name of the head.
pub(super) const PART_OF_LABEL: &str = "purlin.dev/part-of";
const RESOURCE_LABEL: &str = "purlin.dev/resource";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const ADDRESS_ANNOTATION: &str = "purlin.dev/address";
/// Says that somebody has decided to forget what a Secret tells. The chart's policy lets nobody but the controller delete
/// one without it.
pub(super) const FORGOTTEN_ANNOTATION: &str = "purlin.dev/forgotten";

const RECORD_KEY: &str = "record";
const PARTS_KEY: &str = "parts";
const FAMILY_KEY: &str = "family";
pub(super) const PART_KEY: &str = "part";

/// The server refuses Secrets of more than 1 MiB; labels, annotations and managedFields need room as well.
pub(super) const LARGEST: usize = 900 * 1024;

/// Which instances of a family have, or are about to get, a record. An instance that is named here and has no record
/// has lost it, and must not be made a second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Namespace of the Resource.
    pub namespace: Arc<str>,
    /// Name of the Resource.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// The instances.
    pub instances: BTreeSet<Address>,
    /// It was written after an earlier one was lost: an instance that it lacks may have had a record.
    pub rebuilt: bool,
    /// At which version it was read; nothing while it is not written.
    pub version: Option<Version>,
}

/// The head of a record that is kept in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartedHead {
    pub(super) secret: String,
    pub(super) namespace: String,
    pub(super) address: Address,
    pub(super) version: Version,
    pub(super) parts: Parts,
}

/// What a head says of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) count: usize,
    /// Of all parts together, hexadecimal.
    pub(super) sha256: String,
    /// The version that the head replaced; 0 for a new record.
    pub(super) base: u64,
}

/// What a Secret holds.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// A record.
    Record(Stored),
    /// A record whose content stands elsewhere; `Secrets::assemble` reads it.
    Parted(PartedHead),
    /// The index of a family.
    Family(Family),
}

#[derive(Serialize, Deserialize)]
struct FamilyText {
    format: u32,
    uid: Arc<str>,
    name: Arc<str>,
    instances: BTreeSet<Address>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rebuilt: bool,
}

/// The name of the Secret of a record: found without a list, and the same for every controller, so that the second
/// one to create a record is told.
pub fn record_name(namespace: &str, address: &Address) -> String {
    hashed("purlin-record-", &format!("{namespace}/{address}"))
}

/// The name of the Secret of a family's index. Not that of a record with an empty instance key: while a Resource
/// turns into a family it has both.
pub fn family_name(namespace: &str, name: &str) -> String {
    hashed("purlin-family-", &format!("{namespace}/{name}"))
}

/// 128 bits: no two addresses of a cluster share them by chance, and the name fits into a label.
fn hashed(prefix: &str, what: &str) -> String {
    format!("{prefix}{}", &sha256(what.as_bytes())[..32])
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The resourceVersion as a number. Since Kubernetes 1.35 it is documented to be a decimal that grows.
pub(super) fn version(metadata: &ObjectMeta) -> Result<Version, String> {
    let text = metadata.resource_version.as_deref().unwrap_or_default();
    text.parse()
        .map(Version)
        .map_err(|_| format!("the API server gave the resourceVersion `{text}`, which is no number"))
}

/// The Secret of a record that fits into one.
pub(super) fn head(record: &Record, bytes: Vec<u8>) -> Secret {
    secret(record, RECORD_KEY, bytes)
}

/// The head of a record that does not.
pub(super) fn parted_head(record: &Record, parts: &Parts) -> Option<Secret> {
    let mut head = secret(record, PARTS_KEY, serde_json::to_vec(parts).ok()?);
    head.metadata.labels.get_or_insert_default().insert(PARTS_LABEL.to_owned(), parts.generation());
    Some(head)
}

impl Parts {
    pub(super) fn of(bytes: &[u8], base: Option<Version>) -> Self {
        let base = base.map_or(0, |version| version.0);
        Self { count: bytes.len().div_ceil(LARGEST), sha256: sha256(bytes), base }
    }

    /// Tells the parts of one write from those of any other. A write that is tried again has the same parts, and
    /// finds those that are there already.
    pub(super) fn generation(&self) -> String {
        format!("{}-{}", self.base, self.sha256.get(..16).unwrap_or_default())
    }

    pub(super) fn name(&self, head: &str, number: usize) -> String {
        format!("{head}-{}-{number}", self.generation())
    }
}

/// Which version of its head the parts of a generation are to follow; `0`: there is none yet.
pub(super) fn base_of_generation(generation: &str) -> Option<&str> {
    generation.split_once('-').map(|(base, _)| base)
}

/// One part.
pub(super) fn part(head: &str, parts: &Parts, number: usize, bytes: &[u8]) -> Secret {
    let generation = parts.generation();
    let labels =
        [(MANAGED_BY_LABEL, "purlin"), (KIND_LABEL, "part"), (PART_OF_LABEL, head), (PARTS_LABEL, generation.as_str())];
    Secret {
        metadata: ObjectMeta { name: Some(parts.name(head, number)), labels: Some(owned(labels)), ..<_>::default() },
        data: Some([(PART_KEY.to_owned(), ByteString(bytes.to_owned()))].into()),
        type_: Some(SECRET_TYPE.to_owned()),
        immutable: Some(true),
        ..Secret::default()
    }
}

fn secret(record: &Record, key: &str, bytes: Vec<u8>) -> Secret {
    let address = record.address.to_string();
    let name = record_name(&record.namespace, &record.address);
    describe(name, "head", &record.namespace, &record.address.name, &address, key, bytes)
}

/// The index of a family; `None` when it does not fit.
pub(super) fn family(family: &Family) -> Option<Secret> {
    let text = FamilyText {
        format: 1,
        uid: family.uid.clone(),
        name: family.name.clone(),
        instances: family.instances.clone(),
        rebuilt: family.rebuilt,
    };
    let bytes = zstd::bulk::compress(&serde_json::to_vec(&text).ok()?, 1).ok()?;
    let name = family_name(&family.namespace, &family.name);
    let fits = bytes.len() <= LARGEST;
    fits.then(|| describe(name, "family", &family.namespace, &family.name, &family.name, FAMILY_KEY, bytes))
}

/// The labels are for people: `kubectl get secrets -l purlin.dev/namespace=shop,purlin.dev/resource=web`.
fn describe(
    name: String,
    kind: &str,
    namespace: &str,
    resource: &str,
    address: &str,
    key: &str,
    bytes: Vec<u8>,
) -> Secret {
    let labels =
        [(MANAGED_BY_LABEL, "purlin"), (KIND_LABEL, kind), (NAMESPACE_LABEL, namespace), (RESOURCE_LABEL, resource)];
    Secret {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(owned(labels)),
            annotations: Some(owned([(ADDRESS_ANNOTATION, address)])),
            ..ObjectMeta::default()
        },
        data: Some([(key.to_owned(), ByteString(bytes))].into()),
        type_: Some(SECRET_TYPE.to_owned()),
        ..Secret::default()
    }
}

fn owned<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Whether a Secret of our type is the index of a family, be it readable or not.
pub fn is_family(secret: &Secret) -> bool {
    secret.metadata.labels.as_ref().and_then(|labels| labels.get(KIND_LABEL)).is_some_and(|kind| kind == "family")
}

/// What a Secret of our type holds.
///
/// # Errors
/// When it cannot be read; whose it is comes from what stands beside the record.
pub fn decode(secret: &Secret, strings: &mut Strings) -> Result<Decoded, Unreadable> {
    let label = |key| secret.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned().unwrap_or_default();
    let name = secret.metadata.name.clone().unwrap_or_default();
    let annotation = secret.metadata.annotations.as_ref().and_then(|all| all.get(ADDRESS_ANNOTATION));
    let address = annotation.and_then(|text| text.parse().ok()).unwrap_or_else(|| Address::single(name.as_str()));
    let namespace = label(NAMESPACE_LABEL);
    let found = version(&secret.metadata);
    let known = found.as_ref().copied().unwrap_or(Version(0));
    let unreadable = |message: String| {
        let (namespace, address) = (namespace.clone(), address.clone());
        Unreadable { namespace, address, version: known, message }
    };
    let version = found.map_err(unreadable)?;
    let value = |key: &str| secret.data.as_ref()?.get(key).map(|value| value.0.as_slice());
    if let Some(bytes) = value(RECORD_KEY) {
        let record = codec::decode(bytes, strings).map_err(|error| unreadable(error.to_string()))?;
        return at_home(record, &name).map(|record| Decoded::Record(Stored { record, version })).map_err(unreadable);
    }
    if let Some(bytes) = value(PARTS_KEY) {
        let parts =
            serde_json::from_slice(bytes).map_err(|_| unreadable("the list of its parts is damaged".to_owned()))?;
        return Ok(Decoded::Parted(PartedHead { secret: name, namespace, address, version, parts }));
    }
    let bytes = value(FAMILY_KEY).ok_or_else(|| unreadable(format!("the Secret `{name}` holds no record")))?;
    let text = read_family(bytes).map_err(unreadable)?;
    let FamilyText { uid, name, instances, rebuilt, .. } = text;
    let (namespace, version) = (strings.share(&namespace), Some(version));
    Ok(Decoded::Family(Family { namespace, name, uid, instances, rebuilt, version }))
}

/// A record under another name is a copy made by hand, and would stand for the object twice.
pub(super) fn at_home(record: Record, name: &str) -> Result<Arc<Record>, String> {
    if record_name(&record.namespace, &record.address) == name {
        Ok(Arc::new(record))
    } else {
        Err(format!("the Secret `{name}` holds a copy of the record of {} (hint: delete the copy)", record.address))
    }
}

fn read_family(bytes: &[u8]) -> Result<FamilyText, String> {
    const DAMAGED: &str = "the index of the family is damaged (hint: restore it from a backup)";
    /// More instances than any cluster can hold; bounds what damaged bytes make us reserve.
    const LARGEST_TEXT: usize = 64 << 20;
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let text = zstd::bulk::decompress(bytes, LARGEST_TEXT).map_err(|_| DAMAGED)?;
    let Format { format } = serde_json::from_slice(&text).map_err(|_| DAMAGED)?;
    if format != 1 {
        return Err(format!("the index of the family has format {format}, which is newer (hint: use a newer version)"));
    }
    serde_json::from_slice(&text).map_err(|_| DAMAGED.to_owned())
}
