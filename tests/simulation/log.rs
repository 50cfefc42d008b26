//! Checks the objects that Purlin creates in the cluster by the change log of the API server: which were created and
//! deleted, and whether their records and statuses were correct at that time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apiserver::{Change, ChangeKind, Object, Server};
use purlin::model::Record;
use purlin::store::secrets::record_name;
use serde_json::Value;

use crate::cluster_objects::{KINDS, address, is_in_cluster, is_object, matches_spec};
use crate::convergence::parse;
use crate::judge::condition;
use crate::kubectl::SHOP;
use crate::replica::HOME;

/// The objects that were created and destroyed. Jobs are left out: a hook may run twice.
pub(crate) fn effects(server: &Server) -> Vec<String> {
    let effect = |change: &Arc<Change>| {
        let kind = change.object.value["kind"].as_str().unwrap_or_default();
        let address = object_address(change).filter(|_| kind != "Job")?;
        match change.happened {
            ChangeKind::Added => Some(format!("Created {kind} {address}")),
            ChangeKind::Deleted => Some(format!("Destroyed {kind} {address}")),
            ChangeKind::Modified => None,
        }
    };
    server.changes(0).filter_map(effect).collect()
}

fn object_address(change: &Change) -> Option<String> {
    let is_kind = KINDS.contains(&(&*change.what.0, &*change.what.1));
    address(&change.object.value).filter(|_| is_kind && change.object.namespace() == SHOP)
}

/// Everything that must never happen, but did. `by_others` returns whether another program deleted the object with a
/// UID.
pub(crate) fn objections(server: &Server, by_others: &dyn Fn(&str) -> bool) -> Vec<String> {
    let is_object = |change: &Arc<Change>| object_address(change).is_some() && is_object(&change.object.value);
    // Most stories have no such objects.
    if !server.changes(0).any(is_object) {
        return Vec::new();
    }
    let mut reader = Reader::default();
    for change in server.changes(0) {
        reader.read(change, by_others);
    }
    reader.objections
}

/// Reads the log from its beginning.
#[derive(Default)]
struct Reader {
    /// Secrets of records, by name.
    records: BTreeMap<String, Arc<Object>>,
    /// Resources whose objects are in the cluster, by name.
    resources: BTreeMap<String, Value>,
    /// Objects by UID, each with its address.
    objects: BTreeMap<String, (String, Arc<Object>)>,
    /// Whether the namespace is being deleted with its content.
    is_over: bool,
    /// Names and generations of Resources that an object has matched.
    fulfilled: BTreeSet<(String, i64)>,
    objections: Vec<String>,
}

impl Reader {
    fn read(&mut self, change: &Change, by_others: &dyn Fn(&str) -> bool) {
        let (object, is_gone) = (&change.object, change.happened == ChangeKind::Deleted);
        match (&*change.what.1, object.namespace()) {
            ("secrets", HOME) => {
                let name = object.name().to_owned();
                drop(if is_gone { self.records.remove(&name) } else { self.records.insert(name, object.clone()) });
            }
            ("namespaces", "") if object.name() == SHOP => self.is_over = object.is_deleting(),
            ("resources", SHOP) if is_in_cluster(&object.value) => self.resource(&object.value),
            _ if is_object(&object.value) => {
                let Some(address) = object_address(change) else { return };
                let problem = match change.happened {
                    ChangeKind::Added => self.check_created(&address),
                    ChangeKind::Deleted if !self.is_over && !by_others(object.uid()) => self.check_destroyed(&address),
                    ChangeKind::Modified | ChangeKind::Deleted => None,
                };
                self.objections.extend(problem.map(|why| format!("{} of {address} {why}", change.key)));
                let uid = object.uid().to_owned();
                drop(if is_gone {
                    self.objects.remove(&uid)
                } else {
                    self.objects.insert(uid, (address, object.clone()))
                });
                self.compare();
            }
            _ => {}
        }
    }

    /// The record of an address at this moment.
    fn record(&self, address: &str) -> Option<Record> {
        let address = address.parse().expect("the annotation has an address");
        parse(&self.records.get(&record_name(SHOP, &address))?.value)
    }

    fn check_created(&self, address: &str) -> Option<String> {
        let Some(record) = self.record(address) else { return Some("is created without a record".to_owned()) };
        if record.intent.is_none() {
            return Some("is created without an intent".to_owned());
        }
        let current = record.current.as_ref()?;
        Some(format!("is created although {:?} is current", current.id()))
    }

    fn check_destroyed(&self, address: &str) -> Option<String> {
        let is_intended = self.record(address).is_some_and(|record| record.intent.is_some());
        (!is_intended).then(|| "is destroyed without an intent".to_owned())
    }

    /// Records which Resources match an object now.
    fn compare(&mut self) {
        for (name, resource) in &self.resources {
            let mut own = self.objects.values().filter(|(address, _)| address == name);
            if own.any(|(_, object)| matches_spec(&object.value, &resource["spec"])) {
                let generation = resource["metadata"]["generation"].as_i64().unwrap_or_default();
                self.fulfilled.insert((name.clone(), generation));
            }
        }
    }

    /// Checks a Resource whose spec or status has changed.
    fn resource(&mut self, resource: &Value) {
        let name = resource["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.resources.insert(name.clone(), resource.clone());
        self.compare();
        let status = &resource["status"];
        let is_ready = condition(status, "Ready").is_some_and(|(status, _)| status == "True");
        let generation = status["observedGeneration"].as_i64().unwrap_or_default();
        if is_ready && !self.fulfilled.contains(&(name.clone(), generation)) {
            self.objections
                .push(format!("{name} is Ready for generation {generation}, which its object never matched"));
        }
    }
}
