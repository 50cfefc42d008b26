//! The world of a story: what its users do, what they wait for, and how it has to end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::driver::scripted::Recovery;
use purlin::driver::scripted::{Answer, EffectKind, Line, Operation};
use purlin::model::Value as Plain;
use purlin::process::Clock as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::strike::{Counted, Crash, Fault, Strike, Strikes};
use crate::apiserver::{Cluster, Object, Server};
use crate::hands::{Hands, SHOP, path};
use crate::history::merged;
use crate::judge::Judge;
use crate::log;
use crate::made;
use crate::outside::Outside;
use crate::random::SimulatedClock;
use crate::replica::{Replica, Surrounded, delete_pod};
use crate::rest::{all_records, missing, text, writes_since};
use crate::user::Kubectl as _;

/// How long anything may take that a story waits for: longer than the longest pause before a call is tried again, and than
/// the time of a create.
const PATIENCE: Duration = Duration::from_mins(8);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(100);
/// How long a settled world has to stay silent, and how long when nothing disturbed it: longer than any pause before a call is tried again.
const SILENCE: Duration = Duration::from_secs(12);
const LONG_SILENCE: Duration = Duration::from_mins(8);

/// What a play came to.
pub(crate) struct Outcome {
    pub(crate) objection: Option<String>,
    pub(crate) tape: Vec<String>,
    /// What was made and destroyed outside, in the order of addresses.
    pub(crate) effects: Vec<String>,
    pub(crate) strikes: Strikes,
    /// How long it took to play, by the real clock.
    pub(crate) took: Duration,
}

/// The world.
pub(crate) struct Play {
    pub(super) around: Surrounded,
    pub(super) strikes: Strikes,
    replicas: RefCell<Vec<Replica>>,
    started: Cell<u32>,
    is_disturbed: bool,
    /// When what the world looks like was last compared with what is wished, and whether it was the same.
    looked: Cell<Option<(u64, usize, bool)>>,
}

/// A spec: its value, its `force`, and other fields. Its create has a short time, since nothing found of one that was cut
/// counts only after that, and the simulation of half an hour is dear.
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

/// A ConfigMap, as an object of the cluster itself.
pub(crate) fn config_map(name: &str) -> Value {
    let manifest =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "b" } });
    json!({ "type": "kubernetes_object", "config": { "manifest": manifest }, "timeouts": { "create": "1m" } })
}

/// The same with nothing else.
pub(crate) fn plain(value: &str, force: &str) -> Value {
    thing(value, force, Value::Null)
}

impl Play {
    /// Plays a story with one fault or none.
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
        let outside = Outside::new(seed, recovery, judge.clone()).cut_by(Arc::new(strikes.clone()));
        let around = Surrounded::new(seed, began, cluster, outside, judge);
        let play = Self {
            around,
            strikes,
            replicas: RefCell::default(),
            started: Cell::new(0),
            is_disturbed: strike.is_some(),
            looked: Cell::new(None),
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
            let left = self.hands().get(&name).unwrap_or_default();
            self.around.judge.note(&format!("left: {} {}", left["metadata"], left["spec"]));
        }
        for replica in self.replicas.into_inner() {
            replica.kill(&self.around).await;
        }
        let by_others = |uid: &str| self.around.judge.is_given_up(uid);
        let found = self.around.cluster.with(|server, _| log::objections(server, &by_others));
        found.iter().for_each(|objection| self.around.judge.object(objection));
        let Surrounded { cluster, outside, judge, .. } = self.around;
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

