//! The controller with a real API server, as the chart renders it: the limits of the API server in the same run, the
//! time of the controller compared with them, its reaction time, and its resource usage when idle.
//!
//! `cargo bench --bench cluster` measures everything; `-- many=2000` creates 2,000 objects instead of 10,000. The same
//! applies to `objects=`, `chains=`, `random=` and `configs=` (0 skips a part).

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::unchecked_time_subtraction,
    reason = "a benchmark prints figures with two digits"
)]

#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod audit;
#[path = "../tests/cluster/controller.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod controller;
#[path = "../tests/support/programs.rs"]
mod programs;
#[path = "../tests/support/providers.rs"]
mod providers;
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod processes;
mod server;
#[path = "../tests/support/controlplane.rs"]
mod controlplane;
#[path = "../tests/cluster/installation.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod installation;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};

use serde_json::{Value, json};

use audit::{Audit, CONTROLLER, Write, counted};
use controller::Controller;
use processes::{Process, mib};
use server::{CLIENTS, Server};

/// How long the benchmark waits until the objects are ready.
const READY_LIMIT: Duration = Duration::from_mins(20);

/// How long the idle controller is observed.
const IDLE: Duration = Duration::from_secs(30);

/// How long the controller must not have written before it counts as idle.
const QUIET: Duration = Duration::from_secs(10);

/// The number of objects that are changed, one after the other.
const CHANGES: usize = 20;

/// How long to wait for the writes of one change.
const CHANGE_PAUSE: Duration = Duration::from_secs(2);

fn main() {
    // `cargo bench` passes `--bench`; `cargo test --benches` does not, and then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run());
}

fn argument_or(name: &str, default: usize) -> usize {
    let value = std::env::args().find_map(|argument| argument.strip_prefix(&format!("{name}="))?.parse().ok());
    value.unwrap_or(default)
}

async fn run() {
    let plane = installation::plane();
    let server = Server::new(plane).await;
    println!("load of the machine: {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let limits = probe(&server).await;
    let controller = Controller::start(plane);
    let process = Process(controller.pid());
    let before = process.memory();
    println!("controller with nothing to do: {:.1} MiB", mib(before));
    // The first objects of a process include the cost of connections and caches.
    warm_up(&server).await;
    let (objects, chains, many) =
        (argument_or("objects", 1_000), argument_or("chains", 500), argument_or("many", 10_000));
    if objects > 0 {
        new_objects(&server, &limits, objects).await;
    }
    if chains > 0 {
        config_maps(&server, &limits, chains).await;
    }
    let (random, configs) = (argument_or("random", 1_000), argument_or("configs", 20));
    if random > 0 {
        provider_objects(&server, &limits, random).await;
    }
    if configs > 0 {
        idle_providers(&server, process, configs).await;
    }
    if many > 0 {
        unchanged_objects(&server, process, before, many).await;
    }
}

// --- Limits of the API server ---------------------------------------------------------------------------------------

/// Requests a second, by the kind of write.
struct Limits(BTreeMap<&'static str, f64>);

const CREATE: &str = "create Resource";
const PATCH: &str = "patch Resource";
const STATUS: &str = "patch Resource status";
const NEW_SECRET: &str = "create Secret";
const SECRET: &str = "update Secret";
/// Every object is read before it is created.
const READ: &str = "get configmaps";
const APPLY: &str = "patch configmaps";

async fn probe(server: &Server<'_>) -> Limits {
    const COUNT: usize = 1_000;
    let namespace = server.plane.namespace("limits");
    let (resources, secrets) = (server.resources(&namespace), server.secrets(&namespace));
    let mut limits = BTreeMap::new();
    let name = |number: usize| format!("item-{number}");
    let object = |value: Value| serde_json::from_value::<DynamicObject>(value).expect("an object");
    let post = PostParams::default();
    let params = PatchParams::default();

    // An API server is busy for a second or two after a CRD is created.
    rate(COUNT, async |number| resources.create(&post, &object(data(COUNT + number, 3))).await.map(drop)).await;
    let rate = rate(COUNT, async |number| resources.create(&post, &object(data(number, 3))).await.map(drop)).await;
    limits.insert(CREATE, rate);
    let mark = json!({"metadata": {"finalizers": ["purlin.dev/destroy"], "annotations": {"purlin.dev/record": "x"}}});
    let mark = Patch::Merge(&mark);
    let rate = self::rate(COUNT, async |number| resources.patch(&name(number), &params, &mark).await.map(drop)).await;
    limits.insert(PATCH, rate);
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Ready", "message": "The object is as described.",
               "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let status = json!({"status": {"observedGeneration": 1, "id": "0d5a7b4c-7d8f-4d4e-9f0a-1b2c3d4e5f60",
                                   "conditions": [condition("Ready"), condition("Synced")]}});
    let status = Patch::Merge(&status);
    let rate =
        self::rate(COUNT, async |number| resources.patch_status(&name(number), &params, &status).await.map(drop)).await;
    limits.insert(STATUS, rate);
    // About the size of a record of `terraform_data`.
    let secret = |number: usize, body: &str| {
        object(json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                      "metadata": {"name": name(number), "labels": {"purlin.dev/namespace": "limits"}},
                      "stringData": {"record": body.repeat(700)}}))
    };
    let rate = self::rate(COUNT, async |number| secrets.create(&post, &secret(number, "a")).await.map(drop)).await;
    limits.insert(NEW_SECRET, rate);
    let rate =
        self::rate(COUNT, async |number| secrets.replace(&name(number), &post, &secret(number, "b")).await.map(drop))
            .await;
    limits.insert(SECRET, rate);

    let maps = server.config_maps(&namespace);
    let rate = self::rate(COUNT, async |number| maps.get_opt(&name(number)).await.map(drop)).await;
    limits.insert(READ, rate);
    let apply = PatchParams::apply("purlin").force();
    let map = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": name(number), "annotations": {"purlin.dev/owner": "a/b/c/d"}},
               "data": {"after": "nothing"}})
    };
    let rate =
        self::rate(COUNT, async |number| maps.patch(&name(number), &apply, &Patch::Apply(map(number))).await.map(drop));
    limits.insert(APPLY, rate.await);

    println!("\nthe API server alone, {CLIENTS} clients");
    limits.iter().for_each(|(what, rate)| println!("  {what:<28} {rate:>8.0} /s"));
    // Delete the objects, so that the controller does not process them.
    let lift = json!({"metadata": {"finalizers": null}});
    let lift = Patch::Merge(&lift);
    self::rate(2 * COUNT, async |number| {
        resources.patch(&name(number), &params, &lift).await?;
        resources.delete(&name(number), &kube::api::DeleteParams::default()).await.map(drop)
    })
    .await;
    Limits(limits)
}

