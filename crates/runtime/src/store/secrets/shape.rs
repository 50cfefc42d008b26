//! Conversion between records and Secrets, without requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::store::{Interner, UnreadableRecord, codec};
use model::{Address, Name, Namespace, Record, Stored, Uid, Version, bucket};

pub const SECRET_TYPE: &str = "purlin.dev/record.v1";

/// Selects the Secrets of Purlin by type.
pub const FIELD_SELECTOR: &str = "type=purlin.dev/record.v1";

/// Selects records and indexes, without the parts of large records.
const LABEL_SELECTOR: &str = "purlin.dev/record in (head,family)";

/// Selects as [`LABEL_SELECTOR`], without the records of these buckets. It selects records without a bucket too.
pub fn label_selector_without(buckets: &[u16]) -> String {
    if buckets.is_empty() {
        return LABEL_SELECTOR.to_owned();
    }
    let buckets: Vec<String> = buckets.iter().map(u16::to_string).collect();
    format!("{LABEL_SELECTOR},{BUCKET_LABEL} notin ({})", buckets.join(","))
}

/// The namespace of the object of a Secret with a record or an index, from its label.
pub fn namespace_of(secret: &Secret) -> &str {
    let label = secret.metadata.labels.as_ref().and_then(|labels| labels.get(NAMESPACE_LABEL));
    label.map(String::as_str).unwrap_or_default()
}

/// Values: `head`, `family`, `part`.
pub const KIND_LABEL: &str = "purlin.dev/record";
pub const NAMESPACE_LABEL: &str = "purlin.dev/namespace";
/// The bucket of the namespace. Records of earlier versions lack it until their next write.
const BUCKET_LABEL: &str = "purlin.dev/bucket";
/// On a head: the generation of its parts. On a part: the generation that it belongs to.
pub const PARTS_LABEL: &str = "purlin.dev/parts";
pub const PART_OF_LABEL: &str = "purlin.dev/part-of";
const RESOURCE_LABEL: &str = "purlin.dev/resource";
const MODULE_LABEL: &str = "purlin.dev/module";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const ADDRESS_ANNOTATION: &str = "purlin.dev/address";
/// Says that a user has decided to forget the content of a Secret. The chart's admission policy lets only the
/// controller delete a Secret without it.
pub const FORGOTTEN_ANNOTATION: &str = "purlin.dev/forgotten";

const RECORD_KEY: &str = "record";
const PARTS_KEY: &str = "parts";
const FAMILY_KEY: &str = "family";
pub const PART_KEY: &str = "part";

/// The server rejects Secrets of more than 1 MiB; labels, annotations and managedFields need space as well.
pub const LARGEST: usize = 900 * 1024;

/// The index of a family: the instances that have a record or are about to get one. An indexed instance without a
/// record has lost it, and must not be created again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub namespace: Namespace,
    pub name: Name,
    pub uid: Uid,
    pub instances: BTreeSet<Address>,
    /// The index replaces one that was lost, so an instance that it lacks may have had a record.
    pub rebuilt: bool,
    /// The version that was read; `None` before the first write.
    pub version: Option<Version>,
}

/// The head of a record that is stored in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitHead {
    pub(crate) secret: String,
    pub(crate) namespace: String,
    pub(crate) address: Address,
    pub(crate) version: Version,
    pub(crate) parts: Parts,
}

impl SplitHead {
    /// The size of the record at most, in bytes.
    pub fn size(&self) -> u64 {
        (self.parts.count as u64).saturating_mul(LARGEST as u64)
    }
}

/// The size of a record in one Secret, in bytes.
pub fn size(secret: &Secret) -> u64 {
    secret.data.iter().flatten().map(|(_, bytes)| bytes.0.len() as u64).sum()
}

/// The description of the parts in their head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub count: usize,
    /// Of all parts together, hexadecimal.
    pub sha256: String,
    /// The version that the head replaced; 0 for a new record.
    pub base: u64,
}

