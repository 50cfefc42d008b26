//! One history: a cluster, one or two replicas, users, faults. Then all is calm, every wish is made one that can be
//! carried out, and the world has to come to rest as it is wished.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::driver::CreateRecovery;
use purlin::model::{Address, Record};
use purlin::process::Clock as _;
use purlin::store::Strings;
use purlin::store::secrets::{Decoded, decode, family_name, record_name};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::apiserver::{Cluster, Server};
use crate::faults::{Faults, Weather};
use crate::judge::{Judge, condition, is_as_wished, is_family, is_wanted, wants};
use crate::outside::{Moods, Outside};
use crate::random::{Seeded, SimulatedClock};
use crate::replica::{HOME, Replica, Surrounded};
use crate::user::{Kubectl, User};

/// Where users work.
const SHOP: &str = "shop";
/// How long the world may take to come to rest once nothing disturbs it: longer than a create has, since what such a call
/// may have made is not given up for lost before its deadline.
const PATIENCE: Duration = Duration::from_mins(45);
/// How long it must be silent then.
const SILENCE: Duration = Duration::from_secs(90);

/// What came of a history.
pub(crate) struct Report {
    pub(crate) objection: Option<String>,
    pub(crate) tape: Vec<String>,
    pub(crate) creates: u64,
    pub(crate) destroys: u64,
    pub(crate) requests: u64,
}

/// How a history goes, drawn from its seed.
struct Plan {
    steps: u64,
    is_wild: bool,
    replicas: u64,
    crashes: u64,
    weather: Weather,
    moods: Moods,
    recovery: CreateRecovery,
}

impl Plan {
    fn draw(random: &mut Seeded) -> Self {
        let calm = random.chance(150);
        Self {
            steps: 3 + random.below(18),
            is_wild: random.chance(600),
            replicas: 1 + random.below(2),
            crashes: if random.chance(600) { random.below(250) } else { 0 },
            weather: if calm { Weather::default() } else { Weather::stormy(random) },
            moods: if random.chance(300) {
                Moods::default()
            } else {
                Moods {
                    fails: random.below(120),
                    fails_partly: random.below(60),
                    loses_answer: random.below(60),
                    panics: random.below(20),
                    is_slow: random.below(150),
                    refuses: random.below(60),
                }
            },
            recovery: *random.pick(&[CreateRecovery::Find, CreateRecovery::Repeat]),
        }
    }
}

/// Plays the history of a seed.
pub(crate) fn play(seed: u64) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let report = runtime.block_on(History::run(seed));
    runtime.shutdown_background();
    report
}

struct History {
    random: Seeded,
    around: Surrounded,
    faults: Faults,
    replicas: Vec<Replica>,
    started: u64,
    user: User,
}

impl History {
    async fn run(seed: u64) -> Report {
        let mut random = Seeded::new(seed, "history");
        let plan = Plan::draw(&mut random);
        let began = Instant::now();
        let epoch = SimulatedClock::new(began, SignedDuration::ZERO).now();
        let faults = Faults::new(seed);
        let cluster = Cluster::new(epoch, faults.clone());
        let judge = Judge::new();
        let outside = Outside::new(seed, plan.recovery, judge.clone());
        cluster.with(|server, now| {
            for name in [HOME, SHOP] {
                server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
            }
        });
        let looked_up = cluster.clone();
        judge.look_up(Box::new(move |namespace, address| {
            looked_up.with(|server, _| record(server, namespace, address))
        }));
        let around = Surrounded { seed, began, cluster, outside, judge };
        let user = User::new(seed, plan.is_wild);
        let mut history = Self { random, around, faults, replicas: Vec::new(), started: 0, user };
        history.live(&plan).await;
        if history.judge().objection().is_none() {
            history.come_to_rest().await;
        }
        history.end().await
    }

    fn judge(&self) -> &Arc<Judge> {
        &self.around.judge
    }

    fn start_replica(&mut self) {
        self.started += 1;
        let skew = SignedDuration::from_secs(i64::try_from(self.random.below(240)).unwrap_or(0) - 120);
        let name = format!("r{}", self.started);
        self.replicas.push(Replica::start(&self.around, &name, skew));
    }

