//! One history: a cluster, one to three replicas, users of one to three namespaces, and faults. Then the faults end, every Resource is changed to a
//! spec that can be applied, and the simulation must converge.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use apiserver::Cluster;
use jiff::SignedDuration;
use purlin::model::{Address, Record};
use purlin::process::Clock as _;
use purlin::store::secrets::{family_name, record_name};
use tokio::time::{Instant, sleep};

use crate::administrator::Administrator;
use crate::approver::Approver;
use crate::convergence::{all_records, missing, writes_since};
use crate::course::{Act, ActKind, Course};
use crate::faults::{FaultyNetwork, NetworkFaults};
use crate::judge::{Judge, ids_in};
use crate::kubectl::{ClusterKubectl, NAMESPACES, SHOP};
use crate::outside::Outside;
use crate::random::{Seeded, SimulatedClock};
use crate::replica::{Environment, HOME, Replica};
use crate::state_rm::complete_indexes;
use crate::user::User;

/// How long the simulation may take to converge after the faults end. It is longer than the 45 minutes from the start of a
/// create after which Purlin assumes that an interrupted one is no longer running.
const PATIENCE: Duration = Duration::from_mins(50);
/// For how long no write may follow.
const SILENCE: Duration = Duration::from_secs(90);

/// The number of replicas from which on no more join.
const MOST_REPLICAS: usize = 4;

pub(crate) struct Report {
    pub(crate) objection: Option<String>,
    pub(crate) tape: Vec<String>,
    pub(crate) creates: u64,
    pub(crate) destroys: u64,
    pub(crate) requests: u64,
}

/// Plays a history. The tape is kept if it is wanted, or if the judge objects.
pub(crate) fn play(course: &Course, with_tape: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let report = runtime.block_on(History::run(course, with_tape));
    runtime.shutdown_background();
    report
}

struct History {
    env: Environment,
    faults: FaultyNetwork,
    network_faults: NetworkFaults,
    replicas: Vec<Replica>,
    /// One for each namespace.
    users: Vec<User>,
    administrator: Administrator,
    /// `None` if no user requires approvals.
    approver: Option<Approver>,
}

impl History {
    async fn run(course: &Course, with_tape: bool) -> Report {
        let (seed, began) = (course.seed, Instant::now());
        let epoch = SimulatedClock::new(began, SignedDuration::ZERO).now();
        let faults = FaultyNetwork::new(seed);
        let cluster = Cluster::new(epoch, faults.clone());
        let judge = Judge::new();
        let outside = Outside::new(seed, course.recovery, judge.clone());
        let namespaces = &NAMESPACES[..course.namespaces];
        let env = Environment::new((seed, began), (namespaces, course.shards), cluster.clone(), outside, judge);
        let env = Environment { limits: course.limits, ..env };
        cluster.with(|server, _| server.adds_finalizer = course.adds_finalizer);
        let approver = || Approver::new(cluster.clone(), namespaces.to_vec()).for_some_namespaces(seed, &env.judge);
        let approver = course.has_approvals.then(approver);
        let user = |namespace: &&'static str| User::new(seed, namespace, course.is_wild, course.has_approvals);
        let mut history = Self {
            env,
            faults,
            network_faults: course.network_faults,
            replicas: Vec::new(),
            users: namespaces.iter().map(user).collect(),
            administrator: Administrator::new(cluster, namespaces.to_vec()),
            approver,
        };
        history.live(course).await;
        if history.judge().objection().is_none() {
            history.converge(course).await;
        }
        history.end(with_tape).await
    }

    fn judge(&self) -> &Arc<Judge> {
        &self.env.judge
    }

    /// `number` must be unique in a history.
    fn start_replica(&mut self, number: u64) {
        let skew = Seeded::of(self.env.seed, "skew", number).below(240);
        let skew = SignedDuration::from_secs(i64::try_from(skew).unwrap_or(0) - 120);
        self.replicas.push(Replica::start(&self.env, &format!("r{number}"), skew));
    }

    /// Carries out the acts of users and the faults.
    async fn live(&mut self, course: &Course) {
        (0..course.replicas).for_each(|number| self.start_replica(number));
        self.env.outside.set_faults(course.service_faults);
        self.faults.set(self.network_faults);
        for act in &course.acts {
            self.carry_out(*act).await;
            self.tick();
            self.check_replicas();
            if self.judge().objection().is_some() {
                return;
            }
        }
    }

