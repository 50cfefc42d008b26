//! Records that are too large for one Secret. The parts are written first, then the head that names them, which commits
//! the write. Parts that no head names are removed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, GetParams, ListParams, ObjectList, ObjectMeta, PartialObjectMeta, PostParams};
use tracing::debug;

use super::shape::{self, KIND_LABEL, LARGEST, PART_KEY, PART_OF_LABEL, PARTS_LABEL, Parts, SplitHead};
use super::{RequestError, RetryPolicy, SecretContent, Secrets, metadata_only};
use crate::store::{Interner, UnreadableRecord, codec};
use model::{Record, Stored, Version};

/// The maximum number of attempts to read the parts of a head that changes. It changes with each step of its object,
/// and steps take longer than a read.
const ATTEMPTS: usize = 5;

/// No process still writes a new record whose parts are this old: writers give up after half a minute.
const OLD: SignedDuration = SignedDuration::from_hours(24);

impl Secrets {
    pub(crate) async fn put_in_parts(
        &self,
        record: &Record,
        bytes: &[u8],
        base: Option<Version>,
        policy: RetryPolicy,
    ) -> Result<Version, RequestError> {
        let parts = Parts::of(bytes, base);
        let head = shape::record_name(&record.namespace, &record.address);
        let secret = shape::parted_head(record, &parts);
        let secret = secret.ok_or_else(|| RequestError::Rejected("the list of parts cannot be written".to_owned()))?;
        let old = self.parts_of(&head).await;
        // Marked before the first part: the next write removes remaining parts if this one fails.
        self.parted.mark(&head);
        for (number, chunk) in bytes.chunks(LARGEST).enumerate() {
            self.put_part(&shape::part(&head, &parts, number, chunk), policy).await?;
        }
        let version = self.write(secret, base, policy).await?;
        self.collect(&head, old, Some(&parts)).await;
        Ok(version)
    }

