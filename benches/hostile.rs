//! Whether a careless or hostile tenant delays the others. 20 quiet tenants change one Resource each every second, and
//! the benchmark measures the time until the change is ready: first alone, then beside ten kinds of hostile tenants, one
//! after the other.
//!
//! `cargo bench --bench hostile` measures everything; `-- only=chain` measures one kind, and `seconds=60` measures each
//! for longer than 30 s.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark prints figures with two digits"
)]

#[path = "../tests/cluster/controller.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod controller;
#[path = "../tests/support/controlplane.rs"]
mod controlplane;
#[path = "../tests/cluster/installation.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod installation;
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod processes;
#[path = "../tests/support/programs.rs"]
mod programs;
#[path = "../tests/support/providers.rs"]
mod providers;
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Request};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use controller::Controller;
use processes::{Process, mib};
use server::Server;

const TENANTS: usize = 20;
/// The interval between two changes of a tenant.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many requests the hostile tenant sends at the same time.
const HOSTILE_CLIENTS: usize = 4;
/// How long the benchmark waits until the objects of a hostile tenant are deleted.
const CLEANUP: Duration = Duration::from_mins(5);

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run());
}

fn argument(name: &str) -> Option<String> {
    std::env::args().find_map(|argument| argument.strip_prefix(&format!("{name}=")).map(str::to_owned))
}

async fn run() {
    let plane = installation::plane();
    let server = Server::new(plane).await;
    let controller = Controller::start(plane);
    let process = Process(controller.pid());
    let seconds = argument("seconds").and_then(|text| text.parse().ok()).unwrap_or(30);
    let time = Duration::from_secs(seconds);
    let quiet = Arc::new(QuietTenants::start(&server).await);
    quiet.measure(&server, time / 3).await;
    println!("{TENANTS} tenants, one change a second each, {seconds} s for each line\n");
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>9} {:>11} {:>5} {:>8}",
        "beside", "p50 ms", "p99 ms", "max ms", "not ready", "request p99", "CPU %", "MiB"
    );
    let used = process.cpu();
    quiet.measure(&server, time).await.print("nothing", process, used);
    for (name, objects) in hostile() {
        if argument("only").is_some_and(|only| only != name) {
            continue;
        }
        let namespace = server.plane.namespace(name);
        let used = process.cpu();
        let (creation, measured) = tokio::join!(create(&server, &namespace, objects), quiet.measure(&server, time));
        measured.print(name, process, used);
        if creation > 0 {
            println!("  the API server rejected {creation} objects");
        }
        clean_up(&server, &namespace).await;
    }
    println!("\npeak memory of the controller: {:.0} MiB", mib(process.peak()));
}

// --- Quiet tenants --------------------------------------------------------------------------------------------------

/// The generation of each tenant's Resource that is ready, and when this was observed.
type Ready = Arc<Mutex<BTreeMap<String, (i64, Instant)>>>;

struct QuietTenants {
    namespaces: Vec<String>,
    ready: Ready,
    /// Observes which changes are ready.
    _observer: JoinSet<()>,
}

struct Measured {
    /// From the start of the change until it was ready.
    times: Vec<Duration>,
    /// How long the API server took for the change itself: Purlin has no part in it.
    requests: Vec<Duration>,
    /// How long the measurement took.
    duration: Duration,
    /// Changes that were not ready before the next one, or at the end.
    unfinished: usize,
}

impl Measured {
    /// `used`: the CPU time of the controller at the start.
    fn print(mut self, beside: &str, process: Process, used: Duration) {
        self.times.sort();
        self.requests.sort();
        let at = |times: &[Duration], share: f64| {
            let index = (times.len() as f64 * share) as usize;
            times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        let cpu = process.cpu().saturating_sub(used).as_secs_f64() / self.duration.as_secs_f64() * 100.0;
        println!(
            "{beside:<22} {:>8.0} {:>8.0} {:>8.0} {:>9} {:>11.0} {cpu:>5.0} {:>8.0}",
            at(&self.times, 0.5),
            at(&self.times, 0.99),
            at(&self.times, 1.0),
            self.unfinished,
            at(&self.requests, 0.99),
            mib(process.memory())
        );
    }
}

impl QuietTenants {
    async fn start(server: &Server<'_>) -> Self {
        let ready = Ready::default();
        let mut observer = JoinSet::new();
        observer.spawn(observe(all_resources(server), ready.clone()));
        let mut namespaces = Vec::new();
        for number in 0..TENANTS {
            let namespace = server.plane.namespace(&format!("quiet-{number}"));
            let resource = resource("pulse", "terraform_data", &json!({ "input": 0 }));
            create_one(server, &server.resources(&namespace), &resource).await;
            namespaces.push(namespace);
        }
        Self { namespaces, ready, _observer: observer }
    }

