//! Reads, imports and plans objects without changing them.

use serde_json::Value as Json;

use crate::CallContext;
use model::{DriverError, ErrorKind, ObjectState, Path, PlanRequest, PlanResponse, RecordedObject, Value};

use super::api_error::{self, RequestError};
use super::discovery::{self, ApiKind};
use super::ownership::KeptField;
use super::patch::{Patch, PatchTarget};
use super::planning::{self, Shape};
use super::rehearsal::{self, NewObject, Rehearsal};
use super::takeover::{self, KeptFields};
use super::target::{OWNER_ANNOTATION, Target, generated_name, group_of};
use super::wait::ObjectRef;
use super::{KubernetesObject, discovery_error, manifest, no_such_kind, object, recorded_target};

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
    pub(crate) async fn read_object(
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
        let manifest = recorded.value.get("manifest").unwrap_or(&Value::Null);
        let kept = KeptFields::remaining(recorded, &live, manifest);
        kept.warn(context);
        Ok(Some(ObjectState { private: kept.private().into(), ..object::state(&live, manifest) }))
    }

    /// Returns the object of a plan if it exists and carries the owner annotation.
    pub(crate) async fn find_created_object(
        &self,
        context: &CallContext,
        planned: &Value,
    ) -> Result<Option<ObjectState>, DriverError> {
        let Some(object) = planned.get("object") else { return Ok(None) };
        let metadata = object.get("metadata");
        let [api_version, kind] = ["apiVersion", "kind"].map(|name| Some(object.get(name)?.as_str()?.to_owned()));
        let [name, namespace] = ["name", "namespace"].map(|name| Some(metadata?.get(name)?.as_str()?.to_owned()));
        let (Some(api_version), Some(kind), Some(name)) = (api_version, kind, name) else { return Ok(None) };
        let namespace = namespace.unwrap_or_default();
        let Some(live) = self.live(context, &Target { api_version, kind, namespace, name }).await? else {
            return Ok(None);
        };
        let is_owned = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(&*self.owner(context).await?);
        Ok(is_owned.then(|| object::state(&live, planned.get("manifest").unwrap_or(&Value::Null))))
    }

    /// Imports an object by `apiVersion/Kind/[namespace/]name`. The first update sets its manifest and owner
    /// annotation.
    pub(crate) async fn import_object(
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
        let of_elsewhere =
            owner.filter(|owner| owner.strip_prefix(&*context.namespace).is_none_or(|rest| !rest.starts_with('/')));
        match of_elsewhere {
            None => Ok(()),
            Some(owner) => Err(DriverError {
                kind: ErrorKind::AlreadyExists,
                message: format!("{target} belongs to the Resource `{}`", owner.trim_end_matches('/')),
                path: None,
                hint: Some(rehearsal::given_up()),
            }),
        }
    }

    pub(crate) async fn live(&self, context: &CallContext, target: &Target) -> Result<Option<Json>, DriverError> {
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

    pub(crate) async fn plan_object(
        &self,
        context: &CallContext,
        request: PlanRequest,
    ) -> Result<PlanResponse, DriverError> {
        self.caller(context)?;
        let manifest = manifest::mark_secret(&request.config.get("manifest").cloned().unwrap_or(Value::Unknown));
        let [api_version, kind_name] = ["apiVersion", "kind"].map(|name| manifest.get(name).and_then(Value::as_str));
        let (Some(api_version), Some(kind_name)) = (api_version, kind_name) else {
            return Ok(unknown_plan(&request, &manifest));
        };
        // Directly before a replacement, the server may not serve the kind of a new CRD yet.
        let is_last = request.replaces.is_some() && request.previous_plan.is_some();
        let kind = match is_last {
            true => self.wait_for_kind(context, api_version, kind_name).await.ok(),
            false => self.kind(context, api_version, kind_name).await?,
        };
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
        let owner = self.owner(context).await?;
        let mut desired = manifest::desired_object(desired_object.manifest, &target, &owner);
        // The final plan of a create is followed by the create itself, and the server answers then.
        let is_asked = before.is_none() || request.replaces.is_some();
        let rehearsal = match &desired_object.kind {
            Some(kind) if placed && is_asked && !desired.has_unknown() => {
                let replaces = request.replaces.as_deref();
                let new = NewObject { kind, target: &target, desired: &desired, owner: &owner, replaces };
                self.rehearse_create(context, &new).await?
            }
            Some(_) => Rehearsal::Possible,
            None => Rehearsal::Refused(rehearsal::unknown_kind(&target.api_version, &target.kind)),
        };
        let shape = match &rehearsal {
            _ if is_closed(&target) => Shape::Closed,
            Rehearsal::Created(dry) => Shape::DryRun(dry),
            _ => Shape::Open,
        };
        if !placed {
            desired = with_place(&desired, name.as_deref(), namespace.as_deref());
        }
        let object = planning::plan_create(&desired, shape);
        let object = before.map_or_else(|| object.clone(), |before| planning::refine(before, &object));
        let fixed = desired_object
            .manifest
            .get("metadata")
            .and_then(|metadata| metadata.get("name"))
            .and_then(Value::as_str)
            .is_some();
        let planned = planned_value(desired_object.manifest, object, Value::Unknown);
        let identity = (fixed && placed).then(|| target.identity());
        let response = PlanResponse { planned, identity, ..PlanResponse::default() };
        Ok(match rehearsal {
            Rehearsal::Refused(refusal) => PlanResponse { refusal: Some(refusal), ..response },
            Rehearsal::Owned(import) => PlanResponse { adopts: Some(import), ..response },
            Rehearsal::Created(_) | Rehearsal::Possible => response,
        })
    }

    async fn plan_change(
        &self,
        context: &CallContext,
        request: &PlanRequest,
        prior: &RecordedObject,
        desired_object: &DesiredObject<'_>,
    ) -> Result<PlanResponse, DriverError> {
        let recorded = recorded_target(prior)?;
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let namespace = namespace(desired_object.manifest, desired_object.kind.as_ref(), &context.namespace);
        let replacing_paths =
            planning::replacing_paths(&recorded, before, desired_object.manifest, namespace.as_deref());
        if !replacing_paths.is_empty() {
            return Ok(replacement(desired_object.manifest, replacing_paths));
        }
        if let Some(planned) = unchanged_plan(request, desired_object.manifest) {
            return Ok(plan_response(planned));
        }
        // The object is the same in every version of its kind.
        let target = Target { api_version: desired_object.api_version.to_owned(), ..recorded };
        let owner = self.owner(context).await?;
        let sent = Patch {
            desired: manifest::desired_object(desired_object.manifest, &target, &owner),
            previous: (*before != Value::Null).then(|| manifest::desired_object(before, &target, &owner)),
        };
        let Some(kind) = &desired_object.kind else {
            let refusal = Some(rehearsal::unknown_kind(desired_object.api_version, desired_object.kind_name));
            let planned = plan_without_dry_run(prior, desired_object.manifest, &sent);
            return Ok(PlanResponse { refusal, ..plan_response(planned) });
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
                let kept = takeover::kept_fields(&answer.body, &sent);
                let response = self.plan_from_dry_run(&at, request, prior, &sent, &answer.body).await?;
                takeover::all_kept_fields(prior, &answer.body, &sent).without_tools(&kept).warn(context);
                return Ok(without_fields_of_tools(response, &kept));
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

    /// Plans an update from the result of a dry run. The object is unchanged if the dry run does not change it.
    async fn plan_from_dry_run(
        &self,
        at: &PatchTarget<'_>,
        request: &PlanRequest,
        prior: &RecordedObject,
        sent: &Patch,
        dry: &Json,
    ) -> Result<PlanResponse, DriverError> {
        let manifest = manifest::mark_secret(request.config.get("manifest").unwrap_or(&Value::Null));
        let dry = object::value(dry, &sent.desired);
        let before = prior.value.get("manifest").unwrap_or(&Value::Null);
        let current = prior.value.get("object").unwrap_or(&Value::Null);
        let mut unchanged = planning::is_unchanged(current, &dry);
        if !unchanged && before.equals_unmarked(&manifest) {
            // The record may be stale, since other controllers update the object too.
            let live = self.live(at.context, at.target).await?;
            unchanged = live.is_some_and(|live| planning::is_unchanged(&object::value(&live, &sent.desired), &dry));
        }
        if unchanged {
            return Ok(plan_response(prior.value.unmarked().with("manifest", manifest)));
        }
        let object = planning::plan_update(current, &dry, &sent.desired);
        let earlier = request.previous_plan.as_ref().and_then(|planned| planned.get("object"));
        let object = earlier.map_or_else(|| object.clone(), |earlier| planning::refine(earlier, &object));
        Ok(plan_response(planned_value(&manifest, object, prior.value.get("id").cloned().unwrap_or_default())))
    }
}

/// A dry run keeps the fields of tools, but the apply removes them.
fn without_fields_of_tools(response: PlanResponse, kept: &[KeptField]) -> PlanResponse {
    let Some(object) = response.planned.get("object").cloned() else { return response };
    let object = kept.iter().filter(|kept| kept.is_of_tool).fold(object, |object, kept| {
        let names: Vec<&str> = kept.path.keys().iter().filter_map(|key| key.strip_prefix("f:")).collect();
        match names.as_slice() {
            ["metadata", part, ..] => {
                let metadata = object.get("metadata").cloned().unwrap_or_default();
                object.with("metadata", metadata.with(*part, Value::Unknown))
            }
            [part, ..] => object.with(*part, Value::Unknown),
            [] => object,
        }
    });
    let planned = response.planned.with("object", object);
    PlanResponse { planned, ..response }
}

/// The planned value with an unknown status, for an object that is not ready yet.
fn until_ready(prior: &RecordedObject, planned: &Value) -> Option<Value> {
    prior.readiness?;
    let object = planned.get("object")?.unmarked().with("status", Value::Unknown);
    Some(planned.unmarked().with("object", object))
}

/// The namespace of the object: empty for a cluster-scoped kind, `None` while unknown.
pub fn namespace(manifest: &Value, kind: Option<&ApiKind>, default: &str) -> Option<String> {
    let configured = manifest.get("metadata").and_then(|metadata| metadata.get("namespace"));
    match configured.map(Value::unmarked) {
        None | Some(Value::Null) => kind.map(|kind| if kind.namespaced { default.to_owned() } else { String::new() }),
        Some(Value::String(text)) => Some(text.to_string()),
        Some(_) => None,
    }
}

/// The name of a new object: from the manifest, from an earlier plan, or generated.
fn planned_name(manifest: &Value, before: Option<&Value>, entropy: [u8; 16]) -> Option<String> {
    let metadata = manifest.get("metadata")?;
    if metadata.get("name").is_some_and(|name| *name.unmarked() != Value::Null) {
        return object_name(manifest);
    }
    before.and_then(object_name).or_else(|| {
        let prefix = metadata.get("generateName").and_then(Value::as_str)?;
        Some(generated_name(prefix, entropy))
    })
}

fn object_name(object: &Value) -> Option<String> {
    object.get("metadata")?.get("name")?.as_str().map(str::to_owned)
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
    let mut metadata = manifest::entries(desired.get("metadata"));
    metadata.insert("name".into(), name.map_or(Value::Unknown, Value::from));
    if namespace != Some("") {
        metadata.insert("namespace".into(), namespace.map_or(Value::Unknown, Value::from));
    }
    desired.with("metadata", Value::map(metadata))
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