    /// An existing part has the same content, because its name contains the digest.
    async fn put_part(
        &self,
        part: &k8s_openapi::api::core::v1::Secret,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        let body = serde_json::to_vec(part).map_err(RequestError::invalid)?;
        let request = self.requests.create(&PostParams::default(), body).map_err(RequestError::invalid)?;
        let request = metadata_only(request);
        match self.caller.send::<PartialObjectMeta>(&request, policy).await {
            Ok(_) | Err(RequestError::Conflict) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Reads the parts of a head. `None` if the record was removed meanwhile.
    ///
    /// # Errors
    /// When the server cannot be reached. An unreadable record is the inner error.
    pub async fn assemble(
        &self,
        head: &SplitHead,
        policy: RetryPolicy,
    ) -> Result<Option<Result<Stored, UnreadableRecord>>, RequestError> {
        let mut head = head.clone();
        for _ in 0..ATTEMPTS {
            self.parted.mark(&head.secret);
            if let Some(bytes) = self.read_parts(&head, policy).await? {
                return Ok(Some(stored(&head, &bytes)));
            }
            // A part is missing: the head has changed or was removed, or another client removed the part.
            let Some(secret) = self.get_secret(&head.secret, policy).await? else { return Ok(None) };
            match shape::decode(&secret, &mut Interner::default()) {
                Ok(SecretContent::Record(stored)) => return Ok(Some(Ok(stored))),
                Ok(SecretContent::Split(newer)) if newer != head => head = newer,
                Ok(_) => break,
                Err(unreadable) => return Ok(Some(Err(unreadable))),
            }
        }
        Ok(Some(Err(unreadable(&head, "a part of it is missing (hint: restore it from a backup)"))))
    }

    async fn read_parts(&self, head: &SplitHead, policy: RetryPolicy) -> Result<Option<Vec<u8>>, RequestError> {
        let mut bytes = Vec::new();
        for number in 0..head.parts.count {
            let name = head.parts.name(&head.secret, number);
            let Some(part) = self.get_secret(&name, policy).await? else { return Ok(None) };
            match part.data.as_ref().and_then(|data| data.get(PART_KEY)) {
                Some(chunk) => bytes.extend_from_slice(&chunk.0),
                None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    /// Returns the parts of a record before it is written. Empty if this process knows of no parts, and if the list
    /// fails: `sweep_parts` removes them at the next start.
    pub(crate) async fn parts_of(&self, head: &str) -> Vec<ObjectMeta> {
        if !self.parted.contains(head) {
            return Vec::new();
        }
        self.list_metadata(&format!("{KIND_LABEL}=part,{PART_OF_LABEL}={head}")).await.unwrap_or_default()
    }

    /// Removes the parts that `parts_of` returned before the write, except those of the new record. A list after the
    /// write could contain parts that the next writer has just created.
    pub(crate) async fn collect(&self, head: &str, old: Vec<ObjectMeta>, keep: Option<&Parts>) {
        let keep = keep.map(Parts::generation);
        for part in old.iter().filter(|part| label(part, PARTS_LABEL) != keep.as_deref()) {
            if let Err(error) = self.delete_part(part).await {
                debug!(head, "an old part of a record could not be removed, the next start removes it: {error}");
                return;
            }
        }
        if keep.is_none() {
            self.parted.unmark(head);
        }
    }

    /// Removes the parts that no head names and no head will name: those that a crash between the writes of parts and
    /// head, or before the removal of old parts, has left. A part says which version of the head it follows, so the
    /// write that created it can still succeed only while the head has that version. Parts of a new record stay until
    /// there is a head, or are removed after a day.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn sweep_parts(&self, now: Timestamp) -> Result<usize, RequestError> {
        // Heads are read after the parts, so that parts written in between are named by a head that is read.
        let parts = self.list_metadata(&format!("{KIND_LABEL}=part")).await?;
        let mut heads = BTreeMap::new();
        let mut removed = 0;
        for part in &parts {
            let name = label(part, PART_OF_LABEL).unwrap_or_default();
            if !heads.contains_key(name) {
                heads.insert(name, self.get_metadata(name).await?);
            }
            if is_unreferenced(part, heads.get(name).and_then(Option::as_ref), now) {
                self.delete_part(part).await?;
                removed += 1;
            } else {
                // The next write of the record removes the rest.
                self.parted.mark(name);
            }
        }
        Ok(removed)
    }

    async fn get_metadata(&self, name: &str) -> Result<Option<ObjectMeta>, RequestError> {
        let request = self.requests.get_metadata(name, &GetParams::default()).map_err(RequestError::invalid)?;
        match self.caller.send::<PartialObjectMeta>(&request, RetryPolicy::SHORT).await {
            Ok(found) => Ok(Some(found.metadata)),
            Err(RequestError::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn list_metadata(&self, selector: &str) -> Result<Vec<ObjectMeta>, RequestError> {
        let params = ListParams::default().labels(selector).fields(shape::FIELD_SELECTOR);
        let request = self.requests.list_metadata(&params).map_err(RequestError::invalid)?;
        let list: ObjectList<PartialObjectMeta> = self.caller.send(&request, RetryPolicy::SHORT).await?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }

    async fn delete_part(&self, part: &ObjectMeta) -> Result<(), RequestError> {
        let request = self.requests.delete(part.name.as_deref().unwrap_or_default(), &DeleteParams::default());
        match self.caller.send::<serde_json::Value>(&request.map_err(RequestError::invalid)?, RetryPolicy::SHORT).await
        {
            Ok(_) | Err(RequestError::NotFound) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// Whether no head names the part and no head can.
fn is_unreferenced(part: &ObjectMeta, head: Option<&ObjectMeta>, now: Timestamp) -> bool {
    let generation = label(part, PARTS_LABEL);
    let follows = generation.and_then(shape::base_of_generation);
    match head {
        Some(head) if label(head, PARTS_LABEL) == generation => false,
        Some(head) => follows != head.resource_version.as_deref(),
        // The write that replaces a missing head fails.
        None if follows != Some("0") => true,
        None => part.creation_timestamp.as_ref().is_none_or(|created| now.duration_since(created.0) > OLD),
    }
}

fn stored(head: &SplitHead, bytes: &[u8]) -> Result<Stored, UnreadableRecord> {
    if shape::sha256(bytes) != head.parts.sha256 {
        return Err(unreadable(head, "its parts are damaged (hint: restore it from a backup)"));
    }
    let record =
        codec::decode(bytes, &mut Interner::default()).map_err(|error| unreadable(head, &error.to_string()))?;
    let record = shape::check_name(record, &head.secret).map_err(|message| unreadable(head, &message))?;
    Ok(Stored { record, version: head.version })
}

fn unreadable(head: &SplitHead, message: &str) -> UnreadableRecord {
    let (namespace, address) = (head.namespace.clone(), head.address.clone());
    UnreadableRecord { namespace, address, version: head.version, message: message.to_owned() }
}

fn label<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The heads that have or had parts, as far as this process knows. Only their writes are followed by a removal of old
/// parts.
#[derive(Debug, Default)]
pub struct SplitRecords(std::sync::Mutex<BTreeSet<String>>);

impl SplitRecords {
    fn names(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn mark(&self, head: &str) {
        self.names().insert(head.to_owned());
    }

    fn unmark(&self, head: &str) {
        self.names().remove(head);
    }

    fn contains(&self, head: &str) -> bool {
        self.names().contains(head)
    }
}
