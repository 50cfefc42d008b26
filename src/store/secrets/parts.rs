//! Records that are too large for one Secret. The parts are written first, then the head that names them: until then
//! the old content counts, afterwards the new one. Parts that no head names are collected.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, GetParams, ListParams, ObjectList, ObjectMeta, PartialObjectMeta, PostParams};
use tracing::debug;

use super::shape::{self, KIND_LABEL, LARGEST, PART_KEY, PART_OF_LABEL, PARTS_LABEL, PartedHead, Parts};
use super::{Decoded, Failure, Patience, Secrets, metadata_only};
use crate::model::{Record, Stored, Version};
use crate::store::{Strings, Unreadable, codec};

/// A head that changes while its parts are read is read anew this often. It changes with a step of its object, and a
/// step takes longer than that.
const ATTEMPTS: usize = 5;

/// No process is about to make a record whose parts it wrote a day ago: it gives up after half a minute.
const OLD: SignedDuration = SignedDuration::from_hours(24);

impl Secrets {
    pub(super) async fn put_in_parts(
        &self,
        record: &Record,
        bytes: &[u8],
        base: Option<Version>,
        patience: Patience,
    ) -> Result<Version, Failure> {
        let parts = Parts::of(bytes, base);
        let head = shape::record_name(&record.namespace, &record.address);
        let secret = shape::parted_head(record, &parts);
        let secret = secret.ok_or_else(|| Failure::Refused("the list of parts cannot be written".to_owned()))?;
        let old = self.parts_of(&head).await;
        // Noted before the first part: whatever comes of this write, the next one looks for remains.
        self.parted.mark(&head);
        for (number, chunk) in bytes.chunks(LARGEST).enumerate() {
            self.put_part(&shape::part(&head, &parts, number, chunk), patience).await?;
        }
        let version = self.write(secret, base, patience).await?;
        self.collect(&head, old, Some(&parts)).await;
        Ok(version)
    }

