//! Deletes objects: immediately, or after the last finalizer is removed.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::body::is_dry;
use super::kinds::Kind;
use super::refusal::{Refusal, about};
use super::request::ApiRequest;
use super::store::Object;
use super::write::{can_be_removed, seconds};
use super::{Body, Server, Success};

/// The finalizers for foreground deletion, and for orphaning dependents.
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl Server {
    pub(crate) fn delete(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
    ) -> Result<Success, Refusal> {
        let options: Value = match request.body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&request.body).map_err(|error| Refusal::bad_request(error.to_string()))?,
        };
        let place = &request.place;
        let found = self.store.get(&kind.id(), &place.namespace, &place.name).cloned();
        let old = found.ok_or_else(|| Refusal::not_found(kind, &place.name))?;
        let preconditions = &options["preconditions"];
        if let Some(uid) = preconditions["uid"].as_str().filter(|uid| *uid != old.uid()) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                old.uid()
            );
            return Err(Refusal::unmet(kind, old.name(), &why));
        }
        let version = old.meta("resourceVersion");
        if let Some(asked) = preconditions["resourceVersion"].as_str().filter(|asked| *asked != version) {
            let why = format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            );
            return Err(Refusal::unmet(kind, old.name(), &why));
        }
        let policy = options["propagationPolicy"].as_str().unwrap_or(request.query("propagationPolicy"));
        let dry = is_dry(request)? || options["dryRun"][0] == "All";
        let (object, gone) = self.mark(now, kind, &old, policy, dry);
        // The response has the object while a finalizer holds it, and always for a few kinds.
        let body = match gone && !kind.returns_deleted {
            false => Body::Object(object),
            true => {
                let mut details = about(kind, old.name());
                details["uid"] = old.uid().into();
                Body::Json(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                }))
            }
        };
        Ok(Success { code: 200, body })
    }

    /// Marks an object for deletion, and removes it if no finalizer holds it. Returns its last state, and whether it is
    /// removed.
    pub(crate) fn mark(
        &mut self,
        now: Timestamp,
        kind: &Arc<Kind>,
        old: &Arc<Object>,
        policy: &str,
        dry: bool,
    ) -> (Arc<Object>, bool) {
        let mut value = old.value.clone();
        let is_namespace = kind.group.is_empty() && &*kind.plural == "namespaces";
        let metadata = &mut value["metadata"];
        let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        let had_some = metadata["finalizers"].is_array();
        if !policy.is_empty() {
            let wanted = match policy {
                "Foreground" => Some(FOREGROUND),
                "Orphan" => Some(ORPHAN),
                _ => None,
            };
            finalizers.retain(|finalizer| *finalizer != FOREGROUND && *finalizer != ORPHAN);
            finalizers.extend(wanted.filter(|_| !is_namespace).map(Value::from));
        }
        if had_some || !finalizers.is_empty() {
            metadata["finalizers"] = finalizers.into();
        }
        if metadata["deletionTimestamp"].is_null() {
            metadata["deletionTimestamp"] = seconds(now).into();
            if !is_namespace {
                metadata["deletionGracePeriodSeconds"] = 0.into();
            }
            if let Some(generation) = metadata["generation"].as_i64() {
                metadata["generation"] = (generation + 1).into();
            }
        }
        if is_namespace {
            value["status"]["phase"] = "Terminating".into();
        }
        let gone = can_be_removed(kind, &value);
        if dry {
            return (Object::unstored(value, old.owners.clone()), gone);
        }
        if gone {
            let last = self.remove(now, kind, old);
            return (last.unwrap_or_else(|| old.clone()), true);
        }
        if value == old.value {
            return (old.clone(), false);
        }
        (self.store.put(now, &kind.id(), value, old.owners.clone()), false)
    }

    /// Removes an object permanently.
    pub(crate) fn remove(&mut self, now: Timestamp, kind: &Arc<Kind>, old: &Object) -> Option<Arc<Object>> {
        let last = self.store.remove(now, &kind.id(), old.namespace(), old.name());
        if &*kind.name == "CustomResourceDefinition" {
            for gone in Kind::of_definition(&old.value) {
                self.kinds.remove(&gone.key());
            }
        }
        last
    }

    pub(crate) fn delete_collection(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
    ) -> Result<Success, Refusal> {
        let selectors =
            super::selectors::Selectors::parse(kind, request.query("labelSelector"), request.query("fieldSelector"))?;
        let dry = is_dry(request)?;
        let id = kind.id();
        let objects = self.store.table(&id).into_iter().flat_map(|table| table.objects.values());
        let here = objects
            .filter(|object| request.place.namespace.is_empty() || object.namespace() == request.place.namespace);
        let found: Vec<_> = here.filter(|object| selectors.fit(&object.value)).cloned().collect();
        let mut items = Vec::new();
        for object in found {
            items.push(self.mark(now, kind, &object, request.query("propagationPolicy"), dry).0.value.clone());
        }
        let body = json!({
            "kind": format!("{}List", kind.name), "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": self.store.version().to_string()}, "items": items,
        });
        Ok(Success { code: 200, body: Body::Json(body) })
    }
}
