//! Records as Secrets in the controller's namespace: one for each record, and one for the index of each family.
//!
//! Every write names the version that it replaces, so of two concurrent controllers one gets a conflict. After a lost
//! response the record is read back: if it has the written content, the write succeeded. A record that is too large for
//! one Secret is written as numbered parts first; the head that names them is written last and commits the write.

mod parts;
mod retry;
mod shape;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{
    DeleteParams, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::Request;
use tracing::debug;

use crate::store::{Interner, UnreadableRecord, codec};
use model::{Address, Name, Namespace, Record, Stored, Version};
use process::{Random, Shutdown};

pub use retry::{RequestError, RetryPolicy};
pub use shape::{
    FIELD_SELECTOR, Family, SECRET_TYPE, SecretContent, SplitHead, decode, family_name, is_family,
    label_selector_without, namespace_of, record_name, size,
};

pub(crate) use retry::ApiCaller;

/// The number of Secrets in a page of a list: usually one megabyte, with 2 KiB each. Even with 300 KiB each a page is
/// acceptable.
const PAGE: u32 = 500;

/// Requests only the metadata in the response to a write, never the record itself.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

#[derive(Clone)]
pub struct Secrets {
    caller: ApiCaller,
    requests: Request,
    /// The namespace of the controller.
    namespace: Namespace,
    parted: Arc<parts::SplitRecords>,
    /// The caller is a user, not the controller.
    is_user: bool,
}

impl Secrets {
    /// Stores records in `namespace`. `stop` ends the unlimited retries.
    pub fn new(client: Client, namespace: impl Into<Namespace>, random: Arc<dyn Random>, stop: Shutdown) -> Self {
        let namespace = namespace.into();
        let requests = Request::new(<Secret as kube::Resource>::url_path(&(), Some(&namespace)));
        let caller = ApiCaller::new(client, random, stop);
        Self { caller, requests, namespace, parted: Arc::default(), is_user: false }
    }

    /// Acts for a user instead of the controller. The chart's admission policy lets users delete only Secrets that are
    /// annotated as forgotten, so the annotation is added before a deletion.
    #[must_use]
    pub fn for_user(self) -> Self {
        Self { is_user: true, ..self }
    }

    pub(crate) fn caller(&self) -> &ApiCaller {
        &self.caller
    }

    /// Writes a record; without `base`, creates it.
    ///
    /// # Errors
    /// `RequestError::Conflict` when the record does not have the version `base`, or exists already.
    pub async fn put(
        &self,
        record: &Record,
        base: Option<Version>,
        policy: RetryPolicy,
    ) -> Result<Version, RequestError> {
        let bytes = codec::encode(record).map_err(|error| RequestError::Rejected(error.to_string()))?;
        if bytes.len() > shape::LARGEST {
            return self.put_in_parts(record, &bytes, base, policy).await;
        }
        let name = shape::record_name(&record.namespace, &record.address);
        let old = self.parts_of(&name).await;
        let version = self.write(shape::head(record, bytes), base, policy).await?;
        self.collect(&name, old, None).await;
        Ok(version)
    }

    /// Replaces the known record `base`. Other clients may change the metadata of its Secret (an annotation, a storage
    /// migration), which changes the version. The write is repeated on the new version as long as the record itself [is
    /// still](Stored::is_still) the known one.
    ///
    /// # Errors
    /// `RequestError::Conflict` when the record was changed or removed.
    pub async fn replace(&self, record: &Record, base: &Stored, policy: RetryPolicy) -> Result<Version, RequestError> {
        let mut version = base.version;
        loop {
            match self.put(record, Some(version), policy).await {
                Err(RequestError::Conflict) => version = self.newer_version(base, version, policy).await?,
                other => return other,
            }
        }
    }

    /// Removes the known record `base`; a missing record is no error. Follows changes of the metadata like `replace`.
    ///
    /// # Errors
    /// `RequestError::Conflict` when the record was changed.
    pub async fn remove(&self, base: &Stored, policy: RetryPolicy) -> Result<(), RequestError> {
        let Record { namespace, address, .. } = base.record.as_ref();
        let mut version = base.version;
        loop {
            match self.delete(namespace, address, version, policy).await {
                Err(RequestError::Conflict) => version = self.newer_version(base, version, policy).await?,
                other => return other,
            }
        }
    }

