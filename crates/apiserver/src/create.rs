//! Creates objects: by POST, and by PUT and apply of objects that do not exist.

use std::sync::Arc;

use api::FINALIZER;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::body::{fits, is_dry, manager, of};
use super::fields::{Manager, Owners, after_update};
use super::kinds::Kind;
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::store::Object;
use super::write::seconds;
use super::{Body, Server, Success, defaults, schema, validate};

/// The characters of generated names, as in the real server.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Server {
    pub(crate) fn create(
        &mut self,
        now: Timestamp,
        request: &ApiRequest,
        kind: &Arc<Kind>,
    ) -> Result<Success, Refusal> {
        if !request.place.name.is_empty() {
            return Err(Refusal::method_not_allowed());
        }
        let mut value = of(request)?;
        fits(kind, request, &value)?;
        if value["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::internal("resourceVersion should not be set on objects to be created"));
        }
        value["metadata"]["namespace"] = request.place.namespace.as_str().into();
        let prefix = value["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        if value["metadata"]["name"].as_str().unwrap_or_default().is_empty() && !prefix.is_empty() {
            value["metadata"]["name"] = self.drawn_name(&prefix).into();
        }
        let manager = manager(request, kind);
        let object = self.make(now, kind, value, None, &manager, is_dry(request)?)?;
        Ok(Success { code: 201, body: Body::Object(object) })
    }

    /// Creates an object. `owners` are given by an apply.
    pub(crate) fn make(
        &mut self,
        now: Timestamp,
        kind: &Arc<Kind>,
        mut value: Value,
        owners: Option<Arc<Owners>>,
        manager: &Manager,
        dry: bool,
    ) -> Result<Arc<Object>, Refusal> {
        let metadata = &mut value["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        if let Some(metadata) = metadata.as_object_mut() {
            for field in
                ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"]
            {
                metadata.remove(field);
            }
            metadata.remove("managedFields");
            if namespace.is_empty() {
                metadata.remove("namespace");
            }
        }
        let sent = value.clone();
        if self.adds_finalizer && *kind.group == *"purlin.dev" && *kind.plural == *"resources" {
            add_finalizer(&mut value["metadata"]["finalizers"]);
        }
        Self::prepare(kind, &mut value);
        if kind.namespaced {
            self.check_namespace(kind, &namespace, &name)?;
        }
        let mut causes = validate::object(kind, &value);
        causes.extend(schema::check(kind, &value, false));
        if !causes.is_empty() {
            return Err(Refusal::invalid(kind, &name, &causes));
        }
        if self.store.get(&kind.id(), &namespace, &name).is_some() {
            return Err(Refusal::already_exists(kind, &name));
        }
        let number = self.draw();
        let metadata = &mut value["metadata"];
        metadata["uid"] = format!("00000000-0000-4000-8000-{number:012x}").into();
        metadata["creationTimestamp"] = seconds(now).into();
        if kind.generation {
            metadata["generation"] = 1.into();
        }
        Self::complete(kind, &mut value, number);
        let owners = owners.unwrap_or_else(|| {
            let bare = json!({});
            after_update(&Arc::default(), manager, &bare, &if kind.custom { sent } else { value.clone() })
        });
        if dry {
            return Ok(Object::unstored(value, owners));
        }
        let object = self.store.put(now, &kind.id(), value, owners);
        self.took_effect(&object);
        Ok(object)
    }

    fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        let namespaces = self.kind("", "v1", "namespaces").expect("it is built in");
        match self.store.get(&namespaces.id(), "", namespace) {
            None => Err(Refusal::not_found(namespaces, namespace)),
            Some(found) if found.is_deleting() => Err(Refusal::terminating(kind, name, namespace)),
            Some(_) => Ok(()),
        }
    }

    /// Prepares a new object before its validation.
    fn prepare(kind: &Kind, value: &mut Value) {
        if kind.status
            && let Some(map) = value.as_object_mut()
        {
            map.remove("status");
        }
        schema::prune(kind, value);
        defaults::fill(kind, value);
    }

    /// Sets the fields of a new object that the server determines.
    fn complete(kind: &Kind, value: &mut Value, number: u64) {
        match (&*kind.group, &*kind.plural) {
            ("", "namespaces") => {
                value["spec"]["finalizers"] = json!(["kubernetes"]);
                value["status"] = json!({"phase": "Active"});
            }
            ("", "services") if value["spec"]["type"] != "ExternalName" => {
                let address = format!("10.0.{}.{}", number / 250 % 250, number % 250 + 2);
                let address = value["spec"]["clusterIP"].as_str().unwrap_or(&address).to_owned();
                value["spec"]["clusterIPs"] = json!([address]);
                value["spec"]["clusterIP"] = address.into();
                value["status"] = json!({"loadBalancer": {}});
            }
            ("apps" | "batch", _) => value["status"] = json!({}),
            ("", "pods") => value["status"] = json!({"phase": "Pending"}),
            ("apiextensions.k8s.io", "customresourcedefinitions") => {
                value["metadata"]["finalizers"] = json!(["customresourcecleanup.apiextensions.k8s.io"]);
                let names = value["spec"]["names"].clone();
                value["status"] = json!({
                    "acceptedNames": names, "storedVersions": [value["spec"]["versions"][0]["name"].clone()],
                    "conditions": [{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}],
                });
            }
            _ => {}
        }
    }

    /// Adds the kinds of a CRD.
    pub(crate) fn took_effect(&mut self, object: &Object) {
        if object.value["kind"] == "CustomResourceDefinition" {
            for kind in Kind::of_definition(&object.value) {
                self.kinds.insert(kind.key(), Arc::new(kind));
            }
        }
    }

    fn drawn_name(&mut self, prefix: &str) -> String {
        let mut number = self.draw().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let mut name = prefix.chars().take(58).collect::<String>();
        for _ in 0..5 {
            let letter = usize::try_from(number % LETTERS.len() as u64).expect("it is small");
            name.push(char::from(LETTERS[letter]));
            number /= LETTERS.len() as u64;
        }
        name
    }
}

/// What the MutatingAdmissionPolicy of the chart does.
fn add_finalizer(finalizers: &mut Value) {
    let mut names = finalizers.as_array().cloned().unwrap_or_default();
    if !names.iter().any(|name| *name == FINALIZER) {
        names.push(FINALIZER.into());
    }
    *finalizers = names.into();
}
