//! What is not yet as it is wished: the API server, the records and the world outside side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purlin::model::{Address, Record};
use purlin::store::Strings;
use purlin::store::secrets::{Decoded, Family, decode, record_name};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::apiserver::{Cluster, Object, Server};
use crate::hands::SHOP;
use crate::judge::{Judge, condition, is_as_wished, is_family, is_wanted, wants};
use crate::made;
use crate::outside::Outside;
use crate::replica::{HOME, Surrounded};

impl Surrounded {
    /// A world with two namespaces, whose judge can look records up.
    pub(crate) fn new(seed: u64, began: Instant, cluster: Cluster, outside: Outside, judge: Arc<Judge>) -> Self {
        cluster.with(|server, now| {
            for name in [HOME, SHOP] {
                server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
            }
        });
        let looked_up = cluster.clone();
        judge.look_up(Box::new(move |namespace, address| {
            looked_up.with(|server, _| record(server, namespace, address))
        }));
        Self { seed, began, cluster, outside: Arc::new(outside), judge }
    }
}

/// How often what was written since a version, but for leases.
pub(crate) fn writes_since(around: &Surrounded, version: u64) -> BTreeMap<String, usize> {
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    around.cluster.with(|server, _| {
        for change in server.changes(version).filter(|change| &*change.what.1 != "leases") {
            *writes.entry(change.what.1.to_string()).or_default() += 1;
        }
    });
    writes
}

/// What is not yet as it is wished.
pub(crate) fn missing(around: &Surrounded) -> Vec<String> {
    let mut missing = Vec::new();
    let (resources, data_sources, records, made) = around.cluster.with(|server, _| {
        let of_kind = |plural| -> Vec<Value> {
            server.objects("purlin.dev", plural).map(|object| object.value.clone()).collect()
        };
        // No program of a provider runs here, so Providers and their settings are never tried.
        (of_kind("resources"), of_kind("datasources"), all_records(server), made::all(server))
    });
    let outside = around.outside.world.objects().into_iter().map(|(id, (address, _))| (id, address.to_string()));
    let inside = made.iter().filter(|object| made::is_object(&object.value));
    let inside = inside.map(|object| (object.uid().to_owned(), made::address(&object.value).unwrap_or_default()));
    let objects: Vec<(String, String)> = outside.chain(inside).collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for record in &records {
        let recorded = record.current.iter().chain(record.deposed.values());
        known.extend(recorded.filter_map(|object| object.id().map(str::to_owned)));
        let place = (&*record.namespace, &*record.address.name);
        let resource = resources.iter().find(|one| (text(one, "namespace"), text(one, "name")) == place).is_some();
        if record.intent.is_some() {
            missing.push(format!("{} has an open intent", record.address));
        }
        if !resource {
            // Its finalizers were taken off by force: it is reported, and left alone.
            continue;
        }
        if !record.deposed.is_empty() {
            missing.push(format!("{} has deposed objects", record.address));
        }
    }
    // What a create that was cut has made is looked for by its open intent.
    let intended: BTreeSet<String> =
        records.iter().filter(|record| record.intent.is_some()).map(|record| record.address.to_string()).collect();
    for (id, address) in &objects {
        if !known.contains(id) && !intended.contains(address) && !around.judge.is_given_up(id) {
            missing.push(format!("{id} of {address} is in no record"));
        }
    }
    for resource in &resources {
        missing.extend(unfulfilled(around, resource, &records, &made));
    }
    missing.extend(data_sources.iter().flat_map(unready));
    missing
}

/// What the status of a Resource, or of what is read or configured, does not say yet.
fn unready(object: &Value) -> Vec<String> {
    let (name, status) = (text(object, "name"), &object["status"]);
    let mut missing = Vec::new();
    let ready = condition(status, "Ready");
    if ready.is_none_or(|(status, _)| status != "True") {
        missing.push(format!("{name} is not Ready: {ready:?} {}", message(status)));
    }
    if status["observedGeneration"] != object["metadata"]["generation"] {
        missing.push(format!("the status of {name} is about another generation"));
    }
    missing
}

/// Whether the object of this id is as a Resource asks, and what it is; `None` when there is none.
fn found(around: &Surrounded, resource: &Value, made: &[Arc<Object>], id: &str) -> Option<(bool, String)> {
    let spec = &resource["spec"];
    if made::is_in_cluster(resource) {
        let object = &made.iter().find(|object| object.uid() == id)?.value;
        return Some((made::is_as_wished(object, spec), made::shown(object, Some(resource))));
    }
    let value = around.outside.world.object(id)?;
    Some((is_as_wished(&value, spec), value.to_public_json().to_string()))
}

fn unfulfilled(around: &Surrounded, resource: &Value, records: &[Record], made: &[Arc<Object>]) -> Vec<String> {
    let name = text(resource, "name");
    if !resource["metadata"]["deletionTimestamp"].is_null() {
        return vec![format!("{name} is still being deleted")];
    }
    let mut missing = unready(resource);
    let own = records.iter().filter(|record| &*record.address.name == name);
    let mut there: BTreeSet<String> = BTreeSet::new();
    for record in own {
        let Some(current) = &record.current else { continue };
        let id = current.id().unwrap_or_default();
        let Some((is_as_wished, value)) = found(around, resource, made, id) else {
            missing.push(format!("{} is recorded as {id}, which does not exist", record.address));
            continue;
        };
        if !wants(resource, &record.address.key) {
            missing.push(format!("{} exists and is not wanted", record.address));
        } else if !is_as_wished {
            missing.push(format!("{} is {value}", record.address));
        }
        there.insert(record.address.to_string());
    }
    let count = match (is_wanted(resource), is_family(resource)) {
        (false, _) => 0,
        (true, true) => match resource["spec"]["forEach"].as_array() {
            Some(keys) => keys.len() as u64,
            None => resource["spec"]["count"].as_u64().unwrap_or(0),
        },
        (true, false) => 1,
    };
    if there.len() as u64 != count {
        missing.push(format!("{name} has {} of {count} objects", there.len()));
    }
    missing
}

pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

fn message(status: &Value) -> String {
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| all.iter().find(|one| one["type"] == name).map(|one| one["message"].to_string());
    of("Synced").unwrap_or_default()
}

pub(crate) fn parse(secret: &Value) -> Option<Record> {
    let secret = serde_json::from_value(secret.clone()).ok()?;
    match decode(&secret, &mut Strings::default()).ok()? {
        Decoded::Record(stored) => Some(stored.record.as_ref().clone()),
        Decoded::Parted(_) | Decoded::Family(_) => None,
    }
}

/// The index of a family, if the Secret is one that can be read.
pub(crate) fn family(secret: &Value) -> Option<Family> {
    let secret = serde_json::from_value(secret.clone()).ok()?;
    match decode(&secret, &mut Strings::default()).ok()? {
        Decoded::Family(family) => Some(family),
        Decoded::Record(_) | Decoded::Parted(_) => None,
    }
}

pub(crate) fn record(server: &Server, namespace: &str, address: &Address) -> Option<Record> {
    parse(&server.object("", "secrets", HOME, &record_name(namespace, address))?.value)
}

pub(crate) fn all_records(server: &Server) -> Vec<Record> {
    server.objects("", "secrets").filter(|secret| secret.namespace() == HOME).filter_map(|s| parse(&s.value)).collect()
}
