//! The count outside of Purlin: which ConfigMaps exist and have existed for each Resource, as a watch of the API server
//! reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::observer::Key;

/// The ConfigMaps of one Resource.
#[derive(Default)]
pub(crate) struct Copies {
    /// Those that exist, by UID, each with its revision.
    pub(crate) alive: BTreeMap<String, String>,
    /// All that have ever existed.
    pub(crate) ever: BTreeSet<String>,
    /// The most that existed at the same time.
    pub(crate) most: usize,
}

#[derive(Default)]
pub(crate) struct Count {
    pub(crate) items: BTreeMap<Key, Copies>,
    /// How often the watch had to list all objects again, so that it may have missed short-lived ones.
    pub(crate) gaps: usize,
}

impl Count {
    fn note(&mut self, event: watcher::Event<ConfigMap>) {
        match event {
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                let Some((key, uid, revision)) = identity(object) else { return };
                let copies = self.items.entry(key).or_default();
                copies.ever.insert(uid.clone());
                copies.alive.insert(uid, revision);
                copies.most = copies.most.max(copies.alive.len());
            }
            watcher::Event::Delete(object) => {
                let Some((key, uid, _)) = identity(object) else { return };
                self.items.entry(key).or_default().alive.remove(&uid);
            }
            watcher::Event::Init => self.gaps += 1,
            watcher::Event::InitDone => {}
        }
    }
}

/// The Resource of a ConfigMap, its UID and its revision. `None`: it is not one of the benchmark.
fn identity(object: ConfigMap) -> Option<(Key, String, String)> {
    let data = object.data?;
    let key = (object.metadata.namespace?, data.get("item")?.clone());
    Some((key, object.metadata.uid?, data.get("revision")?.clone()))
}

/// A watch of all ConfigMaps. It ends when this value is dropped.
pub(crate) struct Outside {
    pub(crate) count: Arc<Mutex<Count>>,
    _watch: JoinSet<()>,
}

impl Outside {
    /// Returns when the watch has delivered the existing objects.
    pub(crate) async fn start(client: &Client) -> Self {
        let (count, mut watch) = (Arc::<Mutex<Count>>::default(), JoinSet::new());
        let (listed, mut is_listed) = watch::channel(false);
        watch.spawn(observe(Api::all(client.clone()), count.clone(), listed));
        is_listed.wait_for(|listed| *listed).await.expect("a watch");
        count.lock().unwrap_or_else(PoisonError::into_inner).gaps = 0;
        Self { count, _watch: watch }
    }
}

async fn observe(objects: Api<ConfigMap>, count: Arc<Mutex<Count>>, listed: watch::Sender<bool>) {
    let mut events = std::pin::pin!(watcher(objects, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let Ok(event) = event else { continue };
        let is_done = matches!(event, watcher::Event::InitDone);
        count.lock().unwrap_or_else(PoisonError::into_inner).note(event);
        if is_done {
            let _ = listed.send(true);
        }
    }
}