    async fn carry_out(&mut self, act: Act) {
        let mut random = act.random(self.env.seed);
        // The initial replicas have the first numbers.
        let number = act.number + 10;
        match act.what {
            ActKind::User => self.users_act(act),
            ActKind::Approver => {
                let judge = &self.env.judge;
                self.approver.iter_mut().for_each(|approver| approver.act(&mut random, judge));
            }
            ActKind::Administrator => self.administrator.act(&mut random, &self.env.judge),
            ActKind::Wait(time) => sleep(time).await,
            ActKind::CutOff(time) => {
                let Some(name) = self.pick(&mut random).map(|index| self.replicas[index].name.clone()) else { return };
                self.judge().note(&format!("{name} is cut off for {time:?}"));
                self.faults.cut_off(&name, time);
            }
            ActKind::Outage(time) => {
                self.judge().note(&format!("all replicas are cut off for {time:?}"));
                self.replicas.iter().for_each(|replica| self.faults.cut_off(&replica.name, time));
            }
            ActKind::Pause(time) => {
                let Some(name) = self.pick(&mut random).map(|index| self.replicas[index].name.clone()) else { return };
                self.judge().note(&format!("{name} is paused for {time:?}"));
                self.faults.pause(&name, time);
                self.env.outside.pause(&name, time);
            }
            ActKind::Stop => {
                self.stop_replica(&mut random).await;
                self.start_replica(number);
            }
            ActKind::Join if self.replicas.len() < MOST_REPLICAS => self.start_replica(number),
            ActKind::Leave if self.replicas.len() > 1 => self.stop_replica(&mut random).await,
            ActKind::Join | ActKind::Leave => {}
            ActKind::Kill(pause) => {
                if let Some(index) = self.pick(&mut random) {
                    let replica = self.replicas.swap_remove(index);
                    replica.kill(&self.env).await;
                    sleep(pause).await;
                }
                self.start_replica(number);
            }
        }
    }

    /// The first user acts, and some of the others.
    fn users_act(&mut self, act: Act) {
        for user in &mut self.users {
            let mut random = match user.namespace {
                SHOP => act.random(self.env.seed),
                namespace => Seeded::of(self.env.seed, namespace, act.number),
            };
            if user.namespace == SHOP || random.chance(600) {
                let kubectl = &mut ClusterKubectl { cluster: self.env.cluster.clone(), namespace: user.namespace };
                user.act(random, kubectl, &self.env.judge);
            }
        }
    }

    async fn stop_replica(&mut self, random: &mut Seeded) {
        if let Some(index) = self.pick(random) {
            let replica = self.replicas.swap_remove(index);
            self.faults.set(NetworkFaults::default());
            replica.stop(&self.env).await;
            self.faults.set(self.network_faults);
        }
    }

    /// What happens on its own in the cluster, and how users respond to it.
    fn tick(&mut self) {
        self.administrator.tick();
        if let Some(approver) = &mut self.approver {
            approver.tick(&self.env.judge);
        }
    }

    fn pick(&self, random: &mut Seeded) -> Option<usize> {
        let index = random.below(self.replicas.len() as u64);
        usize::try_from(index).ok().filter(|index| *index < self.replicas.len())
    }

    fn check_replicas(&mut self) {
        let ended: Vec<String> = self
            .replicas
            .iter_mut()
            .filter_map(|replica| replica.exit_reason().map(|why| format!("{} ended: {why}", replica.name)))
            .collect();
        ended.iter().for_each(|text| self.env.judge.object(text));
    }

    /// Ends all faults, changes every Resource to a spec that can be applied, and waits until nothing is left to do. Then
    /// disturbs a few changes of values, which must converge without another change.
    async fn converge(&mut self, course: &Course) {
        self.end_faults();
        self.administrator.restore(&self.env.judge);
        sleep(Duration::from_secs(5)).await;
        for user in &mut self.users {
            let kubectl = &mut ClusterKubectl { cluster: self.env.cluster.clone(), namespace: user.namespace };
            user.heal(kubectl, &self.env.judge);
        }
        self.wait_until_up_to_date().await;
        let mut random = Seeded::new(course.seed, "again");
        if self.judge().objection().is_none() && random.chance(400) {
            self.disturb_again(&mut random).await;
            self.end_faults();
            self.wait_until_up_to_date().await;
        }
    }

    fn end_faults(&self) {
        self.faults.clear();
        self.env.outside.end_faults();
        self.judge().note("the faults end");
    }

