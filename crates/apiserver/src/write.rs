//! Updates and patches, of an object or of its status.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::body::{fits, is_dry, manager, of};
use super::fields::{Owners, after_update};
use super::kinds::Kind;
use super::refusal::{Cause, Refusal};
use super::request::{ApiRequest, PatchType};
use super::store::{Object, key};
use super::{Body, Server, Success, apply, defaults, patch, schema, validate};

impl Server {
    pub(crate) fn update(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
    ) -> Result<Success, Refusal> {
        if request.place.name.is_empty() {
            return Err(Refusal::method_not_allowed());
        }
        let mut value = of(request)?;
        fits(kind, request, &value)?;
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if name != request.place.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                name, request.place.name
            )));
        }
        value["metadata"]["namespace"] = request.place.namespace.as_str().into();
        let manager = manager(request, kind);
        let Some(old) = self.store.get(&kind.id(), &request.place.namespace, &request.place.name).cloned() else {
            if !kind.put_creates || !request.place.subresource.is_empty() {
                return Err(Refusal::not_found(kind, &request.place.name));
            }
            let object = self.make(now, kind, value, None, &manager, is_dry(request)?)?;
            return Ok(Success { code: 201, body: Body::Object(object) });
        };
        let uid = value["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && uid != old.uid() {
            let place = match kind.custom {
                true => format!("{}/{}", kind.group, kind.plural),
                false => kind.plural.to_string(),
            };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{place}/{}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                key(old.namespace(), old.name()),
                old.uid()
            );
            return Err(Refusal::conflict(kind, old.name(), &why));
        }
        let object = self.change(now, request, kind, &old, value, None)?;
        Ok(Success { code: 200, body: Body::Object(object) })
    }

    pub(crate) fn patch(&mut self, now: Timestamp, request: &ApiRequest, kind: &Arc<Kind>) -> Result<Success, Refusal> {
        let place = &request.place;
        if place.name.is_empty() {
            return Err(Refusal::method_not_allowed());
        }
        let Some(how) = request.patch else {
            let message = "the body of the request was in an unknown format - accepted media types include: \
                           application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Err(Refusal::new(415, "UnsupportedMediaType", message));
        };
        let patch = of(request)?;
        let old = self.store.get(&kind.id(), &place.namespace, &place.name).cloned();
        if how == PatchType::Apply {
            return self.apply(now, request, kind, old, patch);
        }
        let old = old.ok_or_else(|| Refusal::not_found(kind, &place.name))?;
        let mut value = old.value.clone();
        if how == PatchType::Json {
            let operations = patch.as_array().ok_or_else(|| Refusal::bad_request("the patch is no list"))?;
            patch::json_patch(&mut value, operations).map_err(|_| {
                Refusal::new(422, "Invalid", "the server rejected our request due to an error in our request")
                    .with_details(json!({}))
            })?;
        } else {
            patch::merge_patch(&mut value, &patch);
        }
        if value["metadata"]["name"] != old.value["metadata"]["name"] {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                value["metadata"]["name"].as_str().unwrap_or_default(),
                place.name
            )));
        }
        let object = self.change(now, request, kind, &old, value, None)?;
        Ok(Success { code: 200, body: Body::Object(object) })
    }

    fn apply(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
        old: Option<Arc<Object>>,
        wanted: Value,
    ) -> Result<Success, Refusal> {
        let place = &request.place;
        if request.query("fieldManager").is_empty() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Refusal::invalid_options("PatchOptions", &[cause]));
        }
        fits(kind, request, &wanted)?;
        let name = wanted["metadata"]["name"].as_str().unwrap_or(&place.name);
        if name != place.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                place.name
            )));
        }
        let manager = manager(request, kind);
        let uid = wanted["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let dry = is_dry(request)?;
        let Some(old) = old else {
            if !place.subresource.is_empty() {
                return Err(Refusal::not_found(kind, &place.name));
            }
            if !uid.is_empty() {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Refusal::conflict(kind, &place.name, &why));
            }
            let bare = json!({
                "apiVersion": kind.api_version(), "kind": &*kind.name,
                "metadata": {"name": place.name, "namespace": place.namespace},
            });
            let mut wanted = wanted;
            if kind.status
                && let Some(map) = wanted.as_object_mut()
            {
                map.remove("status");
            }
            let (value, owners) =
                apply::apply(&bare, &Arc::default(), &wanted, &manager, false).expect("a new object has no conflicts");
            let object = self.make(now, kind, value, Some(owners), &manager, dry)?;
            return Ok(Success { code: 201, body: Body::Object(object) });
        };
        if let Some(version) = wanted["metadata"]["resourceVersion"].as_str()
            && version != old.meta("resourceVersion")
        {
            return Err(Refusal::modified(kind, old.name()));
        }
        // The manager does not own the fields that this endpoint ignores.
        let mut wanted = wanted;
        if let Some(map) = wanted.as_object_mut() {
            match place.subresource.as_str() {
                "status" => map.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "status")),
                _ if kind.status => drop(map.remove("status")),
                _ => {}
            }
        }
        let applied = apply::apply(&old.value, &old.owners, &wanted, &manager, request.is("force"));
        let (mut value, owners) = applied.map_err(|conflicts| Refusal::apply_conflicts(&conflicts))?;
        if !uid.is_empty() {
            value["metadata"]["uid"] = uid.into();
        }
        let object = self.change(now, request, kind, &old, value, Some(owners))?;
        Ok(Success { code: 200, body: Body::Object(object) })
    }

    /// Replaces `old` with `value`. `owners` are given after an apply, and computed otherwise.
    fn change(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
        old: &Arc<Object>,
        mut value: Value,
        owners: Option<Arc<Owners>>,
    ) -> Result<Arc<Object>, Refusal> {
        let name = old.name();
        let namespaces = self.kind("", "v1", "namespaces").expect("it is built in");
        if kind.namespaced && self.store.get(&namespaces.id(), "", old.namespace()).is_none() {
            // It was removed by force. What is left in it can only be deleted.
            return Err(Refusal::not_found(namespaces, old.namespace()));
        }
        match value["metadata"]["resourceVersion"].as_str().unwrap_or_default() {
            "" if !kind.unconditional => return Err(Refusal::unversioned(kind, name)),
            "" => {}
            version if version != old.meta("resourceVersion") => return Err(Refusal::modified(kind, name)),
            _ => {}
        }
        let before = &old.value["metadata"];
        let metadata = &mut value["metadata"];
        for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            if metadata[field].is_null() && !before[field].is_null() {
                metadata[field] = before[field].clone();
            }
        }
        for field in ["resourceVersion", "generation", "namespace", "selfLink"] {
            match before.get(field) {
                Some(before) => metadata[field] = before.clone(),
                None => drop(metadata.as_object_mut().map(|metadata| metadata.remove(field))),
            }
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|name, value| !value.is_null() && name != "managedFields");
        }
        let mut value = Self::strategy(kind, &request.place.subresource, old, value);
        schema::prune(kind, &mut value);
        defaults::fill(kind, &mut value);
        let mut causes = validate::change(kind, &old.value, &value);
        causes.extend(validate::object(kind, &value));
        causes.extend(schema::check(kind, &value, true));
        if !causes.is_empty() {
            return Err(Refusal::invalid(kind, name, &causes));
        }
        if kind.generation && wanted_of(kind, &old.value) != wanted_of(kind, &value) {
            let generation = old.value["metadata"]["generation"].as_i64().unwrap_or(0);
            value["metadata"]["generation"] = (generation + 1).into();
        }
        let owners = owners.unwrap_or_else(|| after_update(&old.owners, &manager(request, kind), &old.value, &value));
        if value == old.value && owners == old.owners {
            return Ok(old.clone());
        }
        if is_dry(request)? {
            return Ok(Object::unstored(value, owners));
        }
        if can_be_removed(kind, &value) {
            // The last write is not visible: the deletion event has the state before it.
            self.remove(now, kind, old);
            return Ok(Object::unstored(value, owners));
        }
        let object = self.store.put(now, &kind.id(), value, owners);
        self.took_effect(&object);
        Ok(object)
    }

    /// Ignores the fields that an endpoint does not write: all but the status for `status`, and the status otherwise.
    fn strategy(kind: &Kind, subresource: &str, old: &Object, mut value: Value) -> Value {
        match subresource {
            "status" => {
                let mut kept = old.value.clone();
                match value.as_object_mut().and_then(|map| map.remove("status")) {
                    Some(status) => kept["status"] = status,
                    None => drop(kept.as_object_mut().map(|map| map.remove("status"))),
                }
                kept
            }
            "finalize" => {
                let mut kept = old.value.clone();
                kept["spec"]["finalizers"] = value["spec"]["finalizers"].clone();
                kept
            }
            _ => {
                if kind.status {
                    match old.value.get("status") {
                        Some(status) => value["status"] = status.clone(),
                        None => drop(value.as_object_mut().map(|map| map.remove("status"))),
                    }
                }
                if kind.group.is_empty() && &*kind.plural == "namespaces" {
                    value["spec"] = old.value["spec"].clone();
                }
                value
            }
        }
    }
}

/// Whether an object is marked for deletion and no finalizer holds it.
pub(crate) fn can_be_removed(kind: &Kind, value: &Value) -> bool {
    let is_namespace = kind.group.is_empty() && &*kind.plural == "namespaces";
    let is_held =
        has_entries(&value["metadata"]["finalizers"]) || (is_namespace && has_entries(&value["spec"]["finalizers"]));
    !value["metadata"]["deletionTimestamp"].is_null() && !is_held
}

fn has_entries(list: &Value) -> bool {
    list.as_array().is_some_and(|list| !list.is_empty())
}

/// The fields whose changes increase the generation.
fn wanted_of<'v>(kind: &Kind, value: &'v Value) -> Vec<(&'v String, &'v Value)> {
    let fields = value.as_object().into_iter().flatten();
    let wanted = fields.filter(|(name, _)| match name.as_str() {
        "spec" => true,
        "metadata" | "apiVersion" | "kind" => false,
        "status" => kind.custom && !kind.status,
        _ => kind.custom,
    });
    wanted.collect()
}

/// A time in the format of object fields.
pub(crate) fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
