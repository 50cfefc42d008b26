//! Finds everything that is not up to date yet, by comparing the API server, the records and the objects of the
//! service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use apiserver::{Change, Cluster, Object, Server};
use purlin::execute::Limits;
use purlin::model::{Address, Record};
use purlin::store::Interner;
use purlin::store::secrets::{Family, SecretContent, decode, record_name};
use serde_json::Value;
use testkit::scripted::Recovery;
use tokio::time::Instant;

use crate::approver::unfinished;
use crate::cluster_objects;
use crate::judge::{Judge, condition, has_instance, ids_in, is_desired, is_family, matches_spec};
use crate::kubectl::create_namespace;
use crate::outside::Outside;
use crate::replica::{Environment, HOME};

impl Environment {
    /// Creates the namespace of the controller and those of users, and lets the judge look up records.
    pub(crate) fn new(
        (seed, began): (u64, Instant),
        (namespaces, shards): (&[&str], u16),
        cluster: Cluster,
        outside: Outside,
        judge: Arc<Judge>,
    ) -> Self {
        cluster.with(|server, now| {
            [HOME].iter().chain(namespaces).for_each(|name| create_namespace(server, now, name));
        });
        let looked_up = cluster.clone();
        judge.look_up(Box::new(move |namespace, address| {
            looked_up.with(|server, _| record(server, namespace, address))
        }));
        let shards = Arc::new(AtomicU16::new(shards));
        Self { seed, began, cluster, outside: Arc::new(outside), judge, shards, limits: Limits::default() }
    }
}

/// The number of writes since a version, by plural. Of the Leases, only those of shards are counted.
pub(crate) fn writes_since(env: &Environment, version: u64) -> BTreeMap<String, usize> {
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    env.cluster.with(|server, _| {
        let counts =
            |change: &&Arc<Change>| &*change.what.1 != "leases" || change.object.name().starts_with("purlin-shard-");
        for change in server.changes(version).filter(counts) {
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
    let world = &env.outside.world;
    let outside = world.objects().into_iter().map(|(id, (address, _))| {
        let namespace = world.namespace_of(&id).unwrap_or_default();
        (id, format!("{namespace}/{address}"))
    });
    let inside = in_cluster.iter().filter(|object| cluster_objects::is_object(&object.value));
    let inside = inside.map(|object| {
        let address = cluster_objects::address(&object.value).unwrap_or_default();
        (object.uid().to_owned(), format!("{}/{address}", object.namespace()))
    });
    let objects: Vec<(String, String)> = outside.chain(inside).collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for record in &records {
        known.extend(ids_in(record));
        let resource = resources.iter().any(|one| is_of(record, one));
        // After a hand-over, only a user knows whether a call was sent for a Resource that is deleted already.
        let waits_for_user = !resource && !record.has_objects() && env.outside.recovery == Recovery::Unknown;
        if record.intent.is_some() && !waits_for_user {
            missing.push(format!("{} has an open intent", place(record)));
        }
        if !resource {
            // Its finalizers were removed by force: Purlin reports it and leaves the object alone.
            continue;
        }
        if !record.deposed.is_empty() {
            missing.push(format!("{} has deposed objects", place(record)));
        }
    }
    // Purlin looks for the object of an interrupted create while the record has an intent.
    let intended: BTreeSet<String> = records.iter().filter(|record| record.intent.is_some()).map(place).collect();
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

/// Namespace and address of a record, as a string.
fn place(record: &Record) -> String {
    format!("{}/{}", record.namespace, record.address)
}

fn is_of(record: &Record, resource: &Value) -> bool {
    (&*record.namespace, &**record.address.name()) == (text(resource, "namespace"), text(resource, "name"))
}

/// Returns a line for everything that the status of a Resource or DataSource does not report yet.
fn unready(object: &Value) -> Vec<String> {
    let (name, status) = (format!("{}/{}", text(object, "namespace"), text(object, "name")), &object["status"]);
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
    let name = format!("{}/{}", text(resource, "namespace"), text(resource, "name"));
    if !resource["metadata"]["deletionTimestamp"].is_null() {
        return vec![format!("{name} is still being deleted")];
    }
    let mut missing = unready(resource);
    let own = records.iter().filter(|record| is_of(record, resource));
    let mut there: BTreeSet<String> = BTreeSet::new();
    for record in own {
        let Some(current) = &record.current else { continue };
        let id = current.id().unwrap_or_default();
        let Some((matches, value)) = found(env, resource, in_cluster, id) else {
            missing.push(format!("{} is recorded as {id}, which does not exist", place(record)));
            continue;
        };
        if !has_instance(resource, &record.address.key) {
            missing.push(format!("{} exists and is not desired", place(record)));
        } else if !matches {
            missing.push(format!("{} is {value}", place(record)));
        }
        there.insert(place(record));
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
