//! The environment of a story: the operations of its users, the conditions that they wait for, and the checks at its
//! end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiserver::{Cluster, Object, Server};
use jiff::SignedDuration;
use purlin::model::Value as Plain;
use purlin::process::Clock as _;
use serde_json::{Value, json};
use testkit::scripted::Recovery;
use testkit::scripted::{EffectKind, Operation, ScriptLine, ScriptedOutcome};
use tokio::time::{Instant, sleep};

use super::strike::{Counted, Strike, Strikes};
use crate::cluster_objects;
use crate::convergence::{all_records, missing, text, writes_since};
use crate::history::merged;
use crate::judge::Judge;
use crate::kubectl::{ClusterKubectl, SHOP, path};
use crate::log;
use crate::outside::Outside;
use crate::random::SimulatedClock;
use crate::replica::{Environment, Replica};
use crate::user::Kubectl as _;

/// How long a story waits for a condition: longer than the longest back-off and than the deadline of a create.
const PATIENCE: Duration = Duration::from_mins(8);
/// The interval in which conditions are checked.
const LOOK: Duration = Duration::from_millis(100);
/// For how long no write may follow when everything is up to date.
const SILENCE: Duration = Duration::from_secs(12);
/// The same in a play without a fault: longer than any back-off.
const LONG_SILENCE: Duration = Duration::from_mins(8);

pub(crate) struct Outcome {
    pub(crate) objection: Option<String>,
    pub(crate) tape: Vec<String>,
    /// The created and destroyed objects, sorted.
    pub(crate) effects: Vec<String>,
    pub(crate) strikes: Strikes,
    /// How long the play took, by the real clock.
    pub(crate) took: Duration,
}

pub(crate) struct Play {
    pub(super) env: Environment,
    pub(super) strikes: Strikes,
    pub(super) replicas: RefCell<Vec<Replica>>,
    pub(super) started: Cell<u32>,
    /// The number of the gate at which calls are held.
    gate: Cell<u32>,
    pub(super) is_disturbed: bool,
    /// The result of the last check whether everything is up to date, with the version of the API server and the number
    /// of effects for which it is valid.
    last_check: Cell<Option<(u64, usize, bool)>>,
}

/// A spec with its value, its `force`, and other fields. Its create has a short deadline, because Purlin does not
/// assume before the deadline that an interrupted create had no effect, and a longer simulation is slow.
pub(crate) fn thing(value: &str, force: &str, more: Value) -> Value {
    let mut spec = json!({
        "type": "scripted_thing",
        "config": { "value": value, "force": force },
        "timeouts": { "create": "1m" },
    });
    for (name, field) in more.as_object().into_iter().flatten() {
        spec[name] = field.clone();
    }
    spec
}

/// A spec of a ConfigMap in the cluster.
pub(crate) fn config_map(name: &str) -> Value {
    let manifest =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "b" } });
    json!({ "type": "kubernetes_object", "config": { "manifest": manifest }, "timeouts": { "create": "1m" } })
}

/// A spec without other fields.
pub(crate) fn plain(value: &str, force: &str) -> Value {
    thing(value, force, Value::Null)
}

impl Play {
    /// Plays a story with at most one fault.
    pub(crate) async fn run(
        story: &super::Story,
        strike: Option<Strike>,
        recovery: Recovery,
        with_tape: bool,
    ) -> Outcome {
        let began = Instant::now();
        let seed = story.name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let strikes = Strikes::new(strike);
        let cluster = Cluster::new(SimulatedClock::new(began, SignedDuration::ZERO).now(), strikes.clone());
        let judge = Judge::new();
        let outside = Outside::new(seed, recovery, judge.clone()).interrupted_by(Arc::new(strikes.clone()));
        let env = Environment::new((seed, began), (&[SHOP], 2), cluster, outside, judge);
        let play = Self {
            env,
            strikes,
            replicas: RefCell::default(),
            started: Cell::new(0),
            gate: Cell::new(0),
            is_disturbed: strike.is_some(),
            last_check: Cell::new(None),
        };
        play.start();
        tokio::select! {
            biased;
            () = play.watch_over() => {}
            () = (story.play)(&play) => {}
        }
        play.outcome(with_tape).await
    }