    /// Returns the later version of the known record if only its metadata was changed.
    async fn newer_version(&self, base: &Stored, tried: Version, policy: RetryPolicy) -> Result<Version, RequestError> {
        let Record { namespace, address, .. } = base.record.as_ref();
        match self.get(namespace, address, policy).await? {
            Some(Ok(SecretContent::Record(found))) if found.version > tried && base.is_equivalent_to(&found.record) => {
                debug!(object = %address, "only the metadata of the record was changed; retrying with its new version");
                Ok(found.version)
            }
            _ => Err(RequestError::Conflict),
        }
    }

    /// Writes the index of a family; without `base`, creates it.
    ///
    /// # Errors
    /// As `put`.
    pub async fn put_family(
        &self,
        family: &Family,
        base: Option<Version>,
        policy: RetryPolicy,
    ) -> Result<Version, RequestError> {
        let secret =
            shape::family(family).ok_or_else(|| RequestError::Rejected("the index is too large".to_owned()))?;
        self.write(secret, base, policy).await
    }

    /// Removes the record with the version `base`; a missing record is no error.
    ///
    /// # Errors
    /// `RequestError::Conflict` when the record has another version.
    pub async fn delete(
        &self,
        namespace: &str,
        address: &Address,
        base: Version,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        let name = shape::record_name(namespace, address);
        let old = self.parts_of(&name).await;
        match self.delete_secret(&name, base, policy).await {
            Ok(()) => self.collect(&name, old, None).await,
            // The parts can be those of a new record of another replica, which writes the head after them.
            Err(RequestError::NotFound) => {}
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// Removes the index of a family with the version `base`; a missing index is no error.
    ///
    /// # Errors
    /// As `delete`.
    pub async fn delete_family(
        &self,
        namespace: &str,
        name: &Name,
        base: Version,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        match self.delete_secret(&shape::family_name(namespace, name), base, policy).await {
            Ok(()) | Err(RequestError::NotFound) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Removes an unreadable record or family index.
    ///
    /// # Errors
    /// As `delete`.
    pub async fn delete_unreadable(&self, found: &UnreadableRecord, policy: RetryPolicy) -> Result<(), RequestError> {
        match self.is_index(found, policy).await? {
            true => self.delete_family(&found.namespace, found.address.name(), found.version, policy).await,
            false => self.delete(&found.namespace, &found.address, found.version, policy).await,
        }
    }

    /// Whether this is an unreadable family index. No two Secrets have the same version.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn is_index(&self, found: &UnreadableRecord, policy: RetryPolicy) -> Result<bool, RequestError> {
        let name = shape::family_name(&found.namespace, found.address.name());
        let there = self.get_secret(&name, policy).await?;
        Ok(there.is_some_and(|there| shape::version(&there.metadata).is_ok_and(|version| version == found.version)))
    }

    /// Reads the current record from the server; `None` if it does not exist.
    ///
    /// # Errors
    /// When the server cannot be reached. An unreadable record is the inner error.
    pub async fn get(
        &self,
        namespace: &str,
        address: &Address,
        policy: RetryPolicy,
    ) -> Result<Option<Result<SecretContent, UnreadableRecord>>, RequestError> {
        self.get_decoded(&shape::record_name(namespace, address), policy).await
    }

    /// Reads the current index of a family; `None` if it does not exist.
    ///
    /// # Errors
    /// As `get`.
    pub async fn get_family(
        &self,
        namespace: &str,
        name: &Name,
        policy: RetryPolicy,
    ) -> Result<Option<Family>, RequestError> {
        match self.get_decoded(&shape::family_name(namespace, name), policy).await? {
            None => Ok(None),
            Some(Ok(SecretContent::Family(family))) => Ok(Some(family)),
            Some(Ok(_)) => Err(RequestError::Rejected(format!("the Secret of the index of {name} is not an index"))),
            Some(Err(unreadable)) => Err(RequestError::Rejected(unreadable.message)),
        }
    }

    /// Reads all records and indexes, of one namespace or of all. Includes records in parts.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn load_all(
        &self,
        of: Option<&str>,
    ) -> Result<Vec<Result<SecretContent, UnreadableRecord>>, RequestError> {
        let mut selector = shape::label_selector_without(&[]);
        if let Some(namespace) = of {
            selector.push_str(&format!(",{}={namespace}", shape::NAMESPACE_LABEL));
        }
        let mut page = ListParams::default().labels(&selector).fields(FIELD_SELECTOR).limit(PAGE);
        let mut strings = Interner::default();
        let mut found = Vec::new();
        loop {
            let request = self.requests.list(&page).map_err(RequestError::invalid)?;
            let list: ObjectList<Secret> = self.caller.send(&request, RetryPolicy::SHORT).await?;
            for secret in &list.items {
                found.push(match decode(secret, &mut strings) {
                    Ok(SecretContent::Split(head)) => match self.assemble(&head, RetryPolicy::SHORT).await? {
                        None => continue,
                        Some(whole) => whole.map(SecretContent::Record),
                    },
                    other => other,
                });
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(found),
                Some(token) => page = page.continue_token(&token),
            }
        }
    }

    /// Takes one request without errors. A conflict may result from our own write whose response was lost; then the
    /// stored content is the written one.
    async fn write(
        &self,
        mut secret: Secret,
        base: Option<Version>,
        policy: RetryPolicy,
    ) -> Result<Version, RequestError> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        secret.metadata.resource_version = base.map(|version| version.0.to_string());
        let body = serde_json::to_vec(&secret).map_err(RequestError::invalid)?;
        let params = PostParams { field_manager: Some("purlin".to_owned()), ..PostParams::default() };
        let request = match base {
            None => self.requests.create(&params, body),
            Some(_) => self.requests.replace(&name, &params, body),
        };
        let request = metadata_only(request.map_err(RequestError::invalid)?);
        match self.caller.send::<PartialObjectMeta>(&request, policy).await {
            Ok(written) => shape::version(&written.metadata).map_err(RequestError::Rejected),
            Err(RequestError::Conflict) => self.read_back(&name, &secret, policy).await,
            // If a replaced Secret does not exist, another client removed it.
            Err(RequestError::NotFound) if base.is_some() => Err(RequestError::Conflict),
            // A retry cannot help.
            Err(RequestError::NotFound | RequestError::NamespaceMissing(_)) => Err(RequestError::Rejected(format!(
                "the namespace {} of the controller does not exist",
                self.namespace
            ))),
            Err(other) => Err(other),
        }
    }

    async fn read_back(&self, name: &str, written: &Secret, policy: RetryPolicy) -> Result<Version, RequestError> {
        match self.get_secret(name, policy).await? {
            // Other clients may have changed the metadata.
            Some(found) if found.data == written.data => {
                shape::version(&found.metadata).map_err(RequestError::Rejected)
            }
            _ => Err(RequestError::Conflict),
        }
    }

    /// The version suffices as a precondition: no two objects of a cluster have the same one, so it implies the UID.
    async fn delete_secret(&self, name: &str, base: Version, policy: RetryPolicy) -> Result<(), RequestError> {
        let base = match self.is_user {
            false => base,
            true => self.mark_forgotten(name, base, policy).await?,
        };
        let preconditions = Preconditions { resource_version: Some(base.0.to_string()), uid: None };
        let request = self.requests.delete(name, &DeleteParams::default().preconditions(preconditions));
        self.caller.send::<serde_json::Value>(&request.map_err(RequestError::invalid)?, policy).await.map(drop)
    }

    /// A crash afterwards leaves the record as it was; the controller's next write removes the annotation.
    async fn mark_forgotten(&self, name: &str, base: Version, policy: RetryPolicy) -> Result<Version, RequestError> {
        let annotations = BTreeMap::from([(shape::FORGOTTEN_ANNOTATION, "true")]);
        let metadata = serde_json::json!({"resourceVersion": base.0.to_string(), "annotations": annotations});
        let patch = Patch::Merge(serde_json::json!({ "metadata": metadata }));
        let params = PatchParams { field_manager: Some("purlin-cli".to_owned()), ..PatchParams::default() };
        let request = self.requests.patch(name, &params, &patch).map_err(RequestError::invalid)?;
        let marked = self.caller.send::<PartialObjectMeta>(&metadata_only(request), policy).await?;
        shape::version(&marked.metadata).map_err(RequestError::Rejected)
    }

    async fn get_secret(&self, name: &str, policy: RetryPolicy) -> Result<Option<Secret>, RequestError> {
        let request = self.requests.get(name, &kube::api::GetParams::default()).map_err(RequestError::invalid)?;
        match self.caller.send(&request, policy).await {
            Ok(secret) => Ok(Some(secret)),
            Err(RequestError::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn get_decoded(
        &self,
        name: &str,
        policy: RetryPolicy,
    ) -> Result<Option<Result<SecretContent, UnreadableRecord>>, RequestError> {
        let Some(secret) = self.get_secret(name, policy).await? else { return Ok(None) };
        match decode(&secret, &mut Interner::default()) {
            Ok(SecretContent::Split(head)) => {
                Ok(self.assemble(&head, policy).await?.map(|whole| whole.map(SecretContent::Record)))
            }
            other => Ok(Some(other)),
        }
    }
}

fn metadata_only(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA_ONLY));
    request
}
