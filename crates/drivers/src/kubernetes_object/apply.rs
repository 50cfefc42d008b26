//! Creates, updates and deletes objects, and waits until they are ready or deleted.

use http::Method;
use serde_json::{Value as Json, json};

use crate::{ApplyRequest, ApplyResponse, CallContext, Observation, ReadinessError};
use model::{
    Diagnostic, DriverError, ErrorKind, Health, ObjectState, Reason, RecordedObject, Severity, Value, held_by,
};

use super::api_error::{self, ApiError, ErrorContext, RequestError};
use super::discovery::ApiKind;
use super::kstatus;
use super::patch::{Patch, PatchTarget};
use super::read::namespace;
use super::rehearsal::already_exists;
use super::server::Call;
use super::takeover::{KeptFields, all_kept_fields};
use super::target::{OWNER_ANNOTATION, Target};
use super::wait::ObjectRef;
use super::watches::CallGuard;
use super::{KubernetesObject, discovery_error, error_context, manifest, no_such_kind, object, recorded_target};

/// Attempts of a create after a concurrent change, such as an object that was being deleted or a lost response.
const CREATE_ROUNDS: u32 = 4;

/// Lookups of the kind before a create. Together about a second, several times what a server needs to serve a new CRD.
const KIND_ROUNDS: u32 = 5;

/// The pause between two attempts.
const ROUND_PAUSE: std::time::Duration = std::time::Duration::from_millis(250);

/// A create or update in progress.
struct PendingApply<'a> {
    context: &'a CallContext,
    kind: ApiKind,
    target: Target,
    owner: String,
    sent: Patch,
    /// The manifest to record, with the contents of a Secret marked sensitive.
    manifest: Value,
    /// Keeps the watches from reporting the changes of this call.
    call: Option<CallGuard>,
}

impl PendingApply<'_> {
    fn patch_target(&self) -> PatchTarget<'_> {
        PatchTarget { context: self.context, kind: &self.kind, target: &self.target }
    }

    fn error(&self, verb: &'static str, failure: &RequestError) -> DriverError {
        let attempt = error_context(self.context, verb, &self.kind.resource(), &self.target);
        let error = api_error::to_driver_error(
            failure,
            &ErrorContext { sensitive: self.sent.desired.has_sensitive(), ..attempt },
        );
        match self.prefix().filter(|_| verb == "create") {
            // Every attempt generates another name. The message must stay the same for the same error.
            Some(prefix) => {
                DriverError { message: error.message.replace(&self.target.name, &format!("{prefix}*")), ..error }
            }
            None => error,
        }
    }

    /// The prefix of a generated name.
    fn prefix(&self) -> Option<&str> {
        self.manifest.get("metadata")?.get("generateName")?.as_str()
    }

    fn is_owned(&self, live: &Json) -> bool {
        live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(self.owner.as_str())
    }

    fn already_exists(&self, live: &Json) -> DriverError {
        already_exists(&self.target, live, &self.owner, false)
    }

    /// The response with the object after the call. `wait_ready` waits for an object that is not ready yet.
    fn into_response(self, object: &Json) -> ApplyResponse {
        let ready_by = (!kstatus::of_live(object).is_current()).then_some(self.context.deadline);
        if let Some(call) = self.call {
            call.finish(object);
        }
        // Webhooks and controllers may change the object.
        let object = Some(object::state(object, &self.manifest));
        ApplyResponse { object, ready_by, allows_differences: true, ..ApplyResponse::default() }
    }
}

impl KubernetesObject {
    pub(crate) async fn apply_object(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let outcome = match (&request.planned, &request.prior) {
            (None, None) => Ok(ApplyResponse::default()),
            (None, Some(prior)) => self.destroy(context, prior).await.map(|()| ApplyResponse::default()),
            (Some(planned), None) => self.create(context, &request.config, planned).await,
            (Some(_), Some(prior)) => self.update(context, &request.config, prior).await,
        };
        let interrupted = request.planned.is_none() && context.stop.is_requested();
        outcome.unwrap_or_else(|error| ApplyResponse { error: Some(error), interrupted, ..ApplyResponse::default() })
    }