    /// Changes the Resource of each tenant once an interval. Returns how long each change took until it was ready.
    async fn measure(&self, server: &Server<'_>, time: Duration) -> Measured {
        let start = Instant::now();
        let tenants = self.namespaces.iter().enumerate().map(|(number, namespace)| async move {
            // The changes of different tenants are spread over the interval.
            tokio::time::sleep(INTERVAL * number as u32 / TENANTS as u32).await;
            let resources = server.resources(namespace);
            let (mut times, mut requests, mut unfinished) = (Vec::new(), Vec::new(), 0);
            let mut next = tokio::time::interval(INTERVAL);
            next.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            let mut value = 0_u128;
            while start.elapsed() < time {
                next.tick().await;
                value += 1;
                let change = json!({"spec": {"config": {"input": format!("{value} at {:?}", start.elapsed())}}});
                let sent = Instant::now();
                let changed = resources.patch("pulse", &PatchParams::default(), &Patch::Merge(&change)).await;
                requests.push(sent.elapsed());
                let generation = changed.expect("a changed Resource").metadata.generation.unwrap_or_default();
                match self.until_ready(namespace, generation, time.max(Duration::from_secs(20))).await {
                    Some(at) => times.push(at.saturating_duration_since(sent)),
                    None => unfinished += 1,
                }
            }
            Measured { times, requests, duration: Duration::ZERO, unfinished }
        });
        let mut all = Measured { times: Vec::new(), requests: Vec::new(), duration: Duration::ZERO, unfinished: 0 };
        for measured in futures::future::join_all(tenants).await {
            all.times.extend(measured.times);
            all.requests.extend(measured.requests);
            all.unfinished += measured.unfinished;
        }
        Measured { duration: start.elapsed(), ..all }
    }

    async fn until_ready(&self, namespace: &str, generation: i64, limit: Duration) -> Option<Instant> {
        let start = Instant::now();
        while start.elapsed() < limit {
            let known = self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(namespace).copied();
            if let Some((_, at)) = known.filter(|(ready, _)| *ready >= generation) {
                return Some(at);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        None
    }
}

fn all_resources(server: &Server<'_>) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("purlin.dev", "v1alpha1", "Resource"));
    Api::all_with(server.client.clone(), &kind)
}

async fn observe(resources: Api<DynamicObject>, ready: Ready) {
    // The field keeps the objects of the hostile tenants out of the benchmark.
    let config = watcher::Config::default().fields("metadata.name=pulse");
    let mut events = std::pin::pin!(watcher(resources, config).applied_objects());
    while let Some(event) = events.next().await {
        let Ok(object) = event else { continue };
        let generation = object.data["status"]["observedGeneration"].as_i64().unwrap_or_default();
        if installation::is_ready(&serde_json::to_value(&object).expect("JSON")) {
            let namespace = object.metadata.namespace.clone().unwrap_or_default();
            let mut all = ready.lock().unwrap_or_else(PoisonError::into_inner);
            if all.get(&namespace).is_none_or(|(known, _)| *known < generation) {
                all.insert(namespace, (generation, Instant::now()));
            }
        }
    }
}

// --- Hostile tenants ------------------------------------------------------------------------------------------------

fn resource(name: &str, type_name: &str, config: &Value) -> Value {
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": name},
           "spec": {"type": type_name, "config": config}})
}

/// The objects of each kind of hostile tenant.
fn hostile() -> Vec<(&'static str, Vec<Value>)> {
    let data = |name: String, input: Value| resource(&name, "terraform_data", &json!({ "input": input }));
    let many = |count: usize, each: &dyn Fn(usize) -> Value| (0..count).map(each).collect::<Vec<_>>();
    // `serde_json` itself cannot serialize deeper values without a larger stack.
    let deep = |levels: usize| (0..levels).fold(json!("end"), |inner, _| json!({ "a": inner }));
    let wide: Value = (0..20_000).map(|number| (format!("key-{number}"), json!(number))).collect();
    let costly = "${size(lists.range(250000).map(x, x * 2))}";
    let family = |count: u64| {
        let mut family = data("family".to_owned(), json!("${count.index}"));
        family["spec"]["count"] = json!(count);
        family
    };
    let provider_config = |number: usize| {
        json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig",
               "metadata": {"name": format!("config-{number}")}, "spec": {"provider": {"name": "absent"}}})
    };
    vec![
        ("deep", many(10, &|n| data(format!("deep-{n}"), deep(130 + n)))),
        ("wide", many(20, &|n| data(format!("wide-{n}"), wide.clone()))),
        ("never-ready", many(200, &never_ready)),
        ("expressions", many(100, &|n| data(format!("costly-{n}"), json!(vec![costly; 10])))),
        ("broken-references", many(3_000, &|n| data(format!("broken-{n}"), json!(format!("${{absent_{n}.id}}"))))),
        ("cycle", many(500, &|n| data(format!("cycle-{n}"), json!(format!("${{cycle_{}.id}}", (n + 1) % 500))))),
        ("large", many(6, &|n| data(format!("large-{n}"), json!("x".repeat(900 << 10))))),
        (
            "chain",
            many(2_000, &|n| {
                let before = if n == 0 { json!("first") } else { json!(format!("${{chain_{}.id}}", n - 1)) };
                data(format!("chain-{n}"), before)
            }),
        ),
        ("family", vec![family(1_000_000)]),
        ("provider-configs", many(300, &provider_config)),
    ]
}

