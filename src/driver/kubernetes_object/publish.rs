//! Copies as ConfigMaps and Secrets of a cluster, written as the Resource's service account.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value as Json, json};

use super::follow::Place;
use super::refusal::{self, Attempt, Failure};
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target};
use super::{FIELD_MANAGER, KubernetesObject, attempt};
use crate::driver::publish::{CopyOf, Publisher};
use crate::model::data::{Texts, decoded, text_of};
use crate::model::{Address, DataKind, DriverError, ErrorKind};

impl KubernetesObject {
    async fn write_copy(&self, copy: &CopyOf<'_>, texts: &Texts) -> Result<Arc<str>, DriverError> {
        let (context, mark) = (copy.context, self.owner(copy.context).await?);
        let collection = collection(copy);
        let place = Place { who: self.who(context)?, collection: &collection, name: &copy.target.name };
        let error = |failure: &Failure| error(copy, "publish", failure);
        let live = self.server.look(&place, context.deadline).await.map_err(|failure| error(&failure))?;
        if live.as_ref().is_some_and(|live| !is_ours(live, copy, &mark)) {
            return Err(conflict(copy));
        }
        if live.as_ref().is_some_and(|live| !live["metadata"]["deletionTimestamp"].is_null()) {
            let message = format!("{} is being deleted", copy.target);
            return Err(DriverError { kind: ErrorKind::Transient, message, path: None, hint: None });
        }
        let uid = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str());
        let call = apply(&place, manifest(copy, texts, &mark, uid), uid);
        let answer = self.server.call(place.who, &call, context.deadline).await.map_err(|failure| error(&failure))?;
        if uid.is_none() && answer.code != 201 {
            // Somebody made one of that name between our look and our apply. Nothing of theirs was changed, since it was
            // not forced; giving up what we set takes it out again.
            let theirs = answer.body["metadata"]["uid"].as_str();
            let bare = json!({"apiVersion": "v1", "kind": copy.target.kind.as_str(), "metadata": {"uid": theirs}});
            if let Err(failure) = self.server.call(place.who, &apply(&place, bare, theirs), context.deadline).await {
                tracing::warn!(object = %copy.target, ?failure, "an object made by somebody else keeps fields of ours");
            }
            return Err(conflict(copy));
        }
        Ok(answer.body["metadata"]["uid"].as_str().unwrap_or_default().into())
    }

    async fn read_copy(&self, copy: &CopyOf<'_>) -> Result<Option<Texts>, DriverError> {
        let mark = self.owner(copy.context).await?;
        let collection = collection(copy);
        let place = Place { who: self.who(copy.context)?, collection: &collection, name: &copy.target.name };
        let live = self.server.look(&place, copy.context.deadline).await;
        let live = live.map_err(|failure| error(copy, "read", &failure))?.filter(|live| is_ours(live, copy, &mark));
        Ok(live.map(|live| {
            let data = live["data"].as_object().cloned().unwrap_or_default();
            let text = |text: &Json| match (copy.target.kind, text.as_str().unwrap_or_default()) {
                (DataKind::ConfigMap, text) => Arc::from(text),
                (DataKind::Secret, text) => text_of(&decoded(text).unwrap_or_default()),
            };
            data.iter().map(|(key, value)| (key.as_str().into(), text(value))).collect()
        }))
    }

    async fn remove_copy(&self, copy: &CopyOf<'_>) -> Result<(), DriverError> {
        let mark = self.owner(copy.context).await?;
        let collection = collection(copy);
        let place = Place { who: self.who(copy.context)?, collection: &collection, name: &copy.target.name };
        let error = |failure: &Failure| error(copy, "delete", failure);
        let live = self.server.look(&place, copy.context.deadline).await.map_err(|failure| error(&failure))?;
        let Some(uid) = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str()) else { return Ok(()) };
        let ours = if copy.uid.is_empty() {
            live.as_ref().is_some_and(|live| is_marked(live, &mark))
        } else {
            copy.uid == uid
        };
        if !ours {
            return Ok(());
        }
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
        let call = Call { method: Method::DELETE, body: Some(body), ..Call::get(place.path()) };
        match self.server.call(place.who, &call, copy.context.deadline).await {
            Ok(_) => Ok(()),
            // Gone, or another object of that name.
            Err(Failure::Refused(refusal)) if refusal.code == 404 || refusal.is_uid_mismatch() => Ok(()),
            Err(failure) => Err(error(&failure)),
        }
    }
}

