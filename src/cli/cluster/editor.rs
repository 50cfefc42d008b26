//! Edits the records of a cluster, together with the finalizers and annotations of their Resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1;
use kube::Api;

use super::{record_error, with_hint};
use crate::cli::failure::Failure;
use api::Resource;
use model::{Address, InstanceKey, Name, Namespace, Reason, Record, Stored, Uid};
use runtime::store::secrets::{Family, RetryPolicy, Secrets};
use runtime::store::{ClusterJournal, ResourceMeta, ResourceView, UnreadableRecord};

pub struct ClusterEditor {
    pub(crate) namespace: Namespace,
    pub(crate) secrets: Secrets,
    pub(crate) resources: Api<Resource>,
    pub(crate) recorded: BTreeSet<Address>,
    /// The instances whose record cannot be read.
    pub(crate) unreadable: BTreeSet<Address>,
    /// The instances in the indexes of families.
    pub(crate) indexed: BTreeSet<Address>,
}

/// What the controller would know: the records and indexes that were read at the start of the command, and a Resource.
struct RecordSnapshot {
    /// The addresses with a record, also with one that cannot be read.
    recorded: BTreeSet<Address>,
    indexed: BTreeSet<Address>,
    /// Without it, an index that was lost looks like one that never was.
    resource: Option<(Name, ResourceMeta)>,
}

impl ResourceView for RecordSnapshot {
    fn metadata(&self, _: &str, name: &Name) -> Option<ResourceMeta> {
        self.resource.as_ref().filter(|(known, _)| known == name).map(|(_, meta)| meta.clone())
    }

    fn recorded(&self, _: &str, name: &Name) -> Vec<Address> {
        of_name(&self.recorded, name)
    }

    fn indexed(&self, _: &str, name: &Name) -> Vec<Address> {
        of_name(&self.indexed, name)
    }
}

fn of_name(all: &BTreeSet<Address>, name: &Name) -> Vec<Address> {
    all.iter().filter(|address| address.name() == name).cloned().collect()
}

impl ClusterEditor {
    pub async fn write(&self, record: &Record, stored: &Stored) -> anyhow::Result<()> {
        let written = self.secrets.replace(record, stored, RetryPolicy::SHORT).await;
        written.map(drop).map_err(|failure| record_error(&failure))
    }

    /// Returns an error if the namespace does not exist. A user who cannot read it may still have permissions in it.
    pub async fn require_namespace(&self) -> anyhow::Result<()> {
        let namespaces = Api::<v1::Namespace>::all(self.resources.clone().into_client());
        match namespaces.get_opt(&self.namespace).await {
            Ok(None) => Err(Failure::hinted(
                format!("the namespace `{}` does not exist", self.namespace),
                format!("create it with `kubectl create namespace {}`", self.namespace),
            )),
            _ => Ok(()),
        }
    }

    /// Returns an error if there is a Resource of this name that is not suspended: its controller may be creating an
    /// object for it.
    pub async fn require_inactive(&self, name: &str) -> anyhow::Result<()> {
        match self.resources.get_opt(name).await.map_err(with_hint)? {
            Some(resource) if !is_suspended(&resource) => Err(Failure::hinted(
                format!("the Resource `{name}` exists already, and the controller would create an object for it"),
                format!("suspend it with `purlin suspend {name}`, or delete it, until its record is moved"),
            )),
            _ => Ok(()),
        }
    }

    /// Writes a new record. An equal record that exists already is no error.
    pub async fn create(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.secrets.put(record, None, RetryPolicy::SHORT).await;
        written.map(drop).map_err(|failure| record_error(&failure))
    }

    /// Writes the index of a new family. An index that lists the same instances is no error.
    pub async fn create_index(&self, name: Name, instances: BTreeSet<Address>) -> anyhow::Result<()> {
        let family = self.secrets.get_family(&self.namespace, &name, RetryPolicy::SHORT).await;
        let family = family.map_err(|failure| record_error(&failure))?;
        if family.is_some_and(|family| family.instances == instances) {
            return Ok(());
        }
        let (namespace, uid) = (self.namespace.clone(), Uid::default());
        let family = Family { namespace, name, uid, instances, rebuilt: false, version: None };
        let written = self.secrets.put_family(&family, None, RetryPolicy::SHORT).await;
        written.map(drop).map_err(|failure| record_error(&failure))
    }

    /// Removes a record, and then the finalizer and annotation of its Resource. The controller stalls a Resource that has
    /// them but no record, and gives them back to one that has a record but lacks them. The records of other instances of a
    /// family are kept.
    pub async fn remove(&self, stored: &Stored) -> anyhow::Result<()> {
        let address = &stored.record.address;
        let resource = self.resources.get_opt(address.name()).await.map_err(with_hint)?;
        let removed = self.secrets.delete(&self.namespace, address, stored.version, RetryPolicy::SHORT).await;
        removed.map_err(|failure| record_error(&failure))?;
        self.release(address, resource.as_ref()).await
    }