    async fn create(
        &self,
        context: &CallContext,
        config: &Value,
        planned: &Value,
    ) -> Result<ApplyResponse, DriverError> {
        let manifest = manifest::mark_secret(config.get("manifest").unwrap_or(&Value::Null));
        let [api_version, kind_name] = ["apiVersion", "kind"]
            .map(|name| manifest.get(name).and_then(Value::as_str).unwrap_or_default().to_owned());
        let kind = self.wait_for_kind(context, &api_version, &kind_name).await?;
        let name = planned.get("object").and_then(|object| object.get("metadata")?.get("name")?.as_str());
        let namespace = namespace(&manifest, Some(&kind), &context.namespace);
        let (Some(name), Some(namespace)) = (name, namespace) else {
            return Err(DriverError {
                kind: ErrorKind::Terminal,
                message: "the plan does not contain the name and namespace of the object".to_owned(),
                path: None,
                hint: Some("plan it again".to_owned()),
            });
        };
        let target = Target { api_version, kind: kind_name, namespace, name: name.to_owned() };
        let owner = self.owner(context).await?;
        let desired = manifest::desired_object(&manifest, &target, &owner);
        let sent = Patch { desired, previous: None };
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &target));
        let pending = PendingApply { context, kind, target, owner, sent, manifest, call };
        let created = self.create_or_resume(&pending).await?;
        Ok(pending.into_response(&created))
    }

    /// The kind of a new object. The server may take a moment to serve the kind of a new CRD.
    pub(crate) async fn wait_for_kind(
        &self,
        context: &CallContext,
        api_version: &str,
        kind: &str,
    ) -> Result<ApiKind, DriverError> {
        for round in 1..=KIND_ROUNDS {
            if let Some(found) = self.kind(context, api_version, kind).await? {
                return Ok(found);
            }
            if round == KIND_ROUNDS || self.server.pause(ROUND_PAUSE, context.deadline).await.is_err() {
                break;
            }
        }
        Err(no_such_kind(api_version, kind))
    }

    /// Creates the object, or resumes the create of an earlier call.
    async fn create_or_resume(&self, work: &PendingApply<'_>) -> Result<Json, DriverError> {
        let deadline = work.context.deadline;
        let collection = work.kind.collection(&work.target.namespace);
        let place = ObjectRef { caller: self.caller(work.context)?, collection: &collection, name: &work.target.name };
        let mut last = RequestError::Timeout;
        for _ in 0..CREATE_ROUNDS {
            let live = self.server.get(&place, deadline).await.map_err(|failure| self.create_error(work, &failure))?;
            if let Some(live) = live {
                if !work.is_owned(&live) {
                    return Err(work.already_exists(&live));
                }
                if live["metadata"]["deletionTimestamp"].is_null() {
                    return self.adopt(work, &live).await;
                }
                self.wait_until_deleted(work.context, &work.target, &place, live)
                    .await
                    .map_err(|error| error.into_driver_error(&work.target))?;
            }
            match self.patch(&work.patch_target(), &work.sent.desired, None, false, false).await {
                Ok(answer) if answer.code == 201 => return Ok(answer.body),
                Ok(answer) => return Err(self.undo_apply(work, &answer.body).await),
                Err(RequestError::Api(api_error)) if !api_error.conflicts().is_empty() => {
                    return Err(work.already_exists(&Json::Null));
                }
                // The response is lost and the object may exist. The next attempt finds it by the owner annotation.
                Err(failure @ RequestError::Unreachable(_)) => last = failure,
                Err(RequestError::Api(api_error))
                    if api_error.is_server_error() || api_error.is_service_account_missing() =>
                {
                    last = RequestError::Api(api_error);
                }
                Err(failure) => return Err(self.create_error(work, &failure)),
            }
            self.server.pause(ROUND_PAUSE, deadline).await.map_err(|failure| work.error("create", &failure))?;
        }
        Err(work.error("create", &last))
    }

    /// Finishes an interrupted create of an object with the owner annotation.
    async fn adopt(&self, work: &PendingApply<'_>, live: &Json) -> Result<Json, DriverError> {
        let uid = live["metadata"]["uid"].as_str();
        let applied = self.apply_and_take_over(&work.patch_target(), &work.sent, uid).await;
        applied.map_err(|failure| work.error("create", &failure))
    }

    /// Another client created an object of that name between the read and the apply, so the object now has Purlin's
    /// fields. Its own fields are unchanged, since the apply was not forced. Applying without those fields removes
    /// them.
    async fn undo_apply(&self, work: &PendingApply<'_>, other: &Json) -> DriverError {
        let bare = json!({"apiVersion": work.target.api_version, "kind": work.target.kind,
            "metadata": {"name": work.target.name}});
        let uid = other["metadata"]["uid"].as_str();
        let undone = self.patch(&work.patch_target(), &Value::from_json(bare), uid, false, false).await;
        if let Err(failure) = undone {
            let object = &work.target;
            tracing::warn!(%object, ?failure, "cannot remove Purlin's fields from an object of another client");
        }
        work.already_exists(&Json::Null)
    }

    fn create_error(&self, work: &PendingApply<'_>, failure: &RequestError) -> DriverError {
        if let RequestError::Api(api_error) = failure
            && api_error.is_unknown_kind()
        {
            self.server.forget_kind(&work.kind);
            return no_such_kind(&work.target.api_version, &work.target.kind);
        }
        work.error("create", failure)
    }

    async fn update(
        &self,
        context: &CallContext,
        config: &Value,
        prior: &RecordedObject,
    ) -> Result<ApplyResponse, DriverError> {
        let manifest = manifest::mark_secret(config.get("manifest").unwrap_or(&Value::Null));
        self.caller(context)?;
        let recorded = recorded_target(prior)?;
        let api_version = manifest.get("apiVersion").and_then(Value::as_str).unwrap_or(&recorded.api_version);
        let target = Target { api_version: api_version.to_owned(), ..recorded.clone() };
        let kind = self.wait_for_kind(context, &target.api_version, &target.kind).await?;
        let owner = self.owner(context).await?;
        let before = prior.value.get("manifest").filter(|before| **before != Value::Null);
        let sent = Patch {
            desired: manifest::desired_object(&manifest, &target, &owner),
            previous: before.map(|before| manifest::desired_object(before, &target, &owner)),
        };
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &recorded));
        let at = PatchTarget { context, kind: &kind, target: &target };
        let live = self
            .apply_and_take_over(&at, &sent, prior.id())
            .await
            .map_err(|failure| self.change_error(&at, &sent, &failure))?;
        let kept = all_kept_fields(prior, &live, &sent);
        kept.warn(context);
        let work = PendingApply { context, kind, target, owner, sent, manifest, call };
        let mut response = work.into_response(&live);
        if let Some(object) = &mut response.object {
            object.private = kept.private().into();
        }
        Ok(response)
    }

    /// Waits until the object is ready.
    pub(crate) async fn wait_until_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &(dyn Fn(&Health) + Send + Sync),
    ) -> Result<ObjectState, ReadinessError> {
        let target = recorded_target(object)?;
        let kind = self.kind(context, &target.api_version, &target.kind).await?;
        let kind = kind.ok_or_else(|| no_such_kind(&target.api_version, &target.kind))?;
        let collection = kind.collection(&target.namespace);
        let place = ObjectRef { caller: self.caller(context)?, collection: &collection, name: &target.name };
        // Changes during the wait follow from the apply and are not drift, unless another client has changed the spec.
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &target));
        let attempt = error_context(context, "watch", &kind.resource(), &target);
        let live = self
            .server
            .get(&place, context.deadline)
            .await
            .map_err(|failure| api_error::to_driver_error(&failure, &attempt))?;
        let mut last = live.clone();
        let outcome = self.wait_until_current(&place, live, object.id(), context.deadline, &mut last, report).await;
        let state = last.map(|last| {
            let manifest = object.value.get("manifest").unwrap_or(&Value::Null);
            let kept = KeptFields::remaining(object, &last, manifest);
            let mut state = ObjectState { private: kept.private().into(), ..object::state(&last, manifest) };
            match object::as_written(&object.value, &state.value) {
                Some(written) => {
                    context.warnings.add(changed_while_awaited(context));
                    state.value = written;
                }
                None if has_same_generation(object, &last) => call.into_iter().for_each(|call| call.finish(&last)),
                None => {}
            }
            state
        });
        let (error, last) = match (outcome, state) {
            (Ok(()), Some(state)) => return Ok(state),
            (Err(WaitError::Missing) | Ok(()), _) | (_, None) => {
                let message = format!("{target} was deleted by another client before it was ready");
                (DriverError { kind: ErrorKind::Transient, message, path: None, hint: None }, Observation::Missing)
            }
            (Err(WaitError::Request(failure)), Some(state)) => {
                (api_error::to_driver_error(&failure, &attempt), Observation::Object(state))
            }
            (Err(error), Some(state)) => (error.into_driver_error(&target), Observation::Object(state)),
        };
        Err(ReadinessError { error, last })
    }

    /// Waits until kstatus reports the object with that UID as current. `last` receives the last observed object.
    async fn wait_until_current(
        &self,
        place: &ObjectRef<'_>,
        start: Option<Json>,
        uid: Option<&str>,
        deadline: jiff::Timestamp,
        last: &mut Option<Json>,
        report: &(dyn Fn(&Health) + Send + Sync),
    ) -> Result<(), WaitError> {
        let mut missing = String::new();
        let verdict = self
            .server
            .wait_for(place, start, deadline, &mut |state: Option<&Json>| {
                let Some(live) = state.filter(|live| live["metadata"]["uid"].as_str() == uid) else {
                    return Some(Err(WaitError::Missing));
                };
                *last = Some(live.clone());
                let health = kstatus::of_live(live);
                if health.is_current() {
                    return Some(Ok(()));
                }
                missing = health.to_string();
                report(&health);
                None
            })
            .await;
        match verdict {
            Ok(verdict) => verdict,
            Err(RequestError::Timeout) => Err(WaitError::NotReady(missing)),
            Err(failure) => Err(WaitError::Request(failure)),
        }
    }

    async fn destroy(&self, context: &CallContext, prior: &RecordedObject) -> Result<(), DriverError> {
        let target = recorded_target(prior)?;
        // The object is missing in this cluster, but still exists in the other one.
        if !prior.provider_config.is_empty() && !prior.was_last_read_with(&self.cluster(context).await?) {
            return Err(DriverError {
                kind: ErrorKind::Terminal,
                message: format!("{target} was last seen in another cluster"),
                path: None,
                hint: Some("connect to that cluster, or remove the record with `purlin state rm`".to_owned()),
            });
        }
        if let Some(watches) = &self.watches {
            watches.forget(context, &target);
        }
        let (uid, caller) = (prior.id().unwrap_or_default(), self.caller(context)?);
        // Retried once for a kind that changed or was removed after it was cached.
        for _ in 0..2 {
            let deadline = context.deadline;
            let found = self.server.kind_in_any_version(caller, &target.api_version, &target.kind, deadline).await;
            let found =
                found.map_err(|failure| discovery_error(context, &failure, &target.api_version, &target.kind))?;
            // All objects of a kind are deleted with its definition.
            let Some(kind) = found else { return Ok(()) };
            match self.delete(context, &kind, &target, uid).await {
                Ok(()) => return Ok(()),
                Err(WaitError::Request(RequestError::Api(api_error))) if api_error.is_unknown_kind() => {
                    self.server.forget_kind(&kind);
                }
                Err(WaitError::Request(failure)) => {
                    return self.deleted_with_namespace(context, (&kind, &target), "delete", &failure).await;
                }
                Err(error) => return Err(error.into_driver_error(&target)),
            }
        }
        Err(no_such_kind(&target.api_version, &target.kind))
    }

    /// Deletes the object with the UID and waits until it no longer exists.
    async fn delete(&self, context: &CallContext, kind: &ApiKind, target: &Target, uid: &str) -> Result<(), WaitError> {
        let collection = kind.collection(&target.namespace);
        let caller = self.caller(context).map_err(WaitError::Driver)?;
        let place = ObjectRef { caller, collection: &collection, name: &target.name };
        let body = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation(target),
        });
        let call = Call { method: Method::DELETE, body: Some(body), ..Call::get(place.path()) };
        let remaining = match self.server.call(place.caller, &call, context.deadline).await {
            // The response does not show whether the object is deleted already: it may contain the object after an
            // immediate deletion, or report success while finalizers still block it.
            Ok(_) => self.server.get(&place, context.deadline).await.map_err(WaitError::Request)?,
            // Deleted already, or another object of that name.
            Err(RequestError::Api(api_error)) if is_already_deleted(&api_error) => None,
            Err(failure) => return Err(WaitError::Request(failure)),
        };
        match remaining.filter(|live| live["metadata"]["uid"] == json!(uid)) {
            None => Ok(()),
            Some(live) => self.wait_until_deleted(context, target, &place, live).await,
        }
    }

    /// Waits until the object is deleted or another object has its name. The wait has no effects, so it ends when the call
    /// is asked to return.
    async fn wait_until_deleted(
        &self,
        context: &CallContext,
        target: &Target,
        place: &ObjectRef<'_>,
        live: Json,
    ) -> Result<(), WaitError> {
        let uid = live["metadata"]["uid"].clone();
        let mut finalizers = Vec::new();
        let mut watcher = |state: Option<&Json>| {
            let Some(live) = state.filter(|live| live["metadata"]["uid"] == uid) else { return Some(()) };
            finalizers = kstatus::finalizers(live);
            context.delay.set(format!("{target} is being deleted{}", held_by(&finalizers)));
            None
        };
        let ended = tokio::select! {
            biased;
            ended = self.server.wait_for(place, Some(live), context.deadline, &mut watcher) => ended,
            () = context.stop.requested() => Err(RequestError::Timeout),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(RequestError::Timeout) => Err(WaitError::NotDeleted(finalizers)),
            Err(failure) => Err(WaitError::Request(failure)),
        }
    }
}

