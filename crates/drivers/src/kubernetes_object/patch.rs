//! Server-side apply, which creates and updates objects, and its dry run.

use http::Method;
use serde_json::json;

use crate::CallContext;
use model::{DriverError, ErrorKind, Value};

use super::api_error::{self, ErrorContext, RequestError};
use super::discovery::ApiKind;
use super::server::{Call, ServerResponse};
use super::target::Target;
use super::{FIELD_MANAGER, KubernetesObject, error_context};

/// The object that a patch is sent to.
#[derive(Clone, Copy)]
pub struct PatchTarget<'a> {
    pub context: &'a CallContext,
    pub kind: &'a ApiKind,
    pub target: &'a Target,
}

/// The applied object, and the previously applied one (`None` for an imported object).
pub struct Patch {
    pub desired: Value,
    pub previous: Option<Value>,
}

impl KubernetesObject {
    /// Applies to an existing object. Conflicts with other field managers are forced only if the previous apply set all
    /// of the fields, or if the object was imported.
    pub(crate) async fn apply_patch(
        &self,
        at: &PatchTarget<'_>,
        sent: &Patch,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<ServerResponse, RequestError> {
        let first = self.patch(at, &sent.desired, uid, dry_run, false).await;
        let Err(RequestError::Api(api_error)) = &first else { return first };
        let conflicts = api_error.conflicts();
        let is_own = conflicts
            .iter()
            .all(|(_, field)| sent.previous.as_ref().is_none_or(|before| api_error::sets(before, field)));
        if conflicts.is_empty() || !is_own {
            return first;
        }
        self.patch(at, &sent.desired, uid, dry_run, true).await
    }

    /// Sends one server-side apply. With `uid`, the server rejects it unless the object has that UID, so it is
    /// repeatable. Without, it may create the object.
    pub(crate) async fn patch(
        &self,
        at: &PatchTarget<'_>,
        desired: &Value,
        uid: Option<&str>,
        dry_run: bool,
        force: bool,
    ) -> Result<ServerResponse, RequestError> {
        let mut body = desired.to_json();
        if let Some(uid) = uid {
            body["metadata"]["uid"] = json!(uid);
        }
        let path = format!(
            "{}/{}?fieldManager={FIELD_MANAGER}&force={force}&fieldValidation=Strict{}",
            at.kind.collection(&at.target.namespace),
            at.target.name,
            if dry_run { "&dryRun=All" } else { "" }
        );
        let call = Call {
            method: Method::PATCH,
            path,
            content_type: "application/apply-patch+yaml",
            accept: "application/json",
            body: Some(body),
            repeatable: uid.is_some() || dry_run,
        };
        let caller = self.caller(at.context).map_err(|error| RequestError::Unreachable(error.message))?;
        self.server.call(caller, &call, at.context.deadline).await
    }

    /// The error of a failed update.
    pub(crate) fn change_error(&self, at: &PatchTarget<'_>, sent: &Patch, failure: &RequestError) -> DriverError {
        if let RequestError::Api(api_error) = failure {
            if api_error.is_unknown_kind() {
                self.server.forget_kind(at.kind);
            }
            if api_error.code == 404 || api_error.is_uid_mismatch() {
                return DriverError {
                    kind: ErrorKind::Transient,
                    message: format!("the recorded {} no longer exists", at.target),
                    path: None,
                    hint: Some("Purlin plans it again after the next refresh".to_owned()),
                };
            }
        }
        let attempt = error_context(at.context, "update", &at.kind.resource(), at.target);
        api_error::to_driver_error(failure, &ErrorContext { sensitive: sent.desired.has_sensitive(), ..attempt })
    }
}
