//! How many requests the inputs of a namespace cause.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{InputSource, InputWatches, MAX_WATCHES};
use crate::metrics::{Metrics, WatchMetrics};
use engine::load::DataLookup;
use model::{DataKind, DataRef};
use process::{SystemRandom, lock};
use runtime::reconcile::index::InputKey;

/// An API server with the ConfigMaps `0000` to `0999`, whose watches deliver nothing.
#[derive(Default)]
struct Server {
    /// The service account may only get objects.
    only_get: bool,
    requests: Mutex<Vec<String>>,
    /// Gets that run at the same time, and the most there were.
    gets: Mutex<(usize, usize)>,
}

fn config_map(name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": "shop", "uid": name, "resourceVersion": "7" });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "key": name } })
}

impl Server {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
        let name = request.uri().path().rsplit('/').next().filter(|last| *last != "configmaps");
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let kind = match name {
            Some(_) => "get",
            None if is_watch => "watch",
            None => "list",
        };
        lock(&self.requests).push(kind.to_owned());
        let respond = |code: u16, body: Value| {
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            Ok(Response::builder().status(code).body(body).unwrap())
        };
        if let Some(name) = name {
            {
                let mut gets = lock(&self.gets);
                gets.0 += 1;
                gets.1 = gets.1.max(gets.0);
            }
            tokio::task::yield_now().await;
            lock(&self.gets).0 -= 1;
            return respond(200, config_map(name));
        }
        if self.only_get {
            let status =
                json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no" });
            return respond(403, status);
        }
        if is_watch {
            return std::future::pending().await;
        }
        let items: Vec<Value> = (0..1000).map(|number| config_map(&format!("{number:04}"))).collect();
        let metadata = json!({ "resourceVersion": "7" });
        respond(200, json!({ "apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items }))
    }

    fn count(&self, kind: &str) -> usize {
        lock(&self.requests).iter().filter(|request| *request == kind).count()
    }
}

struct Bench {
    server: Arc<Server>,
    watches: InputWatches,
    found: Arc<Mutex<BTreeMap<InputKey, DataLookup>>>,
    changed: Arc<Notify>,
}

impl Bench {
    fn new(server: Server) -> Self {
        let (server, found) = (Arc::new(server), Arc::<Mutex<BTreeMap<InputKey, DataLookup>>>::default());
        let answering = server.clone();
        let service = tower::service_fn(move |request| answering.clone().answer(request));
        let (changed, known) = (Arc::new(Notify::new()), found.clone());
        let notify = changed.clone();
        let sink = move |key: &InputKey, data| {
            lock(&known).insert(key.clone(), data);
            notify.notify_one();
        };
        let source = InputSource {
            client: Client::new(service, "shop"),
            namespace: "shop".into(),
            random: Arc::new(SystemRandom),
            metrics: WatchMetrics::default(),
            sink: Arc::new(sink),
        };
        Self { server, watches: InputWatches::new(source), found, changed }
    }

    /// Reads these ConfigMaps until all are known.
    async fn read(&mut self, names: std::ops::Range<usize>) {
        let key = |number: usize| InputKey {
            service_account: "default".into(),
            object: DataRef { kind: DataKind::ConfigMap, name: format!("{number:04}").into() },
        };
        let desired: BTreeSet<InputKey> = names.map(key).collect();
        self.watches.set(&desired);
        let is_known = |key: &InputKey| matches!(lock(&self.found).get(key), Some(DataLookup::Present(_)));
        while !desired.iter().all(is_known) {
            self.changed.notified().await;
        }
    }
}

#[tokio::test]
async fn a_namespace_with_many_inputs_has_one_watch_of_the_kind() {
    let mut bench = Bench::new(Server::default());
    bench.read(0..MAX_WATCHES).await;
    assert_eq!(bench.watches.running.len(), MAX_WATCHES);
    assert_eq!((bench.server.count("list"), bench.server.count("get")), (MAX_WATCHES, 0));
    bench.read(0..500).await;
    assert_eq!(bench.watches.running.len(), 1);
    assert_eq!((bench.server.count("list"), bench.server.count("get")), (MAX_WATCHES + 1, 0));
    bench.read(1..502).await;
    assert_eq!(bench.server.count("list"), MAX_WATCHES + 1, "new objects need no new list");
    assert_eq!(bench.server.count("get"), 2);
}

#[tokio::test]
async fn many_inputs_that_cannot_be_watched_are_read_one_after_another() {
    let mut bench = Bench::new(Server { only_get: true, ..Server::default() });
    bench.read(0..200).await;
    assert_eq!((bench.server.count("list"), bench.server.count("get")), (1, 200));
    assert_eq!(lock(&bench.server.gets).1, 1);
}

#[tokio::test]
async fn watches_of_inputs_are_counted() {
    let metrics = Metrics::default();
    let counted = |count: usize| metrics.render().contains(&format!("purlin_input_watches {count}\n"));
    let mut bench = Bench::new(Server::default());
    bench.watches.source.metrics = metrics.watches.clone();
    bench.read(0..3).await;
    assert!(counted(3));
    bench.watches.set(&BTreeSet::new());
    assert!(counted(0));
    bench.read(0..2).await;
    drop(bench);
    assert!(counted(0));
}