impl Publisher for KubernetesObject {
    fn write<'a>(&'a self, copy: CopyOf<'a>, texts: &'a Texts) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        async move { self.write_copy(&copy, texts).await }.boxed()
    }

    fn read<'a>(&'a self, copy: CopyOf<'a>) -> BoxFuture<'a, Result<Option<Texts>, DriverError>> {
        async move { self.read_copy(&copy).await }.boxed()
    }

    fn remove<'a>(&'a self, copy: CopyOf<'a>) -> BoxFuture<'a, Result<(), DriverError>> {
        async move { self.remove_copy(&copy).await }.boxed()
    }
}

fn collection(copy: &CopyOf<'_>) -> String {
    format!("/api/v1/namespaces/{}/{}", copy.context.namespace, copy.target.kind.resource())
}

/// Marked as ours, or the very one on record: its mark follows when the Resource was given another name.
fn is_ours(live: &Json, copy: &CopyOf<'_>, mark: &str) -> bool {
    is_marked(live, mark) || (!copy.uid.is_empty() && live["metadata"]["uid"] == copy.uid)
}

fn is_marked(live: &Json, mark: &str) -> bool {
    live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(mark)
}

/// The copy as it is applied. The server deletes it with the Resource, should we be kept from doing it.
fn manifest(copy: &CopyOf<'_>, texts: &Texts, mark: &str, uid: Option<&str>) -> Json {
    let text = |text: &str| match copy.target.kind {
        DataKind::ConfigMap => text.to_owned(),
        DataKind::Secret => STANDARD.encode(text),
    };
    let data: serde_json::Map<String, Json> =
        texts.iter().map(|(key, value)| (key.to_string(), text(value).into())).collect();
    let resource = copy.context.address.parse::<Address>().map_or_else(|_| "".into(), |address| address.name);
    let [api_version, kind, owner] = copy.owner;
    let mut manifest = json!({
        "apiVersion": "v1",
        "kind": copy.target.kind.as_str(),
        "metadata": {
            "name": copy.target.name.as_ref(),
            "namespace": copy.context.namespace.as_ref(),
            "annotations": {OWNER_ANNOTATION: mark},
            "ownerReferences": [{
                "apiVersion": api_version, "kind": kind, "name": resource.as_ref(), "uid": owner,
            }],
        },
        "data": data,
    });
    if let Some(uid) = uid {
        manifest["metadata"]["uid"] = json!(uid);
    }
    manifest
}

/// What is ours is set whoever else has set it; what was not there is not forced upon whoever makes it meanwhile.
fn apply(place: &Place<'_>, manifest: Json, uid: Option<&str>) -> Call {
    Call {
        method: Method::PATCH,
        path: format!("{}?fieldManager={FIELD_MANAGER}&force={}", place.path(), uid.is_some()),
        content_type: "application/apply-patch+yaml",
        accept: "application/json",
        body: Some(manifest),
        repeatable: uid.is_some(),
    }
}

fn conflict(copy: &CopyOf<'_>) -> DriverError {
    DriverError {
        kind: ErrorKind::AlreadyExists,
        message: format!("{} is there and is not ours", copy.target),
        path: None,
        hint: Some("publish under another name, or delete it".to_owned()),
    }
}

fn error(copy: &CopyOf<'_>, verb: &'static str, failure: &Failure) -> DriverError {
    if let Failure::Refused(refusal) = failure
        && !refusal.conflicts().is_empty()
    {
        return conflict(copy);
    }
    let target = Target {
        api_version: "v1".to_owned(),
        kind: copy.target.kind.as_str().to_owned(),
        namespace: copy.context.namespace.to_string(),
        name: copy.target.name.to_string(),
    };
    let attempt = attempt(copy.context, verb, copy.target.kind.resource(), &target);
    let error = refusal::error(failure, &Attempt { sensitive: copy.target.kind == DataKind::Secret, ..attempt });
    // It is no part of `spec.config`.
    DriverError { path: None, ..error }
}
