//! The marks of a Resource that has a record, finalizer and annotation, added and removed in one patch.
//!
//! The JSON patch tests only the values that it builds on, so it succeeds despite concurrent writes to other parts of
//! the Resource, such as its status, and never removes values of other clients.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use kube::api::{GetParams, ObjectMeta};
use kube::core::Request;
use serde_json::{Value, json};

use crate::store::secrets::{ApiCaller, RequestError, RetryPolicy};
use api::Head;
use model::{Address, Name, Uid};

/// The finalizer of a Resource that has a record.
pub const FINALIZER: &str = "purlin.dev/destroy";

/// The annotation of a Resource that has a record. Its value is the UID of the Resource, so that a copied annotation is
/// recognized without a lookup.
pub const RECORD_ANNOTATION: &str = "purlin.dev/record";

/// The path of the annotation in a JSON patch, with `/` escaped as `~1`.
const ANNOTATION_PATH: &str = "/metadata/annotations/purlin.dev~1record";

const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The maximum number of attempts. Each failed test means that another client changed finalizers or annotations in
/// these milliseconds.
const ATTEMPTS: usize = 8;

/// The metadata that the patches need. It must match the server: if a cached object was stripped of its only
/// annotation, the empty map must stay, or every first patch fails its test and costs two more requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceMeta {
    pub uid: Uid,
    /// All finalizers in order; `None` if the field is absent.
    pub finalizers: Option<Vec<Arc<str>>>,
    /// Whether the annotations exist, even if empty.
    pub has_annotations: bool,
    /// The value of the annotation `purlin.dev/record`.
    pub record: Option<Uid>,
    pub deleting: bool,
}

impl ResourceMeta {
    /// Whether both marks exist and belong to this Resource.
    pub fn is_marked(&self) -> bool {
        self.has_finalizer() && self.is_annotated()
    }

    /// Whether the annotation belongs to this Resource: it has a record, even if a user has removed the finalizer.
    pub(crate) fn is_annotated(&self) -> bool {
        self.record.as_ref() == Some(&self.uid)
    }

    fn has_finalizer(&self) -> bool {
        self.finalizers.iter().flatten().any(|finalizer| **finalizer == *FINALIZER)
    }

    /// `share` returns the shared copy of a string.
    pub fn of(meta: &ObjectMeta, mut share: impl FnMut(&str) -> Arc<str>) -> Self {
        let annotations = meta.annotations.as_ref();
        Self {
            uid: share(meta.uid.as_deref().unwrap_or_default()).into(),
            finalizers: meta.finalizers.as_ref().map(|names| names.iter().map(|name| share(name)).collect()),
            has_annotations: annotations.is_some(),
            record: annotations.and_then(|map| map.get(RECORD_ANNOTATION)).map(|uid| share(uid).into()),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

/// The outcome of adding the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOutcome {
    /// This request added the marks, or may have added them.
    Marked,
    /// Both marks existed before.
    AlreadyMarked,
    /// The Resource does not exist, is being deleted, or has another UID.
    ResourceMissing,
}

pub struct Marks {
    caller: ApiCaller,
}

impl Marks {
    pub fn new(caller: ApiCaller) -> Self {
        Self { caller }
    }

    /// Adds both marks, starting from the `known` metadata.
    pub async fn add(
        &self,
        namespace: &str,
        name: &Name,
        uid: &Uid,
        known: Option<ResourceMeta>,
        policy: RetryPolicy,
    ) -> Result<MarkOutcome, RequestError> {
        let mut known = known;
        // Without a retry, a rejected patch proves that the marks were not added by this request.
        let mut patches = RetryPolicy::Bounded(Duration::ZERO);
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.known_or_read(namespace, name, known.take(), policy).await? else {
                return Ok(MarkOutcome::ResourceMissing);
            };
            // The server rejects new finalizers on an object that is being deleted, and nothing may be created for it.
            if meta.uid != *uid || (meta.deleting && !meta.has_finalizer()) {
                return Ok(MarkOutcome::ResourceMissing);
            }
            let patch = patch_to_add(&meta);
            if patch.is_empty() {
                let may_be_own = patches == policy;
                return Ok(if may_be_own { MarkOutcome::Marked } else { MarkOutcome::AlreadyMarked });
            }
            match self.patch(namespace, name, &meta, patch, patches).await {
                Ok(()) => return Ok(MarkOutcome::Marked),
                Err(RequestError::NotFound) => return Ok(MarkOutcome::ResourceMissing),
                Err(RequestError::Unprocessable(_) | RequestError::Conflict) => {}
                Err(RequestError::Unavailable(_)) if patches != policy => patches = policy,
                Err(other) => return Err(other),
            }
        }
        Err(RequestError::Unavailable(format!("the finalizers of {name} keep changing")))
    }

    /// Removes both marks. A missing Resource, or one with another UID, has none.
    pub async fn remove(
        &self,
        namespace: &str,
        name: &Name,
        uid: &Uid,
        known: Option<ResourceMeta>,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        let mut known = known;
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.known_or_read(namespace, name, known.take(), policy).await? else {
                return Ok(());
            };
            let patch = if meta.uid == *uid { patch_to_remove(&meta) } else { Vec::new() };
            if patch.is_empty() {
                return Ok(());
            }
            match self.patch(namespace, name, &meta, patch, policy).await {
                Ok(()) | Err(RequestError::NotFound) => return Ok(()),
                Err(RequestError::Unprocessable(_) | RequestError::Conflict) => {}
                Err(other) => return Err(other),
            }
        }
        Err(RequestError::Unavailable(format!("the finalizers of {name} keep changing")))
    }