    /// The time of users and faults.
    async fn live(&mut self, plan: &Plan) {
        (0..plan.replicas).for_each(|_| self.start_replica());
        self.around.outside.behave(plan.moods);
        self.faults.set(plan.weather);
        for _ in 0..plan.steps {
            if self.random.chance(800) {
                let kubectl = &mut Hands { cluster: self.around.cluster.clone() };
                self.user.act(kubectl, &self.around.judge);
            }
            if self.random.chance(plan.crashes) {
                self.strike(plan).await;
            }
            let wait = self.random.millis(0, 8_000);
            sleep(wait).await;
            self.look_after_replicas();
            if self.judge().objection().is_some() {
                return;
            }
        }
    }

    /// Something happens to a replica.
    async fn strike(&mut self, plan: &Plan) {
        if self.replicas.is_empty() {
            return self.start_replica();
        }
        let index = usize::try_from(self.random.below(self.replicas.len() as u64)).unwrap_or(0);
        match self.random.below(4) {
            0 => {
                let name = self.replicas[index].name.clone();
                let time = self.random.millis(1_000, 40_000);
                self.judge().note(&format!("{name} is cut off for {time:?}"));
                self.faults.cut_off(&name, time);
            }
            1 => {
                let replica = self.replicas.swap_remove(index);
                self.faults.set(Weather::default());
                replica.stop(&self.around).await;
                self.faults.set(plan.weather);
                self.start_replica();
            }
            _ => {
                let replica = self.replicas.swap_remove(index);
                replica.kill(&self.around).await;
                let wait = self.random.millis(0, 20_000);
                sleep(wait).await;
                self.start_replica();
            }
        }
    }

    fn look_after_replicas(&mut self) {
        let ended: Vec<String> = self
            .replicas
            .iter_mut()
            .filter_map(|replica| replica.ended().map(|why| format!("{} ended: {why}", replica.name)))
            .collect();
        ended.iter().for_each(|text| self.around.judge.object(text));
    }

    /// All is calm; the world has to be as it is wished, and silent.
    async fn come_to_rest(&mut self) {
        self.faults.calm();
        self.around.outside.behave(Moods::default());
        if self.replicas.is_empty() {
            self.start_replica();
        }
        self.judge().note("all is calm");
        sleep(Duration::from_secs(5)).await;
        let kubectl = &mut Hands { cluster: self.around.cluster.clone() };
        self.user.heal(kubectl, &self.around.judge);
        self.remove_abandoned();
        let until = Instant::now() + PATIENCE;
        loop {
            sleep(Duration::from_secs(5)).await;
            self.look_after_replicas();
            if self.judge().objection().is_some() {
                return;
            }
            let missing = self.missing();
            if missing.is_empty() {
                break;
            }
            if Instant::now() > until {
                self.judge().object(&format!("after {PATIENCE:?} of calm: {}", missing.join("; ")));
                return;
            }
        }
        self.judge().note("the world is as it is wished");
        sleep(Duration::from_secs(30)).await;
        let version = self.around.cluster.with(|server, _| server.version());
        sleep(SILENCE).await;
        let writes = self.writes_since(version);
        if !writes.is_empty() {
            self.judge().object(&format!("the settled world is not silent: {writes:?}"));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            self.judge().object(&format!("the settled world changed: {}", missing.join("; ")));
        }
    }

    /// As `purlin state rm` does: whatever has lost its Resource by force is given up, and so are its objects.
    fn remove_abandoned(&self) {
        let objects = self.around.outside.world.objects();
        self.around.cluster.with(|server, now| {
            let records = all_records(server);
            let resource = |record: &Record| {
                server.object("purlin.dev", "resources", &record.namespace, &record.address.name).is_some()
            };
            let abandoned: Vec<Record> = records.into_iter().filter(|record| !resource(record)).collect();
            for record in abandoned {
                self.around.judge.note(&format!("user removes the abandoned record of {}", record.address));
                let address = record.address.to_string();
                let of_it = objects.iter().filter(|(_, (other, _))| **other == *address).map(|(id, _)| id.clone());
                self.around.judge.give_up(of_it);
                for secret in [
                    record_name(&record.namespace, &record.address),
                    family_name(&record.namespace, &record.address.name),
                ] {
                    server.erase(now, &format!("/api/v1/namespaces/{HOME}/secrets/{secret}"));
                }
            }
        });
    }

