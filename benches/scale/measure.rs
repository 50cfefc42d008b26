//! One row of the table: new objects, the idle controller, its fail-over, and the deletion of everything. Each figure is
//! also printed as soon as it is known: a row with many objects takes more than an hour.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::audit::Audit;
use crate::controlplane::ControlPlane;
use crate::observer::{History, Key, Observer};
use crate::processes::Process;
use crate::replicas::Processes;
use crate::server::{CLIENTS, Server};
use crate::workload::Workload;

/// How long the benchmark waits until all objects are ready.
const READY_LIMIT: Duration = Duration::from_hours(1);

/// How long the benchmark waits for a change that is made when a process is killed.
const CHANGE_LIMIT: Duration = Duration::from_mins(3);

/// How many objects are changed one after another, to measure how long one change takes.
const CHANGES: usize = 10;

/// How long the controller must not have written before it counts as idle: events are written at a limited rate.
const QUIET: Duration = Duration::from_secs(5);

/// How long the idle controller is observed. The head of the table names it.
const IDLE: Duration = Duration::from_secs(30);

pub(crate) struct Row {
    pub(crate) program: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) objects: usize,
    pub(crate) replicas: usize,
    /// From the first create until the last object was ready.
    pub(crate) total: Duration,
    /// From the create of each object until it was ready, sorted.
    pub(crate) times: Vec<Duration>,
    /// The writes of the controller for all objects, without its Leases.
    pub(crate) writes: usize,
    pub(crate) idle_writes: usize,
    /// The CPU time of all idle replicas, in percent of one core.
    pub(crate) idle_cpu: f64,
    /// The resident memory of each idle replica in bytes.
    pub(crate) memory: Vec<u64>,
    /// From one change of one of the idle objects until it was ready, the longest of [`CHANGES`].
    pub(crate) change: Duration,
    /// From the end of a process until a change in each namespace was ready. `None`: it took longer than
    /// [`CHANGE_LIMIT`].
    pub(crate) fail_over: Option<Duration>,
    /// The resident memory of each replica in bytes, after one of them was replaced.
    pub(crate) memory_after: Vec<u64>,
    /// From the deletion of all objects until the last one was gone.
    pub(crate) deletion: Duration,
}

pub(crate) async fn row(
    server: &Server<'_>,
    workload: &Workload,
    processes: &mut dyn Processes,
    objects: usize,
    namespaces: usize,
) -> Row {
    let namespaces = namespaces_with_rights(server.plane, namespaces);
    let observer = Observer::start(server, &workload.api).await;
    // The first objects include the cost of connections and caches.
    let first = create(server, workload, &namespaces, "warm", namespaces.len()).await;
    all_ready(&observer.history, &first).await;
    quiet(server, workload).await;

    let mut audit = Audit::from_now(server.plane, workload.user);
    let start = Instant::now();
    let created = create(server, workload, &namespaces, "item", objects).await;
    let ready = all_ready(&observer.history, &created).await;
    let mut times: Vec<Duration> =
        created.iter().zip(&ready).map(|((_, sent), ready)| ready.duration_since(*sent)).collect();
    times.sort();
    let total = ready.iter().max().map_or(Duration::ZERO, |last| last.duration_since(start));
    eprintln!("{objects} objects are ready after {total:.0?}");
    quiet(server, workload).await;
    let writes = audit.writes().len();

    let (idle_start, used) = (Instant::now(), cpu(&processes.all()));
    tokio::time::sleep(IDLE).await;
    let idle_cpu = (cpu(&processes.all()) - used).as_secs_f64() / idle_start.elapsed().as_secs_f64() * 100.0;
    let idle_writes = audit.writes().len();
    let running = processes.all();
    let memory: Vec<u64> = running.iter().map(|process| process.memory()).collect();
    eprintln!("idle: {idle_cpu:.2} % of a core, {idle_writes} writes, {memory:?} bytes");
    let mut slowest = Duration::ZERO;
    for (key, _) in created.iter().step_by((created.len() / CHANGES).max(1)).take(CHANGES) {
        let (start, to) = (Instant::now(), (workload.change)("one change"));
        let ready = change(api(server, workload, &key.0), observer.history.clone(), key.clone(), to).await;
        slowest = slowest.max(ready.expect("the change is not ready").duration_since(start));
    }
    eprintln!("the slowest of {CHANGES} changes took {slowest:.0?}");
    quiet(server, workload).await;
    let fail_over = fail_over(server, workload, &observer.history, processes, &first).await;
    quiet(server, workload).await;
    let memory_after: Vec<u64> = processes.all().iter().map(|process| process.memory()).collect();
    eprintln!("fail-over took {fail_over:.0?}; afterwards {memory_after:?} bytes");
    let all = first.iter().chain(&created).map(|(key, _)| key);
    let deletion = delete(server, workload, all, &observer.history).await;
    let (program, kind, replicas) = (workload.program, workload.objects, running.len());
    Row {
        program,
        kind,
        objects,
        replicas,
        total,
        times,
        writes,
        idle_writes,
        idle_cpu,
        memory,
        change: slowest,
        fail_over,
        memory_after,
        deletion,
    }
}