async fn rate(count: usize, request: impl AsyncFn(usize) -> kube::Result<()>) -> f64 {
    let start = Instant::now();
    let requests = stream::iter(0..count).map(|number| request(number)).buffer_unordered(CLIENTS);
    requests.try_collect::<()>().await.expect("a successful request");
    count as f64 / start.elapsed().as_secs_f64()
}

// --- New objects ----------------------------------------------------------------------------------------------------

/// One of many `terraform_data` Resources, in chains of the given length.
fn data(number: usize, chain: usize) -> Value {
    let input =
        if number.is_multiple_of(chain) { format!("item {number}") } else { format!("${{item_{}.id}}", number - 1) };
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": format!("item-{number}")},
           "spec": {"type": "terraform_data", "config": {"input": {"name": format!("item {number}"), "after": input}}}})
}

/// One of many `kubernetes_object` Resources over ConfigMaps, in chains of three.
fn config_map(number: usize) -> Value {
    let after = if number.is_multiple_of(3) {
        "nothing".to_owned()
    } else {
        format!("${{item_{}.object.metadata.name}}", number - 1)
    };
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("item-{number}")},
                          "data": {"after": after}});
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": format!("item-{number}")},
           "spec": {"type": "kubernetes_object", "config": {"manifest": manifest}}})
}

async fn warm_up(server: &Server<'_>) {
    let namespace = server.plane.namespace("warm");
    server.create(&namespace, (0..9).map(|number| data(number, 3)).collect()).await;
    ready(server, &namespace, 9).await;
}

