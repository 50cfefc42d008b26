//! Watches the ConfigMaps and Secrets that Resources read, each as the service account of its readers: no user reads
//! data through Purlin that the service account cannot read.
//!
//! If the service account can list and watch the object, a watch serves it. If it can only get the object, the object
//! is polled. If it cannot get it either, the missing permission is reported and the read is retried.
//!
//! The number of watches of a namespace is limited. With more objects, one watch serves all objects of a kind that a
//! service account reads.

mod reader;
mod scopes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Client;
use model::Namespace;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use self::reader::read;

use self::reader::Reader;
use self::scopes::{Scope, scopes};
use super::metrics::{WatchMetrics, difference};
use engine::load::DataLookup;
use process::Random;
use runtime::reconcile::index::InputKey;

/// How many watches the inputs of a namespace have: more than most namespaces have inputs, and few enough that a hundred
/// namespaces at the limit are no load for the API server.
const MAX_WATCHES: usize = 64;

/// Receives the data of an object.
pub type InputSink = Arc<dyn Fn(&InputKey, DataLookup) + Send + Sync>;

/// Where inputs come from, and where they go.
#[derive(Clone)]
pub struct InputSource {
    pub client: Client,
    pub namespace: Namespace,
    pub random: Arc<dyn Random>,
    pub metrics: WatchMetrics,
    pub sink: InputSink,
}

impl InputSource {
    fn update(&self, key: &InputKey, data: DataLookup) {
        (self.sink)(key, data);
    }
}

pub struct InputWatches {
    source: InputSource,
    tasks: JoinSet<()>,
    running: BTreeMap<Scope, RunningReader>,
}

struct RunningReader {
    task: AbortHandle,
    desired: watch::Sender<BTreeSet<InputKey>>,
}

impl InputWatches {
    pub fn new(source: InputSource) -> Self {
        Self { source, tasks: JoinSet::new(), running: BTreeMap::new() }
    }

    /// Starts and ends watches so that exactly these objects are watched.
    pub fn set(&mut self, desired: &BTreeSet<InputKey>) {
        while let Some(ended) = self.tasks.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                tracing::error!("the watch of an input panicked because of a bug in Purlin");
            }
        }
        let before = self.running.len();
        let mut scopes = scopes(desired, MAX_WATCHES);
        self.running.retain(|scope, reader| match scopes.remove(scope) {
            Some(keys) if !reader.task.is_finished() => {
                reader.desired.send_if_modified(|known| {
                    let is_new = *known != keys;
                    *known = keys;
                    is_new
                });
                true
            }
            again => {
                reader.task.abort();
                scopes.extend(again.map(|keys| (scope.clone(), keys)));
                false
            }
        });
        for (scope, keys) in scopes {
            let (sender, desired) = watch::channel(keys);
            let reader = Reader { source: self.source.clone(), scope: scope.clone(), desired, read: BTreeSet::new() };
            let task = self.tasks.spawn(reader.work());
            self.running.insert(scope, RunningReader { task, desired: sender });
        }
        self.count(before);
    }

    fn count(&self, before: usize) {
        self.source.metrics.inputs_changed(difference(before, self.running.len()));
    }
}

impl Drop for InputWatches {
    fn drop(&mut self) {
        let before = self.running.len();
        self.running.clear();
        self.count(before);
    }
}