    /// A part that is there already has the same content: its name says so.
    async fn put_part(&self, part: &k8s_openapi::api::core::v1::Secret, patience: Patience) -> Result<(), Failure> {
        let body = serde_json::to_vec(part).map_err(Failure::invalid)?;
        let request = self.requests.create(&PostParams::default(), body).map_err(Failure::invalid)?;
        let request = metadata_only(request);
        match self.caller.send::<PartialObjectMeta>(&request, patience).await {
            Ok(_) | Err(Failure::Conflict) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Reads a record whose head has been read. `None` when the record was removed meanwhile.
    ///
    /// # Errors
    /// When the server cannot be reached. A record that cannot be read is the inner error.
    pub async fn assemble(
        &self,
        head: &PartedHead,
        patience: Patience,
    ) -> Result<Option<Result<Stored, Unreadable>>, Failure> {
        let mut head = head.clone();
        for _ in 0..ATTEMPTS {
            self.parted.mark(&head.secret);
            if let Some(bytes) = self.read_parts(&head, patience).await? {
                return Ok(Some(stored(&head, &bytes)));
            }
            // A part is missing: the head has moved on, or is gone, or a part was removed by hand.
            let Some(secret) = self.get_secret(&head.secret, patience).await? else { return Ok(None) };
            match shape::decode(&secret, &mut Strings::default()) {
                Ok(Decoded::Record(stored)) => return Ok(Some(Ok(stored))),
                Ok(Decoded::Parted(newer)) if newer != head => head = newer,
                Ok(_) => break,
                Err(unreadable) => return Ok(Some(Err(unreadable))),
            }
        }
        Ok(Some(Err(unreadable(&head, "a part of it is missing (hint: restore it from a backup)"))))
    }

    async fn read_parts(&self, head: &PartedHead, patience: Patience) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = Vec::new();
        for number in 0..head.parts.count {
            let name = head.parts.name(&head.secret, number);
            let Some(part) = self.get_secret(&name, patience).await? else { return Ok(None) };
            match part.data.as_ref().and_then(|data| data.get(PART_KEY)) {
                Some(chunk) => bytes.extend_from_slice(&chunk.0),
                None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    /// The parts that a record has before it is written. Nothing for records that never had parts as far as this
    /// process knows, and when the list fails: `sweep_parts` comes along at the next start.
    pub(super) async fn parts_of(&self, head: &str) -> Vec<ObjectMeta> {
        if !self.parted.contains(head) {
            return Vec::new();
        }
        self.list_metadata(&format!("{KIND_LABEL}=part,{PART_OF_LABEL}={head}")).await.unwrap_or_default()
    }

    /// Removes what `parts_of` found before the write, but for the parts of what was written. Looking only afterwards
    /// could find, and remove, the parts that the next writer is just putting in place.
    pub(super) async fn collect(&self, head: &str, old: Vec<ObjectMeta>, keep: Option<&Parts>) {
        let keep = keep.map(Parts::generation);
        for part in old.iter().filter(|part| label(part, PARTS_LABEL) != keep.as_deref()) {
            if let Err(error) = self.delete_part(part).await {
                debug!(head, "an old part of a record stays until the next start: {error}");
                return;
            }
        }
        if keep.is_none() {
            self.parted.unmark(head);
        }
    }

    /// Removes the parts that no head names and none will: what a crash between parts and head, or head and collection,
    /// has left. A part says which version of the head it is to follow, so a write that is under way, by whomever, can
    /// still come to its end exactly as long as the head has that version. Parts of a record that is yet to be made stay
    /// until there is a head, or are removed when they are old.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn sweep_parts(&self, now: Timestamp) -> Result<usize, Failure> {
        // The heads after the parts: what was written in between is named by a head that is read.
        let parts = self.list_metadata(&format!("{KIND_LABEL}=part")).await?;
        let mut heads = BTreeMap::new();
        let mut removed = 0;
        for part in &parts {
            let name = label(part, PART_OF_LABEL).unwrap_or_default();
            if !heads.contains_key(name) {
                heads.insert(name, self.get_metadata(name).await?);
            }
            if is_left(part, heads.get(name).and_then(Option::as_ref), now) {
                self.delete_part(part).await?;
                removed += 1;
            } else {
                // The next write of the record looks for what remains.
                self.parted.mark(name);
            }
        }
        Ok(removed)
    }

    async fn get_metadata(&self, name: &str) -> Result<Option<ObjectMeta>, Failure> {
        let request = self.requests.get_metadata(name, &GetParams::default()).map_err(Failure::invalid)?;
        match self.caller.send::<PartialObjectMeta>(&request, Patience::SHORT).await {
            Ok(found) => Ok(Some(found.metadata)),
            Err(Failure::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn list_metadata(&self, selector: &str) -> Result<Vec<ObjectMeta>, Failure> {
        let params = ListParams::default().labels(selector).fields(shape::FIELD_SELECTOR);
        let request = self.requests.list_metadata(&params).map_err(Failure::invalid)?;
        let list: ObjectList<PartialObjectMeta> = self.caller.send(&request, Patience::SHORT).await?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }

    async fn delete_part(&self, part: &ObjectMeta) -> Result<(), Failure> {
        let request = self.requests.delete(part.name.as_deref().unwrap_or_default(), &DeleteParams::default());
        match self.caller.send::<serde_json::Value>(&request.map_err(Failure::invalid)?, Patience::SHORT).await {
            Ok(_) | Err(Failure::NotFound) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// Whether no head names the part, nor can come to.
fn is_left(part: &ObjectMeta, head: Option<&ObjectMeta>, now: Timestamp) -> bool {
    let generation = label(part, PARTS_LABEL);
    let follows = generation.and_then(shape::base_of_generation);
    match head {
        Some(head) if label(head, PARTS_LABEL) == generation => false,
        Some(head) => follows != head.resource_version.as_deref(),
        // What was to replace a head that is gone is refused.
        None if follows != Some("0") => true,
        None => part.creation_timestamp.as_ref().is_none_or(|made| now.duration_since(made.0) > OLD),
    }
}

fn stored(head: &PartedHead, bytes: &[u8]) -> Result<Stored, Unreadable> {
    if shape::sha256(bytes) != head.parts.sha256 {
        return Err(unreadable(head, "its parts are damaged (hint: restore it from a backup)"));
    }
    let record = codec::decode(bytes, &mut Strings::default()).map_err(|error| unreadable(head, &error.to_string()))?;
    let record = shape::at_home(record, &head.secret).map_err(|message| unreadable(head, &message))?;
    Ok(Stored { record, version: head.version })
}

fn unreadable(head: &PartedHead, message: &str) -> Unreadable {
    let (namespace, address) = (head.namespace.clone(), head.address.clone());
    Unreadable { namespace, address, version: head.version, message: message.to_owned() }
}

fn label<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The heads that have, or had, parts as far as this process knows: only for those a write is followed by a look for
/// parts to collect.
#[derive(Debug, Default)]
pub(super) struct PartedNames(std::sync::Mutex<BTreeSet<String>>);

impl PartedNames {
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
