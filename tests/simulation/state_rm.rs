//! A user who runs `purlin state rm` for families whose index was lost, or restored from a backup, as their status says.

use std::sync::Arc;

use apiserver::{Cluster, Server};
use purlin::model::{Address, InstanceKey, Name, Namespace, Stem, Uid};
use purlin::process::Shutdown;
use purlin::store::secrets::{Secrets, family_name};
use purlin::store::{ClusterJournal, ResourceMeta, ResourceView};
use serde_json::Value;

use crate::convergence::{all_records, family, record, text};
use crate::judge::{condition, is_desired, is_family};
use crate::random::SeededRandom;
use crate::replica::{Environment, HOME};

/// The name of a user's connection, which no fault of a replica strikes.
pub(crate) const USER: &str = "user";

/// Confirms the indexes that were lost and replaced, and those that the administrator has restored, while an instance
/// waits for it. The records must be restored before.
pub(crate) async fn complete_indexes(env: &Environment) {
    let waiting = env.cluster.with(|server, _| {
        let resources: Vec<Value> = server.objects("purlin.dev", "resources").map(|one| one.value.clone()).collect();
        resources.iter().filter_map(|resource| waiting_instance(env, server, resource)).collect::<Vec<_>>()
    });
    for (namespace, uid, address) in waiting {
        env.judge.note(&format!("user runs `purlin state rm {address}`"));
        let client = kube::Client::new(env.cluster.connection(USER), "default");
        let secrets = Secrets::new(client, HOME, Arc::new(SeededRandom::new(env.seed, "user")), Shutdown::default());
        let journal = ClusterJournal::new(secrets, Arc::new(ServerView(env.cluster.clone())));
        if let Err(error) = journal.release_missing(&namespace, &address, &uid).await {
            env.judge.object(&format!("`purlin state rm {address}` failed: {error}"));
        }
    }
}

/// Namespace and UID of a family, and what its user names in the command: the Resource if its index and all its records are
/// lost, the first one that its index lists if it is being deleted and has no records, as its status says, and otherwise its
/// first desired instance without a record: any one if the index was replaced,
/// and one that it lists, and that does not exist, if it was restored. Purlin removes an index before its last record, so one
/// that is restored in between lists a record that is removed on purpose.
fn waiting_instance(env: &Environment, server: &Server, resource: &Value) -> Option<(Namespace, Uid, Address)> {
    let (namespace, name) = (text(resource, "namespace"), Name::from(text(resource, "name")));
    let secret = family_name(namespace, &name);
    let found = |address: Address| Some((namespace.into(), text(resource, "uid").into(), address));
    if !is_family(resource) {
        return None;
    }
    let index = server.object("", "secrets", HOME, &secret).and_then(|index| family(&index.value));
    if index.is_none() || !is_desired(resource) {
        let is_lost = condition(&resource["status"], "Ready").is_some_and(|(_, reason)| reason == "RecordMissing");
        let is_recorded =
            all_records(server).iter().any(|record| (&*record.namespace, record.address.name()) == (namespace, &name));
        let listed = index.and_then(|index| index.instances.into_iter().next());
        return found(listed.unwrap_or_else(|| Address::single(name.clone()))).filter(|_| is_lost && !is_recorded);
    }
    let index = index?;
    let world = &env.outside.world;
    let exists = |address: &str| {
        let is_here = |id: &str| world.namespace_of(id).as_deref() == Some(namespace);
        world.objects().into_iter().any(|(id, (of, _))| *of == *address && is_here(&id))
    };
    let is_restored = env.judge.is_restored(&secret);
    let waits = |address: &Address| {
        let is_stale = || is_restored && index.instances.contains(address) && !exists(&address.to_string());
        record(server, namespace, address).is_none() && (index.rebuilt || is_stale())
    };
    let at = |key| Stem::from(name.clone()).instance(key);
    let spec = &resource["spec"];
    let keys = spec["forEach"].as_array().into_iter().flatten();
    let keys = keys.filter_map(Value::as_str).map(|key| InstanceKey::Key(key.into()));
    let numbers = (0..spec["count"].as_u64().unwrap_or(0)).map(InstanceKey::Index);
    let address = keys.chain(numbers).map(at).find(waits)?;
    found(address)
}

/// The state of the server, as the command reads it.
struct ServerView(Cluster);

impl ResourceView for ServerView {
    fn metadata(&self, _: &str, _: &Name) -> Option<ResourceMeta> {
        None
    }

    fn recorded(&self, namespace: &str, name: &Name) -> Vec<Address> {
        let records = self.0.with(|server, _| all_records(server));
        let own = records.into_iter().filter(|one| (&*one.namespace, one.address.name()) == (namespace, name));
        own.map(|record| record.address).collect()
    }

    fn indexed(&self, namespace: &str, name: &Name) -> Vec<Address> {
        let index =
            self.0.with(|server, _| family(&server.object("", "secrets", HOME, &family_name(namespace, name))?.value));
        index.into_iter().flat_map(|index| index.instances).collect()
    }
}