    /// Starts processes after those that crashed.
    async fn watch_over(&self) {
        loop {
            let Crash { replica: name, fault } = self.strikes.crash().await;
            // What it has sent is on its way, and arrives.
            sleep(Duration::from_millis(2)).await;
            let found = self.replicas.borrow().iter().position(|replica| replica.name == name);
            let Some(index) = found else { continue };
            let replica = self.replicas.borrow_mut().remove(index);
            let stays = matches!(fault, Fault::CrashBefore | Fault::CallCrashBefore) && !replica.is_stopping;
            let pod = replica.crash(&self.around).await;
            sleep(Duration::from_secs(1)).await;
            let next = self.next_name();
            if fault == Fault::StaleStart {
                self.strikes.make_stale(&next);
            }
            let replica = if stays {
                Replica::start_in(&self.around, &next, pod, SignedDuration::ZERO)
            } else {
                delete_pod(&self.around, &pod);
                Replica::start(&self.around, &next, SignedDuration::ZERO)
            };
            self.replicas.borrow_mut().push(replica);
        }
    }

    fn next_name(&self) -> String {
        self.started.set(self.started.get() + 1);
        format!("r{}", self.started.get())
    }

    /// Another replica.
    pub(crate) fn start(&self) {
        let name = self.next_name();
        self.replicas.borrow_mut().push(Replica::start(&self.around, &name, SignedDuration::ZERO));
    }

    /// The first replica is asked to stop, and another one comes.
    pub(crate) async fn roll(&self) {
        let Some(name) = self.ask_to_stop() else { return };
        self.start();
        self.until_stopped(&name).await;
    }

    /// The first replica is asked to stop, and does.
    pub(crate) async fn stop(&self) {
        let Some(name) = self.ask_to_stop() else { return };
        self.until_stopped(&name).await;
    }

    fn ask_to_stop(&self) -> Option<Arc<str>> {
        let mut replicas = self.replicas.borrow_mut();
        let replica = replicas.first_mut()?;
        replica.ask_to_stop(&self.around);
        Some(replica.name.clone())
    }

    async fn until_stopped(&self, name: &Arc<str>) {
        self.until("the replica has stopped", || {
            let mut replicas = self.replicas.borrow_mut();
            let Some(index) = replicas.iter().position(|replica| replica.name == *name) else { return true };
            let has_ended = replicas[index].ended().is_some();
            if has_ended {
                let pod = replicas.remove(index).pod;
                delete_pod(&self.around, &pod);
            }
            has_ended
        })
        .await;
    }

    /// The next replica that asks for this crashes after its effect, and stays away: `create /api/v1/...`.
    pub(crate) fn crashes_after(&self, request: &str) {
        self.strikes.trap(request);
    }

    /// Waits until that has happened.
    pub(crate) async fn until_down(&self) {
        self.until("a replica has crashed", || self.strikes.trapped().is_some()).await;
        let found =
            self.replicas.borrow().iter().position(|replica| self.strikes.trapped().as_ref() == Some(&replica.name));
        let Some(index) = found else { return };
        let replica = self.replicas.borrow_mut().remove(index);
        replica.kill(&self.around).await;
    }

    /// The next turn of a namespace's task that looks at an object panics.
    pub(crate) fn panic_next_turn(&self) {
        self.around.judge.note("the next turn panics");
        self.around.outside.panic_next_turn();
    }

    /// Waits until it has.
    pub(crate) async fn until_panicked(&self) {
        self.until("a turn has panicked", || self.around.outside.has_panicked()).await;
    }

    /// The first replica reaches nothing for a while.
    pub(crate) fn cut_off(&self, time: Duration) {
        let replicas = self.replicas.borrow();
        let Some(replica) = replicas.first() else { return };
        self.around.judge.note(&format!("{} is cut off for {time:?}", replica.name));
        self.strikes.cut_off(&replica.name, time);
    }

    /// What was before is given; from here on every request and call is struck once.
    pub(crate) async fn given(&self) {
        self.settled().await;
        sleep(Duration::from_secs(3)).await;
        self.around.judge.note("the story begins");
        self.strikes.begin(self.around.cluster.with(|server, _| server.version()));
    }

    /// The same with a world in which nothing is.
    pub(crate) async fn empty(&self) {
        let leads =
            || self.around.cluster.with(|server, _| server.objects("coordination.k8s.io", "leases").count() > 0);
        self.until("a replica leads", leads).await;
        self.given().await;
    }