/// Waits until `count` Resources of a namespace are ready.
async fn ready(server: &Server<'_>, namespace: &str, count: usize) {
    let events = watcher(server.resources(namespace), watcher::Config::default()).applied_objects();
    let mut events = std::pin::pin!(events);
    let (mut ready, start) = (BTreeSet::new(), Instant::now());
    while ready.len() < count {
        let event = tokio::time::timeout(READY_LIMIT, events.next()).await.ok().flatten();
        let Some(Ok(object)) = event else { continue };
        let name = object.metadata.name.clone().unwrap_or_default();
        if installation::is_ready(&serde_json::to_value(&object).expect("JSON")) {
            ready.insert(name);
        }
        assert!(start.elapsed() < READY_LIMIT, "{} of {count} objects of {namespace} are ready", ready.len());
    }
}

/// Creates Resources. Returns the time until all are ready, and the writes of the controller.
async fn create_and_wait(server: &Server<'_>, namespace: &str, manifests: Vec<Value>) -> (Duration, Vec<Write>) {
    let mut audit = Audit::from_now(server.plane, CONTROLLER);
    let (start, count) = (Instant::now(), manifests.len());
    tokio::join!(server.create(namespace, manifests), ready(server, namespace, count));
    (start.elapsed(), audit.writes())
}

/// Waits until the controller has written everything. Returns the time until the last write.
async fn quiet(server: &Server<'_>) -> Duration {
    Audit::from_now(server.plane, CONTROLLER).until_quiet(QUIET, READY_LIMIT).await
}

async fn new_objects(server: &Server<'_>, limits: &Limits, count: usize) {
    let namespace = server.plane.namespace("new");
    let manifests = (0..count).map(|number| data(number, 3)).collect();
    let (took, writes) = create_and_wait(server, &namespace, manifests).await;
    println!("\n{count} new terraform_data, chains of three: {:.2} s", took.as_secs_f64());
    print_cost(limits, count, took, &counted(&writes));
}

/// Prints the time that the requests take at the limits of the API server, and compares it with the measured time.
fn print_cost(limits: &Limits, count: usize, took: Duration, requests: &BTreeMap<String, usize>) {
    let mut cost = count as f64 / limits.0[CREATE];
    for (kind, number) in requests {
        let known = limits.0.get(kind.as_str()).map(|rate| *number as f64 / rate);
        cost += known.unwrap_or_default();
        let seconds = known.map_or("not included in the cost".to_owned(), |seconds| format!("{seconds:.2} s"));
        println!("  {kind:<28} {number:>7}  {seconds}");
    }
    println!("  creates and requests alone cost {cost:.2} s; ratio {:.2} (budget 2)", took.as_secs_f64() / cost);
}

async fn config_maps(server: &Server<'_>, limits: &Limits, chains: usize) {
    let namespace = server.plane.namespace("maps");
    let account = format!("--serviceaccount={namespace}:default");
    server.plane.kubectl_ok(&["-n", &namespace, "create", "rolebinding", "edit", "--clusterrole=edit", &account]);
    let count = chains * 3;
    let (took, writes) = create_and_wait(server, &namespace, (0..count).map(config_map).collect()).await;
    let rate = count as f64 / took.as_secs_f64();
    println!("\n{chains} chains of three ConfigMaps: {:.2} s, {rate:.0} objects/s (budget 160)", took.as_secs_f64());
    let mut requests = counted(&writes);
    requests.insert(READ.to_owned(), count);
    print_cost(limits, count, took, &requests);
}

// --- Providers ------------------------------------------------------------------------------------------------------

/// Creates the Provider for the types `random_*`.
fn create_provider(server: &Server<'_>) {
    let program = providers::program("random");
    let spec = json!({"source": "hashicorp/random", "package": {"path": program}});
    let manifest =
        json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "random"}, "spec": spec});
    server.plane.apply(&[], &manifest.to_string());
}

/// A `random_id` Resource with references to others.
fn random_id(number: usize, references: &[usize]) -> Value {
    let mut keepers = json!({"name": format!("item {number}")});
    for (place, other) in references.iter().enumerate() {
        keepers[format!("after_{place}")] = json!(format!("${{item_{other}.id}}"));
    }
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": format!("item-{number}")},
           "spec": {"type": "random_id", "config": {"byte_length": 8, "keepers": keepers}}})
}

async fn provider_objects(server: &Server<'_>, limits: &Limits, count: usize) {
    create_provider(server);
    let namespace = server.plane.namespace("random");
    let references = processes::references(count);
    let manifests = references.iter().enumerate().map(|(number, others)| random_id(number, others)).collect();
    let (took, writes) = create_and_wait(server, &namespace, manifests).await;
    println!("\n{count} new random_id, two references each: {:.2} s (budget 15)", took.as_secs_f64());
    print_cost(limits, count, took, &counted(&writes));
}

