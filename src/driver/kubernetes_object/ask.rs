//! Reading, importing and planning: requests that change nothing.

use http::Method;
use serde_json::Value as Json;

use crate::driver::CallContext;
use crate::model::{DriverError, ErrorKind, ObjectState, Path, PlanRequest, PlanResponse, RecordedObject, Value};

use super::discovery::{self, ApiKind};
use super::follow::Place;
use super::patch::{At, Sent};
use super::planning::{self, Shape};
use super::refusal::{self, Attempt, Failure, Refusal};
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target, drawn_name, group_of};
use super::{
    FIELD_MANAGER, KubernetesObject, attempt, discovery_error, manifest, no_such_kind, object, recorded_target,
};

/// What a plan is made from.
struct Wanted<'a> {
    /// With a Secret's contents marked.
    manifest: &'a Value,
    api_version: &'a str,
    kind_name: &'a str,
    /// `None`: the server does not have it yet.
    kind: Option<ApiKind>,
}

impl KubernetesObject {
    /// The object on record as it is now. One of another UID is another object: ours is gone.
    pub(super) async fn read_object(
        &self,
        context: &CallContext,
        recorded: &RecordedObject,
    ) -> Result<Option<ObjectState>, DriverError> {
        let target = recorded_target(recorded)?;
        let Some(live) = self.live(context, &target).await? else { return Ok(None) };
        if live["metadata"]["uid"].as_str() != recorded.id() {
            return Ok(None);
        }
        if let Some(watches) = &self.watches {
            watches.looked(context, &target, &live);
        }
        Ok(Some(object::state(&live, recorded.value.get("manifest").unwrap_or(&Value::Null))))
    }

    /// The object of a plan, if it is there and carries our mark.
    pub(super) async fn find_own(
        &self,
        context: &CallContext,
        planned: &Value,
    ) -> Result<Option<ObjectState>, DriverError> {
        let object = planned.get("object");
        let text = |path: [&str; 2]| {
            let named =
                path.into_iter().filter(|name| !name.is_empty()).try_fold(object?, |value, name| value.get(name));
            named?.as_str().map(str::to_owned)
        };
        let (Some(api_version), Some(kind), Some(name)) =
            (text(["", "apiVersion"]), text(["", "kind"]), text(["metadata", "name"]))
        else {
            return Ok(None);
        };
        let namespace = text(["metadata", "namespace"]).unwrap_or_default();
        let Some(live) = self.live(context, &Target { api_version, kind, namespace, name }).await? else {
            return Ok(None);
        };
        let is_ours = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(&*self.owner(context).await?);
        Ok(is_ours.then(|| object::state(&live, planned.get("manifest").unwrap_or(&Value::Null))))
    }

    /// An existing object, by `apiVersion/Kind/[namespace/]name`. It has no manifest yet: the first update gives it
    /// one, and our mark with it.
    pub(super) async fn import_object(
        &self,
        context: &CallContext,
        id: &str,
    ) -> Result<Option<ObjectState>, DriverError> {
        let Some(mut target) = Target::from_import_id(id) else {
            return Err(DriverError {
                kind: ErrorKind::InvalidConfig,
                message: format!("`{id}` does not name an object"),
                path: None,
                hint: Some(
                    "write `apiVersion/Kind/namespace/name`, such as `v1/ConfigMap/shop/site`, or without namespace"
                        .to_owned(),
                ),
            });
        };
        let kind = self.kind(context, &target.api_version, &target.kind).await?;
        let kind = kind.ok_or_else(|| no_such_kind(&target.api_version, &target.kind))?;
        match (kind.namespaced, target.namespace.is_empty()) {
            (true, true) => target.namespace = context.namespace.to_string(),
            (false, false) => target.namespace.clear(),
            _ => {}
        }
        let Some(live) = self.live(context, &target).await? else { return Ok(None) };
        self.refuse_taken(context, &target, &live).await?;
        Ok(Some(object::state(&live, &Value::Null)))
    }

    /// An object that carries the mark of a Resource of another namespace is not taken away from it. Whether one of
    /// this namespace manages it is known to the records, and a mark of another installation is no reason to refuse:
    /// to import says that the object is ours from now on.
    async fn refuse_taken(&self, context: &CallContext, target: &Target, live: &Json) -> Result<(), DriverError> {
        let Some(mark) = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() else { return Ok(()) };
        let scope = self.owner_scope(context).await?;
        let owner = mark.strip_prefix(&*scope).and_then(|rest| rest.strip_prefix('/'));
        let own = |owner: &str| owner.strip_prefix(&*context.namespace).is_some_and(|rest| rest.starts_with('/'));
        match owner.filter(|owner| !own(owner)) {
            None => Ok(()),
            Some(owner) => Err(DriverError {
                kind: ErrorKind::AlreadyExists,
                message: format!("{target} belongs to the Resource `{}`", owner.trim_end_matches('/')),
                path: None,
                hint: Some(format!(
                    "let that Resource go first (`deletionPolicy: Orphan`), then remove the annotation \
                     `{OWNER_ANNOTATION}` from the object"
                )),
            }),
        }
    }

