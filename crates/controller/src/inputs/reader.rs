//! The task that reads the objects of one scope.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::InputSource;
use super::scopes::Scope;
use engine::load::DataLookup;
use engine::load::inputs::{config_map_data, secret_data};
use model::data::StringData;
use model::{DataKind, DataRef, Reason};
use process::backoff::Pauses;
use process::is_watch_refused;
use runtime::reconcile::index::InputKey;
use runtime::reconcile::retry;

/// How often an object without watch permission is read: as often as the kubelet updates ConfigMaps.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

pub struct Reader {
    pub source: InputSource,
    pub scope: Scope,
    /// The objects to read.
    pub desired: watch::Receiver<BTreeSet<InputKey>>,
    /// Those that were read since they were desired.
    pub read: BTreeSet<InputKey>,
}

/// What a task watches.
struct Watched<K> {
    api: Api<K>,
    config: Config,
    key: Box<dyn Fn(Arc<str>) -> InputKey + Send + Sync>,
    data: fn(&K) -> StringData,
}

impl<K: Resource<DynamicType = ()>> Watched<K> {
    fn key(&self, object: &K) -> InputKey {
        (self.key)(object.name_any().into())
    }

    fn present(&self, object: &K) -> DataLookup {
        DataLookup::Present(Arc::new((self.data)(object)))
    }
}

impl Reader {
    pub async fn work(mut self) {
        let (service_account, kind, name) = match &self.scope {
            Scope::Object(key) => (key.service_account.clone(), key.object.kind, Some(key.object.name.clone())),
            Scope::Kind(service_account, kind) => (service_account.clone(), *kind, None),
            Scope::Poll => return self.poll().await,
        };
        let client = self.client(&service_account);
        match kind {
            DataKind::ConfigMap => {
                let watched = self.watched::<ConfigMap>(client, service_account, kind, name, config_map_data);
                self.run(watched).await;
            }
            DataKind::Secret => {
                let watched = self.watched::<Secret>(client, service_account, kind, name, secret_data);
                self.run(watched).await;
            }
        }
    }