    async fn outcome(self, with_tape: bool) -> Outcome {
        for name in self.names() {
            let left = self.kubectl().get(&name).unwrap_or_default();
            self.env.judge.note(&format!("left: {} {}", left["metadata"], left["spec"]));
        }
        for replica in self.replicas.into_inner() {
            replica.kill(&self.env).await;
        }
        let by_others = |uid: &str| self.env.judge.is_given_up(uid);
        let found = self.env.cluster.with(|server, _| log::objections(server, &by_others));
        found.iter().for_each(|objection| self.env.judge.object(objection));
        let Environment { cluster, outside, judge, .. } = self.env;
        let mut effects: Vec<String> = outside
            .world
            .effects()
            .into_iter()
            .filter(|effect| matches!(effect.kind, EffectKind::Created | EffectKind::Destroyed))
            .map(|effect| format!("{:?} {}", effect.kind, effect.address))
            .chain(cluster.with(|server, _| log::effects(server)))
            .collect();
        effects.sort();
        let tape = if with_tape { merged(judge.tape(), cluster.tape()) } else { Vec::new() };
        Outcome { objection: judge.objection(), tape, effects, strikes: self.strikes, took: Duration::ZERO }
    }

    /// Lets the next turn of a namespace's task that reads an object panic.
    pub(crate) fn panic_next_turn(&self) {
        self.env.judge.note("the next turn panics");
        self.env.outside.panic_next_turn();
    }

    pub(crate) async fn until_panicked(&self) {
        self.until("a turn has panicked", || self.env.outside.has_panicked()).await;
    }

    /// Ends the preparation of a story: waits until everything is up to date. Faults happen from here on.
    pub(crate) async fn given(&self) {
        self.until_up_to_date().await;
        sleep(Duration::from_secs(3)).await;
        self.env.judge.note("the story begins");
        self.strikes.begin(self.env.cluster.with(|server, _| server.version()));
    }

    /// Like `given`, for a story that begins without objects.
    pub(crate) async fn empty(&self) {
        let leads = || self.env.cluster.with(|server, _| server.objects("coordination.k8s.io", "leases").count() > 0);
        self.until("a replica leads", leads).await;
        self.given().await;
    }

    fn kubectl(&self) -> ClusterKubectl {
        ClusterKubectl { cluster: self.env.cluster.clone(), namespace: SHOP }
    }

    pub(crate) fn apply(&self, name: &str, spec: &Value) {
        self.apply_with(name, spec, &json!({}));
    }

    pub(crate) fn apply_with(&self, name: &str, spec: &Value, annotations: &Value) {
        self.env.judge.note(&format!("user applies {name} {spec} {annotations}"));
        self.kubectl().apply(name, spec, annotations);
    }

    /// Creates a Resource in a namespace, or replaces its spec.
    pub(crate) fn apply_in(&self, namespace: &'static str, name: &str, spec: &Value) {
        self.env.judge.note(&format!("user applies {namespace}/{name} {spec}"));
        let mut kubectl = ClusterKubectl { cluster: self.env.cluster.clone(), namespace };
        kubectl.apply(name, spec, &Value::Null);
    }

    /// Changes a Resource with a merge patch.
    pub(crate) fn patch(&self, name: &str, patch: &Value) {
        self.env.judge.note(&format!("user patches {name} {patch}"));
        self.env.cluster.with(|server, now| server.modify(now, &path(SHOP, name), patch));
    }

