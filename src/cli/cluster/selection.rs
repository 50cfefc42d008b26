//! The objects of a cluster that a command is about: by name, by label, or all, in one namespace or in all of them.

use std::collections::BTreeMap;

use futures::stream::{BoxStream, StreamExt as _};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::{Connection, as_resource, list_all, not_found, with_hint};
use crate::cli::failure::Failure;
use crate::cli::options::{Choice, Cluster};
use crate::cli::output::Console;
use api::{DataSource, Resource};
use model::Address;
use process::request_error;

/// A Resource, or a DataSource converted to one, as `(namespace, name)`. The name is that of addresses: `data.NAME`.
pub type Key = (String, String);

pub fn key(object: &Resource) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// The objects that were chosen, and a client for them.
pub struct Selection {
    client: Client,
    /// `None` for all namespaces.
    namespace: Option<String>,
    labels: Option<String>,
    pub objects: BTreeMap<Key, Resource>,
}

impl Selection {
    /// # Errors
    /// When a name does not exist, or nothing can be read.
    pub async fn read(target: &Cluster, choice: &Choice, console: Console) -> anyhow::Result<Self> {
        let connection = Connection::open(target).await?;
        connection.announce(target, choice.all_namespaces, console);
        let Connection { client, namespace, .. } = connection;
        let namespace = (!choice.all_namespaces).then_some(namespace);
        let mut chosen = Self { client, namespace, labels: choice.selector.clone(), objects: BTreeMap::new() };
        let mut resources = chosen.list().await?;
        chosen.require_namespace(resources.is_empty()).await?;
        for name in &choice.names {
            if !resources.iter().any(|resource| resource.name_any() == *name) {
                return Err(not_found(&Address::single(name.as_str())));
            }
        }
        resources.retain(|resource| choice.names.is_empty() || choice.names.contains(&resource.name_any()));
        chosen.objects = resources.into_iter().map(|resource| (key(&resource), resource)).collect();
        Ok(chosen)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    async fn list(&self) -> anyhow::Result<Vec<Resource>> {
        let params = self.labels.iter().fold(ListParams::default(), |params, labels| params.labels(labels));
        let mut resources = list_all(&self.api::<Resource>(), &params).await?;
        resources.extend(list_all(&self.api::<DataSource>(), &params).await?.iter().map(as_resource));
        Ok(resources)
    }

    /// An empty list can mean that the namespace does not exist: the API server does not say so.
    async fn require_namespace(&self, is_empty: bool) -> anyhow::Result<()> {
        match self.namespace.as_deref().filter(|_| is_empty) {
            Some(namespace) => super::require_namespace(&self.client, namespace).await,
            None => Ok(()),
        }
    }

    /// Patches one of the objects with the rights of the user.
    pub async fn patch(&self, object: &Resource, patch: serde_json::Value) -> anyhow::Result<()> {
        let params = PatchParams { field_manager: Some("purlin-cli".to_owned()), ..PatchParams::default() };
        let (namespace, name) = key(object);
        let address = Address::single(name);
        let (patch, name) = (Patch::Merge(patch), address.object_name());
        match address.is_data() {
            false => Api::<Resource>::namespaced(self.client.clone(), &namespace)
                .patch(name, &params, &patch)
                .await
                .map(drop),
            true => Api::<DataSource>::namespaced(self.client.clone(), &namespace)
                .patch(name, &params, &patch)
                .await
                .map(drop),
        }
        .map_err(with_hint)
    }

    /// The states of the objects from now on: `Err` with the key of one that was deleted.
    pub fn watch(&self) -> BoxStream<'static, anyhow::Result<Seen>> {
        let resources = events(self.api::<Resource>(), self.labels.as_deref(), Clone::clone);
        let data = events(self.api::<DataSource>(), self.labels.as_deref(), as_resource);
        futures::stream::select(resources, data).boxed()
    }
}

/// What a watch has seen.
pub enum Seen {
    Object(Box<Resource>),
    Deleted(Key),
}

fn events<K>(
    api: Api<K>,
    labels: Option<&str>,
    shown: impl Fn(&K) -> Resource + Send + 'static,
) -> BoxStream<'static, anyhow::Result<Seen>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let config = labels.iter().fold(watcher::Config::default(), |config, labels| config.labels(labels));
    let seen = watcher(api, config).filter_map(move |event| std::future::ready(match event {
        Ok(Event::InitApply(object) | Event::Apply(object)) => Some(Ok(Seen::Object(Box::new(shown(&object))))),
        Ok(Event::Delete(object)) => Some(Ok(Seen::Deleted(key(&shown(&object))))),
        Err(watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) if matches!(&error, kube::Error::Api(status) if status.is_forbidden()) =>
        {
            let hint = format!("waiting needs the verb `watch` on {}.purlin.dev; or use --no-wait", K::plural(&()));
            Some(Err(Failure::hinted(request_error(&error), hint)))
        }
        // The watch goes on after other errors.
        Ok(Event::Init | Event::InitDone) | Err(_) => None,
    }));
    seen.boxed()
}