/// A Deployment without a service account that may create it would fail at once. This one is created and never ready.
fn never_ready(number: usize) -> Value {
    let name = format!("never-{number}");
    let labels = json!({ "app": name });
    let template = json!({"metadata": {"labels": labels, "annotations": {"test.purlin.dev/outcome": "unready"}},
                          "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
    resource(&name, "kubernetes_object", &json!({ "manifest": manifest }))
}

/// Creates an object. Returns whether the API server accepted it. The response is not parsed: it may be too deep.
async fn create_one(server: &Server<'_>, api: &Api<DynamicObject>, manifest: &Value) -> bool {
    let body = serde_json::to_vec(manifest).expect("JSON");
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body).expect("a request");
    server.client.request_text(request).await.is_ok()
}

/// Creates the objects of a hostile tenant. Returns how many the API server rejected.
async fn create(server: &Server<'_>, namespace: &str, objects: Vec<Value>) -> usize {
    let account = format!("--serviceaccount={namespace}:default");
    server.plane.kubectl_ok(&["-n", namespace, "create", "rolebinding", "edit", "--clusterrole=edit", &account]);
    let created = stream::iter(objects).map(|manifest| {
        let api = api_of(server, namespace, manifest["kind"].as_str().unwrap_or_default());
        async move { create_one(server, &api, &manifest).await }
    });
    created.buffer_unordered(HOSTILE_CLIENTS).filter(|done| std::future::ready(!done)).count().await
}

fn api_of(server: &Server<'_>, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("purlin.dev", "v1alpha1", kind));
    Api::namespaced_with(server.client.clone(), namespace, &kind)
}

/// Deletes the objects of a hostile tenant, and waits until they are gone, so that they do not affect the next line.
async fn clean_up(server: &Server<'_>, namespace: &str) {
    let start = Instant::now();
    for kind in ["Resource", "ProviderConfig"] {
        let api = api_of(server, namespace, kind);
        let all = Request::new(api.resource_url());
        let request = all.delete_collection(&DeleteParams::default(), &ListParams::default()).expect("a request");
        server.client.request_text(request).await.expect("deleted objects");
        while start.elapsed() < CLEANUP {
            let left = api.list_metadata(&ListParams::default().limit(1)).await.expect("a list");
            if left.items.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    if start.elapsed() >= CLEANUP {
        println!("  some objects still exist after {} s", CLEANUP.as_secs());
    }
}