    pub(crate) fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.patch(name, &json!({ "metadata": { "annotations": { annotation: value } } }));
    }

    pub(crate) fn delete(&self, name: &str) {
        self.env.judge.note(&format!("user deletes {name}"));
        self.kubectl().delete(name);
    }

    pub(crate) fn force(&self, name: &str) {
        self.env.judge.note(&format!("user removes the finalizers of {name}"));
        self.kubectl().force(name);
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        let resource = self.kubectl().get(name).unwrap_or_default();
        resource["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
    }

    pub(crate) fn touch_records(&self) {
        self.env.judge.note("user touches the metadata of all records");
        self.kubectl().touch_records("now");
    }

    /// Grants the ServiceAccount of the namespace all permissions in it while its Role and its RoleBinding exist.
    pub(crate) fn grant_access(&self) {
        let rbac = "rbac.authorization.k8s.io/v1";
        let metadata = json!({ "namespace": SHOP, "name": "purlin" });
        let role = json!({ "apiVersion": rbac, "kind": "Role", "metadata": metadata.clone(), "rules": [] });
        let binding = json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "purlin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": SHOP }],
        });
        self.env.cluster.with(|server, now| {
            server.access.need_bindings(true);
            server.insert(now, role);
            server.insert(now, binding);
        });
    }

    /// Deletes the namespace with its content.
    pub(crate) async fn delete_namespace(&self) {
        self.delete_namespace_by(usize::MAX).await;
    }

    /// Deletes the namespace: the Role and the RoleBinding first, then the other objects one after the other.
    pub(crate) async fn delete_namespace_rights_first(&self) {
        self.delete_namespace_by(1).await;
    }

    /// Deletes the namespace, and lets the namespace controller delete its content once.
    pub(crate) fn begin_deleting_namespace(&self) {
        self.env.judge.note("user deletes the namespace");
        self.env.cluster.with(|server, now| {
            server.erase(now, &format!("/api/v1/namespaces/{SHOP}"));
            server.tick_namespaces(now, usize::MAX, |_| {});
        });
    }

    /// `most` is the number of objects that are deleted at a time.
    async fn delete_namespace_by(&self, most: usize) {
        self.env.judge.note("user deletes the namespace");
        self.env.cluster.with(|server, now| server.erase(now, &format!("/api/v1/namespaces/{SHOP}")));
        let is_right =
            |object: &Arc<Object>| object.value["kind"].as_str().is_some_and(|kind| kind.starts_with("Role"));
        self.until("the namespace is deleted", || {
            self.env.cluster.with(|server, now| {
                server.tick_namespaces(now, most, |left| left.sort_by_key(|object| !is_right(object)));
                server.object("", "namespaces", "", SHOP).is_none()
            })
        })
        .await;
        self.until_forgotten().await;
    }

    /// Waits until no record exists.
    pub(crate) async fn until_forgotten(&self) {
        self.until("no record exists", || self.env.cluster.with(|server, _| all_records(server).is_empty())).await;
    }

    /// Waits until no record has an intent.
    pub(crate) async fn until_closed(&self) {
        let is_closed = |server: &Server| all_records(server).iter().all(|record| record.intent.is_none());
        self.until("no record has an intent", || self.env.cluster.with(|server, _| is_closed(server))).await;
    }

    /// Sets the responses to the next calls of this kind for an address.
    pub(crate) fn script(&self, address: &str, operation: Operation, answers: Vec<ScriptedOutcome>) {
        self.env.outside.world.script(ScriptLine { on: address.to_owned(), operation, answers });
    }

    /// Lets the next call of this kind wait until it is released.
    pub(crate) fn hold(&self, address: &str, operation: Operation) {
        self.script(address, operation, vec![ScriptedOutcome::Hold(self.gate())]);
    }

    fn gate(&self) -> String {
        format!("gate-{}", self.gate.get())
    }

    /// Lets all held calls continue.
    pub(crate) fn release(&self) {
        self.env.judge.note("held calls continue");
        self.env.outside.world.release(&self.gate());
        self.gate.set(self.gate.get() + 1);
    }

    /// Creates an object of the service that Purlin does not manage.
    pub(crate) fn put(&self, id: &str, value: &str, force: &str) {
        let config = Plain::map([("value", Plain::from(value)), ("force", Plain::from(force))]);
        self.env.outside.world.put(id, &config);
    }

    fn id(&self, address: &str) -> Option<String> {
        let records = self.env.cluster.with(|server, _| all_records(server));
        let record = records.into_iter().find(|record| record.address.to_string() == address)?;
        record.current?.id().map(str::to_owned)
    }

    /// Another client changes an object.
    pub(crate) fn drift(&self, address: &str, value: &str) {
        self.env.judge.note(&format!("another client sets {address} to {value}"));
        let id = self.id(address).unwrap_or_default();
        self.env.outside.world.change(&id, "value", Plain::from(value));
    }

    /// Another client destroys an object.
    pub(crate) fn lose(&self, address: &str) {
        self.env.judge.note(&format!("another client destroys {address}"));
        let id = self.id(address).unwrap_or_default();
        self.env.outside.world.remove(&id);
    }

    /// Purlin need not know the object of an address any more.
    pub(crate) fn give_up(&self, address: &str) {
        self.env.judge.give_up(self.id(address));
    }

    /// Waits until a driver was called like this: `create a`.
    pub(crate) async fn until_called(&self, call: &str) {
        self.until(call, || self.strikes.was_called(call)).await;
        // Gives the call time to reach the service.
        sleep(Duration::from_millis(50)).await;
    }

    /// Waits for a condition that must become true.
    pub(crate) async fn until(&self, what: &str, test: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !test() {
            self.check_replicas();
            if self.env.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                return self.env.judge.object(&format!("not within {PATIENCE:?}: {what}"));
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until a condition of a Resource has a status or a reason.
    pub(crate) async fn until_says(&self, name: &str, condition: &str, status_or_reason: &str) {
        self.until_says_any(name, condition, &[status_or_reason]).await;
    }

    /// Waits until a condition of a Resource has one of several statuses or reasons.
    pub(crate) async fn until_says_any(&self, name: &str, condition: &str, any: &[&str]) {
        let says = || {
            let resource = self.kubectl().get(name).unwrap_or_default();
            let found = crate::judge::condition(&resource["status"], condition);
            found.is_some_and(|(status, reason)| any.contains(&status) || any.contains(&reason))
        };
        self.until(&format!("{name} has {condition} {}", any.join(" or ")), says).await;
    }

    pub(crate) fn resource(&self, name: &str) -> Value {
        self.kubectl().get(name).unwrap_or_default()
    }

    /// Waits until everything is up to date.
    pub(crate) async fn until_up_to_date(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.is_up_to_date() {
            self.check_replicas();
            if self.env.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                let why = missing(&self.env).join("; ");
                return self.env.judge.object(&format!("after {PATIENCE:?}: {why}"));
            }
            sleep(LOOK).await;
        }
    }

    fn is_up_to_date(&self) -> bool {
        // The check is slow, and most of the time only the Lease changes.
        let version = self.env.cluster.with(|server, _| {
            let all = server.last_changes().filter(|(what, _)| &*what.1 != "leases");
            all.map(|(_, version)| version).max().unwrap_or_default()
        });
        let effects = self.env.outside.world.effects().len();
        if let Some((at, those, up_to_date)) = self.last_check.get()
            && (at, those) == (version, effects)
        {
            return up_to_date;
        }
        let up_to_date = missing(&self.env).is_empty();
        self.last_check.set(Some((version, effects, up_to_date)));
        up_to_date
    }

    fn check_replicas(&self) {
        for replica in self.replicas.borrow_mut().iter_mut().filter(|replica| !replica.is_stopping) {
            if let Some(why) = replica.exit_reason() {
                self.env.judge.object(&format!("{} ended: {why}", replica.name));
            }
        }
    }

    /// All objects, as `address value force`, or `address kind name data` for those in the cluster. The id of another
    /// object is shown as `->address`. An object without a record has the address `-`.
    pub(crate) fn objects(&self) -> Vec<String> {
        let (records, in_cluster) =
            self.env.cluster.with(|server, _| (all_records(server), cluster_objects::all(server)));
        let mut addresses: BTreeMap<String, String> = BTreeMap::new();
        for record in &records {
            for object in record.current.iter().chain(record.deposed.values()) {
                addresses.insert(object.id().unwrap_or_default().to_owned(), record.address.to_string());
            }
        }
        let shown = |value: Option<&Plain>| {
            let text = value.and_then(Plain::as_str).unwrap_or("?");
            addresses.get(text).map_or_else(|| text.to_owned(), |address| format!("->{address}"))
        };
        let objects = self.env.outside.world.objects();
        let mut all: Vec<String> = objects
            .iter()
            .map(|(id, (_, object))| {
                let address = addresses.get(id).map_or("-", String::as_str);
                format!("{address} {} {}", shown(object.get("value")), shown(object.get("force")))
            })
            .collect();
        all.extend(in_cluster.iter().map(|object| {
            let name = cluster_objects::address(&object.value).unwrap_or_default();
            let shown = cluster_objects::shown(&object.value, self.kubectl().get(&name).as_ref());
            match addresses.get(object.uid()) {
                _ if !cluster_objects::is_object(&object.value) => format!("for {name} {shown}"),
                address => format!("{} {shown}", address.map_or("-", String::as_str)),
            }
        }));
        all.sort();
        all
    }

    /// Checks the end of a story: everything is up to date, exactly these objects exist, and no write follows.
    pub(crate) async fn ends(&self, objects: &[&str]) {
        let mut expected: Vec<String> = objects.iter().map(|text| (*text).to_owned()).collect();
        expected.sort();
        self.until_up_to_date().await;
        let until = Instant::now() + PATIENCE;
        while !self.is_up_to_date() || self.objects() != expected {
            self.check_replicas();
            if self.env.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                let found = self.objects();
                return self.env.judge.object(&format!("it ends with {found:?} instead of {expected:?}"));
            }
            sleep(LOOK).await;
        }
        self.env.judge.note("everything is up to date");
        // Statuses and events may follow.
        sleep(Duration::from_secs(3)).await;
        self.strikes.end();
        self.until("each replica has its share", || self.unshared().is_empty()).await;
        // Longer than it takes to detect a crash at the last request.
        sleep(Duration::from_secs(if self.is_disturbed { 22 } else { 5 })).await;
        let version = self.env.cluster.with(|server, _| server.version());
        sleep(if self.is_disturbed { SILENCE } else { LONG_SILENCE }).await;
        self.check_replicas();
        let writes = writes_since(&self.env, version);
        if !writes.is_empty() {
            self.env.judge.object(&format!("writes after everything was up to date: {writes:?}"));
        }
        let missing = missing(&self.env);
        if !missing.is_empty() || self.objects() != expected {
            let found = self.objects();
            self.env.judge.object(&format!("no longer up to date: {found:?} {}", missing.join("; ")));
        }
    }

    /// Checks that the replicas have only sent reads and Lease updates since the story began.
    pub(crate) fn wrote_nothing(&self) {
        let reads = ["get", "list", "watch"];
        for request in self.strikes.counted(Counted::Requests) {
            let verb = request.split(' ').nth(1).unwrap_or_default();
            if !reads.contains(&verb) && !request.contains("/leases") {
                self.env.judge.object(&format!("nothing has changed, but a replica sends {request}"));
            }
        }
    }

    /// Checks, in a play without a fault, that a driver was called like this once since the story began.
    pub(crate) fn called_once(&self, question: &str) {
        let asked = self.strikes.counted(Counted::Questions);
        let count = asked.iter().filter(|one| one.ends_with(question)).count();
        if !self.is_disturbed && count != 1 {
            self.env.judge.object(&format!("{question} was called {count} times"));
        }
    }

    /// The names of all Resources.
    pub(crate) fn names(&self) -> Vec<String> {
        self.env.cluster.with(|server, _| {
            let all = server.objects("purlin.dev", "resources");
            all.map(|object| text(&object.value, "name").to_owned()).collect()
        })
    }

    pub(crate) async fn pass(&self, time: Duration) {
        sleep(time).await;
    }
}
