//! Follows the ConfigMaps and Secrets that Resources of a namespace read, each as the service account of its readers:
//! nobody reads through Purlin what its service account may not read.
//!
//! A service account that may list and watch the object is served by a watch. One that may only get it is asked for it
//! again and again; one that may not do even that is told which right is missing, and tried again.

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
use super::watch::Pauses;
use super::world::Shared;
use crate::load::Data;
use crate::load::inputs::{texts_of_config_map, texts_of_secret};
use crate::model::data::Texts;
use crate::model::{DataKind, Reason};
use crate::reconcile::index::{Event, InputKey};
use crate::reconcile::retry;

/// How often an object is read that may not be watched: as often as a kubelet brings ConfigMaps up to date.
const READ_AGAIN: Duration = Duration::from_mins(1);

/// The watches of one namespace.
#[derive(Debug, Default)]
pub struct InputWatches {
    tasks: JoinSet<()>,
    running: BTreeMap<InputKey, AbortHandle>,
}

impl InputWatches {
    /// Follows these objects and no others from now on.
    pub fn follow(&mut self, wanted: &BTreeSet<InputKey>, context: &Arc<Context>, shared: &Arc<Shared>) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended.as_ref()
                && error.is_panic()
            {
                tracing::error!(%error, "a watch of an input was lost by a fault of Purlin");
            }
        }
        self.running.retain(|key, task| {
            let stays = wanted.contains(key) && !task.is_finished();
            if !stays {
                task.abort();
            }
            stays
        });
        for key in wanted {
            if !self.running.contains_key(key) {
                let follower = Follower { context: context.clone(), shared: shared.clone(), key: key.clone() };
                self.running.insert(key.clone(), self.tasks.spawn(follower.work()));
            }
        }
    }
}

/// Follows one object.
struct Follower {
    context: Arc<Context>,
    shared: Arc<Shared>,
    key: InputKey,
}

impl Follower {
    async fn work(self) {
        let client = acting_as(&self.context.client, self.shared.name(), &self.key.service_account);
        let namespace = self.shared.name();
        match self.key.object.kind {
            DataKind::ConfigMap => self.follow(Api::namespaced(client, namespace), texts_of_config_map).await,
            DataKind::Secret => self.follow(Api::namespaced(client, namespace), texts_of_secret).await,
        }
    }

    async fn follow<K>(&self, api: Api<K>, texts: fn(&K) -> Texts)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let mut refusals = 0;
        loop {
            self.watch(api.clone(), texts).await;
            let wait = match api.get_opt(&self.key.object.name).await {
                Ok(found) => {
                    refusals = 0;
                    self.tell(found.map_or(Data::Missing, |object| Data::Present(Arc::new(texts(&object)))));
                    retry::spread(READ_AGAIN, self.context.engine.random.number())
                }
                Err(error) => {
                    refusals += 1;
                    self.tell(self.unreadable(&error));
                    retry::delay(refusals, self.context.engine.random.number()).min(READ_AGAIN)
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns when it may not be watched.
    async fn watch<K>(&self, api: Api<K>, texts: fn(&K) -> Texts)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let config = Config::default().fields(&format!("metadata.name={}", self.key.object.name));
        let pauses = Pauses::new(self.context.engine.random.clone());
        let mut events = std::pin::pin!(watcher(api, config).backoff(pauses));
        let present = |object: &K| Data::Present(Arc::new(texts(object)));
        let mut listed = Data::Missing;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed = Data::Missing,
                Ok(watcher::Event::InitApply(object)) => listed = present(&object),
                Ok(watcher::Event::InitDone) => self.tell(listed.clone()),
                Ok(watcher::Event::Apply(object)) => self.tell(present(&object)),
                Ok(watcher::Event::Delete(_)) => self.tell(Data::Missing),
                Err(error) if is_refused(&error) => return,
                // What was read stays what is known; it is watched anew after a pause.
                Err(_) => self.context.metrics.watch_failed("inputs"),
            }
        }
    }

    fn tell(&self, data: Data) {
        self.shared.apply(Event::Input(self.key.clone(), data));
    }

    fn unreadable(&self, error: &kube::Error) -> Data {
        let InputKey { service_account, object } = &self.key;
        match error {
            kube::Error::Api(status) if status.is_forbidden() => {
                let hint = if status.message.contains("cannot impersonate") {
                    "Purlin's own ClusterRole must allow it to impersonate service accounts".to_owned()
                } else {
                    format!(
                        "bind a Role to the service account `{service_account}` of namespace `{}` that allows get, list \
                         and watch of `{}`",
                        self.shared.name(),
                        object.kind.resource()
                    )
                };
                Data::Unreadable { reason: Reason::Forbidden, why: status.message.clone(), hint: Some(hint) }
            }
            error => Data::Unreadable { reason: Reason::OperationFailed, why: error.to_string(), hint: None },
        }
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

/// A client that shares the connections of another one and acts as a service account.
fn acting_as(client: &Client, namespace: &str, service_account: &str) -> Client {
    // No groups, as everywhere: the server adds those that every service account is in.
    let user = format!("system:serviceaccount:{namespace}:{service_account}");
    // Names of namespaces and service accounts are plain; one that is not would be nobody, who may do nothing.
    let user = http::HeaderValue::try_from(user).unwrap_or(http::HeaderValue::from_static("system:anonymous"));
    let client = client.clone();
    let acting = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert("Impersonate-User", user.clone());
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(acting, namespace)
}
