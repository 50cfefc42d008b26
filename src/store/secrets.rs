//! Records as Secrets in the controller's own namespace: one for each record, one for the index of each family.
//!
//! Every write names the version it replaces, so of two controllers one gets a conflict. A write whose answer got lost
//! is read back before it is judged: finding our own content is success. What is too large for one Secret goes into
//! numbered parts first; the head that names them is written last and is the commit.

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

use crate::model::{Address, Record, Stored, Version};
use crate::process::Random;
use crate::store::{Strings, Unreadable, codec};

pub use retry::{Failure, Patience, Stop};
pub use shape::{
    Decoded, FIELD_SELECTOR, Family, LABEL_SELECTOR, PartedHead, SECRET_TYPE, decode, family_name, is_family,
    record_name,
};

pub(crate) use retry::Caller;

/// How many Secrets a page of a list has: at 300 KiB for each at the worst a page is bearable, at 2 KiB as usual it is
/// one megabyte.
const PAGE: u32 = 500;

/// Asks for the metadata of what was written only: the answer to a write is never the record itself.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The Secrets that hold records.
#[derive(Clone)]
pub struct Secrets {
    caller: Caller,
    requests: Request,
    /// The controller's namespace.
    namespace: Arc<str>,
    parted: Arc<parts::PartedNames>,
    /// Somebody else than the controller uses them.
    is_user: bool,
}

impl Secrets {
    /// Records in `namespace`. `stop` ends the retries of writes that would otherwise be tried for ever.
    pub fn new(client: Client, namespace: impl Into<Arc<str>>, random: Arc<dyn Random>, stop: Stop) -> Self {
        let namespace = namespace.into();
        let requests = Request::new(<Secret as kube::Resource>::url_path(&(), Some(&namespace)));
        let caller = Caller::new(client, random, stop);
        Self { caller, requests, namespace, parted: Arc::default(), is_user: false }
    }