    pub(super) async fn live(&self, context: &CallContext, target: &Target) -> Result<Option<Json>, DriverError> {
        let who = self.who(context)?;
        // A second look for a kind that was moved or removed since it was looked up.
        for _ in 0..2 {
            let kind = self.server.kind_in_any_version(&target.api_version, &target.kind, context.deadline).await;
            let kind = kind.map_err(|failure| discovery_error(context, &failure, &target.api_version, &target.kind))?;
            let Some(kind) = kind else { return Ok(None) };
            let collection = kind.collection(&target.namespace);
            let place = Place { who, collection: &collection, name: &target.name };
            match self.server.look(&place, context.deadline).await {
                Ok(live) => return Ok(live),
                Err(Failure::Refused(refusal)) if refusal.is_unknown_kind() => self.server.forget_kind(&kind),
                Err(failure) => {
                    let gone = self.gone_with_namespace(context, (&kind, target), "read", &failure).await;
                    return gone.map(|()| None);
                }
            }
        }
        Err(no_such_kind(&target.api_version, &target.kind))
    }

    pub(super) async fn plan_object(
        &self,
        context: &CallContext,
        request: PlanRequest,
    ) -> Result<PlanResponse, DriverError> {
        self.who(context)?;
        let manifest = manifest::marked(&request.config.get("manifest").cloned().unwrap_or(Value::Unknown));
        let text = |name: &str| manifest.get(name).and_then(Value::as_str);
        let (Some(api_version), Some(kind_name)) = (text("apiVersion"), text("kind")) else {
            return Ok(wholly_unknown(&request, &manifest));
        };
        let kind = self.kind(context, api_version, kind_name).await?;
        if kind.is_none() && !discovery::may_gain_kinds(group_of(api_version)) {
            return Err(no_such_kind(api_version, kind_name));
        }
        if let Some(error) = kind.as_ref().and_then(|kind| misplaced(&manifest, kind)) {
            return Err(error);
        }
        let wanted = Wanted { manifest: &manifest, api_version, kind_name, kind };
        match request.prior.clone() {
            None => self.plan_create(context, &request, &wanted).await,
            Some(prior) => {
                let response = self.plan_change(context, &request, &prior, &wanted).await?;
                Ok(PlanResponse { until_ready: until_ready(&prior, &response.planned), ..response })
            }
        }
    }

    async fn plan_create(
        &self,
        context: &CallContext,
        request: &PlanRequest,
        wanted: &Wanted<'_>,
    ) -> Result<PlanResponse, DriverError> {
        let before = request.planned_before.as_ref().and_then(|planned| planned.get("object"));
        let name = planned_name(wanted.manifest, before, request.entropy);
        let namespace = namespace(wanted.manifest, wanted.kind.as_ref(), &context.namespace);
        let target = Target {
            api_version: wanted.api_version.to_owned(),
            kind: wanted.kind_name.to_owned(),
            namespace: namespace.clone().unwrap_or_default(),
            name: name.clone().unwrap_or_default(),
        };
        let placed = name.is_some() && namespace.is_some();
        let mut desired = manifest::desired(wanted.manifest, &target, &self.owner(context).await?);
        let dry = match &wanted.kind {
            Some(kind) if placed && before.is_none() && !desired.has_unknown() && !is_closed(&target) => {
                self.try_create(context, kind, &target, &desired).await?
            }
            _ => None,
        };
        let shape = match &dry {
            Some(dry) => Shape::DryRun(dry),
            None if is_closed(&target) => Shape::Closed,
            None => Shape::Open,
        };
        if !placed {
            desired = with_place(&desired, name.as_deref(), namespace.as_deref());
        }
        let object = planning::created(&desired, shape);
        let object = before.map_or_else(|| object.clone(), |before| planning::narrowed(before, &object));
        let fixed = wanted.manifest.get("metadata").and_then(|metadata| metadata.get("name")).is_some_and(is_text);
        Ok(PlanResponse {
            planned: planned(wanted.manifest, object, Value::Unknown),
            identity: (fixed && placed).then(|| target.identity()),
            ..PlanResponse::default()
        })
    }

