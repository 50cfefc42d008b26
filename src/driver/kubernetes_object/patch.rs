//! Server-side apply: the one request by which objects are made and changed, in earnest or as a dry run.

use http::Method;
use serde_json::json;

use crate::driver::CallContext;
use crate::model::{DriverError, ErrorKind, Value};

use super::discovery::ApiKind;
use super::refusal::{self, Attempt, Failure};
use super::server::{Answer, Call};
use super::target::Target;
use super::{FIELD_MANAGER, KubernetesObject, attempt};

/// Where something is sent.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) context: &'a CallContext,
    pub(super) kind: &'a ApiKind,
    pub(super) target: &'a Target,
}

/// What is sent now, and what was sent before (`None` for an imported object).
pub(super) struct Sent {
    pub(super) desired: Value,
    pub(super) before: Option<Value>,
}

impl KubernetesObject {
    /// Server-side apply to an existing object, tried or in earnest. Fields of other managers are taken over only if
    /// we had set every one of them before, or the object was imported.
    pub(super) async fn apply_patch(
        &self,
        at: &At<'_>,
        sent: &Sent,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<Answer, Failure> {
        let first = self.patch(at, &sent.desired, uid, dry_run, false).await;
        let Err(Failure::Refused(refusal)) = &first else { return first };
        let conflicts = refusal.conflicts();
        let ours = |field: &str| sent.before.as_ref().is_none_or(|before| refusal::sets(before, field));
        if conflicts.is_empty() || !conflicts.iter().all(|(_, field)| ours(field)) {
            return first;
        }
        self.patch(at, &sent.desired, uid, dry_run, true).await
    }

    /// One server-side apply. With `uid` it is refused unless that very object is there, so it can be repeated;
    /// without, it may make one.
    pub(super) async fn patch(
        &self,
        at: &At<'_>,
        desired: &Value,
        uid: Option<&str>,
        dry_run: bool,
        force: bool,
    ) -> Result<Answer, Failure> {
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
        let who = self.who(at.context).map_err(|error| Failure::Unreachable(error.message))?;
        self.server.call(who, &call, at.context.deadline).await
    }

    /// What is told about an update that did not work.
    pub(super) fn change_error(&self, at: &At<'_>, sent: &Sent, failure: &Failure) -> DriverError {
        if let Failure::Refused(refusal) = failure {
            if refusal.is_unknown_kind() {
                self.server.forget_kind(at.kind);
            }
            if refusal.code == 404 || refusal.is_uid_mismatch() {
                return DriverError {
                    kind: ErrorKind::Transient,
                    message: format!("{} on record is not there any more", at.target),
                    path: None,
                    hint: Some("it is planned anew after the next refresh".to_owned()),
                };
            }
        }
        let attempt = attempt(at.context, "update", &at.kind.resource(), at.target);
        refusal::error(failure, &Attempt { sensitive: sent.desired.has_sensitive(), ..attempt })
    }
}