/// Measures the memory of the controller for each idle provider process.
async fn idle_providers(server: &Server<'_>, process: Process, count: usize) {
    create_provider(server);
    let namespace = server.plane.namespace("configs");
    // The first ones include the cost of what all of them share.
    create_provider_configs(server, &namespace, 0..3).await;
    let before = process.memory();
    create_provider_configs(server, &namespace, 3..count + 3).await;
    let each = mib(process.memory().saturating_sub(before)) / count as f64;
    println!("\n{count} more provider processes, idle: {each:.2} MiB of the controller for each (budget 1)");
}

/// Creates ProviderConfigs, each with one object and therefore with its own process.
async fn create_provider_configs(server: &Server<'_>, namespace: &str, numbers: Range<usize>) {
    let of = |number: usize| {
        let (config, pet) = (format!("random-{number}"), format!("pet-{number}"));
        [
            json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": config},
                   "spec": {"provider": {"name": "random"}}}),
            json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": pet},
                   "spec": {"type": "random_pet", "providerConfigRef": {"name": config}, "config": {}}}),
        ]
    };
    let last = numbers.end;
    let items: Vec<Value> = numbers.flat_map(of).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    server.plane.apply(&["-n", namespace], &list.to_string());
    ready(server, namespace, last).await;
    quiet(server).await;
}

// --- Many unchanged objects -----------------------------------------------------------------------------------------

async fn unchanged_objects(server: &Server<'_>, process: Process, empty: u64, many: usize) {
    let namespace = server.plane.namespace("many");
    let manifests = (0..many).map(|number| data(number, 3)).collect();
    let (took, _) = create_and_wait(server, &namespace, manifests).await;
    println!("\n{many} objects ready in {:.1} s", took.as_secs_f64());
    println!("  last event of the burst written {:.1} s later", quiet(server).await.as_secs_f64());

    let mut audit = Audit::from_now(server.plane, CONTROLLER);
    let (start, used) = (Instant::now(), process.cpu());
    tokio::time::sleep(IDLE).await;
    let share = (process.cpu() - used).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    let memory = process.memory();
    let writes = counted(&audit.writes());
    println!(
        "  idle for {} s: {} writes {writes:?}, CPU {share:.2} % (budget 1)",
        IDLE.as_secs(),
        writes.values().sum::<usize>()
    );
    println!(
        "  memory {:.1} MiB, {:.1} more than with none: {:.1} KiB an object (budget 10), peak {:.1} MiB",
        mib(memory),
        mib(memory.saturating_sub(empty)),
        memory.saturating_sub(empty) as f64 / 1024.0 / many as f64,
        mib(process.peak()),
    );

    let (api, params) = (server.resources(&namespace), PatchParams::default());
    let (mut delays, mut others) = (Vec::new(), 0);
    for change in 0..CHANGES {
        // The last of a chain: nothing depends on it.
        let name = format!("item-{}", (many / CHANGES * change) / 3 * 3 + 2);
        let patch = json!({"spec": {"config": {"input": {"name": format!("changed {change}")}}}});
        let changed = api.patch(&name, &params, &Patch::Merge(&patch)).await;
        changed.expect("a changed Resource");
        let changed_at = purlin::process::Clock::now(&purlin::process::SystemClock);
        tokio::time::sleep(CHANGE_PAUSE).await;
        let writes = audit.writes();
        let start = writes.iter().find(|write| write.resource == "secrets").map(|write| write.received);
        delays.extend(start.map(|start| start.duration_since(changed_at).as_secs_f64() * 1000.0));
        let records: BTreeSet<&str> =
            writes.iter().filter(|write| write.resource == "secrets").map(|write| write.name.as_str()).collect();
        let foreign = |write: &&Write| write.resource == "resources" && write.name != name;
        others += writes.iter().filter(foreign).count() + records.len().saturating_sub(1);
    }
    delays.sort_by(f64::total_cmp);
    let at = |place: usize| delays.get(place).copied().unwrap_or(f64::NAN);
    println!(
        "  one changed object, {} times: its step starts after {:.0} ms (median), {:.0} ms (slowest; budget 100); \
         writes of other objects: {others}",
        delays.len(),
        at(delays.len() / 2),
        at(delays.len().saturating_sub(1)),
    );
}
