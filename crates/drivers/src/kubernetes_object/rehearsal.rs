//! Asks the server in a dry run whether an object can be created, and what would resolve a refusal.

use http::Method;
use serde_json::Value as Json;

use crate::CallContext;
use model::{DriverError, ImportRequest, RecordedObject, Refusal, Remedy, Value};

use super::api_error::{self, ApiError, ErrorContext, RequestError};
use super::discovery::ApiKind;
use super::patch::PatchTarget;
use super::server::Call;
use super::target::{OWNER_ANNOTATION, Target, group_of};
use super::{FIELD_MANAGER, KubernetesObject, error_context, no_such_kind, object};

/// The result of a dry run.
pub enum Rehearsal {
    /// The object as it would be created.
    Created(Value),
    /// It can be created, but the server did not show the new object.
    Possible,
    /// It exists already, with the owner annotation of this instance.
    Owned(ImportRequest),
    Refused(Refusal),
}

/// The object to create.
pub struct NewObject<'a> {
    pub kind: &'a ApiKind,
    pub target: &'a Target,
    pub desired: &'a Value,
    pub owner: &'a str,
    /// The object that is destroyed before.
    pub replaces: Option<&'a RecordedObject>,
}

impl NewObject<'_> {
    /// Whether the old object has the name.
    fn keeps_name(&self) -> bool {
        self.old_target().is_some_and(|old| old.identity() == self.target.identity())
    }

    fn old_target(&self) -> Option<Target> {
        self.replaces.and_then(|old| Target::of_object(old.value.get("object")?))
    }

    fn old_object(&self) -> Option<&Value> {
        self.replaces.and_then(|old| old.value.get("object"))
    }

    fn already_exists(&self, live: &Json) -> DriverError {
        already_exists(self.target, live, self.owner, self.replaces.is_some())
    }
}

/// The error of a name that another object has. `own`: the owner of the new object. `replaces`: the Resource has an object
/// already.
pub fn already_exists(target: &Target, live: &Json, own_mark: &str, replaces: bool) -> DriverError {
    let mark = live["metadata"]["annotations"][OWNER_ANNOTATION].as_str();
    let owner = match (mark, mark.and_then(|mark| neighbor(mark, own_mark))) {
        (_, Some(name)) => format!(" as the object of the Resource `{name}`; waits until that one gives the name up"),
        (Some(owner), None) => format!(" and belongs to `{}`", owner.trim_end_matches('/')),
        (None, None) => String::new(),
    };
    let hint = match replaces {
        true if mark.is_some() => {
            "choose another name; if two objects exchange their names, give one of them a third name first".to_owned()
        }
        true => format!(
            "choose another name; to manage that object too, set `import.id` to `{}` in another Resource",
            target.import_id()
        ),
        false => {
            let import = format!("to manage it, set `import.id` to `{}`", target.import_id());
            match mark.and_then(|mark| neighbor(mark, own_mark)) {
                None if mark.is_some_and(|mark| is_elsewhere(mark, own_mark)) => {
                    format!("choose another name, or {}; then, {import}", given_up())
                }
                Some(name) => format!(
                    "if this Resource takes the place of `{name}`, add the annotation `purlin.dev/moved-from: {name}`; if \
                     `{name}` does not exist any more, {import}"
                ),
                None => import,
            }
        }
    };
    DriverError {
        kind: model::ErrorKind::AlreadyExists,
        message: format!("{target} already exists{owner}"),
        path: None,
        hint: Some(hint),
    }
}

/// The hint for an object of a Resource in another namespace, which no import takes over.
pub fn given_up() -> String {
    format!(
        "delete that Resource with `deletionPolicy: Orphan`, or, if it does not exist any more, remove the annotation \
         `{OWNER_ANNOTATION}` from the object"
    )
}

/// Whether an owner mark names a Resource in another namespace of the same cluster.
fn is_elsewhere(mark: &str, own_mark: &str) -> bool {
    let [mark, own_mark] = [mark, own_mark].map(|mark| mark.split('/').take(2).collect::<Vec<_>>());
    mark.len() == 2 && mark.first() == own_mark.first() && mark != own_mark
}

