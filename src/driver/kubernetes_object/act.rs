//! Creating, updating and deleting, and waiting until the controllers behind the server are done with an object.

use http::Method;
use serde_json::{Value as Json, json};

use crate::driver::{ApplyRequest, ApplyResponse, CallContext, LastSeen, NotReady};
use crate::model::{DriverError, ErrorKind, ObjectState, RecordedObject, Value};

use super::ask::namespace;
use super::discovery::ApiKind;
use super::follow::Place;
use super::kstatus::{Verdict, judge};
use super::patch::{At, Sent};
use super::refusal::{self, Attempt, Failure, Refusal};
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target};
use super::watches::OpenCall;
use super::{KubernetesObject, attempt, discovery_error, manifest, no_such_kind, object, recorded_target};

/// How often a create looks again after the ground has moved under it: an object that was going, an answer that was
/// lost. More often than that it is not bad luck.
const CREATE_ROUNDS: u32 = 4;

/// How often a create looks for its kind: in all for a second, several times what a server needs to serve a new
/// definition.
const KIND_ROUNDS: u32 = 5;

/// Between two rounds, for a server that has just lost an answer.
const ROUND_PAUSE: std::time::Duration = std::time::Duration::from_millis(250);

/// One object under work.
struct Work<'a> {
    context: &'a CallContext,
    kind: ApiKind,
    target: Target,
    owner: String,
    sent: Sent,
    /// With a Secret's contents marked, to be recorded.
    manifest: Value,
    /// Tells the watches that what happens now is our doing.
    call: Option<OpenCall>,
}

impl Work<'_> {
    fn at(&self) -> At<'_> {
        At { context: self.context, kind: &self.kind, target: &self.target }
    }

    fn error(&self, verb: &'static str, failure: &Failure) -> DriverError {
        let attempt = attempt(self.context, verb, &self.kind.resource(), &self.target);
        let error = refusal::error(failure, &Attempt { sensitive: self.sent.desired.has_sensitive(), ..attempt });
        match self.prefix().filter(|_| verb == "create") {
            // Every attempt draws another name; the same trouble is told in the same words all the same.
            Some(prefix) => {
                DriverError { message: error.message.replace(&self.target.name, &format!("{prefix}*")), ..error }
            }
            None => error,
        }
    }

    /// What its name begins with, when the rest of it was drawn.
    fn prefix(&self) -> Option<&str> {
        self.manifest.get("metadata")?.get("generateName")?.as_str()
    }

    fn is_marked(&self, live: &Json) -> bool {
        live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(self.owner.as_str())
    }

    fn already_exists(&self, live: &Json) -> DriverError {
        let owner = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str();
        let whose = owner.map_or_else(String::new, |owner| format!(" and belongs to `{owner}`"));
        DriverError {
            kind: ErrorKind::AlreadyExists,
            message: format!("{} exists already{whose}", self.target),
            path: None,
            hint: Some(format!("to manage it from now on, set `import.id` to `{}`", self.target.import_id())),
        }
    }

    /// The object as the call has left it. One that is not as its spec asks yet is waited for later.
    fn left(self, made: &Json) -> ApplyResponse {
        let verdict = if manifest::waits(&self.manifest) { judge(made) } else { Verdict::Current };
        let (ready_by, error) = match verdict {
            Verdict::Current => (None, None),
            Verdict::InProgress(_) | Verdict::Terminating => (Some(self.context.deadline), None),
            Verdict::Failed(why) => (None, Some(Unsettled::Failed(why).told(&self.target))),
        };
        if let Some(call) = self.call {
            call.left(made);
        }
        // Webhooks and controllers have a say in what an object becomes.
        let object = Some(object::state(made, &self.manifest));
        ApplyResponse { object, error, ready_by, tolerant: true, ..ApplyResponse::default() }
    }
}

impl KubernetesObject {
    pub(super) async fn apply_object(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let outcome = match (&request.planned, &request.prior) {
            (None, None) => Ok(ApplyResponse::default()),
            (None, Some(prior)) => self.destroy(context, prior).await.map(|()| ApplyResponse::default()),
            (Some(planned), None) => self.create(context, &request.config, planned).await,
            (Some(_), Some(prior)) => self.update(context, &request.config, prior).await,
        };
        outcome.unwrap_or_else(|error| ApplyResponse { object: None, error: Some(error), ..ApplyResponse::default() })
    }