    fn watched<K>(
        &self,
        client: Client,
        service_account: Arc<str>,
        kind: DataKind,
        name: Option<Arc<str>>,
        data: fn(&K) -> StringData,
    ) -> Watched<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let config = match name {
            Some(name) => Config::default().fields(&format!("metadata.name={name}")),
            None => Config::default(),
        };
        Watched {
            api: Api::namespaced(client, &self.source.namespace),
            config,
            key: Box::new(move |name| InputKey {
                service_account: service_account.clone(),
                object: DataRef { kind, name },
            }),
            data,
        }
    }

    /// Watches the objects, and polls them while they cannot be watched.
    async fn run<K>(&mut self, watched: Watched<K>)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let mut failures = 0;
        loop {
            self.watch(&watched).await;
            self.read_all(&mut failures).await;
        }
    }

    async fn poll(&mut self) {
        let mut failures = 0;
        loop {
            self.read_all(&mut failures).await;
        }
    }

    /// Returns when the objects cannot be watched.
    async fn watch<K>(&mut self, watched: &Watched<K>)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let pauses = Pauses::new(self.source.random.clone());
        let mut events = std::pin::pin!(watcher(watched.api.clone(), watched.config.clone()).backoff(pauses));
        let mut listed: Option<BTreeMap<InputKey, DataLookup>> = None;
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                Ok(()) = self.desired.changed() => {
                    // The end of the list reads the others.
                    if listed.is_none() {
                        self.read_new().await;
                    }
                    continue;
                }
            };
            match event {
                None => return,
                Some(Ok(watcher::Event::Init)) => {
                    self.read.clone_from(&self.desired.borrow_and_update());
                    listed = Some(BTreeMap::new());
                }
                Some(Ok(watcher::Event::InitApply(object))) => {
                    // Only what is read is kept: a namespace can have many large Secrets.
                    if let Some(listed) = listed.as_mut()
                        && self.read.contains(&watched.key(&object))
                    {
                        listed.insert(watched.key(&object), watched.present(&object));
                    }
                }
                Some(Ok(watcher::Event::InitDone)) => {
                    let mut listed = listed.take().unwrap_or_default();
                    for key in &self.read {
                        self.source.update(key, listed.remove(key).unwrap_or(DataLookup::Missing));
                    }
                    self.read_new().await;
                }
                Some(Ok(watcher::Event::Apply(object))) => {
                    self.update_desired(&watched.key(&object), watched.present(&object));
                }
                Some(Ok(watcher::Event::Delete(object))) => {
                    self.update_desired(&watched.key(&object), DataLookup::Missing);
                }
                Some(Err(error)) if is_watch_refused(&error) => return,
                // The last data remains valid; the watch restarts after a delay.
                Some(Err(_)) => self.source.metrics.failed("inputs"),
            }
        }
    }

    fn update_desired(&self, key: &InputKey, data: DataLookup) {
        if self.read.contains(key) {
            self.source.update(key, data);
        }
    }

    /// Reads all objects one after another, and then waits until they are read again. Meanwhile, new ones are read.
    async fn read_all(&mut self, failures: &mut u32) {
        self.read.clear();
        let wait = match self.read_new().await {
            true => {
                *failures = 0;
                retry::spread(POLL_INTERVAL, self.source.random.number())
            }
            false => {
                *failures += 1;
                retry::delay(*failures, self.source.random.number()).min(POLL_INTERVAL)
            }
        };
        let until = tokio::time::Instant::now() + wait;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => return,
                Ok(()) = self.desired.changed() => {
                    self.read_new().await;
                }
            }
        }
    }

    /// Reads the objects that were not read since they are desired. Returns whether all could be read.
    async fn read_new(&mut self) -> bool {
        let desired = self.desired.borrow_and_update().clone();
        self.read.retain(|key| desired.contains(key));
        let mut complete = true;
        for key in desired {
            if !self.read.contains(&key) {
                complete &= self.get(&key).await;
                self.read.insert(key);
            }
        }
        complete
    }

    async fn get(&self, key: &InputKey) -> bool {
        let data = read(&self.source.client, &self.source.namespace, key).await;
        let is_read = !matches!(data, DataLookup::Unreadable { .. });
        self.source.update(key, data);
        is_read
    }

    fn client(&self, service_account: &str) -> Client {
        acting_as(&self.source.client, &self.source.namespace, service_account)
    }
}

/// Reads an object once, as its service account.
pub async fn read(client: &Client, namespace: &str, key: &InputKey) -> DataLookup {
    let client = acting_as(client, namespace, &key.service_account);
    let name = &*key.object.name;
    let found = match key.object.kind {
        DataKind::ConfigMap => {
            let found = Api::<ConfigMap>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.as_ref().map(config_map_data))
        }
        DataKind::Secret => {
            let found = Api::<Secret>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.as_ref().map(secret_data))
        }
    };
    match found {
        Ok(Some(data)) => DataLookup::Present(Arc::new(data)),
        Ok(None) => DataLookup::Missing,
        Err(error) => unreadable(namespace, key, &error),
    }
}

fn unreadable(namespace: &str, key: &InputKey, error: &kube::Error) -> DataLookup {
    let InputKey { service_account, object } = key;
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let hint = if status.message.contains("cannot impersonate") {
                "allow Purlin to impersonate service accounts in its ClusterRole".to_owned()
            } else {
                format!(
                    "bind a Role that allows get, list and watch of `{}` to the service account `{service_account}` of \
                     namespace `{namespace}`",
                    object.kind.resource(),
                )
            };
            DataLookup::Unreadable { reason: Reason::Forbidden, why: status.message.clone(), hint: Some(hint) }
        }
        error => DataLookup::Unreadable { reason: Reason::OperationFailed, why: error.to_string(), hint: None },
    }
}

/// A client that shares the connections of `client` and impersonates a service account.
fn acting_as(client: &Client, namespace: &str, service_account: &str) -> Client {
    // Without groups: the server adds those of every service account.
    let user = format!("system:serviceaccount:{namespace}:{service_account}");
    // Valid names are valid header values. For any other name the request is anonymous, without permissions.
    let user = http::HeaderValue::try_from(user).unwrap_or(http::HeaderValue::from_static("system:anonymous"));
    let client = client.clone();
    let acting = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert("Impersonate-User", user.clone());
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(acting, namespace)
}