    async fn known_or_read(
        &self,
        namespace: &str,
        name: &Name,
        known: Option<ResourceMeta>,
        policy: RetryPolicy,
    ) -> Result<Option<ResourceMeta>, RequestError> {
        if known.is_some() {
            return Ok(known);
        }
        self.read(namespace, name, policy).await
    }

    /// Reads the metadata of a Resource; `None` if it does not exist.
    pub async fn read(
        &self,
        namespace: &str,
        name: &Name,
        policy: RetryPolicy,
    ) -> Result<Option<ResourceMeta>, RequestError> {
        let of = Address::single(name.clone());
        let request = requests(namespace, &of).get_metadata(of.object_name(), &GetParams::default());
        let request = request.map_err(|error| RequestError::Rejected(error.to_string()))?;
        match self.caller.send::<Head>(&request, policy).await {
            Ok(found) => Ok(Some(ResourceMeta::of(&found.metadata, |text| text.into()))),
            Err(RequestError::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn patch(
        &self,
        namespace: &str,
        name: &Name,
        meta: &ResourceMeta,
        mut patch: Vec<Value>,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        patch.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": meta.uid}));
        let of = Address::single(name.clone());
        let path = format!("{}/{}?fieldManager=purlin", requests(namespace, &of).url_path, of.object_name());
        let request = http::Request::patch(path)
            .header(ACCEPT, METADATA_ONLY)
            .header(CONTENT_TYPE, "application/json-patch+json")
            .body(Value::Array(patch).to_string().into_bytes())
            .map_err(|error| RequestError::Rejected(error.to_string()))?;
        self.caller.send::<Head>(&request, policy).await.map(drop)
    }
}

/// The requests about the kind of what has a name.
fn requests(namespace: &str, of: &Address) -> Request {
    Request::new(api::url_path(namespace, of))
}

/// The patch that adds the missing marks. A test for `null` passes if the field is absent. Otherwise the whole list is
/// tested, because a list could contain the finalizer twice.
fn patch_to_add(meta: &ResourceMeta) -> Vec<Value> {
    let mut patch = Vec::new();
    if !meta.has_finalizer() {
        let path = "/metadata/finalizers";
        patch.push(json!({"op": "test", "path": path, "value": meta.finalizers}));
        patch.push(if meta.finalizers.is_none() {
            json!({"op": "add", "path": path, "value": [FINALIZER]})
        } else {
            json!({"op": "add", "path": format!("{path}/-"), "value": FINALIZER})
        });
    }
    if meta.record.as_ref() != Some(&meta.uid) {
        if meta.has_annotations {
            patch.push(json!({"op": "add", "path": ANNOTATION_PATH, "value": meta.uid}));
        } else {
            let path = "/metadata/annotations";
            patch.push(json!({"op": "test", "path": path, "value": null}));
            patch.push(json!({"op": "add", "path": path, "value": {RECORD_ANNOTATION: meta.uid}}));
        }
    }
    patch
}

/// The patch that removes the existing marks.
fn patch_to_remove(meta: &ResourceMeta) -> Vec<Value> {
    let mut patch = Vec::new();
    if meta.record.is_some() {
        patch.push(json!({"op": "remove", "path": ANNOTATION_PATH}));
    }
    if let Some(position) = meta.finalizers.iter().flatten().position(|finalizer| **finalizer == *FINALIZER) {
        let path = format!("/metadata/finalizers/{position}");
        patch.push(json!({"op": "test", "path": path, "value": FINALIZER}));
        patch.push(json!({"op": "remove", "path": path}));
    }
    patch
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(patch: &[Value], expect: &Expect) {
        expect.assert_eq(&patch.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    fn meta(finalizers: &[&str], record: Option<&str>) -> ResourceMeta {
        ResourceMeta {
            uid: "u1".into(),
            finalizers: (!finalizers.is_empty()).then(|| finalizers.iter().map(|one| (*one).into()).collect()),
            has_annotations: record.is_some(),
            record: record.map(Into::into),
            deleting: false,
        }
    }

    #[test]
    fn the_patch_of_a_bare_resource_tests_that_it_is_bare() {
        check(
            &patch_to_add(&meta(&[], None)),
            &expect![[r#"
            {"op":"test","path":"/metadata/finalizers","value":null}
            {"op":"add","path":"/metadata/finalizers","value":["purlin.dev/destroy"]}
            {"op":"test","path":"/metadata/annotations","value":null}
            {"op":"add","path":"/metadata/annotations","value":{"purlin.dev/record":"u1"}}"#]],
        );
    }

    #[test]
    fn marks_of_other_clients_stay() {
        let mut meta = meta(&["other.dev/wait"], None);
        meta.has_annotations = true;
        check(
            &patch_to_add(&meta),
            &expect![[r#"
            {"op":"test","path":"/metadata/finalizers","value":["other.dev/wait"]}
            {"op":"add","path":"/metadata/finalizers/-","value":"purlin.dev/destroy"}
            {"op":"add","path":"/metadata/annotations/purlin.dev~1record","value":"u1"}"#]],
        );
    }

    #[test]
    fn an_annotation_of_another_resource_counts_as_absent() {
        check(
            &patch_to_add(&meta(&[FINALIZER], Some("u0"))),
            &expect![[r#"{"op":"add","path":"/metadata/annotations/purlin.dev~1record","value":"u1"}"#]],
        );
    }

    #[test]
    fn a_marked_resource_needs_no_patch() {
        assert!(meta(&[FINALIZER], Some("u1")).is_marked());
        assert!(patch_to_add(&meta(&[FINALIZER], Some("u1"))).is_empty());
        assert!(patch_to_remove(&meta(&["other.dev/wait"], None)).is_empty());
    }

    #[test]
    fn a_finalizer_is_removed_at_its_index() {
        check(
            &patch_to_remove(&meta(&["other.dev/wait", FINALIZER], Some("u1"))),
            &expect![[r#"
            {"op":"remove","path":"/metadata/annotations/purlin.dev~1record"}
            {"op":"test","path":"/metadata/finalizers/1","value":"purlin.dev/destroy"}
            {"op":"remove","path":"/metadata/finalizers/1"}"#]],
        );
    }
}
