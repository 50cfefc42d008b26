//! Reads, imports and plans objects without changing them.

use http::Method;
use serde_json::Value as Json;

use crate::driver::CallContext;
use crate::model::{DriverError, ErrorKind, ObjectState, Path, PlanRequest, PlanResponse, RecordedObject, Value};

use super::api_error::{self, ApiError, ErrorContext, RequestError};
use super::discovery::{self, ApiKind};
use super::patch::{Patch, PatchTarget};
use super::planning::{self, Shape};
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target, generated_name, group_of};
use super::wait::ObjectRef;
use super::{
    FIELD_MANAGER, KubernetesObject, discovery_error, error_context, manifest, no_such_kind, object, recorded_target,
};

/// The desired object of a plan.
struct DesiredObject<'a> {
    /// With the contents of a Secret marked sensitive.
    manifest: &'a Value,
    api_version: &'a str,
    kind_name: &'a str,
    /// `None` if the server does not serve the kind yet.
    kind: Option<ApiKind>,
}

impl KubernetesObject {
    /// Reads the recorded object. An object with another UID is not the recorded one.
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
            watches.record_read(context, &target, &live);
        }
        Ok(Some(object::state(&live, recorded.value.get("manifest").unwrap_or(&Value::Null))))
    }

    /// Returns the object of a plan if it exists and carries the owner annotation.
    pub(super) async fn find_created_object(
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
        let is_owned = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(&*self.owner(context).await?);
        Ok(is_owned.then(|| object::state(&live, planned.get("manifest").unwrap_or(&Value::Null))))
    }

    /// Imports an object by `apiVersion/Kind/[namespace/]name`. The first update sets its manifest and owner
    /// annotation.
    pub(super) async fn import_object(
        &self,
        context: &CallContext,
        id: &str,
    ) -> Result<Option<ObjectState>, DriverError> {
        let Some(mut target) = Target::from_import_id(id) else {
            return Err(DriverError {
                kind: ErrorKind::InvalidConfig,
                message: format!("`{id}` is not a valid import ID"),
                path: None,
                hint: Some("use `apiVersion/Kind/[namespace/]name`, such as `v1/ConfigMap/shop/site`".to_owned()),
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
        self.check_not_owned(context, &target, &live).await?;
        Ok(Some(object::state(&live, &Value::Null)))
    }

    /// Rejects an object with the owner annotation of a Resource in another namespace. Owners in this namespace are
    /// checked against the records, and an annotation of another installation is ignored, because an import takes over
    /// the object.
    async fn check_not_owned(&self, context: &CallContext, target: &Target, live: &Json) -> Result<(), DriverError> {
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
                    "delete that Resource with `deletionPolicy: Orphan`, then remove the annotation \
                     `{OWNER_ANNOTATION}` from the object"
                )),
            }),
        }
    }

    pub(super) async fn live(&self, context: &CallContext, target: &Target) -> Result<Option<Json>, DriverError> {
        let caller = self.caller(context)?;
        // Retried once for a kind that changed or was removed after it was cached.
        for _ in 0..2 {
            let kind =
                self.server.kind_in_any_version(caller, &target.api_version, &target.kind, context.deadline).await;
            let kind = kind.map_err(|failure| discovery_error(context, &failure, &target.api_version, &target.kind))?;
            let Some(kind) = kind else { return Ok(None) };
            let collection = kind.collection(&target.namespace);
            let place = ObjectRef { caller, collection: &collection, name: &target.name };
            match self.server.get(&place, context.deadline).await {
                Ok(live) => return Ok(live),
                Err(RequestError::Api(api_error)) if api_error.is_unknown_kind() => self.server.forget_kind(&kind),
                Err(failure) => {
                    let result = self.deleted_with_namespace(context, (&kind, target), "read", &failure).await;
                    return result.map(|()| None);
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
        self.caller(context)?;
        let manifest = manifest::mark_secret(&request.config.get("manifest").cloned().unwrap_or(Value::Unknown));
        let text = |name: &str| manifest.get(name).and_then(Value::as_str);
        let (Some(api_version), Some(kind_name)) = (text("apiVersion"), text("kind")) else {
            return Ok(unknown_plan(&request, &manifest));
        };
        let kind = self.kind(context, api_version, kind_name).await?;
        if kind.is_none() && !discovery::may_gain_kinds(group_of(api_version)) {
            return Err(no_such_kind(api_version, kind_name));
        }
        if let Some(error) = kind.as_ref().and_then(|kind| namespace_error(&manifest, kind)) {
            return Err(error);
        }
        let desired_object = DesiredObject { manifest: &manifest, api_version, kind_name, kind };
        match request.prior.clone() {
            None => self.plan_create(context, &request, &desired_object).await,
            Some(prior) => {
                let response = self.plan_change(context, &request, &prior, &desired_object).await?;
                Ok(PlanResponse { until_ready: until_ready(&prior, &response.planned), ..response })
            }
        }
    }

    async fn plan_create(
        &self,
        context: &CallContext,
        request: &PlanRequest,
        desired_object: &DesiredObject<'_>,
    ) -> Result<PlanResponse, DriverError> {
        let before = request.previous_plan.as_ref().and_then(|planned| planned.get("object"));
        let name = planned_name(desired_object.manifest, before, request.entropy);
        let namespace = namespace(desired_object.manifest, desired_object.kind.as_ref(), &context.namespace);
        let target = Target {
            api_version: desired_object.api_version.to_owned(),
            kind: desired_object.kind_name.to_owned(),
            namespace: namespace.clone().unwrap_or_default(),
            name: name.clone().unwrap_or_default(),
        };
        let placed = name.is_some() && namespace.is_some();
        let mut desired = manifest::desired_object(desired_object.manifest, &target, &self.owner(context).await?);
        let dry = match &desired_object.kind {
            Some(kind) if placed && before.is_none() && !desired.has_unknown() && !is_closed(&target) => {
                self.dry_run_create(context, kind, &target, &desired).await?
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
        let object = planning::plan_create(&desired, shape);
        let object = before.map_or_else(|| object.clone(), |before| planning::refine(before, &object));
        let fixed =
            desired_object.manifest.get("metadata").and_then(|metadata| metadata.get("name")).is_some_and(is_text);
        Ok(PlanResponse {
            planned: planned_value(desired_object.manifest, object, Value::Unknown),
            identity: (fixed && placed).then(|| target.identity()),
            ..PlanResponse::default()
        })
    }

    /// Creates the object in a dry run. `None` if the dry run fails, for example because a dependency does not exist
    /// yet. Returns an error if the manifest itself is invalid.
    async fn dry_run_create(
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
        match self.server.call(self.caller(context)?, &call, context.deadline).await {
            Ok(answer) => Ok(Some(object::value(&answer.body, desired))),
            Err(RequestError::Api(api_error)) if is_invalid_manifest(&api_error) => {
                let attempt = error_context(context, "create", &kind.resource(), target);
                let attempt = ErrorContext { sensitive: desired.has_sensitive(), ..attempt };
                Err(api_error::to_driver_error(&RequestError::Api(api_error), &attempt))
            }
            Err(_) => Ok(None),
        }
    }

    async fn plan_change(
        &self,
        context: &CallContext,
        request: &PlanRequest,
        prior: &RecordedObject,
        desired_object: &DesiredObject<'_>,
    ) -> Result<PlanResponse, DriverError> {
        let target = recorded_target(prior)?;
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let namespace = namespace(desired_object.manifest, desired_object.kind.as_ref(), &context.namespace);
        let replacing_paths = planning::replacing_paths(&target, before, desired_object.manifest, namespace.as_deref());
        if !replacing_paths.is_empty() {
            return Ok(replacement(desired_object.manifest, replacing_paths));
        }
        let Some(kind) = &desired_object.kind else {
            return Err(no_such_kind(desired_object.api_version, desired_object.kind_name));
        };
        if let Some(planned) = unchanged_plan(request, desired_object.manifest) {
            return Ok(plan_response(planned));
        }
        let owner = self.owner(context).await?;
        let sent = Patch {
            desired: manifest::desired_object(desired_object.manifest, &target, &owner),
            previous: (*before != Value::Null).then(|| manifest::desired_object(before, &target, &owner)),
        };
        let current = prior.value.get("object").unwrap_or(&Value::Null);
        if sent.desired.has_unknown() {
            let immutable = planning::unknown_immutable(desired_object.manifest, current);
            if !immutable.is_empty() {
                return Ok(replacement(desired_object.manifest, immutable));
            }
            return Ok(plan_response(plan_without_dry_run(prior, desired_object.manifest, &sent)));
        }
        let at = PatchTarget { context, kind, target: &target };
        let failure = match self.apply_patch(&at, &sent, prior.id(), true).await {
            Ok(answer) => {
                let dry = object::value(&answer.body, &sent.desired);
                return self.plan_from_dry_run(&at, request, prior, desired_object.manifest, &sent, &dry).await;
            }
            Err(failure) => failure,
        };
        if let RequestError::Api(api_error) = &failure {
            if let Some(fields) = api_error.immutable_fields() {
                let mut paths: Vec<Path> =
                    fields.iter().map(|field| api_error::manifest_path(desired_object.manifest, field)).collect();
                paths.sort();
                paths.dedup();
                return Ok(replacement(desired_object.manifest, paths));
            }
            if api_error.is_dry_run_unsupported() {
                let unchanged =
                    planning::contains(current, &sent.desired) && before.equals_unmarked(desired_object.manifest);
                return Ok(plan_response(if unchanged {
                    prior.value.clone()
                } else {
                    plan_without_dry_run(prior, desired_object.manifest, &sent)
                }));
            }
        }
        Err(self.change_error(&at, &sent, &failure))
    }

    /// Plans an update from a dry run. The object is unchanged if the dry run does not change it.
    async fn plan_from_dry_run(
        &self,
        at: &PatchTarget<'_>,
        request: &PlanRequest,
        prior: &RecordedObject,
        manifest: &Value,
        sent: &Patch,
        dry: &Value,
    ) -> Result<PlanResponse, DriverError> {
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let current = prior.value.get("object").unwrap_or(&Value::Null);
        let mut unchanged = planning::is_unchanged(current, dry);
        if !unchanged && before.equals_unmarked(manifest) {
            // The record may be stale, since other controllers update the object too.
            let live = self.live(at.context, at.target).await?;
            unchanged = live.is_some_and(|live| planning::is_unchanged(&object::value(&live, &sent.desired), dry));
        }
        if unchanged {
            return Ok(plan_response(prior.value.unmarked().with("manifest", manifest.clone())));
        }
        let object = planning::plan_update(current, dry, &sent.desired);
        let earlier = request.previous_plan.as_ref().and_then(|planned| planned.get("object"));
        let object = earlier.map_or_else(|| object.clone(), |earlier| planning::refine(earlier, &object));
        Ok(plan_response(planned_value(manifest, object, prior.value.get("id").cloned().unwrap_or_default())))
    }
}

/// The planned value with an unknown status, for an object that is not ready yet.
fn until_ready(prior: &RecordedObject, planned: &Value) -> Option<Value> {
    prior.readiness?;
    let object = planned.get("object")?.unmarked().with("status", Value::Unknown);
    Some(planned.unmarked().with("object", object))
}

/// The namespace of the object: empty for a cluster-scoped kind, `None` while unknown.
pub(super) fn namespace(manifest: &Value, kind: Option<&ApiKind>, default: &str) -> Option<String> {
    let configured = manifest.get("metadata").and_then(|metadata| metadata.get("namespace"));
    match configured.map(Value::unmarked) {
        None | Some(Value::Null) => kind.map(|kind| if kind.namespaced { default.to_owned() } else { String::new() }),
        Some(Value::String(text)) => Some(text.to_string()),
        Some(_) => None,
    }
}

/// The name of a new object: from the manifest, from an earlier plan, or generated.
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
        Some(generated_name(prefix, entropy))
    })
}

/// Rejects a namespace in the manifest of a cluster-scoped object.
fn namespace_error(manifest: &Value, kind: &ApiKind) -> Option<DriverError> {
    let configured = manifest.get("metadata").and_then(|metadata| metadata.get("namespace")).and_then(Value::as_str);
    configured.filter(|_| !kind.namespaced).map(|_| DriverError {
        kind: ErrorKind::InvalidConfig,
        message: format!("`{}` are cluster-scoped and have no namespace", kind.resource()),
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

/// Whether the manifest itself is invalid. Addresses and ports in use do not count, since the object that is being
/// replaced may use them.
fn is_invalid_manifest(api_error: &ApiError) -> bool {
    let elsewhere = api_error.is_webhook() || api_error.is_dry_run_unsupported();
    let taken =
        api_error.causes.iter().any(|cause| cause.message.contains("already") || cause.reason == "FieldValueDuplicate");
    let wrong = api_error.code == 400 || (api_error.code == 422 && !api_error.causes.is_empty());
    wrong && !elsewhere && !taken
}

/// The earlier plan of the same step, if its manifest was wholly known.
fn unchanged_plan(request: &PlanRequest, manifest: &Value) -> Option<Value> {
    let before = request.previous_plan.as_ref()?;
    let same = before.get("manifest").is_some_and(|before| !before.has_unknown() && before.equals_unmarked(manifest));
    same.then(|| before.clone())
}

fn plan_without_dry_run(prior: &RecordedObject, manifest: &Value, sent: &Patch) -> Value {
    let current = prior.value.get("object").unwrap_or(&Value::Null);
    let before = sent.previous.as_ref().unwrap_or(&Value::Null);
    let object = planning::plan_update_without_dry_run(current, &sent.desired, before);
    planned_value(manifest, object, prior.value.get("id").cloned().unwrap_or_default())
}

fn unknown_plan(request: &PlanRequest, manifest: &Value) -> PlanResponse {
    let id = request.prior.as_ref().and_then(|prior| prior.value.get("id").cloned()).unwrap_or(Value::Unknown);
    plan_response(planned_value(manifest, Value::Unknown, id))
}

fn plan_response(planned: Value) -> PlanResponse {
    PlanResponse { planned, ..PlanResponse::default() }
}

fn replacement(manifest: &Value, paths: Vec<Path>) -> PlanResponse {
    PlanResponse { requires_replace: paths, ..plan_response(planned_value(manifest, Value::Unknown, Value::Unknown)) }
}

fn planned_value(manifest: &Value, object: Value, id: Value) -> Value {
    Value::map([("id", id), ("manifest", manifest.clone()), ("object", object)])
}

fn is_closed(target: &Target) -> bool {
    planning::is_closed(target.group(), &target.kind)
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some()
}
