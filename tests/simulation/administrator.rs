//! An administrator who deletes and damages records, applies the CRDs again, and deletes namespaces. Records are restored
//! from a backup.

use std::collections::{BTreeMap, BTreeSet};

use apiserver::{Cluster, Server};
use purlin::model::{Operation, Record};
use purlin::store::secrets::Family;
use serde_json::{Value, json};

use crate::convergence::{all_records, family, parse, record};
use crate::judge::{Judge, ids_in};
use crate::kubectl::create_namespace;
use crate::random::Seeded;
use crate::replica::HOME;

pub(crate) struct Administrator {
    cluster: Cluster,
    /// The namespaces of users.
    namespaces: Vec<&'static str>,
    /// Deleted and damaged Secrets, by name.
    backups: BTreeMap<String, Value>,
    count: u64,
}

impl Administrator {
    pub(crate) fn new(cluster: Cluster, namespaces: Vec<&'static str>) -> Self {
        Self { cluster, namespaces, backups: BTreeMap::new(), count: 0 }
    }

    /// Carries out one random act.
    pub(crate) fn act(&mut self, random: &mut Seeded, judge: &Judge) {
        match random.below(8) {
            0..=2 => self.spoil_record(random, judge),
            3 | 4 => self.restore(judge),
            5 | 6 => self.apply_definitions(judge),
            _ => self.delete_namespace(random, judge),
        }
    }

    /// Deletes one record, or damages it.
    fn spoil_record(&mut self, random: &mut Seeded, judge: &Judge) {
        let deletes = random.chance(500);
        let records: Vec<Value> = self.cluster.with(|server, _| {
            let secrets = server.objects("", "secrets").filter(|secret| secret.namespace() == HOME);
            secrets.filter(|secret| secret.name() != "purlin-approvals").map(|secret| secret.value.clone()).collect()
        });
        if records.is_empty() {
            return;
        }
        let secret = random.pick(&records);
        let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if parse(secret).is_some() || !self.backups.contains_key(&name) {
            // An earlier backup is of a record that Purlin has created again.
            if let Some(earlier) = self.backups.insert(name.clone(), secret.clone()) {
                give_up(judge, &earlier, secret);
            }
        }
        judge.spoiled(&name);
        let path = format!("/api/v1/namespaces/{HOME}/secrets/{name}");
        judge.note(&format!("administrator {} {name}", if deletes { "deletes" } else { "damages" }));
        self.cluster.with(|server, now| match deletes {
            true => drop(server.erase(now, &path)),
            false => {
                let data = secret["data"].as_object().into_iter().flatten();
                let data: serde_json::Map<_, _> = data.map(|(key, _)| (key.clone(), json!("AAAA"))).collect();
                server.modify(now, &path, &json!({ "data": data }));
            }
        });
    }

    /// Restores deleted and damaged Secrets. If Purlin has created a record again, gives up the objects that only the
    /// backup names. Restores indexes of families after the records, but not an index that names instances without
    /// records: Purlin would report these as lost until a user runs `purlin state rm`.
    pub(crate) fn restore(&mut self, judge: &Judge) {
        let mut backups: Vec<(String, Value)> = std::mem::take(&mut self.backups).into_iter().collect();
        backups.sort_by_key(|(_, backup)| family(backup).is_some());
        for (name, backup) in backups {
            if family(&backup).is_some_and(|family| !self.all_are_recorded(&family)) {
                judge.note(&format!("administrator does not restore {name}"));
                let path = format!("/api/v1/namespaces/{HOME}/secrets/{name}");
                self.cluster.with(|server, now| {
                    let found = server.object("", "secrets", HOME, &name);
                    if found.is_some_and(|secret| is_damaged(&secret.value)) {
                        server.erase(now, &path);
                    }
                });
                continue;
            }
            let path = format!("/api/v1/namespaces/{HOME}/secrets/{name}");
            self.cluster.with(|server, now| {
                let found = server.object("", "secrets", HOME, &name).map(|secret| secret.value.clone());
                match found {
                    None if is_recorded_elsewhere(server, judge, &backup) => {
                        judge.note(&format!("administrator does not restore {name}: its object was moved"));
                    }
                    None => {
                        judge.note(&format!("administrator restores {name}"));
                        let mut secret = backup.clone();
                        let metadata = &backup["metadata"];
                        secret["metadata"] = json!({
                            "namespace": HOME, "name": name,
                            "labels": metadata["labels"], "annotations": metadata["annotations"],
                        });
                        server.insert(now, secret);
                        judge.whole(&name);
                    }
                    Some(secret) if is_damaged(&secret) => {
                        judge.note(&format!("administrator restores the contents of {name}"));
                        server.modify(now, &path, &json!({ "data": backup["data"] }));
                        judge.whole(&name);
                    }
                    Some(secret) => give_up(judge, &backup, &secret),
                }
            });
        }
    }

    fn all_are_recorded(&self, family: &Family) -> bool {
        self.cluster.with(|server, _| {
            family.instances.iter().all(|address| record(server, &family.namespace, address).is_some())
        })
    }

    fn apply_definitions(&mut self, judge: &Judge) {
        judge.note("administrator applies the CRDs again");
        self.count += 1;
        let annotations = json!({ "metadata": { "annotations": { "example.com/applied": self.count.to_string() } } });
        self.cluster.with(|server, now| {
            for plural in ["resources", "datasources", "providers", "providerconfigs"] {
                let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.purlin.dev");
                server.modify(now, &path, &annotations);
            }
        });
    }

    fn delete_namespace(&self, random: &mut Seeded, judge: &Judge) {
        let namespace = *random.pick(&self.namespaces);
        judge.note(&format!("administrator deletes the namespace {namespace}"));
        self.cluster.with(|server, now| server.erase(now, &format!("/api/v1/namespaces/{namespace}")));
    }

    /// Runs the namespace controller, and creates the namespaces of the users again after they were deleted.
    pub(crate) fn tick(&self) {
        self.cluster.with(|server, now| {
            server.tick_namespaces(now, usize::MAX, |_| {});
            self.namespaces.iter().for_each(|name| create_namespace(server, now, name));
        });
    }
}

/// Whether another record has an object of the backup, or the one that its open create has made. Of a move, both records
/// are restored, so that it ends.
fn is_recorded_elsewhere(server: &Server, judge: &Judge, backup: &Value) -> bool {
    let stays = |record: &Record| record.moving_to.is_none();
    let Some(record) = parse(backup).filter(stays) else { return false };
    let created = if is_open_create(&record) { judge.last_created(&record) } else { None };
    let ids: BTreeSet<String> = ids_in(&record).into_iter().chain(created).collect();
    all_records(server).iter().any(|record| stays(record) && !ids_in(record).is_disjoint(&ids))
}

fn is_open_create(record: &Record) -> bool {
    record.intent.as_ref().is_some_and(|intent| intent.operation == Operation::Create)
}

fn is_damaged(secret: &Value) -> bool {
    secret["data"].as_object().is_some_and(|data| data.values().any(|value| value == "AAAA"))
}

/// Gives up the objects that only the backup of a record names. If a create was open in it, these include the objects
/// that no record ever named.
fn give_up(judge: &Judge, backup: &Value, present: &Value) {
    let (backup, present) = (parse(backup), parse(present));
    let present = present.as_ref().map(ids_in).unwrap_or_default();
    judge.give_up(backup.as_ref().map(ids_in).unwrap_or_default().difference(&present).cloned());
    if let Some(record) = backup.as_ref().filter(|record| is_open_create(record)) {
        judge.give_up(judge.ids_of(record).difference(&present).cloned());
    }
}