    fn writes_since(&self, version: u64) -> BTreeMap<String, usize> {
        let mut writes: BTreeMap<String, usize> = BTreeMap::new();
        self.around.cluster.with(|server, _| {
            for change in server.changes(version).filter(|change| &*change.what.1 != "leases") {
                *writes.entry(change.what.1.to_string()).or_default() += 1;
            }
        });
        writes
    }

    /// What is not yet as it is wished.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let objects = self.around.outside.world.objects();
        let (resources, records) = self.around.cluster.with(|server, _| {
            let resources: Vec<Value> =
                server.objects("purlin.dev", "resources").map(|object| object.value.clone()).collect();
            (resources, all_records(server))
        });
        let mut known: BTreeSet<String> = BTreeSet::new();
        for record in &records {
            let recorded = record.current.iter().chain(record.deposed.values());
            known.extend(recorded.filter_map(|object| object.id().map(str::to_owned)));
            let place = (&*record.namespace, &*record.address.name);
            let resource = resources.iter().find(|one| (text(one, "namespace"), text(one, "name")) == place).is_some();
            if !resource {
                // Its finalizers were taken off by force: it is reported, and left alone.
                continue;
            }
            if record.intent.is_some() {
                missing.push(format!("{} has an open intent", record.address));
            }
            if !record.deposed.is_empty() {
                missing.push(format!("{} has deposed objects", record.address));
            }
        }
        // What a create that was cut has made is looked for by its open intent.
        let intended: BTreeSet<String> =
            records.iter().filter(|record| record.intent.is_some()).map(|record| record.address.to_string()).collect();
        for (id, (address, _)) in &objects {
            if !known.contains(id) && !intended.contains(&**address) && !self.around.judge.is_given_up(id) {
                missing.push(format!("{id} of {address} is in no record"));
            }
        }
        for resource in &resources {
            missing.extend(self.unfulfilled(resource, &records));
        }
        missing
    }

    fn unfulfilled(&self, resource: &Value, records: &[Record]) -> Vec<String> {
        let name = text(resource, "name");
        let mut missing = Vec::new();
        if !resource["metadata"]["deletionTimestamp"].is_null() {
            return vec![format!("{name} is still being deleted")];
        }
        let status = &resource["status"];
        let ready = condition(status, "Ready");
        if ready.is_none_or(|(status, _)| status != "True") {
            missing.push(format!("{name} is not Ready: {ready:?} {}", message(status)));
        }
        if status["observedGeneration"] != resource["metadata"]["generation"] {
            missing.push(format!("the status of {name} is about another generation"));
        }
        let own = records.iter().filter(|record| &*record.address.name == name);
        let mut there: BTreeSet<String> = BTreeSet::new();
        for record in own {
            let Some(current) = &record.current else { continue };
            let id = current.id().unwrap_or_default();
            let Some(value) = self.around.outside.world.object(id) else {
                missing.push(format!("{} is recorded as {id}, which does not exist", record.address));
                continue;
            };
            if !wants(resource, &record.address.key) {
                missing.push(format!("{} exists and is not wanted", record.address));
            } else if !is_as_wished(&value, &resource["spec"]) {
                missing.push(format!("{} is {}", record.address, value.to_public_json()));
            }
            there.insert(record.address.to_string());
        }
        let count = match (is_wanted(resource), is_family(resource)) {
            (false, _) => 0,
            (true, true) => resource["spec"]["count"].as_u64().unwrap_or(0),
            (true, false) => 1,
        };
        if there.len() as u64 != count {
            missing.push(format!("{name} has {} of {count} objects", there.len()));
        }
        missing
    }

    async fn end(self) -> Report {
        let judge = self.around.judge.clone();
        for replica in self.replicas {
            replica.kill(&self.around).await;
        }
        let (creates, destroys) = judge.counts();
        let objection = judge.objection();
        let is_wanted = objection.is_some() || crate::shows_tape();
        let tape = if is_wanted { merged(judge.tape(), self.around.cluster.tape()) } else { Vec::new() };
        Report { objection, tape, creates, destroys, requests: self.around.cluster.requests() }
    }
}