    fn hands(&self) -> Hands {
        Hands { cluster: self.around.cluster.clone() }
    }

    pub(crate) fn apply(&self, name: &str, spec: &Value) {
        self.apply_with(name, spec, &json!({}));
    }

    pub(crate) fn apply_with(&self, name: &str, spec: &Value, annotations: &Value) {
        self.around.judge.note(&format!("user applies {name} {spec} {annotations}"));
        self.hands().apply(name, spec, annotations);
    }

    /// Changes a Resource, as a merge patch does.
    pub(crate) fn patch(&self, name: &str, patch: &Value) {
        self.around.judge.note(&format!("user patches {name} {patch}"));
        self.around.cluster.with(|server, now| server.modify(now, &path(name), patch));
    }

    pub(crate) fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.patch(name, &json!({ "metadata": { "annotations": { annotation: value } } }));
    }

    pub(crate) fn delete(&self, name: &str) {
        self.around.judge.note(&format!("user deletes {name}"));
        self.hands().delete(name);
    }

    pub(crate) fn force(&self, name: &str) {
        self.around.judge.note(&format!("user takes the finalizers off {name}"));
        self.hands().force(name);
    }

    pub(crate) fn touch_records(&self) {
        self.around.judge.note("user touches the metadata of all records");
        self.hands().touch_records("now");
    }

    /// The service account of the namespace may do everything in it, as long as its Role and its RoleBinding exist.
    pub(crate) fn give_rights(&self) {
        let rbac = "rbac.authorization.k8s.io/v1";
        let metadata = json!({ "namespace": SHOP, "name": "purlin" });
        let role = json!({ "apiVersion": rbac, "kind": "Role", "metadata": metadata.clone(), "rules": [] });
        let binding = json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "purlin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": SHOP }],
        });
        self.around.cluster.with(|server, now| {
            server.access.need_bindings(true);
            server.insert(now, role);
            server.insert(now, binding);
        });
    }

    /// The namespace is deleted, with all that is in it, and goes.
    pub(crate) async fn delete_namespace(&self) {
        self.delete_namespace_by(usize::MAX).await;
    }

    /// The same, its Role and its RoleBinding first, and everything else one by one.
    pub(crate) async fn delete_namespace_rights_first(&self) {
        self.delete_namespace_by(1).await;
    }

    /// So many objects are deleted at a time.
    async fn delete_namespace_by(&self, most: usize) {
        self.around.judge.note("user deletes the namespace");
        self.around.cluster.with(|server, now| server.erase(now, &format!("/api/v1/namespaces/{SHOP}")));
        let is_right =
            |object: &Arc<Object>| object.value["kind"].as_str().is_some_and(|kind| kind.starts_with("Role"));
        self.until("the namespace is gone", || {
            self.around.cluster.with(|server, now| {
                server.tick_namespaces(now, most, |left| left.sort_by_key(|object| !is_right(object)));
                server.object("", "namespaces", "", SHOP).is_none()
            })
        })
        .await;
        self.until_forgotten().await;
    }

    /// Waits until nothing is recorded.
    pub(crate) async fn until_forgotten(&self) {
        self.until("nothing is recorded", || self.around.cluster.with(|server, _| all_records(server).is_empty()))
            .await;
    }

    /// Waits until no operation is open.
    pub(crate) async fn until_closed(&self) {
        let is_closed = |server: &Server| all_records(server).iter().all(|record| record.intent.is_none());
        self.until("no operation is open", || self.around.cluster.with(|server, _| is_closed(server))).await;
    }

    /// What the service answers to the next calls of this kind for an address.
    pub(crate) fn script(&self, address: &str, operation: Operation, answers: Vec<Answer>) {
        self.around.outside.world.script(Line { on: address.to_owned(), operation, answers });
    }

    /// The next call of this kind waits until it is released.
    pub(crate) fn hold(&self, address: &str, operation: Operation) {
        self.script(address, operation, vec![Answer::Hold("gate".to_owned())]);
    }

    /// Whatever is held goes on.
    pub(crate) fn release(&self) {
        self.around.judge.note("what is held goes on");
        self.around.outside.world.release("gate");
    }

    /// Something exists outside already.
    pub(crate) fn put(&self, id: &str, value: &str, force: &str) {
        let config = Plain::map([("value", Plain::from(value)), ("force", Plain::from(force))]);
        self.around.outside.world.put(id, &config);
    }

    /// The id of the object of an address.
    fn id(&self, address: &str) -> Option<String> {
        let records = self.around.cluster.with(|server, _| all_records(server));
        let record = records.into_iter().find(|record| record.address.to_string() == address)?;
        record.current?.id().map(str::to_owned)
    }

    /// Another program changes an object.
    pub(crate) fn drift(&self, address: &str, value: &str) {
        self.around.judge.note(&format!("another program sets {address} to {value}"));
        let id = self.id(address).unwrap_or_default();
        self.around.outside.world.change(&id, "value", Plain::from(value));
    }

    /// Another program destroys an object.
    pub(crate) fn lose(&self, address: &str) {
        self.around.judge.note(&format!("another program destroys {address}"));
        let id = self.id(address).unwrap_or_default();
        self.around.outside.world.lose(&id);
    }

    /// The object of an address need not be known any more.
    pub(crate) fn give_up(&self, address: &str) {
        self.around.judge.give_up(self.id(address));
    }

    /// Whether an object was once asked for, changed or destroyed: `create a`.
    pub(crate) async fn until_called(&self, call: &str) {
        self.until(call, || self.strikes.was_called(call)).await;
        // The call is under way, and not only begun.
        sleep(Duration::from_millis(50)).await;
    }

    /// Waits for something that comes for sure.
    pub(crate) async fn until(&self, what: &str, test: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !test() {
            self.look_after_replicas();
            if self.around.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                return self.around.judge.object(&format!("in {PATIENCE:?} this did not come: {what}"));
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until a condition of a Resource has a status or a reason.
    pub(crate) async fn until_says(&self, name: &str, condition: &str, status_or_reason: &str) {
        self.until_says_any(name, condition, &[status_or_reason]).await;
    }

    /// The same with several of them.
    pub(crate) async fn until_says_any(&self, name: &str, condition: &str, any: &[&str]) {
        let says = || {
            let resource = self.hands().get(name).unwrap_or_default();
            let found = crate::judge::condition(&resource["status"], condition);
            found.is_some_and(|(status, reason)| any.contains(&status) || any.contains(&reason))
        };
        self.until(&format!("{name} says {condition} {}", any.join(" or ")), says).await;
    }

    /// Waits until all is as it is wished.
    pub(crate) async fn settled(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.is_settled() {
            self.look_after_replicas();
            if self.around.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                let why = missing(&self.around).join("; ");
                return self.around.judge.object(&format!("after {PATIENCE:?}: {why}"));
            }
            sleep(LOOK).await;
        }
    }

    fn is_settled(&self) -> bool {
        // Looking is dear, and most of the time nothing but the lease changes.
        let version = self.around.cluster.with(|server, _| {
            let all = server.last_changes().filter(|(what, _)| &*what.1 != "leases");
            all.map(|(_, version)| version).max().unwrap_or_default()
        });
        let effects = self.around.outside.world.effects().len();
        if let Some((at, those, settled)) = self.looked.get()
            && (at, those) == (version, effects)
        {
            return settled;
        }
        let settled = missing(&self.around).is_empty();
        self.looked.set(Some((version, effects, settled)));
        settled
    }

    fn look_after_replicas(&self) {
        for replica in self.replicas.borrow_mut().iter_mut().filter(|replica| !replica.is_stopping) {
            if let Some(why) = replica.ended() {
                self.around.judge.object(&format!("{} ended: {why}", replica.name));
            }
        }
    }

    /// What exists, as `address value force`, or `address kind name data` in the cluster; a value that is the id of another
    /// object is shown as `->address`, and what is in no record has the address `-`.
    pub(crate) fn objects(&self) -> Vec<String> {
        let (records, made) = self.around.cluster.with(|server, _| (all_records(server), made::all(server)));
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
        let objects = self.around.outside.world.objects();
        let mut all: Vec<String> = objects
            .iter()
            .map(|(id, (_, object))| {
                let address = addresses.get(id).map_or("-", String::as_str);
                format!("{address} {} {}", shown(object.get("value")), shown(object.get("force")))
            })
            .collect();
        all.extend(made.iter().map(|object| {
            let name = made::address(&object.value).unwrap_or_default();
            let shown = made::shown(&object.value, self.hands().get(&name).as_ref());
            match addresses.get(object.uid()) {
                _ if !made::is_object(&object.value) => format!("for {name} {shown}"),
                address => format!("{} {shown}", address.map_or("-", String::as_str)),
            }
        }));
        all.sort();
        all
    }

    /// The end: all is as it is wished, these objects exist and no others, and nothing happens any more.
    pub(crate) async fn ends(&self, objects: &[&str]) {
        let mut expected: Vec<String> = objects.iter().map(|text| (*text).to_owned()).collect();
        expected.sort();
        self.settled().await;
        let until = Instant::now() + PATIENCE;
        while !self.is_settled() || self.objects() != expected {
            self.look_after_replicas();
            if self.around.judge.objection().is_some() {
                return;
            }
            if Instant::now() > until {
                let found = self.objects();
                return self.around.judge.object(&format!("it ends with {found:?}, and not with {expected:?}"));
            }
            sleep(LOOK).await;
        }
        self.around.judge.note("the world is as it is wished");
        // Statuses and events may follow.
        sleep(Duration::from_secs(3)).await;
        self.strikes.end();
        // Longer than a crash in the last of them needs to be noticed.
        sleep(Duration::from_secs(if self.is_disturbed { 22 } else { 5 })).await;
        let version = self.around.cluster.with(|server, _| server.version());
        sleep(if self.is_disturbed { SILENCE } else { LONG_SILENCE }).await;
        self.look_after_replicas();
        let writes = writes_since(&self.around, version);
        if !writes.is_empty() {
            self.around.judge.object(&format!("the settled world is not silent: {writes:?}"));
        }
        let missing = missing(&self.around);
        if !missing.is_empty() || self.objects() != expected {
            let found = self.objects();
            self.around.judge.object(&format!("the settled world changed: {found:?} {}", missing.join("; ")));
        }
    }

    /// Nothing was asked of the API server but reads and leases since the story began.
    pub(crate) fn wrote_nothing(&self) {
        let reads = ["get", "list", "watch"];
        for request in self.strikes.counted(Counted::Requests) {
            let verb = request.split(' ').nth(1).unwrap_or_default();
            if !reads.contains(&verb) && !request.contains("/leases") {
                self.around.judge.object(&format!("nothing has changed, and it asks for {request}"));
            }
        }
    }

    /// Since the story began a driver was asked this once, when nothing disturbed it.
    pub(crate) fn asked_once(&self, question: &str) {
        let asked = self.strikes.counted(Counted::Questions);
        let count = asked.iter().filter(|one| one.ends_with(question)).count();
        if !self.is_disturbed && count != 1 {
            self.around.judge.object(&format!("{question} was asked {count} times"));
        }
    }

    /// The names of the Resources that are left.
    pub(crate) fn names(&self) -> Vec<String> {
        self.around.cluster.with(|server, _| {
            let all = server.objects("purlin.dev", "resources");
            all.map(|object| text(&object.value, "name").to_owned()).collect()
        })
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        sleep(time).await;
    }
}
