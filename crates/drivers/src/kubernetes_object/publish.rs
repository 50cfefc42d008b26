//! Publishes outputs as ConfigMaps and Secrets, under the service account of the Resource.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value as Json, json};

use super::api_error::{self, ErrorContext, RequestError};
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target};
use super::wait::ObjectRef;
use super::{FIELD_MANAGER, KubernetesObject, error_context};
use crate::publish::{CopyTarget, Publisher};
use model::data::{StringData, decode_base64, string_from_bytes};
use model::{Address, DataKind, DriverError, ErrorKind, Uid};

impl KubernetesObject {
    async fn write_copy(&self, copy: &CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError> {
        let (context, mark) = (copy.context, self.owner(copy.context).await?);
        let collection = collection(copy);
        let place = ObjectRef { caller: self.caller(context)?, collection: &collection, name: &copy.target.name };
        let live =
            self.server.get(&place, context.deadline).await.map_err(|failure| error(copy, "publish", &failure))?;
        if live.as_ref().is_some_and(|live| !is_owned(live, copy, &mark)) {
            return Err(conflict(copy));
        }
        if live.as_ref().is_some_and(|live| !live["metadata"]["deletionTimestamp"].is_null()) {
            let message = format!("{} is being deleted", copy.target);
            return Err(DriverError { kind: ErrorKind::Transient, message, path: None, hint: None });
        }
        let uid = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str());
        let call = apply(&place, manifest(copy, texts, &mark, uid), uid);
        let answer = self
            .server
            .call(place.caller, &call, context.deadline)
            .await
            .map_err(|failure| error(copy, "publish", &failure))?;
        if uid.is_none() && answer.code != 201 {
            // Another client created an object of that name between the read and the apply. Its own fields are
            // unchanged, since the apply was not forced. Applying without Purlin's fields removes them.
            let other_uid = answer.body["metadata"]["uid"].as_str();
            let bare = json!({"apiVersion": "v1", "kind": copy.target.kind.as_str(), "metadata": {"uid": other_uid}});
            if let Err(failure) =
                self.server.call(place.caller, &apply(&place, bare, other_uid), context.deadline).await
            {
                let object = copy.target;
                tracing::warn!(%object, ?failure, "cannot remove Purlin's fields from an object of another client");
            }
            return Err(conflict(copy));
        }
        Ok(answer.body["metadata"]["uid"].as_str().unwrap_or_default().into())
    }

    async fn read_copy(&self, copy: &CopyTarget<'_>) -> Result<Option<StringData>, DriverError> {
        let mark = self.owner(copy.context).await?;
        let collection = collection(copy);
        let place = ObjectRef { caller: self.caller(copy.context)?, collection: &collection, name: &copy.target.name };
        let live = self.server.get(&place, copy.context.deadline).await;
        let live = live.map_err(|failure| error(copy, "read", &failure))?.filter(|live| is_owned(live, copy, &mark));
        Ok(live.map(|live| {
            let data = live["data"].as_object().cloned().unwrap_or_default();
            let texts = data.iter().map(|(key, value)| {
                let text = value.as_str().unwrap_or_default();
                let text = match copy.target.kind {
                    DataKind::ConfigMap => Arc::from(text),
                    DataKind::Secret => string_from_bytes(&decode_base64(text).unwrap_or_default()),
                };
                (key.as_str().into(), text)
            });
            texts.collect()
        }))
    }

