//! Finalizer and annotation of a Resource that has a record, put on and taken off in one patch.
//!
//! A JSON patch whose tests name just what it builds on: it goes through whatever else is written to the Resource at
//! the same time, status above all, and never takes away what others have put there.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use kube::api::{GetParams, ObjectMeta, PartialObjectMeta};
use kube::core::Request;
use serde_json::{Value, json};

use crate::store::secrets::{Caller, Failure, Patience};

/// The finalizer of a Resource that has a record.
pub const FINALIZER: &str = "purlin.dev/destroy";

/// The annotation of a Resource that has a record; its value is the Resource's own UID, so that a copied one is
/// recognised without looking anything up.
pub const RECORD_ANNOTATION: &str = "purlin.dev/record";

/// The path of the annotation in a JSON patch, where `/` is written `~1`.
const ANNOTATION_PATH: &str = "/metadata/annotations/purlin.dev~1record";

const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A patch that fails its tests is built anew on what the server has, this often. Each failure means that somebody
/// changed finalizers or annotations in these milliseconds.
const ATTEMPTS: usize = 8;

/// What the patches need to know of a Resource. It must be as the server has it: where a cached object was stripped of
/// its only annotation, the empty map has to stay, or every first patch fails its test and costs two requests more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceMeta {
    /// Its UID.
    pub uid: Arc<str>,
    /// All its finalizers, in order; nothing when there is no list, not even an empty one.
    pub finalizers: Option<Vec<Arc<str>>>,
    /// Whether it has a map of annotations, be it empty.
    pub has_annotations: bool,
    /// The value of the annotation `purlin.dev/record`.
    pub record: Option<Arc<str>>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl ResourceMeta {
    /// Whether both marks are there and are its own.
    pub fn is_marked(&self) -> bool {
        self.has_finalizer() && self.record.as_ref() == Some(&self.uid)
    }

    fn has_finalizer(&self) -> bool {
        self.finalizers.iter().flatten().any(|finalizer| **finalizer == *FINALIZER)
    }

    /// Takes it from the metadata of a Resource. `share` gives the copy of a text that is kept.
    pub fn of(meta: &ObjectMeta, mut share: impl FnMut(&str) -> Arc<str>) -> Self {
        let annotations = meta.annotations.as_ref();
        Self {
            uid: share(meta.uid.as_deref().unwrap_or_default()),
            finalizers: meta.finalizers.as_ref().map(|all| all.iter().map(|one| share(one)).collect()),
            has_annotations: annotations.is_some(),
            record: annotations.and_then(|all| all.get(RECORD_ANNOTATION)).map(|uid| share(uid)),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

/// What became of putting the marks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// They are there.
    Yes,
    /// The Resource is gone, is going, or is another one of the same name.
    Gone,
}

/// Writes the marks.
pub(super) struct Marks {
    caller: Caller,
}

impl Marks {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// Puts both marks on, starting from what is `known`.
    pub(super) async fn add(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        known: Option<ResourceMeta>,
        patience: Patience,
    ) -> Result<Marked, Failure> {
        let mut known = known;
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.known_or_read(namespace, name, known.take(), patience).await? else {
                return Ok(Marked::Gone);
            };
            // The server refuses new finalizers on what is being deleted, and nothing is to be made for it.
            if *meta.uid != *uid || (meta.deleting && !meta.has_finalizer()) {
                return Ok(Marked::Gone);
            }
            let patch = adding(&meta);
            if patch.is_empty() {
                return Ok(Marked::Yes);
            }
            match self.patch(namespace, name, &meta, patch, patience).await {
                Ok(()) => return Ok(Marked::Yes),
                Err(Failure::NotFound) => return Ok(Marked::Gone),
                Err(Failure::Unprocessable(_) | Failure::Conflict) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Failure::Unavailable(format!("the finalizers of {name} change all the time")))
    }

    /// Takes both marks off; a Resource that is gone, or another one of that name, has none of ours.
    pub(super) async fn remove(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        known: Option<ResourceMeta>,
        patience: Patience,
    ) -> Result<(), Failure> {
        let mut known = known;
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.known_or_read(namespace, name, known.take(), patience).await? else {
                return Ok(());
            };
            let patch = if *meta.uid == *uid { removing(&meta) } else { Vec::new() };
            if patch.is_empty() {
                return Ok(());
            }
            match self.patch(namespace, name, &meta, patch, patience).await {
                Ok(()) | Err(Failure::NotFound) => return Ok(()),
                Err(Failure::Unprocessable(_) | Failure::Conflict) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Failure::Unavailable(format!("the finalizers of {name} change all the time")))
    }

    async fn known_or_read(
        &self,
        namespace: &str,
        name: &str,
        known: Option<ResourceMeta>,
        patience: Patience,
    ) -> Result<Option<ResourceMeta>, Failure> {
        if known.is_some() {
            return Ok(known);
        }
        let request = requests(namespace).get_metadata(name, &GetParams::default());
        let request = request.map_err(|error| Failure::Refused(error.to_string()))?;
        match self.caller.send::<PartialObjectMeta>(&request, patience).await {
            Ok(found) => Ok(Some(ResourceMeta::of(&found.metadata, |text| text.into()))),
            Err(Failure::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn patch(
        &self,
        namespace: &str,
        name: &str,
        meta: &ResourceMeta,
        mut patch: Vec<Value>,
        patience: Patience,
    ) -> Result<(), Failure> {
        patch.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": meta.uid}));
        let request = http::Request::patch(format!("{}/{name}?fieldManager=purlin", requests(namespace).url_path))
            .header(ACCEPT, METADATA_ONLY)
            .header(CONTENT_TYPE, "application/json-patch+json")
            .body(Value::Array(patch).to_string().into_bytes())
            .map_err(|error| Failure::Refused(error.to_string()))?;
        self.caller.send::<PartialObjectMeta>(&request, patience).await.map(drop)
    }
}

fn requests(namespace: &str) -> Request {
    Request::new(format!("/apis/purlin.dev/v1alpha1/namespaces/{namespace}/resources"))
}

/// What is missing of the two marks. A test of `null` passes when there is nothing at all; the whole list is tested
/// otherwise, because a list has no keys that would keep the finalizer from being there twice.
fn adding(meta: &ResourceMeta) -> Vec<Value> {
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

/// What is there of the two marks.
fn removing(meta: &ResourceMeta) -> Vec<Value> {
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
    fn marks_are_added_to_a_bare_resource_only_while_it_is_bare() {
        check(
            &adding(&meta(&[], None)),
            &expect![[r#"
            {"op":"test","path":"/metadata/finalizers","value":null}
            {"op":"add","path":"/metadata/finalizers","value":["purlin.dev/destroy"]}
            {"op":"test","path":"/metadata/annotations","value":null}
            {"op":"add","path":"/metadata/annotations","value":{"purlin.dev/record":"u1"}}"#]],
        );
    }

    #[test]
    fn what_others_have_put_there_stays() {
        let mut meta = meta(&["other.dev/wait"], None);
        meta.has_annotations = true;
        check(
            &adding(&meta),
            &expect![[r#"
            {"op":"test","path":"/metadata/finalizers","value":["other.dev/wait"]}
            {"op":"add","path":"/metadata/finalizers/-","value":"purlin.dev/destroy"}
            {"op":"add","path":"/metadata/annotations/purlin.dev~1record","value":"u1"}"#]],
        );
    }

    #[test]
    fn an_annotation_of_another_resource_counts_as_absent() {
        check(
            &adding(&meta(&[FINALIZER], Some("u0"))),
            &expect![[r#"{"op":"add","path":"/metadata/annotations/purlin.dev~1record","value":"u1"}"#]],
        );
    }

    #[test]
    fn what_is_marked_needs_no_patch() {
        assert!(meta(&[FINALIZER], Some("u1")).is_marked());
        assert!(adding(&meta(&[FINALIZER], Some("u1"))).is_empty());
        assert!(removing(&meta(&["other.dev/wait"], None)).is_empty());
    }

    #[test]
    fn marks_are_taken_off_at_their_place() {
        check(
            &removing(&meta(&["other.dev/wait", FINALIZER], Some("u1"))),
            &expect![[r#"
            {"op":"remove","path":"/metadata/annotations/purlin.dev~1record"}
            {"op":"test","path":"/metadata/finalizers/1","value":"purlin.dev/destroy"}
            {"op":"remove","path":"/metadata/finalizers/1"}"#]],
        );
    }
}
