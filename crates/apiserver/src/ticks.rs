//! The controllers of a cluster, which a test runs step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Server;
use super::kinds::{Kind, Type};
use super::store::Object;

impl Server {
    /// All objects in a namespace, in the order of types and names.
    pub fn contents(&self, namespace: &str) -> Vec<Arc<Object>> {
        let tables = self.store.tables().flat_map(|(_, table)| table.objects.values());
        tables.filter(|object| object.namespace() == namespace && !namespace.is_empty()).cloned().collect()
    }

    /// Runs one step of the namespace controller for each namespace that is being deleted: deletes at most `most` of
    /// its objects in the order that `order` determines, then sets the conditions, and removes an empty namespace.
    /// Returns whether anything changed.
    pub fn tick_namespaces(
        &mut self,
        now: Timestamp,
        most: usize,
        mut order: impl FnMut(&mut Vec<Arc<Object>>),
    ) -> bool {
        let kind = self.kind("", "v1", "namespaces").expect("it is built in").clone();
        let table = self.store.table(&kind.id());
        let going = table.into_iter().flat_map(|table| table.objects.values().filter(|object| object.is_deleting()));
        let going: Vec<Arc<Object>> = going.cloned().collect();
        let mut did = false;
        for namespace in going {
            let contents = self.contents(namespace.name());
            if contents.is_empty() {
                let mut value = namespace.value.clone();
                value["spec"]["finalizers"] = json!([]);
                let held = value["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
                if !held {
                    self.remove(now, &kind, &namespace);
                    did = true;
                } else if value != namespace.value {
                    self.store.put(now, &kind.id(), value, namespace.owners.clone());
                    did = true;
                }
                continue;
            }
            let mut left: Vec<_> = contents.into_iter().filter(|object| !object.is_deleting()).collect();
            order(&mut left);
            let is_whole = left.len() <= most;
            for object in left.into_iter().take(most) {
                let kind = self.kind_of(&object.value).expect("its kind is served");
                self.mark(now, &kind, &object, "Background", false);
                did = true;
            }
            did |= is_whole && self.report_remaining(now, namespace.name());
        }
        did
    }

    /// Runs one step of the garbage collector: deletes objects without remaining owners, and removes the foreground
    /// finalizer of objects without dependents. Returns whether anything changed.
    pub fn tick_garbage(&mut self, now: Timestamp) -> bool {
        let objects: Vec<Arc<Object>> =
            self.store.tables().flat_map(|(_, table)| table.objects.values().cloned()).collect();
        let uids: BTreeSet<&str> = objects.iter().map(|object| object.uid()).collect();
        let going: BTreeSet<&str> = objects
            .iter()
            .filter(|object| held_by(&object.value, "foregroundDeletion") && object.is_deleting())
            .map(|object| object.uid())
            .collect();
        let mut did = false;
        for object in &objects {
            let mut owners = owners(object).peekable();
            // The owner is deleted, or waits for the deletion of its dependents.
            if owners.peek().is_some()
                && owners.all(|uid| !uids.contains(uid) || going.contains(uid))
                && !object.is_deleting()
            {
                let kind = self.kind_of(&object.value).expect("its kind is served");
                self.mark(now, &kind, object, "Background", false);
                did = true;
            }
        }
        for object in objects.iter().filter(|object| object.is_deleting()) {
            let held = if held_by(&object.value, "orphan") { "orphan" } else { "foregroundDeletion" };
            if !held_by(&object.value, held) {
                continue;
            }
            let mut dependents = objects.iter().filter(|other| owners(other).any(|uid| uid == object.uid()));
            if held == "orphan" {
                dependents.for_each(|dependent| self.disown(now, dependent, object.uid()));
            } else if dependents.next().is_some() {
                continue;
            }
            did |= self.release(now, object, held);
        }
        did
    }

    /// Removes an owner reference.
    fn disown(&mut self, now: Timestamp, object: &Arc<Object>, owner: &str) {
        let Some(kind) = self.kind_of(&object.value) else { return };
        let mut value = object.value.clone();
        let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() else { return };
        owners.retain(|other| other["uid"] != owner);
        if owners.is_empty()
            && let Some(metadata) = value["metadata"].as_object_mut()
        {
            metadata.remove("ownerReferences");
        }
        self.store.put(now, &kind.id(), value, object.owners.clone());
    }

    /// Runs one step of the CRD controller: deletes the objects of a CRD that is being deleted, and removes the CRD
    /// when none exist. Returns whether anything changed.
    pub fn tick_definitions(&mut self, now: Timestamp) -> bool {
        const HELD: &str = "customresourcecleanup.apiextensions.k8s.io";
        let what: Type = ("apiextensions.k8s.io".into(), "customresourcedefinitions".into());
        let table = self.store.table(&what);
        let going = table.into_iter().flat_map(|table| table.objects.values().filter(|object| object.is_deleting()));
        let going: Vec<Arc<Object>> = going.cloned().collect();
        let mut did = false;
        for definition in going {
            let Some(kind) = Kind::of_definition(&definition.value).into_iter().next() else { continue };
            let kind = Arc::new(kind);
            let table = self.store.table(&kind.id());
            let objects: Vec<_> = table.into_iter().flat_map(|table| table.objects.values().cloned()).collect();
            if objects.is_empty() {
                did |= self.release(now, &definition, HELD);
            }
            for object in objects.iter().filter(|object| !object.is_deleting()) {
                self.mark(now, &kind, object, "", false);
                did = true;
            }
        }
        did
    }

    /// Removes a finalizer, and the object if it was the last one. Returns whether the object had the finalizer.
    pub(crate) fn release(&mut self, now: Timestamp, object: &Arc<Object>, finalizer: &str) -> bool {
        let Some(kind) = self.kind_of(&object.value) else { return false };
        let mut value = object.value.clone();
        let Some(held) = value["metadata"]["finalizers"].as_array_mut() else { return false };
        let before = held.len();
        held.retain(|other| *other != finalizer);
        if held.len() == before {
            return false;
        }
        if super::write::can_be_removed(&kind, &value) {
            self.remove(now, &kind, object);
        } else {
            self.store.put(now, &kind.id(), value, object.owners.clone());
        }
        true
    }

    pub(crate) fn kind_of(&self, value: &Value) -> Option<Arc<Kind>> {
        let (api_version, name) = (value["apiVersion"].as_str()?, value["kind"].as_str()?);
        self.kinds.values().find(|kind| *kind.name == *name && kind.api_version() == api_version).cloned()
    }
}

/// The UIDs of the owners of an object.
fn owners(object: &Object) -> impl Iterator<Item = &str> {
    let owners = object.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.filter_map(|owner| owner["uid"].as_str())
}

fn held_by(value: &Value, finalizer: &str) -> bool {
    value["metadata"]["finalizers"].as_array().is_some_and(|held| held.iter().any(|other| other == finalizer))
}