    /// The same for somebody who is not the controller. The chart's policy lets such a one delete no Secret that does
    /// not say that it is to be forgotten, so that is said first.
    #[must_use]
    pub fn of_a_user(self) -> Self {
        Self { is_user: true, ..self }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Writes a record, as a new one without `base`.
    ///
    /// # Errors
    /// `Failure::Conflict` when the record does not have the version `base`, or exists already.
    pub async fn put(&self, record: &Record, base: Option<Version>, patience: Patience) -> Result<Version, Failure> {
        let bytes = codec::encode(record).map_err(|error| Failure::Refused(error.to_string()))?;
        if bytes.len() > shape::LARGEST {
            return self.put_in_parts(record, &bytes, base, patience).await;
        }
        let name = shape::record_name(&record.namespace, &record.address);
        let old = self.parts_of(&name).await;
        let version = self.write(shape::head(record, bytes), base, patience).await?;
        self.collect(&name, old, None).await;
        Ok(version)
    }

    /// Writes a record over what is known to be there. Others may change the metadata of its Secret (an annotation, the
    /// migration of storage to another key), which gives it another version: the write follows them as long as the record
    /// itself [is still](Stored::is_still) the one that is known.
    ///
    /// # Errors
    /// `Failure::Conflict` when the record was changed or removed.
    pub async fn replace(&self, record: &Record, base: &Stored, patience: Patience) -> Result<Version, Failure> {
        let mut version = base.version;
        loop {
            match self.put(record, Some(version), patience).await {
                Err(Failure::Conflict) => version = self.moved_to(base, version, patience).await?,
                other => return other,
            }
        }
    }

    /// Removes a record that is known to be there; one that is gone already is fine. As `replace` it follows changes of
    /// the metadata.
    ///
    /// # Errors
    /// `Failure::Conflict` when the record was changed.
    pub async fn remove(&self, base: &Stored, patience: Patience) -> Result<(), Failure> {
        let Record { namespace, address, .. } = base.record.as_ref();
        let mut version = base.version;
        loop {
            match self.delete(namespace, address, version, patience).await {
                Err(Failure::Conflict) => version = self.moved_to(base, version, patience).await?,
                other => return other,
            }
        }
    }

    /// Under which later version the known record is found, when only its metadata was changed. Each further one means
    /// that somebody else has written in the milliseconds since the last.
    async fn moved_to(&self, base: &Stored, tried: Version, patience: Patience) -> Result<Version, Failure> {
        let Record { namespace, address, .. } = base.record.as_ref();
        match self.get(namespace, address, patience).await? {
            Some(Ok(Decoded::Record(found))) if found.version > tried && base.is_still(&found.record) => {
                debug!(%address, "only the metadata of the record was changed; it is written on the version found");
                Ok(found.version)
            }
            _ => Err(Failure::Conflict),
        }
    }

    /// Writes the index of a family, as a new one without `base`.
    ///
    /// # Errors
    /// As `put`.
    pub async fn put_family(
        &self,
        family: &Family,
        base: Option<Version>,
        patience: Patience,
    ) -> Result<Version, Failure> {
        let secret = shape::family(family).ok_or_else(|| Failure::Refused("the index is too large".to_owned()))?;
        self.write(secret, base, patience).await
    }

    /// Removes a record that has the version `base`; one that is gone already is fine.
    ///
    /// # Errors
    /// `Failure::Conflict` when the record has another version.
    pub async fn delete(
        &self,
        namespace: &str,
        address: &Address,
        base: Version,
        patience: Patience,
    ) -> Result<(), Failure> {
        let name = shape::record_name(namespace, address);
        let old = self.parts_of(&name).await;
        self.delete_secret(&name, base, patience).await?;
        self.collect(&name, old, None).await;
        Ok(())
    }

    /// Removes the index of a family that has the version `base`; one that is gone already is fine.
    ///
    /// # Errors
    /// As `delete`.
    pub async fn delete_family(
        &self,
        namespace: &str,
        name: &str,
        base: Version,
        patience: Patience,
    ) -> Result<(), Failure> {
        self.delete_secret(&shape::family_name(namespace, name), base, patience).await
    }

    /// Removes what cannot be read, be it a record or the index of a family.
    ///
    /// # Errors
    /// As `delete`.
    pub async fn delete_unreadable(&self, found: &Unreadable, patience: Patience) -> Result<(), Failure> {
        match self.is_index(found, patience).await? {
            true => self.delete_family(&found.namespace, &found.address.name, found.version, patience).await,
            false => self.delete(&found.namespace, &found.address, found.version, patience).await,
        }
    }

    /// Whether it is the index of a family that cannot be read. No two Secrets have the same version.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn is_index(&self, found: &Unreadable, patience: Patience) -> Result<bool, Failure> {
        let name = shape::family_name(&found.namespace, &found.address.name);
        let there = self.get_secret(&name, patience).await?;
        Ok(there.is_some_and(|there| shape::version(&there.metadata).is_ok_and(|version| version == found.version)))
    }

    /// The record as it is at this moment, from the server itself; `None` when there is none.
    ///
    /// # Errors
    /// When the server cannot be reached. A record that cannot be read is the inner error.
    pub async fn get(
        &self,
        namespace: &str,
        address: &Address,
        patience: Patience,
    ) -> Result<Option<Result<Decoded, Unreadable>>, Failure> {
        self.get_decoded(&shape::record_name(namespace, address), patience).await
    }

    /// The index of a family as it is at this moment; `None` when there is none.
    ///
    /// # Errors
    /// As `get`.
    pub async fn get_family(&self, namespace: &str, name: &str, patience: Patience) -> Result<Option<Family>, Failure> {
        match self.get_decoded(&shape::family_name(namespace, name), patience).await? {
            None => Ok(None),
            Some(Ok(Decoded::Family(family))) => Ok(Some(family)),
            Some(Ok(_)) => Err(Failure::Refused(format!("the index of {name} is no index"))),
            Some(Err(unreadable)) => Err(Failure::Refused(unreadable.message)),
        }
    }