#[derive(Clone, Debug)]
pub enum SecretContent {
    Record(Stored),
    /// A record in parts; `Secrets::assemble` reads them.
    Split(SplitHead),
    Family(Family),
}

#[derive(Serialize, Deserialize)]
struct FamilyDocument {
    format: u32,
    uid: Uid,
    name: Name,
    instances: BTreeSet<Address>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rebuilt: bool,
}

/// The name of the Secret of a record. It is found without a list and is the same for every controller, so a second
/// controller that creates the record gets a conflict.
pub fn record_name(namespace: &str, address: &Address) -> String {
    hashed("purlin-record-", &format!("{namespace}/{address}"))
}

/// The name of the Secret of a family index. It differs from the name of a record without a key, because a Resource
/// that turns into a family has both for a while.
pub fn family_name(namespace: &str, name: &Name) -> String {
    hashed("purlin-family-", &format!("{namespace}/{name}"))
}

/// 128 bits: no two addresses of a cluster collide, and the name fits into a label.
fn hashed(prefix: &str, what: &str) -> String {
    format!("{prefix}{}", &sha256(what.as_bytes())[..32])
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The resourceVersion as a number: since Kubernetes 1.35 it is documented to be an increasing decimal.
pub fn version(metadata: &ObjectMeta) -> Result<Version, String> {
    let text = metadata.resource_version.as_deref().unwrap_or_default();
    text.parse()
        .map(Version)
        .map_err(|_| format!("the API server returned the resourceVersion `{text}`, which is not a number"))
}

pub fn head(record: &Record, bytes: Vec<u8>) -> Secret {
    secret(record, RECORD_KEY, bytes)
}

/// The head of a record that does not fit into one Secret.
pub fn parted_head(record: &Record, parts: &Parts) -> Option<Secret> {
    let mut head = secret(record, PARTS_KEY, serde_json::to_vec(parts).ok()?);
    head.metadata.labels.get_or_insert_default().insert(PARTS_LABEL.to_owned(), parts.generation());
    Some(head)
}

impl Parts {
    pub fn of(bytes: &[u8], base: Option<Version>) -> Self {
        let base = base.map_or(0, |version| version.0);
        Self { count: bytes.len().div_ceil(LARGEST), sha256: sha256(bytes), base }
    }

    /// Distinguishes the parts of one write from those of other writes. A retried write has the same generation and
    /// finds its existing parts.
    pub fn generation(&self) -> String {
        format!("{}-{}", self.base, self.sha256.get(..16).unwrap_or_default())
    }

    pub fn name(&self, head: &str, number: usize) -> String {
        format!("{head}-{}-{number}", self.generation())
    }
}

/// The version of the head that the parts of a generation follow; `0` for a new record.
pub fn base_of_generation(generation: &str) -> Option<&str> {
    generation.split_once('-').map(|(base, _)| base)
}

pub fn part(head: &str, parts: &Parts, number: usize, bytes: &[u8]) -> Secret {
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
    build_secret(name, "head", &record.namespace, &record.address, &address, key, bytes)
}

/// The Secret of a family index; `None` if it is too large.
pub fn family(family: &Family) -> Option<Secret> {
    let text = FamilyDocument {
        format: 1,
        uid: family.uid.clone(),
        name: family.name.clone(),
        instances: family.instances.clone(),
        rebuilt: family.rebuilt,
    };
    let bytes = zstd::bulk::compress(&serde_json::to_vec(&text).ok()?, 1).ok()?;
    let name = family_name(&family.namespace, &family.name);
    let fits = bytes.len() <= LARGEST;
    let of = Address::single(family.name.clone());
    fits.then(|| build_secret(name, "family", &family.namespace, &of, &family.name, FAMILY_KEY, bytes))
}

/// `of`: an object of the Resource or Module. The labels are for users: `kubectl get secrets -l purlin.dev/namespace=shop,purlin.dev/resource=web`.
fn build_secret(
    name: String,
    kind: &str,
    namespace: &str,
    of: &Address,
    address: &str,
    key: &str,
    bytes: Vec<u8>,
) -> Secret {
    let bucket = bucket(namespace).to_string();
    let labels = [
        (MANAGED_BY_LABEL, "purlin"),
        (KIND_LABEL, kind),
        (NAMESPACE_LABEL, namespace),
        (BUCKET_LABEL, &*bucket),
        (if of.kind() == api::MODULE_KIND { MODULE_LABEL } else { RESOURCE_LABEL }, of.object_name()),
    ];
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

/// Whether a Secret of Purlin is a family index, readable or not.
pub fn is_family(secret: &Secret) -> bool {
    secret.metadata.labels.as_ref().and_then(|labels| labels.get(KIND_LABEL)).is_some_and(|kind| kind == "family")
}

/// Decodes a Secret of Purlin.
///
/// # Errors
/// When it cannot be read. Namespace and address then come from the metadata of the Secret.
pub fn decode(secret: &Secret, strings: &mut Interner) -> Result<SecretContent, UnreadableRecord> {
    let name = secret.metadata.name.clone().unwrap_or_default();
    let annotation = secret.metadata.annotations.as_ref().and_then(|map| map.get(ADDRESS_ANNOTATION));
    let address = annotation.and_then(|text| text.parse().ok()).unwrap_or_else(|| Address::single(name.as_str()));
    let label = secret.metadata.labels.as_ref().and_then(|map| map.get(NAMESPACE_LABEL));
    let namespace = label.cloned().unwrap_or_default();
    let version = version(&secret.metadata);
    let known = version.as_ref().copied().unwrap_or(Version(0));
    let unreadable = |message: String| {
        let (namespace, address) = (namespace.clone(), address.clone());
        UnreadableRecord { namespace, address, version: known, message }
    };
    let version = version.map_err(unreadable)?;
    if let Some(bytes) = data(secret, RECORD_KEY) {
        let record = codec::decode(bytes, strings).map_err(|error| unreadable(error.to_string()))?;
        return check_name(record, &name)
            .map(|record| SecretContent::Record(Stored { record, version }))
            .map_err(unreadable);
    }
    if let Some(bytes) = data(secret, PARTS_KEY) {
        let parts =
            serde_json::from_slice(bytes).map_err(|_| unreadable("the list of its parts is damaged".to_owned()))?;
        return Ok(SecretContent::Split(SplitHead { secret: name, namespace, address, version, parts }));
    }
    let bytes = data(secret, FAMILY_KEY).ok_or_else(|| unreadable(format!("the Secret `{name}` holds no record")))?;
    let text = read_family(bytes).map_err(unreadable)?;
    let FamilyDocument { uid, name, instances, rebuilt, .. } = text;
    let (namespace, version) = (strings.share(&namespace).into(), Some(version));
    Ok(SecretContent::Family(Family { namespace, name, uid, instances, rebuilt, version }))
}

fn data<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    Some(secret.data.as_ref()?.get(key)?.0.as_slice())
}

/// A record under another name is a manual copy, which would make the object exist twice.
pub fn check_name(record: Record, name: &str) -> Result<Arc<Record>, String> {
    if record_name(&record.namespace, &record.address) == name {
        Ok(Arc::new(record))
    } else {
        Err(format!("the Secret `{name}` holds a copy of the record of {} (hint: delete the copy)", record.address))
    }
}

fn read_family(bytes: &[u8]) -> Result<FamilyDocument, String> {
    const DAMAGED: &str = "the family index is damaged (hint: restore it from a backup)";
    /// More than any cluster can hold; limits what damaged bytes can allocate.
    const LARGEST_TEXT: usize = 64 << 20;
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let text = zstd::bulk::decompress(bytes, LARGEST_TEXT).map_err(|_| DAMAGED)?;
    let Format { format } = serde_json::from_slice(&text).map_err(|_| DAMAGED)?;
    if format != 1 {
        return Err(format!("the family index has the newer format {format} (hint: use a newer version of Purlin)"));
    }
    serde_json::from_slice(&text).map_err(|_| DAMAGED.to_owned())
}