/// Two tapes as one, in the order of their times.
fn merged(judge: Vec<String>, cluster: Vec<String>) -> Vec<String> {
    let time = |line: &String| line.trim_start().split('s').next().and_then(|at| at.parse::<f64>().ok()).unwrap_or(0.0);
    let mut all: Vec<(f64, String)> = judge
        .into_iter()
        .map(|line| (time(&line), line))
        .chain(cluster.into_iter().filter(|line| !line.contains("leases/")).map(|line| {
            let at = time(&line);
            let rest = line.split_once("s ").map_or("", |(_, rest)| rest);
            let mut text = String::new();
            let _ = write!(text, "{at:>9.3}s     {rest}");
            (at, text)
        }))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, line)| line).collect()
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

fn message(status: &Value) -> String {
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| all.iter().find(|one| one["type"] == name).map(|one| one["message"].to_string());
    of("Synced").unwrap_or_default()
}

fn parse(secret: &Value) -> Option<Record> {
    let secret = serde_json::from_value(secret.clone()).ok()?;
    match decode(&secret, &mut Strings::default()).ok()? {
        Decoded::Record(stored) => Some(stored.record.as_ref().clone()),
        Decoded::Parted(_) | Decoded::Family(_) => None,
    }
}

fn record(server: &Server, namespace: &str, address: &Address) -> Option<Record> {
    parse(&server.object("", "secrets", HOME, &record_name(namespace, address))?.value)
}

fn all_records(server: &Server) -> Vec<Record> {
    server.objects("", "secrets").filter(|secret| secret.namespace() == HOME).filter_map(|s| parse(&s.value)).collect()
}

/// What users and administrators do, with kubectl.
struct Hands {
    cluster: Cluster,
}

fn path(name: &str) -> String {
    format!("/apis/purlin.dev/v1alpha1/namespaces/{SHOP}/resources/{name}")
}

impl Kubectl for Hands {
    fn get(&self, name: &str) -> Option<Value> {
        self.cluster.with(|server, _| Some(server.object("purlin.dev", "resources", SHOP, name)?.value.clone()))
    }

    fn apply(&mut self, name: &str, spec: &Value, annotations: &Value) {
        let old = self.get(name);
        self.cluster.with(|server, now| {
            let Some(old) = old else {
                let resource = json!({
                    "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
                    "metadata": { "namespace": SHOP, "name": name, "annotations": annotations },
                    "spec": spec,
                });
                server.insert(now, resource);
                return;
            };
            let mut new = old;
            new["spec"] = spec.clone();
            let kept = new["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            let own = |key: &String| key == "purlin.dev/record";
            let mut all: serde_json::Map<String, Value> = kept.into_iter().filter(|(key, _)| own(key)).collect();
            all.extend(annotations.as_object().cloned().unwrap_or_default());
            new["metadata"]["annotations"] = Value::Object(all);
            let done = server.ask(now, &http::Method::PUT, &path(name), "application/json", &new);
            done.unwrap_or_else(|refusal| panic!("a user may write {name}: {refusal:?}"));
        });
    }

    fn delete(&mut self, name: &str) {
        self.cluster.with(|server, now| server.erase(now, &path(name)));
    }

    fn force(&mut self, name: &str) {
        self.cluster.with(|server, now| server.force_finalizers(now, &path(name)));
    }

    fn touch_records(&mut self, with: &str) {
        self.cluster.with(|server, now| {
            let names: Vec<String> = server
                .objects("", "secrets")
                .filter(|secret| secret.namespace() == HOME)
                .map(|secret| secret.name().to_owned())
                .collect();
            for name in names {
                let patch = json!({ "metadata": { "annotations": { "example.com/touched": with } } });
                server.modify(now, &format!("/api/v1/namespaces/{HOME}/secrets/{name}"), &patch);
            }
        });
    }

    fn names(&self) -> Vec<String> {
        self.cluster.with(|server, _| {
            server.objects("purlin.dev", "resources").map(|object| object.name().to_owned()).collect()
        })
    }
}