    async fn create(
        &self,
        context: &CallContext,
        config: &Value,
        planned: &Value,
    ) -> Result<ApplyResponse, DriverError> {
        let manifest = manifest::marked(config.get("manifest").unwrap_or(&Value::Null));
        let text = |name: &str| manifest.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind_name) = (text("apiVersion"), text("kind"));
        let kind = self.kind_soon(context, &api_version, &kind_name).await?;
        let name = planned.get("object").and_then(|object| object.get("metadata")?.get("name")?.as_str());
        let namespace = namespace(&manifest, Some(&kind), &context.namespace);
        let (Some(name), Some(namespace)) = (name, namespace) else {
            return Err(DriverError {
                kind: ErrorKind::Terminal,
                message: "the plan of this object does not say where it will be".to_owned(),
                path: None,
                hint: Some("plan it again".to_owned()),
            });
        };
        let target = Target { api_version, kind: kind_name, namespace, name: name.to_owned() };
        let owner = self.owner(context).await?;
        let desired = manifest::desired(&manifest, &target, &owner);
        let sent = Sent { desired, before: None };
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &target));
        let work = Work { context, kind, target, owner, sent, manifest, call };
        let made = self.make(&work).await?;
        Ok(work.left(&made))
    }

    /// The kind of a new object. Its definition may be a moment old, and the server tells of it a moment later.
    async fn kind_soon(&self, context: &CallContext, api_version: &str, kind: &str) -> Result<ApiKind, DriverError> {
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

    /// Makes the object, or goes on with what an earlier call of ours has made.
    async fn make(&self, work: &Work<'_>) -> Result<Json, DriverError> {
        let deadline = work.context.deadline;
        let collection = work.kind.collection(&work.target.namespace);
        let place = Place { who: self.who(work.context)?, collection: &collection, name: &work.target.name };
        let mut last = Failure::OutOfTime;
        for _ in 0..CREATE_ROUNDS {
            let found =
                self.server.look(&place, deadline).await.map_err(|failure| self.create_error(work, &failure))?;
            if let Some(live) = found {
                if !work.is_marked(&live) {
                    return Err(work.already_exists(&live));
                }
                if live["metadata"]["deletionTimestamp"].is_null() {
                    return self.adopt(work, &live).await;
                }
                self.until_gone(&place, live, deadline).await.map_err(|error| error.told(&work.target))?;
            }
            match self.patch(&work.at(), &work.sent.desired, None, false, false).await {
                Ok(answer) if answer.code == 201 => return Ok(answer.body),
                Ok(answer) => return Err(self.step_back(work, &answer.body).await),
                Err(Failure::Refused(refusal)) if !refusal.conflicts().is_empty() => {
                    return Err(work.already_exists(&Json::Null));
                }
                // The answer is lost, the object may be there: the next round sees it, with our mark.
                Err(failure @ Failure::Unreachable(_)) => last = failure,
                Err(Failure::Refused(refusal)) if refusal.is_server_trouble() || refusal.is_too_early() => {
                    last = Failure::Refused(refusal);
                }
                Err(failure) => return Err(self.create_error(work, &failure)),
            }
            self.server.pause(ROUND_PAUSE, deadline).await.map_err(|failure| work.error("create", &failure))?;
        }
        Err(work.error("create", &last))
    }

    /// Finishes an interrupted create: the object is marked as ours.
    async fn adopt(&self, work: &Work<'_>, live: &Json) -> Result<Json, DriverError> {
        let uid = live["metadata"]["uid"].as_str();
        let answer = self.apply_patch(&work.at(), &work.sent, uid, false).await;
        answer.map(|answer| answer.body).map_err(|failure| work.error("create", &failure))
    }

    /// Somebody made an object of that name between our look and our apply, and what we set is now in it. Nothing
    /// of theirs was changed, since we did not force; giving up what we set takes it out again.
    async fn step_back(&self, work: &Work<'_>, theirs: &Json) -> DriverError {
        let bare = json!({"apiVersion": work.target.api_version, "kind": work.target.kind,
            "metadata": {"name": work.target.name}});
        let uid = theirs["metadata"]["uid"].as_str();
        let undone = self.patch(&work.at(), &Value::from_json(bare), uid, false, false).await;
        if let Err(failure) = undone {
            tracing::warn!(object = %work.target, ?failure, "an object made by somebody else keeps fields of ours");
        }
        work.already_exists(&Json::Null)
    }

    fn create_error(&self, work: &Work<'_>, failure: &Failure) -> DriverError {
        if let Failure::Refused(refusal) = failure
            && refusal.is_unknown_kind()
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
        let manifest = manifest::marked(config.get("manifest").unwrap_or(&Value::Null));
        self.who(context)?;
        let target = recorded_target(prior)?;
        let kind = self.kind(context, &target.api_version, &target.kind).await?;
        let kind = kind.ok_or_else(|| no_such_kind(&target.api_version, &target.kind))?;
        let owner = self.owner(context).await?;
        let before = prior.value.get("manifest").filter(|before| **before != Value::Null);
        let sent = Sent {
            desired: manifest::desired(&manifest, &target, &owner),
            before: before.map(|before| manifest::desired(before, &target, &owner)),
        };
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &target));
        let at = At { context, kind: &kind, target: &target };
        let answer = self
            .apply_patch(&at, &sent, prior.id(), false)
            .await
            .map_err(|failure| self.change_error(&at, &sent, &failure))?;
        let work = Work { context, kind, target, owner, sent, manifest, call };
        Ok(work.left(&answer.body))
    }

    /// Waits until the object is as its spec asks.
    pub(super) async fn until_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        tell: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ObjectState, NotReady> {
        let target = recorded_target(object)?;
        let kind = self.kind(context, &target.api_version, &target.kind).await?;
        let kind = kind.ok_or_else(|| no_such_kind(&target.api_version, &target.kind))?;
        let collection = kind.collection(&target.namespace);
        let place = Place { who: self.who(context)?, collection: &collection, name: &target.name };
        // What the object goes through meanwhile is our doing.
        let call = self.watches.as_ref().map(|watches| watches.begin(context, &target));
        let unseen = |failure: &Failure| refusal::error(failure, &attempt(context, "watch", &kind.resource(), &target));
        let found = self.server.look(&place, context.deadline).await.map_err(|failure| unseen(&failure))?;
        let mut last = found.clone();
        let followed = self.until_current(&place, found, object.id(), context.deadline, &mut last, tell).await;
        let state = last.map(|last| {
            if let Some(call) = call {
                call.left(&last);
            }
            object::state(&last, object.value.get("manifest").unwrap_or(&Value::Null))
        });
        let (error, last) = match (followed, state) {
            (Ok(()), Some(state)) => return Ok(state),
            (Err(Unsettled::Gone) | Ok(()), _) | (_, None) => {
                let message = format!("{target} was deleted by somebody else while it was being set up");
                (DriverError { kind: ErrorKind::Transient, message, path: None, hint: None }, LastSeen::Gone)
            }
            (Err(Unsettled::Unseen(failure)), Some(state)) => (unseen(&failure), LastSeen::Object(state)),
            (Err(error), Some(state)) => (error.told(&target), LastSeen::Object(state)),
        };
        Err(NotReady { error, last })
    }

    /// Follows the object of that UID until kstatus says that it is current. `last` is the last state seen.
    async fn until_current(
        &self,
        place: &Place<'_>,
        start: Option<Json>,
        uid: Option<&str>,
        deadline: jiff::Timestamp,
        last: &mut Option<Json>,
        tell: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), Unsettled> {
        let mut missing = String::new();
        let mut watcher = |state: Option<&Json>| {
            let Some(live) = state.filter(|live| live["metadata"]["uid"].as_str() == uid) else {
                return Some(Err(Unsettled::Gone));
            };
            *last = Some(live.clone());
            missing = match judge(live) {
                Verdict::Current => return Some(Ok(())),
                Verdict::Failed(why) => return Some(Err(Unsettled::Failed(why))),
                Verdict::InProgress(why) => why,
                Verdict::Terminating => String::from("it is being deleted"),
            };
            tell(&missing);
            None
        };
        match self.server.follow(place, start, deadline, &mut watcher).await {
            Ok(verdict) => verdict,
            Err(Failure::OutOfTime) => Err(Unsettled::NotInTime(missing)),
            Err(failure) => Err(Unsettled::Unseen(failure)),
        }
    }

    async fn destroy(&self, context: &CallContext, prior: &RecordedObject) -> Result<(), DriverError> {
        let target = recorded_target(prior)?;
        // Here it would be found to be gone, and there it would stay for ever.
        if !prior.provider_config.is_empty() && !prior.is_known_to(&self.cluster(context).await?) {
            return Err(DriverError {
                kind: ErrorKind::Terminal,
                message: format!("{target} was last seen in another cluster than this one"),
                path: None,
                hint: Some(
                    "go back to the cluster that it is in, or forget the object with `purlin state rm`".to_owned(),
                ),
            });
        }
        if let Some(watches) = &self.watches {
            watches.forget(context, &target);
        }
        let uid = prior.id().unwrap_or_default();
        // A second time for a kind that was moved or removed since it was looked up.
        for _ in 0..2 {
            let found = self.server.kind_in_any_version(&target.api_version, &target.kind, context.deadline).await;
            let found =
                found.map_err(|failure| discovery_error(context, &failure, &target.api_version, &target.kind))?;
            // With its definition all its objects are gone.
            let Some(kind) = found else { return Ok(()) };
            match self.delete(context, &kind, &target, uid).await {
                Ok(()) => return Ok(()),
                Err(Unsettled::Unseen(Failure::Refused(refusal))) if refusal.is_unknown_kind() => {
                    self.server.forget_kind(&kind);
                }
                Err(Unsettled::Unseen(failure)) => {
                    return self.gone_with_namespace(context, (&kind, &target), "delete", &failure).await;
                }
                Err(error) => return Err(error.told(&target)),
            }
        }
        Err(no_such_kind(&target.api_version, &target.kind))
    }

    /// Deletes one object, that of the UID and no other, and waits until it is gone.
    async fn delete(&self, context: &CallContext, kind: &ApiKind, target: &Target, uid: &str) -> Result<(), Unsettled> {
        let collection = kind.collection(&target.namespace);
        let who = self.who(context).map_err(Unsettled::Refused)?;
        let place = Place { who, collection: &collection, name: &target.name };
        let body = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation(target),
        });
        let call = Call { method: Method::DELETE, body: Some(body), ..Call::get(place.path()) };
        let seen = match self.server.call(place.who, &call, context.deadline).await {
            // The answer may show the object, though it is gone at once, as its version of after the deletion: a watch
            // from there on would tell nothing. Or finalizers hold it, though the server says that it is done.
            Ok(_) => self.server.look(&place, context.deadline).await.map_err(Unsettled::Unseen)?,
            // Gone, or another object of that name.
            Err(Failure::Refused(refusal)) if is_gone(&refusal) => None,
            Err(failure) => return Err(Unsettled::Unseen(failure)),
        };
        match seen.filter(|live| live["metadata"]["uid"] == json!(uid)) {
            None => Ok(()),
            Some(live) => self.until_gone(&place, live, context.deadline).await,
        }
    }

    /// Follows the object until it is gone, or another one has its name.
    async fn until_gone(&self, place: &Place<'_>, live: Json, deadline: jiff::Timestamp) -> Result<(), Unsettled> {
        let uid = live["metadata"]["uid"].clone();
        let mut held_by = String::new();
        let mut watcher = |state: Option<&Json>| {
            let Some(live) = state.filter(|live| live["metadata"]["uid"] == uid) else { return Some(()) };
            let finalizers = live["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
            held_by = finalizers
                .iter()
                .filter_map(Json::as_str)
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
            None
        };
        match self.server.follow(place, Some(live), deadline, &mut watcher).await {
            Ok(()) => Ok(()),
            Err(Failure::OutOfTime) => Err(Unsettled::StillThere(held_by)),
            Err(failure) => Err(Unsettled::Unseen(failure)),
        }
    }
}

