//! Watches the ConfigMaps and Secrets that Resources read, each as the service account of its readers: no user reads
//! data through Purlin that the service account cannot read.
//!
//! If the service account can list and watch the object, a watch serves it. If it can only get the object, the object
//! is polled. If it cannot get it either, the missing permission is reported and the read is retried.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::{AbortHandle, JoinSet};

use super::context::Context;
use super::namespaces::NamespaceHandle;
use super::watch::Pauses;
use crate::load::DataLookup;
use crate::load::inputs::{config_map_data, secret_data};
use crate::model::data::StringData;
use crate::model::{DataKind, Reason};
use crate::reconcile::index::{Event, InputKey};
use crate::reconcile::retry;

/// How often an object without watch permission is read: as often as the kubelet updates ConfigMaps.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub struct InputWatches {
    tasks: JoinSet<()>,
    running: BTreeMap<InputKey, AbortHandle>,
}

impl InputWatches {
    /// Starts and ends watches so that exactly these objects are watched.
    pub fn set(&mut self, desired: &BTreeSet<InputKey>, context: &Arc<Context>, shared: &Arc<NamespaceHandle>) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended.as_ref()
                && error.is_panic()
            {
                tracing::error!(%error, "the watch of an input panicked because of a bug in Purlin");
            }
        }
        self.running.retain(|key, task| {
            let remains = desired.contains(key) && !task.is_finished();
            if !remains {
                task.abort();
            }
            remains
        });
        for key in desired {
            if !self.running.contains_key(key) {
                let follower = InputWatcher { context: context.clone(), shared: shared.clone(), key: key.clone() };
                self.running.insert(key.clone(), self.tasks.spawn(follower.work()));
            }
        }
    }
}

/// Reads a `ConfigMap` or Secret once, as its service account.
pub async fn read(client: &Client, namespace: &str, key: &InputKey) -> DataLookup {
    let client = acting_as(client, namespace, &key.service_account);
    let name = &key.object.name;
    let found = match key.object.kind {
        DataKind::ConfigMap => {
            Api::namespaced(client, namespace).get_opt(name).await.map(|one| one.as_ref().map(config_map_data))
        }
        DataKind::Secret => {
            Api::namespaced(client, namespace).get_opt(name).await.map(|one| one.as_ref().map(secret_data))
        }
    };
    match found {
        Ok(texts) => texts.map_or(DataLookup::Missing, |texts| DataLookup::Present(Arc::new(texts))),
        Err(error) => unreadable(namespace, key, &error),
    }
}

struct InputWatcher {
    context: Arc<Context>,
    shared: Arc<NamespaceHandle>,
    key: InputKey,
}

impl InputWatcher {
    async fn work(self) {
        let client = acting_as(&self.context.client, self.shared.name(), &self.key.service_account);
        let namespace = self.shared.name();
        match self.key.object.kind {
            DataKind::ConfigMap => self.run(Api::namespaced(client, namespace), config_map_data).await,
            DataKind::Secret => self.run(Api::namespaced(client, namespace), secret_data).await,
        }
    }

    async fn run<K>(&self, api: Api<K>, texts: fn(&K) -> StringData)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let mut failures = 0;
        loop {
            self.watch(api.clone(), texts).await;
            let wait = match api.get_opt(&self.key.object.name).await {
                Ok(found) => {
                    failures = 0;
                    self.update(
                        found.map_or(DataLookup::Missing, |object| DataLookup::Present(Arc::new(texts(&object)))),
                    );
                    retry::spread(POLL_INTERVAL, self.context.engine.random.number())
                }
                Err(error) => {
                    failures += 1;
                    self.update(unreadable(self.shared.name(), &self.key, &error));
                    retry::delay(failures, self.context.engine.random.number()).min(POLL_INTERVAL)
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns when the object cannot be watched.
    async fn watch<K>(&self, api: Api<K>, texts: fn(&K) -> StringData)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let config = Config::default().fields(&format!("metadata.name={}", self.key.object.name));
        let pauses = Pauses::new(self.context.engine.random.clone());
        let mut events = std::pin::pin!(watcher(api, config).backoff(pauses));
        let present = |object: &K| DataLookup::Present(Arc::new(texts(object)));
        let mut listed = DataLookup::Missing;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed = DataLookup::Missing,
                Ok(watcher::Event::InitApply(object)) => listed = present(&object),
                Ok(watcher::Event::InitDone) => self.update(listed.clone()),
                Ok(watcher::Event::Apply(object)) => self.update(present(&object)),
                Ok(watcher::Event::Delete(_)) => self.update(DataLookup::Missing),
                Err(error) if is_refused(&error) => return,
                // The last data remains valid; the watch restarts after a delay.
                Err(_) => self.context.metrics.watch_failed("inputs"),
            }
        }
    }

    fn update(&self, data: DataLookup) {
        self.shared.apply(Event::Input(self.key.clone(), data));
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

fn is_refused(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    matches!(code, 401 | 403 | 405)
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