/// The name of the Resource without instances that an owner mark names, in the namespace of another mark.
fn neighbor<'m>(mark: &'m str, own_mark: &str) -> Option<&'m str> {
    let of_namespace = own_mark.splitn(3, '/').take(2).map(|part| part.len() + 1).sum();
    let (namespace, rest) = mark.split_at_checked(of_namespace)?;
    let name = rest.strip_suffix('/')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_name && own_mark.starts_with(namespace)).then_some(name)
}

/// The refusal of a kind that the server does not serve. A definition in the same plan may add it.
pub fn unknown_kind(api_version: &str, kind: &str) -> Refusal {
    let definition = Value::from_json(serde_json::json!({"manifest": {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {"group": group_of(api_version), "names": {"kind": kind}},
    }}));
    Refusal { error: no_such_kind(api_version, kind), remedies: vec![Remedy::Applied(definition)] }
}

impl KubernetesObject {
    /// Creates the object in a dry run. Returns an error if the manifest itself is invalid, or if the server does not
    /// respond.
    pub(crate) async fn rehearse_create(
        &self,
        context: &CallContext,
        new: &NewObject<'_>,
    ) -> Result<Rehearsal, DriverError> {
        let failure = match self.try_create(context, new).await {
            Ok(Some(created)) => return Ok(Rehearsal::Created(created)),
            Ok(None) => return self.rehearse_taken(context, new).await,
            Err(failure) => failure,
        };
        let attempt = error_context(context, "create", &new.kind.resource(), new.target);
        let attempt = ErrorContext { sensitive: new.desired.has_sensitive(), ..attempt };
        let error = api_error::to_driver_error(&failure, &attempt);
        let RequestError::Api(api_error) = &failure else { return Err(error) };
        if api_error.is_name_taken() || api_error.is_dry_run_unsupported() {
            return self.rehearse_taken(context, new).await;
        }
        if api_error.is_unknown_kind() {
            self.server.forget_kind(new.kind);
            return Ok(Rehearsal::Refused(unknown_kind(&new.target.api_version, &new.target.kind)));
        }
        if is_invalid_manifest(api_error) {
            return Err(error);
        }
        if is_freed(api_error, new) {
            return Ok(Rehearsal::Possible);
        }
        Ok(Rehearsal::Refused(Refusal { error, remedies: remedies(api_error, new.target) }))
    }

    /// `None` if the object exists. If the old object has the name, a POST shows every other problem before it fails
    /// because of the name. Otherwise an apply is sent, as for the create itself, because it needs the same permissions.
    async fn try_create(&self, context: &CallContext, new: &NewObject<'_>) -> Result<Option<Value>, RequestError> {
        let answer = if new.keeps_name() {
            let collection = new.kind.collection(&new.target.namespace);
            let path = format!("{collection}?dryRun=All&fieldManager={FIELD_MANAGER}&fieldValidation=Strict");
            let call = Call { method: Method::POST, body: Some(new.desired.to_json()), ..Call::get(path) };
            let caller = self.caller(context).map_err(|error| RequestError::Unreachable(error.message))?;
            self.server.call(caller, &call, context.deadline).await?
        } else {
            let at = PatchTarget { context, kind: new.kind, target: new.target };
            self.patch(&at, new.desired, None, true, false).await?
        };
        Ok((answer.code == 201).then(|| object::value(&answer.body, new.desired)))
    }

    /// The result if an object may have the name, or if the server cannot answer a dry run.
    async fn rehearse_taken(&self, context: &CallContext, new: &NewObject<'_>) -> Result<Rehearsal, DriverError> {
        let Some(live) = self.live(context, new.target).await? else { return Ok(Rehearsal::Possible) };
        let uid = live["metadata"]["uid"].as_str();
        if new.replaces.is_some_and(|old| old.id() == uid) {
            return Ok(Rehearsal::Possible);
        }
        if live["metadata"]["annotations"][OWNER_ANNOTATION].as_str() == Some(new.owner) {
            // The create waits until an object that is being deleted is gone.
            let stays = live["metadata"]["deletionTimestamp"].is_null();
            return Ok(match stays {
                true => Rehearsal::Owned(ImportRequest::Id(new.target.import_id().into())),
                false => Rehearsal::Possible,
            });
        }
        let remedies = vec![Remedy::Removed(new.target.identity())];
        Ok(Rehearsal::Refused(Refusal { error: new.already_exists(&live), remedies }))
    }
}