    /// What the server would make of a new object; `None` when that cannot be told now, since something it needs is
    /// not there yet. A manifest that the server finds invalid in itself is an error already here.
    async fn try_create(
        &self,
        context: &CallContext,
        kind: &ApiKind,
        target: &Target,
        desired: &Value,
    ) -> Result<Option<Value>, DriverError> {
        let path = format!(
            "{}?dryRun=All&fieldManager={FIELD_MANAGER}&fieldValidation=Strict",
            kind.collection(&target.namespace)
        );
        let call = Call { method: Method::POST, body: Some(desired.to_json()), ..Call::get(path) };
        match self.server.call(self.who(context)?, &call, context.deadline).await {
            Ok(answer) => Ok(Some(object::value(&answer.body, desired))),
            Err(Failure::Refused(refusal)) if is_invalid_in_itself(&refusal) => {
                let attempt = attempt(context, "create", &kind.resource(), target);
                let attempt = Attempt { sensitive: desired.has_sensitive(), ..attempt };
                Err(refusal::error(&Failure::Refused(refusal), &attempt))
            }
            Err(_) => Ok(None),
        }
    }

    async fn plan_change(
        &self,
        context: &CallContext,
        request: &PlanRequest,
        prior: &RecordedObject,
        wanted: &Wanted<'_>,
    ) -> Result<PlanResponse, DriverError> {
        let target = recorded_target(prior)?;
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let namespace = namespace(wanted.manifest, wanted.kind.as_ref(), &context.namespace);
        let moved = planning::moved(&target, before, wanted.manifest, namespace.as_deref());
        if !moved.is_empty() {
            return Ok(replaced(wanted.manifest, moved));
        }
        let Some(kind) = &wanted.kind else { return Err(no_such_kind(wanted.api_version, wanted.kind_name)) };
        if let Some(planned) = settled_before(request, wanted.manifest) {
            return Ok(changed(planned));
        }
        let owner = self.owner(context).await?;
        let sent = Sent {
            desired: manifest::desired(wanted.manifest, &target, &owner),
            before: (*before != Value::Null).then(|| manifest::desired(before, &target, &owner)),
        };
        let current = prior.value.get("object").unwrap_or(&Value::Null);
        if sent.desired.has_unknown() {
            let immutable = planning::unknown_immutable(wanted.manifest, current);
            if !immutable.is_empty() {
                return Ok(replaced(wanted.manifest, immutable));
            }
            return Ok(changed(untried(prior, wanted.manifest, &sent)));
        }
        let at = At { context, kind, target: &target };
        let refused = match self.apply_patch(&at, &sent, prior.id(), true).await {
            Ok(answer) => {
                let dry = object::value(&answer.body, &sent.desired);
                return self.compare(&at, request, prior, wanted.manifest, &sent, &dry).await;
            }
            Err(failure) => failure,
        };
        if let Failure::Refused(refusal) = &refused {
            if let Some(fields) = refusal.immutable_fields() {
                let mut paths: Vec<Path> =
                    fields.iter().map(|field| refusal::manifest_path(wanted.manifest, field)).collect();
                paths.sort();
                paths.dedup();
                return Ok(replaced(wanted.manifest, paths));
            }
            if refusal.is_dry_run_unsupported() {
                let settled = planning::contains(current, &sent.desired) && before.same(wanted.manifest);
                return Ok(changed(if settled { prior.value.clone() } else { untried(prior, wanted.manifest, &sent) }));
            }
        }
        Err(self.change_error(&at, &sent, &refused))
    }

    /// A plan from a dry run: nothing to do if it leaves the object as it is.
    async fn compare(
        &self,
        at: &At<'_>,
        request: &PlanRequest,
        prior: &RecordedObject,
        manifest: &Value,
        sent: &Sent,
        dry: &Value,
    ) -> Result<PlanResponse, DriverError> {
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let current = prior.value.get("object").unwrap_or(&Value::Null);
        let mut settled = planning::is_settled(current, dry);
        if !settled && before.same(manifest) {
            // The record may only be behind: other controllers write to the object too.
            let live = self.live(at.context, at.target).await?;
            settled = live.is_some_and(|live| planning::is_settled(&object::value(&live, &sent.desired), dry));
        }
        if settled {
            return Ok(changed(prior.value.unmarked().with("manifest", manifest.clone())));
        }
        let object = planning::updated(current, dry, &sent.desired);
        let earlier = request.planned_before.as_ref().and_then(|planned| planned.get("object"));
        let object = earlier.map_or_else(|| object.clone(), |earlier| planning::narrowed(earlier, &object));
        Ok(changed(planned(manifest, object, prior.value.get("id").cloned().unwrap_or_default())))
    }
}

