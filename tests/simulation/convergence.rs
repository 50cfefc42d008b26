//! Finds everything that is not up to date yet, by comparing the API server, the records and the objects of the
//! service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use purlin::model::{Address, Record};
use purlin::store::Interner;
use purlin::store::secrets::{Family, SecretContent, decode, record_name};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::apiserver::{Cluster, Object, Server};
use crate::approver::unfinished;
use crate::cluster_objects;
use crate::judge::{Judge, condition, has_instance, is_desired, is_family, matches_spec};
use crate::kubectl::SHOP;
use crate::outside::Outside;
use crate::replica::{Environment, HOME};

impl Environment {
    /// Creates the two namespaces, and lets the judge look up records.
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

/// The number of writes since a version, by plural. Leases are not counted.
pub(crate) fn writes_since(env: &Environment, version: u64) -> BTreeMap<String, usize> {
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    env.cluster.with(|server, _| {
        for change in server.changes(version).filter(|change| &*change.what.1 != "leases") {
            *writes.entry(change.what.1.to_string()).or_default() += 1;
        }
    });
    writes
}

/// Returns a line for everything that is not up to date yet.
pub(crate) fn missing(env: &Environment) -> Vec<String> {
    let mut missing = Vec::new();
    let (resources, data_sources, records, in_cluster) = env.cluster.with(|server, _| {
        let of_kind = |plural| -> Vec<Value> {
            server.objects("purlin.dev", plural).map(|object| object.value.clone()).collect()
        };
        // No provider process runs here, so Providers and ProviderConfigs never become ready.
        (of_kind("resources"), of_kind("datasources"), all_records(server), cluster_objects::all(server))
    });
    let outside = env.outside.world.objects().into_iter().map(|(id, (address, _))| (id, address.to_string()));
    let inside = in_cluster.iter().filter(|object| cluster_objects::is_object(&object.value));
    let inside =
        inside.map(|object| (object.uid().to_owned(), cluster_objects::address(&object.value).unwrap_or_default()));
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
            // Its finalizers were removed by force: Purlin reports it and leaves the object alone.
            continue;
        }
        if !record.deposed.is_empty() {
            missing.push(format!("{} has deposed objects", record.address));
        }
    }
    // Purlin looks for the object of an interrupted create while the record has an intent.
    let intended: BTreeSet<String> =
        records.iter().filter(|record| record.intent.is_some()).map(|record| record.address.to_string()).collect();
    for (id, address) in &objects {
        if !known.contains(id) && !intended.contains(address) && !env.judge.is_given_up(id) {
            missing.push(format!("{id} of {address} is in no record"));
        }
    }
    for resource in &resources {
        missing.extend(unfulfilled(env, resource, &records, &in_cluster));
    }
    missing.extend(data_sources.iter().flat_map(unready));
    missing.extend(env.cluster.with(|server, _| unfinished(server)));
    missing
}

/// Returns a line for everything that the status of a Resource or DataSource does not report yet.
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

/// Returns whether the object with this id matches its Resource, and its value. `None` if it does not exist.
fn found(env: &Environment, resource: &Value, in_cluster: &[Arc<Object>], id: &str) -> Option<(bool, String)> {
    let spec = &resource["spec"];
    if cluster_objects::is_in_cluster(resource) {
        let object = &in_cluster.iter().find(|object| object.uid() == id)?.value;
        return Some((cluster_objects::matches_spec(object, spec), cluster_objects::shown(object, Some(resource))));
    }
    let value = env.outside.world.object(id)?;
    Some((matches_spec(&value, spec), value.to_public_json().to_string()))
}

fn unfulfilled(env: &Environment, resource: &Value, records: &[Record], in_cluster: &[Arc<Object>]) -> Vec<String> {
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
        let Some((matches, value)) = found(env, resource, in_cluster, id) else {
            missing.push(format!("{} is recorded as {id}, which does not exist", record.address));
            continue;
        };
        if !has_instance(resource, &record.address.key) {
            missing.push(format!("{} exists and is not desired", record.address));
        } else if !matches {
            missing.push(format!("{} is {value}", record.address));
        }
        there.insert(record.address.to_string());
    }
    let count = match (is_desired(resource), is_family(resource)) {
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

fn content(secret: &Value) -> Option<SecretContent> {
    let secret = serde_json::from_value(secret.clone()).ok()?;
    decode(&secret, &mut Interner::default()).ok()
}

pub(crate) fn parse(secret: &Value) -> Option<Record> {
    match content(secret)? {
        SecretContent::Record(stored) => Some(stored.record.as_ref().clone()),
        SecretContent::Split(_) | SecretContent::Family(_) => None,
    }
}

/// The index of a family. `None` if the Secret is no index or cannot be read.
pub(crate) fn family(secret: &Value) -> Option<Family> {
    match content(secret)? {
        SecretContent::Family(family) => Some(family),
        SecretContent::Record(_) | SecretContent::Split(_) => None,
    }
}

pub(crate) fn record(server: &Server, namespace: &str, address: &Address) -> Option<Record> {
    parse(&server.object("", "secrets", HOME, &record_name(namespace, address))?.value)
}

pub(crate) fn all_records(server: &Server) -> Vec<Record> {
    server.objects("", "secrets").filter(|secret| secret.namespace() == HOME).filter_map(|s| parse(&s.value)).collect()
}