/// Whether the manifest itself is invalid. Addresses and ports in use do not count.
fn is_invalid_manifest(api_error: &ApiError) -> bool {
    let elsewhere = api_error.is_webhook() || api_error.is_dry_run_unsupported();
    let wrong = api_error.code == 400 || (api_error.code == 422 && !api_error.causes.is_empty());
    api_error.is_schema_error() || (wrong && !elsewhere && !is_value_in_use(api_error))
}

/// Whether another object has an address or a port of the new one.
fn is_value_in_use(api_error: &ApiError) -> bool {
    api_error.causes.iter().any(|cause| cause.message.contains("already") || cause.reason == "FieldValueDuplicate")
}

/// Whether the destroy of the old object resolves the refusal.
fn is_freed(api_error: &ApiError, new: &NewObject<'_>) -> bool {
    let (Some(old), Some(old_target)) = (new.old_object(), new.old_target()) else { return false };
    let same_kind = old_target.group() == new.target.group() && old_target.kind == new.target.kind;
    if !same_kind {
        return false;
    }
    if let Some(quota) = api_error.exceeded_quota() {
        let counted = [new.kind.plural.clone(), format!("count/{}", new.kind.resource())];
        return old_target.namespace == new.target.namespace && quota.is_kept_by_exchange(&counted);
    }
    let fields = api_error.causes.iter().map(|cause| cause.field.as_str());
    is_value_in_use(api_error) && fields.into_iter().all(|field| has_value_at(old, new.desired, field))
}

/// Whether the old Service has the address or the port that the new one sets at a field.
fn has_value_at(old: &Value, desired: &Value, field: &str) -> bool {
    if field.contains("nodePort") {
        let old = node_ports(old);
        return node_ports(desired).iter().all(|port| old.iter().any(|old| old.equals_unmarked(port)));
    }
    field.starts_with("spec.clusterIP")
        && spec_field(desired, "clusterIP")
            .zip(spec_field(old, "clusterIP"))
            .is_some_and(|(new, old)| new.equals_unmarked(old))
}

fn spec_field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("spec")?.get(name)
}

fn node_ports(service: &Value) -> Vec<&Value> {
    match spec_field(service, "ports").map(Value::unmarked) {
        Some(Value::List(ports)) => ports.iter().filter_map(|port| port.get("nodePort")).collect(),
        _ => Vec::new(),
    }
}

/// The steps that may resolve a refusal.
fn remedies(api_error: &ApiError, target: &Target) -> Vec<Remedy> {
    let namespace = applied("v1", "Namespace", Some(&target.namespace));
    if api_error.is_namespace_missing() || api_error.is_namespace_terminating() {
        vec![namespace]
    } else if api_error.is_service_account_missing() {
        vec![namespace, applied("v1", "ServiceAccount", None)]
    } else if api_error.exceeded_quota().is_some() {
        vec![applied("v1", "ResourceQuota", None), removed(&[("namespace", &target.namespace)])]
    } else if is_value_in_use(api_error) {
        vec![removed(&[("group", target.group()), ("kind", &target.kind)])]
    } else if api_error.is_access_error() {
        let kinds = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
        kinds.iter().map(|kind| applied("rbac.authorization.k8s.io/v1", kind, None)).collect()
    } else {
        Vec::new()
    }
}

fn applied(api_version: &str, kind: &str, name: Option<&str>) -> Remedy {
    let metadata = name.map(|name| ("metadata", Value::map([("name", Value::from(name))])));
    let kind = [("apiVersion", Value::from(api_version)), ("kind", Value::from(kind))];
    Remedy::Applied(Value::map([("manifest", Value::map(kind.into_iter().chain(metadata)))]))
}

fn removed(entries: &[(&'static str, &str)]) -> Remedy {
    Remedy::Removed(Value::map(entries.iter().map(|(key, text)| (*key, Value::from(*text)))))
}

#[cfg(test)]
mod tests;
