//! One history: a cluster, one or two replicas, users, faults. Then all is calm, every wish is made one that can be
//! carried out, and the world has to come to rest as it is wished.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::driver::scripted::Recovery;
use purlin::model::Record;
use purlin::process::Clock as _;
use purlin::store::secrets::{family_name, record_name};
use tokio::time::{Instant, sleep};

use crate::apiserver::Cluster;
use crate::faults::{Faults, Weather};
use crate::hands::Hands;
use crate::judge::Judge;
use crate::outside::{Moods, Outside};
use crate::random::{Seeded, SimulatedClock};
use crate::replica::{HOME, Replica, Surrounded};
use crate::rest::{all_records, missing, writes_since};
use crate::user::User;

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
    recovery: Recovery,
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
            recovery: *random.pick(&[Recovery::Find, Recovery::Repeat]),
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
        let around = Surrounded::new(seed, began, cluster, outside, judge);
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
            let missing = missing(&self.around);
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
        let writes = writes_since(&self.around, version);
        if !writes.is_empty() {
            self.judge().object(&format!("the settled world is not silent: {writes:?}"));
        }
        let missing = missing(&self.around);
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
pub(crate) fn merged(judge: Vec<String>, cluster: Vec<String>) -> Vec<String> {
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
