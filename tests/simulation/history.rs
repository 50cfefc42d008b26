//! One history: a cluster, one or two replicas, users, faults. Then all is calm, every wish is made one that can be
//! carried out, and the world has to come to rest as it is wished.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::model::Record;
use purlin::process::Clock as _;
use purlin::store::secrets::{family_name, record_name};
use tokio::time::{Instant, sleep};

use crate::administrator::Administrator;
use crate::apiserver::Cluster;
use crate::course::{Act, Course, What};
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

/// Plays a course.
pub(crate) fn play(course: &Course) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let report = runtime.block_on(History::run(course));
    runtime.shutdown_background();
    report
}

struct History {
    around: Surrounded,
    faults: Faults,
    weather: Weather,
    replicas: Vec<Replica>,
    user: User,
    administrator: Administrator,
}

impl History {
    async fn run(course: &Course) -> Report {
        let (seed, began) = (course.seed, Instant::now());
        let epoch = SimulatedClock::new(began, SignedDuration::ZERO).now();
        let faults = Faults::new(seed);
        let cluster = Cluster::new(epoch, faults.clone());
        let judge = Judge::new();
        let outside = Outside::new(seed, course.recovery, judge.clone());
        let around = Surrounded::new(seed, began, cluster.clone(), outside, judge);
        let mut history = Self {
            around,
            faults,
            weather: course.weather,
            replicas: Vec::new(),
            user: User::new(seed, course.is_wild),
            administrator: Administrator::new(cluster),
        };
        history.live(course).await;
        if history.judge().objection().is_none() {
            history.come_to_rest().await;
        }
        history.end().await
    }

    fn judge(&self) -> &Arc<Judge> {
        &self.around.judge
    }

    /// No two processes of a history have the same number.
    fn start_replica(&mut self, number: u64) {
        let skew = Seeded::of(self.around.seed, "skew", number).below(240);
        let skew = SignedDuration::from_secs(i64::try_from(skew).unwrap_or(0) - 120);
        self.replicas.push(Replica::start(&self.around, &format!("r{number}"), skew));
    }

    /// The time of users and faults.
    async fn live(&mut self, course: &Course) {
        (0..course.replicas).for_each(|number| self.start_replica(number));
        self.around.outside.behave(course.moods);
        self.faults.set(self.weather);
        for act in &course.acts {
            self.carry_out(*act).await;
            self.administrator.tick();
            self.look_after_replicas();
            if self.judge().objection().is_some() {
                return;
            }
        }
    }

    async fn carry_out(&mut self, act: Act) {
        let mut random = act.random(self.around.seed);
        // Those of the beginning have the first numbers.
        let number = act.number + 10;
        match act.what {
            What::User => {
                let kubectl = &mut Hands { cluster: self.around.cluster.clone() };
                self.user.act(random, kubectl, &self.around.judge);
            }
            What::Administrator => self.administrator.act(&mut random, &self.around.judge),
            What::Wait(time) => sleep(time).await,
            What::CutOff(time) => {
                let Some(name) = self.pick(&mut random).map(|index| self.replicas[index].name.clone()) else { return };
                self.judge().note(&format!("{name} is cut off for {time:?}"));
                self.faults.cut_off(&name, time);
            }
            What::Stop => {
                if let Some(index) = self.pick(&mut random) {
                    let replica = self.replicas.swap_remove(index);
                    self.faults.set(Weather::default());
                    replica.stop(&self.around).await;
                    self.faults.set(self.weather);
                }
                self.start_replica(number);
            }
            What::Kill(pause) => {
                if let Some(index) = self.pick(&mut random) {
                    let replica = self.replicas.swap_remove(index);
                    replica.kill(&self.around).await;
                    sleep(pause).await;
                }
                self.start_replica(number);
            }
        }
    }

    fn pick(&self, random: &mut Seeded) -> Option<usize> {
        let index = random.below(self.replicas.len() as u64);
        usize::try_from(index).ok().filter(|index| *index < self.replicas.len())
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
        self.judge().note("all is calm");
        self.administrator.restore(&self.around.judge);
        sleep(Duration::from_secs(5)).await;
        let kubectl = &mut Hands { cluster: self.around.cluster.clone() };
        self.user.heal(kubectl, &self.around.judge);
        let until = Instant::now() + PATIENCE;
        loop {
            sleep(Duration::from_secs(5)).await;
            self.administrator.tick();
            self.look_after_replicas();
            self.remove_abandoned();
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
            // What a call may still be made for stays: `state rm` asks for `--force` there.
            let is_abandoned = |record: &Record| !resource(record) && record.intent.is_none();
            let abandoned: Vec<Record> = records.into_iter().filter(is_abandoned).collect();
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
        let tape = || merged(judge.tape(), self.around.cluster.tape());
        let is_wanted = objection.is_some() || crate::shows_tape();
        let tape = if is_wanted { tape() } else { Vec::new() };
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