/// The status of an object that is not ready yet may still change.
fn until_ready(prior: &RecordedObject, planned: &Value) -> Option<Value> {
    prior.readiness?;
    let object = planned.get("object")?.unmarked().with("status", Value::Unknown);
    Some(planned.unmarked().with("object", object))
}

/// The namespace in which the manifest wants its object: empty for an object of the cluster, `None` while unknown.
pub(super) fn namespace(manifest: &Value, kind: Option<&ApiKind>, default: &str) -> Option<String> {
    let asked = manifest.get("metadata").and_then(|metadata| metadata.get("namespace"));
    match asked.map(Value::unmarked) {
        None | Some(Value::Null) => kind.map(|kind| if kind.namespaced { default.to_owned() } else { String::new() }),
        Some(Value::String(text)) => Some(text.to_string()),
        Some(_) => None,
    }
}

/// The name of a new object: the one planned before, the one in the manifest, or a drawn one.
fn planned_name(manifest: &Value, before: Option<&Value>, entropy: [u8; 16]) -> Option<String> {
    let name = |object: &Value| {
        let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    let metadata = manifest.get("metadata")?;
    if metadata.get("name").is_some_and(|name| *name.unmarked() != Value::Null) {
        return name(manifest);
    }
    before.and_then(name).or_else(|| {
        let prefix = metadata.get("generateName").and_then(Value::as_str)?;
        Some(drawn_name(prefix, entropy))
    })
}

/// A namespace for an object that has none.
fn misplaced(manifest: &Value, kind: &ApiKind) -> Option<DriverError> {
    let asked = manifest.get("metadata").and_then(|metadata| metadata.get("namespace")).and_then(Value::as_str);
    asked.filter(|_| !kind.namespaced).map(|_| DriverError {
        kind: ErrorKind::InvalidConfig,
        message: format!("`{}` are objects of the cluster and have no namespace", kind.resource()),
        path: Some(Path::default().name("manifest").name("metadata").name("namespace")),
        hint: Some("remove `metadata.namespace` from the manifest".to_owned()),
    })
}

fn with_place(desired: &Value, name: Option<&str>, namespace: Option<&str>) -> Value {
    let known = |text: Option<&str>| text.map_or(Value::Unknown, Value::from);
    let mut metadata = manifest::entries(desired.get("metadata"));
    metadata.insert("name".into(), known(name));
    if namespace != Some("") {
        metadata.insert("namespace".into(), known(namespace));
    }
    desired.with("metadata", Value::map(metadata))
}

/// Whether the mistake is in the manifest alone. Addresses and ports that are taken may be those of the very object
/// that is being replaced.
fn is_invalid_in_itself(refusal: &Refusal) -> bool {
    let elsewhere = refusal.is_webhook() || refusal.is_dry_run_unsupported();
    let taken =
        refusal.causes.iter().any(|cause| cause.message.contains("already") || cause.reason == "FieldValueDuplicate");
    let wrong = refusal.code == 400 || (refusal.code == 422 && !refusal.causes.is_empty());
    wrong && !elsewhere && !taken
}

/// The plan made before for the same step, if nothing of the manifest was unknown then.
fn settled_before(request: &PlanRequest, manifest: &Value) -> Option<Value> {
    let before = request.planned_before.as_ref()?;
    let same = before.get("manifest").is_some_and(|before| !before.has_unknown() && before.same(manifest));
    same.then(|| before.clone())
}

fn untried(prior: &RecordedObject, manifest: &Value, sent: &Sent) -> Value {
    let current = prior.value.get("object").unwrap_or(&Value::Null);
    let before = sent.before.as_ref().unwrap_or(&Value::Null);
    let object = planning::unsettled(current, &sent.desired, before);
    planned(manifest, object, prior.value.get("id").cloned().unwrap_or_default())
}

fn wholly_unknown(request: &PlanRequest, manifest: &Value) -> PlanResponse {
    let id = request.prior.as_ref().and_then(|prior| prior.value.get("id").cloned()).unwrap_or(Value::Unknown);
    changed(planned(manifest, Value::Unknown, id))
}

fn changed(planned: Value) -> PlanResponse {
    PlanResponse { planned, ..PlanResponse::default() }
}

fn replaced(manifest: &Value, paths: Vec<Path>) -> PlanResponse {
    PlanResponse { requires_replace: paths, ..changed(planned(manifest, Value::Unknown, Value::Unknown)) }
}

fn planned(manifest: &Value, object: Value, id: Value) -> Value {
    Value::map([("id", id), ("manifest", manifest.clone()), ("object", object)])
}

fn is_closed(target: &Target) -> bool {
    planning::is_closed(target.group(), &target.kind)
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some()
}
