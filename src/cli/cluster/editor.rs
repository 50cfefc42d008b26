//! Edits the records of a cluster, and the marks of their Resources with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Api;

use super::{explained, refused};
use crate::api::{self, Resource};
use crate::cli::failure::Failure;
use crate::model::{Address, InstanceKey, Record, Stored};
use crate::store::secrets::{Patience, Secrets};
use crate::store::{ClusterJournal, ResourceMeta, ResourceView, Unreadable};

/// Edits records of a cluster.
pub struct ClusterEditor {
    pub(super) namespace: Arc<str>,
    pub(super) secrets: Secrets,
    pub(super) resources: Api<Resource>,
    pub(super) recorded: BTreeSet<Address>,
    /// What the indexes of families name.
    pub(super) indexed: BTreeSet<Address>,
}

/// What was read at the beginning of the command.
struct Read {
    recorded: BTreeSet<Address>,
    indexed: BTreeSet<Address>,
}

impl ResourceView for Read {
    fn metadata(&self, _: &str, _: &str) -> Option<ResourceMeta> {
        None
    }

    fn recorded(&self, _: &str, name: &str) -> Vec<InstanceKey> {
        keys(&self.recorded, name)
    }

    fn indexed(&self, _: &str, name: &str) -> Vec<InstanceKey> {
        keys(&self.indexed, name)
    }
}

fn keys(all: &BTreeSet<Address>, name: &str) -> Vec<InstanceKey> {
    all.iter().filter(|address| *address.name == *name).map(|address| address.key.clone()).collect()
}

impl ClusterEditor {
    /// Writes what has become of a record.
    pub async fn write(&self, record: &Record, stored: &Stored) -> anyhow::Result<()> {
        let written = self.secrets.replace(record, stored, Patience::SHORT).await;
        written.map(drop).map_err(|failure| refused(&failure))
    }

    /// Removes a record. Before it goes its Resource loses the finalizer: a Resource without marks is created again, one
    /// with marks and without a record would be stalled. What the other instances of a family have stays.
    pub async fn remove(&self, stored: &Stored) -> anyhow::Result<()> {
        let address = &stored.record.address;
        let resource = self.resources.get_opt(&address.name).await.map_err(explained)?;
        self.release(address, resource.as_ref()).await?;
        let removed = self.secrets.delete(&self.namespace, address, stored.version, Patience::SHORT).await;
        removed.map_err(|failure| refused(&failure))
    }

    /// Says in a record where its object belongs from now on. One write, so that there is one who moves: the controller.
    /// It would take a move back that nobody asks for, and make the object anew for a Resource that still wants it.
    pub async fn relocate(&self, stored: &Stored, to: &Address) -> anyhow::Result<()> {
        let record = &stored.record;
        let from = &record.address;
        let resources = &self.resources;
        let (old, new) = (resources.get_opt(&from.name).await, resources.get_opt(&to.name).await);
        let (old, new) = (old.map_err(explained)?, new.map_err(explained)?);
        let deleting = |resource: &Resource| resource.metadata.deletion_timestamp.is_some();
        let Some(new) = new.filter(|new| !deleting(new)) else {
            let hint = "apply its manifest first, with `spec.suspend: true`, so that no object is made for it";
            return Err(Failure::hinted(format!("there is no Resource `{}`", to.name), hint));
        };
        if *new.spec.type_name != *record.type_name {
            let what =
                format!("`{from}` is of type `{}`, and `{to}` of type `{}`", record.type_name, new.spec.type_name);
            return Err(Failure::hinted(what, "an object keeps its type"));
        }
        let suspended = |resource: &Resource| resource.spec.suspend || resource.annotation(api::PAUSED) == "true";
        if old.is_some_and(|old| from.name != to.name && !deleting(&old) && !suspended(&old)) {
            let hint =
                format!("suspend it with `purlin suspend {}`, or delete it: it would make another object", from.name);
            return Err(Failure::hinted(format!("the Resource `{}` still wants its object", from.name), hint));
        }
        let leaving = Record { moving_to: Some(Box::new(to.clone())), ..Record::clone(record) };
        self.write(&leaving, stored).await
    }

    /// Removes a record that cannot be read, or the index of a family: the records of its instances stay then, and so do
    /// the marks.
    pub async fn remove_unreadable(&self, found: &Unreadable) -> anyhow::Result<()> {
        if !self.secrets.is_index(found, Patience::SHORT).await.map_err(|failure| refused(&failure))? {
            let resource = self.resources.get_opt(&found.address.name).await.map_err(explained)?;
            self.release(&found.address, resource.as_ref()).await?;
        }
        let removed = self.secrets.delete_unreadable(found, Patience::SHORT).await;
        removed.map_err(|failure| refused(&failure))
    }

    /// Whether the index of a family has an address that nothing is recorded of.
    pub fn misses(&self, address: &Address) -> bool {
        self.indexed.contains(address) && !self.recorded.contains(address)
    }

    /// Declares that there is no object behind a record that is missing: the Resource, or the index of its family, no
    /// longer says that there is one.
    pub async fn forget_missing(&self, address: &Address) -> anyhow::Result<()> {
        let resource = self.resources.get_opt(&address.name).await.map_err(explained)?;
        let family = self.secrets.get_family(&self.namespace, &address.name, Patience::SHORT).await;
        let family = family.map_err(|failure| refused(&failure))?;
        let is_indexed = family.is_some_and(|family| family.instances.contains(address));
        let is_marked = resource.as_ref().is_some_and(|resource| !resource.annotation(api::RECORD).is_empty());
        let has_others = self.recorded.iter().any(|other| other.name == address.name);
        if !is_indexed && (!is_marked || has_others) {
            let what = format!("nothing is recorded of `{address}`");
            return Err(Failure::hinted(what, "`purlin state list` lists what is"));
        }
        self.release(address, resource.as_ref()).await
    }

    /// Takes an instance out of the index of its family, and the marks off the Resource with the last one.
    async fn release(&self, address: &Address, of: Option<&Resource>) -> anyhow::Result<()> {
        let uid = Arc::from(of.and_then(|resource| resource.metadata.uid.as_deref()).unwrap_or_default());
        let view = Read { recorded: self.recorded.clone(), indexed: self.indexed.clone() };
        let journal = ClusterJournal::new(self.secrets.clone(), Arc::new(view));
        journal.release(&self.namespace, address, &uid).await.map_err(|failure| refused(&failure))
    }
}
