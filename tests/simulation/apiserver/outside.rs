//! The way in for tests and judges: objects and changes as they are, and the hand of somebody outside, who needs no
//! rights and meets no network.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Type;
use super::store::{Change, Object};
use super::{Answer, Server};

impl Server {
    /// The objects of a type, such as `("purlin.dev", "resources")`, in the order of namespaces and names.
    pub(crate) fn objects(&self, group: &str, plural: &str) -> impl Iterator<Item = &Arc<Object>> {
        let what: Type = (group.into(), plural.into());
        self.store.table(&what).into_iter().flat_map(|table| table.objects.values())
    }

    /// One object.
    pub(crate) fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.store.get(&(group.into(), plural.into()), namespace, name)
    }

    /// All changes after a version, of all types, in their order.
    pub(crate) fn changes(&self, after: u64) -> impl Iterator<Item = &Arc<Change>> {
        self.store.since(after)
    }

    /// The version of the last change of each type.
    pub(crate) fn last_changes(&self) -> impl Iterator<Item = (&Type, u64)> {
        self.store.tables().map(|(what, table)| (what, table.last()))
    }

    /// The version of the last change of a type.
    pub(crate) fn last_change(&self, what: &Type) -> u64 {
        self.store.table(what).map_or(0, super::store::Table::last)
    }

    /// Forgets what happened up to a version: lists and watches from before it are refused as too old.
    pub(crate) fn compact(&mut self, up_to: u64) {
        self.store.compact(up_to);
    }

    /// Makes an object, as `kubectl create` does.
    ///
    /// # Panics
    /// If the server refuses it.
    pub(crate) fn insert(&mut self, now: Timestamp, object: Value) -> Arc<Object> {
        let path = self.path_of(&object, false);
        let value = self.ask(now, &Method::POST, &path, "application/json", &object).expect("it is made");
        self.found(&value)
    }

    /// Changes what an object is to be, as a merge patch does. Nothing when there is no such object.
    ///
    /// # Panics
    /// If the server refuses it for another reason.
    pub(crate) fn modify(&mut self, now: Timestamp, path: &str, patch: &Value) -> Option<Arc<Object>> {
        match self.ask(now, &Method::PATCH, path, "application/merge-patch+json", patch) {
            Ok(value) => Some(self.found(&value)),
            Err((404, _)) => None,
            Err((code, message)) => panic!("{code}: {message}"),
        }
    }

    /// Deletes an object, as `kubectl delete` does; whether there was one.
    pub(crate) fn erase(&mut self, now: Timestamp, path: &str) -> bool {
        self.ask(now, &Method::DELETE, path, "application/json", &Value::Null).is_ok()
    }

    /// Takes all finalizers off an object, as somebody does who has had enough of waiting; whether there was one.
    pub(crate) fn force_finalizers(&mut self, now: Timestamp, path: &str) -> bool {
        self.modify(now, path, &json!({"metadata": {"finalizers": null}})).is_some()
    }

    /// A request in the name of an administrator: the body of the answer, or code and message of a refusal.
    pub(crate) fn ask(
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
            // Whatever the controller may not do, an administrator may.
            .header("Impersonate-User", "admin")
            .body(body)
            .expect("a request");
        let Answer::Full(response) = self.respond(now, &request) else { panic!("{path} is no watch") };
        let value: Value = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        if response.status().is_success() {
            return Ok(value);
        }
        Err((response.status().as_u16(), value["message"].as_str().unwrap_or_default().to_owned()))
    }

    /// The path of an object, or of the collection that it belongs into.
    ///
    /// # Panics
    /// If its kind is not served.
    pub(crate) fn path_of(&self, object: &Value, named: bool) -> String {
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
        let text = |name: &str| value["metadata"][name].as_str().unwrap_or_default();
        let found = self.store.get(&kind.id(), text("namespace"), text("name")).cloned();
        // It may have gone with what was done to it.
        found.unwrap_or_else(|| Object::unstored(value.clone(), Arc::default()))
    }
}