    async fn remove_copy(&self, copy: &CopyTarget<'_>) -> Result<(), DriverError> {
        let mark = self.owner(copy.context).await?;
        let collection = collection(copy);
        let place = ObjectRef { caller: self.caller(copy.context)?, collection: &collection, name: &copy.target.name };
        let live =
            self.server.get(&place, copy.context.deadline).await.map_err(|failure| error(copy, "delete", &failure))?;
        let Some(uid) = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str()) else { return Ok(()) };
        let owned = if copy.uid.is_empty() {
            live.as_ref().is_some_and(|live| has_owner_annotation(live, &mark))
        } else {
            copy.uid == uid
        };
        if !owned {
            return Ok(());
        }
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
        let call = Call { method: Method::DELETE, body: Some(body), ..Call::get(place.path()) };
        match self.server.call(place.caller, &call, copy.context.deadline).await {
            Ok(_) => Ok(()),
            // Deleted already, or another object of that name.
            Err(RequestError::Api(api_error)) if api_error.code == 404 || api_error.is_uid_mismatch() => Ok(()),
            Err(failure) => Err(error(copy, "delete", &failure)),
        }
    }
}

#[async_trait]
impl Publisher for KubernetesObject {
    async fn write(&self, copy: CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError> {
        self.write_copy(&copy, texts).await
    }

    async fn read(&self, copy: CopyTarget<'_>) -> Result<Option<StringData>, DriverError> {
        self.read_copy(&copy).await
    }

    async fn remove(&self, copy: CopyTarget<'_>) -> Result<(), DriverError> {
        self.remove_copy(&copy).await
    }
}

fn collection(copy: &CopyTarget<'_>) -> String {
    format!("/api/v1/namespaces/{}/{}", copy.context.namespace, copy.target.kind.resource())
}

/// Whether the object has the owner annotation or the recorded UID. After a rename of the Resource only the UID
/// matches.
fn is_owned(live: &Json, copy: &CopyTarget<'_>, mark: &str) -> bool {
    has_owner_annotation(live, mark) || (!copy.uid.is_empty() && live["metadata"]["uid"] == copy.uid)
}

fn has_owner_annotation(live: &Json, mark: &str) -> bool {
    live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(mark)
}

/// The applied object. Its owner reference lets the server delete it with the Resource if Purlin cannot.
fn manifest(copy: &CopyTarget<'_>, texts: &StringData, mark: &str, uid: Option<&str>) -> Json {
    let data = texts.iter().map(|(key, text)| match copy.target.kind {
        DataKind::ConfigMap => (key.to_string(), Json::from(&**text)),
        DataKind::Secret => (key.to_string(), Json::from(STANDARD.encode(text.as_bytes()))),
    });
    let data: serde_json::Map<String, Json> = data.collect();
    let resource = copy.context.address.parse::<Address>().map_or_else(|_| "".into(), |address| address.stem.name);
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

/// Conflicts are forced for an owned copy, but not for a new one, which another client may create concurrently.
fn apply(place: &ObjectRef<'_>, manifest: Json, uid: Option<&str>) -> Call {
    Call {
        method: Method::PATCH,
        path: format!("{}?fieldManager={FIELD_MANAGER}&force={}", place.path(), uid.is_some()),
        content_type: "application/apply-patch+yaml",
        accept: "application/json",
        body: Some(manifest),
        repeatable: uid.is_some(),
    }
}

fn conflict(copy: &CopyTarget<'_>) -> DriverError {
    DriverError {
        kind: ErrorKind::AlreadyExists,
        message: format!("{} exists and is not managed by this Resource", copy.target),
        path: None,
        hint: Some("publish under another name, or delete the existing object".to_owned()),
    }
}

fn error(copy: &CopyTarget<'_>, verb: &'static str, failure: &RequestError) -> DriverError {
    if let RequestError::Api(api_error) = failure
        && !api_error.conflicts().is_empty()
    {
        return conflict(copy);
    }
    let target = Target {
        api_version: "v1".to_owned(),
        kind: copy.target.kind.as_str().to_owned(),
        namespace: copy.context.namespace.to_string(),
        name: copy.target.name.to_string(),
    };
    let attempt = error_context(copy.context, verb, copy.target.kind.resource(), &target);
    let error = api_error::to_driver_error(
        failure,
        &ErrorContext { sensitive: copy.target.kind == DataKind::Secret, ..attempt },
    );
    // The path would be relative to `spec.config`, which does not contain the copy.
    DriverError { path: None, ..error }
}