/// The record has the fields as Purlin has written them, so the next reading finds the difference.
fn changed_while_awaited(context: &CallContext) -> Diagnostic {
    let what = "another client has changed the object while Purlin waited until it is ready; the next plan reads it";
    let warning = Diagnostic::general(Reason::Drifted, what.to_owned());
    Diagnostic { address: context.address.parse().ok(), severity: Severity::Warning, ..warning }
}

/// Whether the spec of the object has not changed since it was recorded.
fn has_same_generation(recorded: &RecordedObject, live: &Json) -> bool {
    let before = recorded.value.get("object").and_then(|object| object.get("metadata")?.get("generation"));
    before.is_none_or(|before| before.to_json() == live["metadata"]["generation"])
}

fn is_already_deleted(api_error: &ApiError) -> bool {
    api_error.is_uid_mismatch() || (api_error.code == 404 && !api_error.is_unknown_kind())
}

/// Workloads are deleted in the foreground, so that the objects that their Pods use are destroyed after the Pods.
fn propagation(target: &Target) -> &'static str {
    match (target.group(), target.kind.as_str()) {
        ("apps", _) | ("batch", "Job" | "CronJob") | ("", "ReplicationController") => "Foreground",
        _ => "Background",
    }
}

/// Why a wait failed.
enum WaitError {
    Missing,
    NotReady(String),
    NotDeleted(Vec<String>),
    Request(RequestError),
    Driver(DriverError),
}

impl WaitError {
    fn into_driver_error(self, target: &Target) -> DriverError {
        let (message, hint) = match self {
            Self::Missing => (format!("{target} no longer exists"), None),
            Self::NotReady(missing) => (
                format!("{target} was not ready before the deadline: {missing}"),
                Some("increase `timeouts`, or skip the wait with the annotation `purlin.dev/wait: \"false\"`"),
            ),
            Self::NotDeleted(finalizers) => (
                format!("{target} was not deleted before the deadline{}", held_by(&finalizers)),
                (!finalizers.is_empty()).then_some("the controllers of these finalizers must remove them"),
            ),
            Self::Request(_) => (format!("{target} can no longer be watched"), None),
            Self::Driver(error) => return error,
        };
        DriverError { kind: ErrorKind::Transient, message, path: None, hint: hint.map(str::to_owned) }
    }
}