fn is_gone(refusal: &Refusal) -> bool {
    refusal.is_uid_mismatch() || (refusal.code == 404 && !refusal.is_unknown_kind())
}

/// Objects whose Pods go on using what they are made from: they are gone only when their Pods are, so that what the
/// Pods use is destroyed after them.
fn propagation(target: &Target) -> &'static str {
    match (target.group(), target.kind.as_str()) {
        ("apps", _) | ("batch", "Job" | "CronJob") | ("", "ReplicationController") => "Foreground",
        _ => "Background",
    }
}

/// Why a wait ended without what was waited for.
enum Unsettled {
    Gone,
    Failed(String),
    NotInTime(String),
    StillThere(String),
    Unseen(Failure),
    Refused(DriverError),
}

impl Unsettled {
    fn told(self, target: &Target) -> DriverError {
        let error = |kind, message, hint: Option<&str>| DriverError {
            kind,
            message,
            path: None,
            hint: hint.map(str::to_owned),
        };
        match self {
            Self::Gone => error(ErrorKind::Transient, format!("{target} is gone"), None),
            Self::Failed(why) => error(ErrorKind::Terminal, format!("{target} has failed: {why}"), None),
            Self::NotInTime(missing) => error(
                ErrorKind::Transient,
                format!("{target} was not ready in time: {missing}"),
                Some("raise `timeouts`, or do not wait for it with the annotation `purlin.dev/wait: \"false\"`"),
            ),
            Self::StillThere(finalizers) if finalizers.is_empty() => {
                error(ErrorKind::Transient, format!("{target} was not gone in time"), None)
            }
            Self::StillThere(finalizers) => error(
                ErrorKind::Transient,
                format!("{target} was not gone in time: it is held by the finalizers {finalizers}"),
                Some("the controllers of these finalizers must let it go"),
            ),
            Self::Unseen(_) => error(ErrorKind::Transient, format!("{target} can no longer be watched"), None),
            Self::Refused(error) => error,
        }
    }
}
