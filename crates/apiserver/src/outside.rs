//! Direct access for tests: they read objects and changes, and change objects without authorization and without the
//! network.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Type;
use super::store::{Change, Object};
use super::{Server, ServerResponse};

impl Server {
    /// The objects of a type, such as `("purlin.dev", "resources")`, in the order of namespaces and names.
    pub fn objects(&self, group: &str, plural: &str) -> impl Iterator<Item = &Arc<Object>> {
        let what: Type = (group.into(), plural.into());
        self.store.table(&what).into_iter().flat_map(|table| table.objects.values())
    }

    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.store.get(&(group.into(), plural.into()), namespace, name)
    }

    /// All changes after a version, of all types, in their order.
    pub fn changes(&self, after: u64) -> impl Iterator<Item = &Arc<Change>> {
        self.store.since(after)
    }

    /// The version of the last change of each type.
    pub fn last_changes(&self) -> impl Iterator<Item = (&Type, u64)> {
        self.store.tables().map(|(what, table)| (what, table.last()))
    }

    /// Drops the changes up to a version. Lists and watches of earlier versions fail with `Expired`.
    pub fn compact(&mut self, up_to: u64) {
        self.store.compact(up_to);
    }

    /// Creates an object, as `kubectl create` does.
    ///
    /// # Panics
    /// If the server rejects it.
    pub fn insert(&mut self, now: Timestamp, object: Value) -> Arc<Object> {
        let path = self.path_of(&object, false);
        let value = self.send(now, &Method::POST, &path, "application/json", &object).expect("the server accepts it");
        self.found(&value)
    }

    /// Changes an object with a merge patch. `None` if the object does not exist.
    ///
    /// # Panics
    /// If the server rejects it for another reason.
    pub fn modify(&mut self, now: Timestamp, path: &str, patch: &Value) -> Option<Arc<Object>> {
        match self.send(now, &Method::PATCH, path, "application/merge-patch+json", patch) {
            Ok(value) => Some(self.found(&value)),
            Err((404, _)) => None,
            Err((code, message)) => panic!("{code}: {message}"),
        }
    }

    /// Deletes an object, as `kubectl delete` does. Returns whether it existed.
    pub fn erase(&mut self, now: Timestamp, path: &str) -> bool {
        self.send(now, &Method::DELETE, path, "application/json", &Value::Null).is_ok()
    }

    /// Removes a namespace by force, as with an empty list of `spec.finalizers`. What is in it stays.
    pub fn force_namespace(&mut self, now: Timestamp, name: &str) {
        let kind = self.kind("", "v1", "namespaces").expect("it is built in").clone();
        if let Some(namespace) = self.store.get(&kind.id(), "", name).cloned() {
            self.remove(now, &kind, &namespace);
        }
    }

    /// Replaces a namespace by one of the same name: Purlin identifies a cluster by the UID of `kube-system`.
    pub fn renew_namespace(&mut self, now: Timestamp, name: &str) {
        self.store.remove(now, &("".into(), "namespaces".into()), "", name);
        self.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }

    /// Removes all finalizers of an object. Returns whether the object existed.
    pub fn force_finalizers(&mut self, now: Timestamp, path: &str) -> bool {
        self.modify(now, path, &json!({"metadata": {"finalizers": null}})).is_some()
    }

    /// Sends a request as an administrator. Returns the body, or the code and the message of the error.
    pub fn send(
        &mut self,
        now: Timestamp,
        method: &Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, (u16, String)> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::USER_AGENT, "kubectl/v1.36")
            // Rules for the controller do not apply to this user.
            .header("Impersonate-User", "admin")
            .body(body)
            .expect("a request");
        let ServerResponse::Full(response) = self.respond(now, &request) else { panic!("{path} is no watch") };
        let value: Value = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        if response.status().is_success() {
            return Ok(value);
        }
        Err((response.status().as_u16(), value["message"].as_str().unwrap_or_default().to_owned()))
    }

    /// The path of an object if `named`, otherwise the path of its collection.
    ///
    /// # Panics
    /// If its kind is not served.
    pub fn path_of(&self, object: &Value, named: bool) -> String {
        let kind = self.kind_of(object).expect("its kind is served");
        let metadata = &object["metadata"];
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", kind.api_version());
        if kind.namespaced {
            path.push_str(&format!("/namespaces/{}", metadata["namespace"].as_str().unwrap_or("default")));
        }
        path.push_str(&format!("/{}", kind.plural));
        if named {
            path.push_str(&format!("/{}", metadata["name"].as_str().unwrap_or_default()));
        }
        path
    }

    fn found(&self, value: &Value) -> Arc<Object> {
        let kind = self.kind_of(value).expect("its kind is served");
        let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let object = self.store.get(&kind.id(), namespace, name).cloned();
        // The request may have removed it.
        object.unwrap_or_else(|| Object::unstored(value.clone(), Arc::default()))
    }
}