    /// Writes the new address into the record; the controller then moves it. The checks prevent that the controller
    /// reverts the move, or creates another object for a Resource that is still active at the old address.
    pub async fn move_record(&self, stored: &Stored, to: &Address) -> anyhow::Result<()> {
        let record = &stored.record;
        let from = &record.address;
        let resources = &self.resources;
        let (old, new) = (resources.get_opt(from.name()).await, resources.get_opt(to.name()).await);
        let (old, new) = (old.map_err(with_hint)?, new.map_err(with_hint)?);
        let Some(new) = new.filter(|new| new.metadata.deletion_timestamp.is_none()) else {
            let hint = "apply its manifest first, with `spec.suspend: true`, so that no object is created for it";
            return Err(Failure::hinted(format!("there is no Resource `{}`", to.name()), hint));
        };
        if *new.spec.type_name != *record.type_name {
            let what =
                format!("`{from}` has type `{}`, but `{to}` has type `{}`", record.type_name, new.spec.type_name);
            return Err(Failure::hinted(what, "move the object to an address of the same type"));
        }
        let old = old.filter(|old| old.metadata.deletion_timestamp.is_none());
        if old.is_some_and(|old| from.name() != to.name() && !is_suspended(&old)) {
            let hint = format!(
                "suspend it with `purlin suspend {}`, or delete it; otherwise it creates another object",
                from.name()
            );
            return Err(Failure::hinted(format!("the Resource `{}` is still active", from.name()), hint));
        }
        let moving = Record { moving_to: Some(Box::new(to.clone())), ..Record::clone(record) };
        self.write(&moving, stored).await
    }

    /// Removes an unreadable record, or an unreadable index of a family. For an index, the records of the instances and
    /// the finalizer of the Resource are kept.
    pub async fn remove_unreadable(&self, found: &UnreadableRecord) -> anyhow::Result<()> {
        if !self.secrets.is_index(found, RetryPolicy::SHORT).await.map_err(|failure| record_error(&failure))? {
            let resource = self.resources.get_opt(found.address.name()).await.map_err(with_hint)?;
            self.release(&found.address, resource.as_ref()).await?;
        }
        let removed = self.secrets.delete_unreadable(found, RetryPolicy::SHORT).await;
        removed.map_err(|failure| record_error(&failure))
    }

    /// Whether a condition of the Resource has this reason.
    pub async fn has_condition(&self, name: &str, reason: Reason) -> anyhow::Result<bool> {
        let resource = self.resources.get_opt(name).await.map_err(with_hint)?;
        let status = resource.and_then(|resource| resource.status).unwrap_or_default();
        Ok(status.conditions.iter().any(|condition| condition.reason == reason.as_str()))
    }

    /// Whether the index of a family contains an address without a record.
    pub fn is_missing(&self, address: &Address) -> bool {
        self.indexed.contains(address) && !self.recorded.contains(address)
    }

    /// The missing records that an address stands for, so that it can be forgotten: a name stands for all those that the
    /// index of its family lists, and for all those of an index that was lost, which is the name itself.
    pub async fn missing(&self, address: &Address) -> anyhow::Result<Vec<Address>> {
        let resource = self.resources.get_opt(address.name()).await.map_err(with_hint)?;
        let family = self.secrets.get_family(&self.namespace, address.name(), RetryPolicy::SHORT).await;
        let family = family.map_err(|failure| record_error(&failure))?;
        let instances = family.iter().flat_map(|family| &family.instances);
        let unrecorded: Vec<&Address> = instances.filter(|instance| !self.recorded.contains(*instance)).collect();
        if unrecorded.contains(&address) {
            return Ok(vec![address.clone()]);
        }
        if address.key == InstanceKey::None && !unrecorded.is_empty() {
            return Ok(unrecorded.into_iter().cloned().collect());
        }
        let is_marked = resource.is_some_and(|resource| !resource.annotation(api::RECORD).is_empty());
        let recorded: Vec<&Address> =
            self.recorded.iter().filter(|recorded| recorded.name() == address.name()).collect();
        let had_index = recorded.iter().any(|instance| instance.key != InstanceKey::None);
        let is_index_lost = family.map_or(had_index, |family| family.rebuilt);
        let is_missing = is_marked && (recorded.is_empty() || is_index_lost);
        Ok(is_missing.then(|| address.clone()).into_iter().collect())
    }

    /// Removes a missing record from the annotation of its Resource, or from the index of its family, so that it counts
    /// as never created. An index that was lost counts as complete afterwards.
    pub async fn forget_missing(&self, missing: &Address) -> anyhow::Result<()> {
        let resource = self.resources.get_opt(missing.name()).await.map_err(with_hint)?;
        let (journal, uid) = self.journal(missing, resource.as_ref());
        let released = journal.release_missing(&self.namespace, missing, &uid).await;
        released.map_err(|failure| record_error(&failure))
    }

    /// Removes an instance from the index of its family. For the last instance, also removes the finalizer and
    /// annotation.
    async fn release(&self, address: &Address, of: Option<&Resource>) -> anyhow::Result<()> {
        let (journal, uid) = self.journal(address, of);
        journal.release(&self.namespace, address, &uid).await.map_err(|failure| record_error(&failure))
    }

    /// A journal for one write about an address, and the UID of its Resource.
    fn journal(&self, address: &Address, of: Option<&Resource>) -> (ClusterJournal, Uid) {
        let uid = of.and_then(|resource| resource.metadata.uid.as_deref()).unwrap_or_default().into();
        let meta = of.map(|resource| ResourceMeta::of(&resource.metadata, |text| text.into()));
        let view = RecordSnapshot {
            recorded: self.recorded.union(&self.unreadable).cloned().collect(),
            indexed: self.indexed.clone(),
            resource: meta.map(|meta| (address.name().clone(), meta)),
        };
        (ClusterJournal::new(self.secrets.clone(), Arc::new(view)), uid)
    }
}

fn is_suspended(resource: &Resource) -> bool {
    resource.spec.suspend
}

#[cfg(test)]
mod tests;