/// Deletes objects as `kubectl delete` does, and waits until they are gone: the API server deletes no large collection
/// within its time limit for requests.
async fn delete(
    server: &Server<'_>,
    workload: &Workload,
    objects: impl Iterator<Item = &Key>,
    history: &History,
) -> Duration {
    let start = Instant::now();
    let deleted = stream::iter(objects).map(|(namespace, name)| {
        let api = api(server, workload, namespace);
        async move { api.delete(name, &DeleteParams::default()).await.map(drop) }
    });
    deleted.buffer_unordered(CLIENTS).try_collect::<()>().await.expect("deleted objects");
    assert!(history.wait_empty(READY_LIMIT).await, "{} objects are not deleted", history.count());
    start.elapsed()
}

/// Changes an object. Returns when it was ready. `None`: it took longer than [`CHANGE_LIMIT`].
async fn change(api: Api<DynamicObject>, history: History, key: Key, change: Value) -> Option<Instant> {
    let changed = api.patch(&key.1, &PatchParams::default(), &Patch::Merge(&change)).await;
    let generation = changed.expect("a changed object").metadata.generation.unwrap_or_default();
    history.wait(&key, generation, CHANGE_LIMIT).await
}

fn api(server: &Server<'_>, workload: &Workload, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(server.client.clone(), namespace, &workload.api)
}

fn cpu(processes: &[Process]) -> Duration {
    processes.iter().map(|process| process.cpu()).sum()
}

/// Creates namespaces in which the default service account may edit objects, with any number of objects.
pub(crate) fn namespaces_with_rights(plane: &ControlPlane, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("scale-{number}")).collect();
    let of = |name: &String| {
        [
            json!({"apiVersion": "v1", "kind": "Namespace",
                   "metadata": {"name": name, "annotations": {"purlin.dev/quota": "objects=1000000"}}}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                   "metadata": {"name": "edit", "namespace": name},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                   "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": name}]}),
        ]
    };
    let items: Vec<Value> = names.iter().flat_map(of).collect();
    plane.apply(&[], &json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    names
}

/// Creates objects, spread over the namespaces. Returns when the request of each was sent.
async fn create(
    server: &Server<'_>,
    workload: &Workload,
    namespaces: &[String],
    prefix: &str,
    count: usize,
) -> Vec<(Key, Instant)> {
    let created = stream::iter(0..count).map(|number| {
        let (namespace, name) = (namespaces[number % namespaces.len()].clone(), format!("{prefix}-{number}"));
        let api = api(server, workload, &namespace);
        let manifest = serde_json::from_value((workload.manifest)(&name)).expect("an object");
        async move {
            let sent = Instant::now();
            api.create(&PostParams::default(), &manifest).await.map(|_| ((namespace, name), sent))
        }
    });
    created.buffer_unordered(CLIENTS).try_collect().await.expect("created objects")
}

/// Waits until all new objects are ready. Returns when each was.
async fn all_ready(history: &History, created: &[(Key, Instant)]) -> Vec<Instant> {
    let mut ready = Vec::new();
    for (key, _) in created {
        let at = history.wait(key, 1, READY_LIMIT).await;
        ready.push(at.unwrap_or_else(|| panic!("{key:?} is not ready, {} objects are", history.count())));
    }
    ready
}

/// Waits until the controller has written everything.
async fn quiet(server: &Server<'_>, workload: &Workload) {
    Audit::from_now(server.plane, workload.user).until_quiet(QUIET, READY_LIMIT).await;
}

/// Kills a process, changes an object of each namespace at that moment, and starts another process, as a Deployment
/// does. Returns the time until the last of the changes was ready: the change of a namespace of another replica takes
/// no longer than usual.
async fn fail_over(
    server: &Server<'_>,
    workload: &Workload,
    history: &History,
    processes: &mut dyn Processes,
    objects: &[(Key, Instant)],
) -> Option<Duration> {
    let killed = Instant::now();
    processes.kill(0);
    let mut changes = JoinSet::new();
    for (key, _) in objects {
        let to = (workload.change)("after the kill");
        changes.spawn(change(api(server, workload, &key.0), history.clone(), key.clone(), to));
    }
    processes.replace(0);
    let ready: Option<Vec<Instant>> = changes.join_all().await.into_iter().collect();
    ready?.into_iter().max().map(|last| last.duration_since(killed))
}
