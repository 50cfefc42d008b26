//! When each object became ready, as a watch reports it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::server::Server;

/// The namespace and the name of an object.
pub(crate) type Key = (String, String);

/// The pause between two looks at what the watch has reported: short beside the times that are measured.
const PAUSE: Duration = Duration::from_millis(2);

/// The generations in which an object was ready, and since when.
type Generations = Vec<(i64, Instant)>;

/// Which generations of which objects were ready, and since when.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<BTreeMap<Key, Generations>>>);

impl History {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Generations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, object: &DynamicObject, at: Instant) {
        let Some(generation) = ready_generation(object) else { return };
        let key = key(object);
        let mut all = self.lock();
        let known = all.entry(key).or_default();
        if known.last().is_none_or(|(last, _)| *last < generation) {
            known.push((generation, at));
        }
    }

    fn forget(&self, object: &DynamicObject) {
        self.lock().remove(&key(object));
    }

    /// When this generation of an object, or a later one, was ready.
    pub(crate) fn ready_at(&self, key: &Key, generation: i64) -> Option<Instant> {
        let all = self.lock();
        all.get(key)?.iter().find(|(ready, _)| *ready >= generation).map(|(_, at)| *at)
    }

    /// As [`Self::ready_at`], after waiting for it.
    pub(crate) async fn wait(&self, key: &Key, generation: i64, limit: Duration) -> Option<Instant> {
        let start = Instant::now();
        loop {
            let at = self.ready_at(key, generation);
            if at.is_some() || start.elapsed() > limit {
                return at;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether all objects that were ready are deleted within a time.
    pub(crate) async fn wait_empty(&self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.count() > 0 && start.elapsed() < limit {
            tokio::time::sleep(PAUSE).await;
        }
        self.count() == 0
    }

    /// How many objects have been ready and are not deleted.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

fn key(object: &DynamicObject) -> Key {
    (object.metadata.namespace.clone().unwrap_or_default(), object.metadata.name.clone().unwrap_or_default())
}

/// The generation in which an object is ready.
pub(crate) fn ready_generation(object: &DynamicObject) -> Option<i64> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready" && condition["status"] == "True")?;
    let observed = ready["observedGeneration"].as_i64()?;
    (Some(observed) == object.metadata.generation).then_some(observed)
}

/// A watch of all objects of a kind. It ends when this value is dropped.
pub(crate) struct Observer {
    pub(crate) history: History,
    _watch: JoinSet<()>,
}

impl Observer {
    /// Returns when the watch has delivered the existing objects.
    pub(crate) async fn start(server: &Server<'_>, kind: &ApiResource) -> Self {
        let (history, mut watch) = (History::default(), JoinSet::new());
        let (listed, mut is_listed) = watch::channel(false);
        watch.spawn(observe(Api::all_with(server.client.clone(), kind), history.clone(), listed));
        is_listed.wait_for(|listed| *listed).await.expect("a watch");
        Self { history, _watch: watch }
    }
}

async fn observe(objects: Api<DynamicObject>, history: History, listed: watch::Sender<bool>) {
    let mut events = std::pin::pin!(watcher(objects, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => history.note(&object, now),
            Ok(watcher::Event::InitDone) => drop(listed.send(true)),
            Ok(watcher::Event::Delete(object)) => history.forget(&object),
            Ok(watcher::Event::Init) | Err(_) => {}
        }
    }
}