    /// Changes values while requests fail, or while a replica loses its lease for a moment.
    async fn disturb_again(&mut self, random: &mut Seeded) {
        // A status that the server rejects permanently is not written again.
        self.faults.set(NetworkFaults { rejects_permanently: 0, ..NetworkFaults::random(random) });
        for _ in 0..=random.below(3) {
            for user in &mut self.users {
                let kubectl = &mut ClusterKubectl { cluster: self.env.cluster.clone(), namespace: user.namespace };
                user.change_values(random, kubectl, &self.env.judge);
            }
            sleep(random.millis(0, 2_000)).await;
            if let Some(index) = self.pick(random).filter(|_| random.chance(700)) {
                let (name, time) = (self.replicas[index].name.clone(), random.millis(8_000, 25_000));
                self.judge().note(&format!("{name} can write no status and no Lease for {time:?}"));
                self.faults.throttle(&name, time);
            }
            sleep(random.millis(0, 30_000)).await;
            self.tick();
        }
    }

    /// Waits until every object is up to date and nothing writes.
    async fn wait_until_up_to_date(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            sleep(Duration::from_secs(5)).await;
            self.tick();
            if let Some(approver) = &self.approver {
                approver.approve_all(&self.env.judge);
            }
            self.check_replicas();
            self.remove_abandoned();
            for user in &mut self.users {
                let kubectl = &mut ClusterKubectl { cluster: self.env.cluster.clone(), namespace: user.namespace };
                user.remove_blocked_claims(kubectl, &self.env.judge);
            }
            complete_indexes(&self.env).await;
            if self.judge().objection().is_some() {
                return;
            }
            let mut missing = self.missing();
            if missing.is_empty() {
                // What a paused replica has sent arrives until now.
                sleep(Duration::from_secs(30)).await;
                missing = self.missing();
                if missing.is_empty() {
                    break;
                }
            }
            if Instant::now() > until {
                self.judge().object(&format!("after {PATIENCE:?} without faults: {}", missing.join("; ")));
                return;
            }
        }
        self.judge().note("everything is up to date");
        let version = self.env.cluster.with(|server, _| server.version());
        sleep(SILENCE).await;
        let writes = writes_since(&self.env, version);
        if !writes.is_empty() {
            self.judge().object(&format!("writes after everything was up to date: {writes:?}"));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            self.judge().object(&format!("no longer up to date: {}", missing.join("; ")));
        }
    }

    /// Everything that is not up to date yet, and the shards that are not distributed evenly.
    fn missing(&self) -> Vec<String> {
        let mut all = missing(&self.env);
        all.extend(self.env.unshared(&self.replicas));
        all
    }

    /// Removes the records whose Resources were removed by force, as `purlin state rm` does, and gives up their
    /// objects.
    fn remove_abandoned(&self) {
        let objects = self.env.outside.world.objects();
        self.env.cluster.with(|server, now| {
            let records = all_records(server);
            let resource = |record: &Record| {
                server.object("purlin.dev", "resources", &record.namespace, record.address.name()).is_some()
            };
            // A record with an intent stays: `state rm` requires `--force` for it.
            let is_abandoned = |record: &Record| !resource(record) && record.intent.is_none();
            let others: Vec<(Address, BTreeSet<String>)> =
                records.iter().map(|record| (record.address.clone(), ids_in(record))).collect();
            let abandoned: Vec<Record> = records.into_iter().filter(is_abandoned).collect();
            for record in abandoned {
                let (namespace, address) = (&record.namespace, record.address.to_string());
                self.env.judge.note(&format!("user removes the abandoned record of {namespace}/{address}"));
                let elsewhere =
                    |id: &String| others.iter().any(|(other, ids)| *other != record.address && ids.contains(id));
                let of_it = objects.iter().filter(|(id, (other, _))| {
                    **other == *address && self.env.outside.world.namespace_of(id).as_ref() == Some(namespace)
                });
                let of_it = of_it.map(|(id, _)| id.clone()).filter(|id| !elsewhere(id));
                self.env.judge.give_up(of_it.chain(ids_in(&record)));
                for secret in [
                    record_name(&record.namespace, &record.address),
                    family_name(&record.namespace, record.address.name()),
                ] {
                    server.erase(now, &format!("/api/v1/namespaces/{HOME}/secrets/{secret}"));
                }
            }
        });
    }

    async fn end(self, with_tape: bool) -> Report {
        let judge = self.env.judge.clone();
        self.env.cluster.with(|server, _| {
            for left in ["resources", "plans"].into_iter().flat_map(|plural| server.objects("purlin.dev", plural)) {
                judge.note(&format!("left: {} {}", left.value["metadata"], left.value["status"]));
            }
        });
        for replica in self.replicas {
            replica.kill(&self.env).await;
        }
        let (creates, destroys) = judge.counts();
        let objection = judge.objection();
        let keeps_tape = with_tape || objection.is_some();
        let tape = if keeps_tape { merged(judge.tape(), self.env.cluster.tape()) } else { Vec::new() };
        Report { objection, tape, creates, destroys, requests: self.env.cluster.requests() }
    }
}

/// Merges two tapes in the order of their timestamps.
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
