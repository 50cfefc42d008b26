//! What the log of the API server says of the objects that Purlin makes in the cluster itself: which came and went, and
//! whether their records and statuses were as they have to be at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purlin::model::Record;
use purlin::store::secrets::record_name;
use serde_json::Value;

use crate::apiserver::{Change, Happened, Object, Server};
use crate::hands::SHOP;
use crate::judge::condition;
use crate::made::{KINDS, address, is_as_wished, is_in_cluster, is_object};
use crate::replica::HOME;
use crate::rest::parse;

/// What was made and destroyed. Jobs are left out: a hook may run twice.
pub(crate) fn effects(server: &Server) -> Vec<String> {
    let effect = |change: &Arc<Change>| {
        let kind = change.object.value["kind"].as_str().unwrap_or_default();
        let address = made_for(change).filter(|_| kind != "Job")?;
        match change.happened {
            Happened::Added => Some(format!("Created {kind} {address}")),
            Happened::Deleted => Some(format!("Destroyed {kind} {address}")),
            Happened::Modified => None,
        }
    };
    server.changes(0).filter_map(effect).collect()
}

/// The address for which the object of a change was made.
fn made_for(change: &Change) -> Option<String> {
    let is_kind = KINDS.contains(&(&*change.what.0, &*change.what.1));
    address(&change.object.value).filter(|_| is_kind && change.object.namespace() == SHOP)
}

/// What must never happen, and did. `by_others` says which objects another program has deleted, by their UIDs.
pub(crate) fn objections(server: &Server, by_others: &dyn Fn(&str) -> bool) -> Vec<String> {
    let is_object = |change: &Arc<Change>| made_for(change).is_some() && is_object(&change.object.value);
    // Most stories have none.
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
    wishes: BTreeMap<String, Value>,
    /// Objects by UID, each with its address.
    objects: BTreeMap<String, (String, Arc<Object>)>,
    /// Whether the namespace goes, and everything in it with it.
    is_over: bool,
    /// Names and generations of wishes that an object was once as asked by.
    fulfilled: BTreeSet<(String, i64)>,
    objections: Vec<String>,
}

impl Reader {
    fn read(&mut self, change: &Change, by_others: &dyn Fn(&str) -> bool) {
        let (object, is_gone) = (&change.object, change.happened == Happened::Deleted);
        match (&*change.what.1, object.namespace()) {
            ("secrets", HOME) => {
                let name = object.name().to_owned();
                drop(if is_gone { self.records.remove(&name) } else { self.records.insert(name, object.clone()) });
            }
            ("namespaces", "") if object.name() == SHOP => self.is_over = object.is_deleting(),
            ("resources", SHOP) if is_in_cluster(&object.value) => self.resource(&object.value),
            _ if is_object(&object.value) => {
                let Some(address) = made_for(change) else { return };
                let problem = match change.happened {
                    Happened::Added => self.made(&address),
                    Happened::Deleted if !self.is_over && !by_others(object.uid()) => self.destroyed(&address),
                    Happened::Modified | Happened::Deleted => None,
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
        let address = address.parse().expect("a mark names an address");
        parse(&self.records.get(&record_name(SHOP, &address))?.value)
    }

    fn made(&self, address: &str) -> Option<String> {
        let Some(record) = self.record(address) else { return Some("is made without a record".to_owned()) };
        if record.intent.is_none() {
            return Some("is made without an intent".to_owned());
        }
        let current = record.current.as_ref()?;
        Some(format!("is made beside {:?}, which is in use", current.id()))
    }

    fn destroyed(&self, address: &str) -> Option<String> {
        let is_intended = self.record(address).is_some_and(|record| record.intent.is_some());
        (!is_intended).then(|| "is destroyed without an intent".to_owned())
    }

    /// Which wishes are fulfilled now.
    fn compare(&mut self) {
        for (name, wish) in &self.wishes {
            let mut own = self.objects.values().filter(|(address, _)| address == name);
            if own.any(|(_, object)| is_as_wished(&object.value, &wish["spec"])) {
                let generation = wish["metadata"]["generation"].as_i64().unwrap_or_default();
                self.fulfilled.insert((name.clone(), generation));
            }
        }
    }

    /// A Resource has changed, be it the wish or what its status says.
    fn resource(&mut self, resource: &Value) {
        let name = resource["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.wishes.insert(name.clone(), resource.clone());
        self.compare();
        let status = &resource["status"];
        let is_ready = condition(status, "Ready").is_some_and(|(status, _)| status == "True");
        let generation = status["observedGeneration"].as_i64().unwrap_or_default();
        if is_ready && !self.fulfilled.contains(&(name.clone(), generation)) {
            self.objections.push(format!("{name} is Ready for generation {generation}, and never was as it asks"));
        }
    }
}