    /// Everything there is, of all namespaces or of one. Parts are read.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn load_all(&self, of: Option<&str>) -> Result<Vec<Result<Decoded, Unreadable>>, Failure> {
        let mut selector = LABEL_SELECTOR.to_owned();
        if let Some(namespace) = of {
            selector.push_str(&format!(",{}={namespace}", shape::NAMESPACE_LABEL));
        }
        let mut page = ListParams::default().labels(&selector).fields(FIELD_SELECTOR).limit(PAGE);
        let mut strings = Strings::default();
        let mut found = Vec::new();
        loop {
            let request = self.requests.list(&page).map_err(Failure::invalid)?;
            let list: ObjectList<Secret> = self.caller.send(&request, Patience::SHORT).await?;
            for secret in &list.items {
                found.push(match decode(secret, &mut strings) {
                    Ok(Decoded::Parted(head)) => match self.assemble(&head, Patience::SHORT).await? {
                        None => continue,
                        Some(whole) => whole.map(Decoded::Record),
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

    /// One request in the good case. A conflict may be our own write, whose answer was lost: then what stands there
    /// is what we wrote.
    async fn write(&self, mut secret: Secret, base: Option<Version>, patience: Patience) -> Result<Version, Failure> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        secret.metadata.resource_version = base.map(|version| version.0.to_string());
        let body = serde_json::to_vec(&secret).map_err(Failure::invalid)?;
        let params = PostParams { field_manager: Some("purlin".to_owned()), ..PostParams::default() };
        let request = match base {
            None => self.requests.create(&params, body),
            Some(_) => self.requests.replace(&name, &params, body),
        };
        let request = metadata_only(request.map_err(Failure::invalid)?);
        match self.caller.send::<PartialObjectMeta>(&request, patience).await {
            Ok(written) => shape::version(&written.metadata).map_err(Failure::Refused),
            Err(Failure::Conflict) => self.read_back(&name, &secret, patience).await,
            // A replaced Secret that is gone was removed by somebody else; a create that finds no namespace cannot
            // be cured by reading anew.
            Err(Failure::NotFound) if base.is_some() => Err(Failure::Conflict),
            Err(Failure::NotFound) => {
                Err(Failure::Refused(format!("the namespace {} of the controller does not exist", self.namespace)))
            }
            Err(other) => Err(other),
        }
    }

    async fn read_back(&self, name: &str, written: &Secret, patience: Patience) -> Result<Version, Failure> {
        match self.get_secret(name, patience).await? {
            // Whatever others have put beside it.
            Some(found) if found.data == written.data => shape::version(&found.metadata).map_err(Failure::Refused),
            _ => Err(Failure::Conflict),
        }
    }

    /// The version alone is precondition enough: no two objects of a cluster ever have the same one, so it implies
    /// the UID.
    async fn delete_secret(&self, name: &str, base: Version, patience: Patience) -> Result<(), Failure> {
        let base = match self.is_user {
            false => base,
            true => match self.mark_forgotten(name, base, patience).await {
                Err(Failure::NotFound) => return Ok(()),
                marked => marked?,
            },
        };
        let preconditions = Preconditions { resource_version: Some(base.0.to_string()), uid: None };
        let request = self.requests.delete(name, &DeleteParams::default().preconditions(preconditions));
        match self.caller.send::<serde_json::Value>(&request.map_err(Failure::invalid)?, patience).await {
            Ok(_) | Err(Failure::NotFound) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// A crash after it leaves the record as it was; the controller's next write of it takes the mark away.
    async fn mark_forgotten(&self, name: &str, base: Version, patience: Patience) -> Result<Version, Failure> {
        let annotations = BTreeMap::from([(shape::FORGOTTEN_ANNOTATION, "true")]);
        let metadata = serde_json::json!({"resourceVersion": base.0.to_string(), "annotations": annotations});
        let patch = Patch::Merge(serde_json::json!({ "metadata": metadata }));
        let params = PatchParams { field_manager: Some("purlin-cli".to_owned()), ..PatchParams::default() };
        let request = self.requests.patch(name, &params, &patch).map_err(Failure::invalid)?;
        let marked = self.caller.send::<PartialObjectMeta>(&metadata_only(request), patience).await?;
        shape::version(&marked.metadata).map_err(Failure::Refused)
    }

    async fn get_secret(&self, name: &str, patience: Patience) -> Result<Option<Secret>, Failure> {
        let request = self.requests.get(name, &kube::api::GetParams::default()).map_err(Failure::invalid)?;
        match self.caller.send(&request, patience).await {
            Ok(secret) => Ok(Some(secret)),
            Err(Failure::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn get_decoded(
        &self,
        name: &str,
        patience: Patience,
    ) -> Result<Option<Result<Decoded, Unreadable>>, Failure> {
        let Some(secret) = self.get_secret(name, patience).await? else { return Ok(None) };
        match decode(&secret, &mut Strings::default()) {
            Ok(Decoded::Parted(head)) => {
                Ok(self.assemble(&head, patience).await?.map(|whole| whole.map(Decoded::Record)))
            }
            other => Ok(Some(other)),
        }
    }
}

fn metadata_only(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA_ONLY));
    request
}
