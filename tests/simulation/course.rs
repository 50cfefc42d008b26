//! The course of a history, which its seed determines in advance. Each act has its own random numbers, so that leaving
//! out one act does not change the others.

use std::fmt;
use std::time::Duration;

use purlin::execute::Limits;
use testkit::scripted::Recovery;

use crate::faults::NetworkFaults;
use crate::outside::ServiceFaults;
use crate::random::Seeded;

#[derive(Clone, Copy, Debug)]
pub(crate) enum ActKind {
    User,
    Approver,
    Administrator,
    /// A replica has no connection for this time.
    CutOff(Duration),
    /// No replica has a connection for this time.
    Outage(Duration),
    /// A replica does nothing for this time, and continues.
    Pause(Duration),
    /// A replica is shut down, and another one starts.
    Stop,
    /// A replica is killed, and another one starts after this time.
    Kill(Duration),
    /// One more replica starts.
    Join,
    /// A replica is shut down, if it is not the last one.
    Leave,
    Wait(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    /// Its position among the acts of the seed, starting with 1. It does not change when a history is shortened.
    pub(crate) number: u64,
    pub(crate) what: ActKind,
}

impl Act {
    pub(crate) fn random(self, seed: u64) -> Seeded {
        Seeded::of(seed, "act", self.number)
    }
}

/// Everything that a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    /// Whether users suspend, protect and remove finalizers by force, and an administrator acts.
    pub(crate) is_wild: bool,
    /// Whether users require approvals, and decide on Plans.
    pub(crate) has_approvals: bool,
    /// How many replicas there are at first.
    pub(crate) replicas: u64,
    /// How many namespaces have users.
    pub(crate) namespaces: usize,
    /// Into how many shards the namespaces are divided.
    pub(crate) shards: u16,
    pub(crate) limits: Limits,
    /// Whether the API server adds the finalizer of Purlin to new Resources.
    pub(crate) adds_finalizer: bool,
    pub(crate) network_faults: NetworkFaults,
    pub(crate) service_faults: ServiceFaults,
    pub(crate) recovery: Recovery,
    pub(crate) acts: Vec<Act>,
}

impl Course {
    pub(crate) fn of(seed: u64) -> Self {
        let random = &mut Seeded::new(seed, "history");
        let has_no_network_faults = random.chance(150);
        let steps = 3 + random.below(18);
        let is_wild = random.chance(600);
        let replicas = 1 + random.below(2);
        let replica_faults = if random.chance(600) { random.below(250) } else { 0 };
        let network_faults =
            if has_no_network_faults { NetworkFaults::default() } else { NetworkFaults::random(random) };
        let service_faults = if random.chance(300) { ServiceFaults::default() } else { ServiceFaults::random(random) };
        let recovery = *random.pick(&[Recovery::Find, Recovery::Repeat]);
        let administrator_acts = if is_wild && random.chance(300) { 150 } else { 0 };
        let mut approvals = Seeded::new(seed, "approvals");
        let has_approvals = approvals.chance(300);
        let sharing = &mut Seeded::new(seed, "sharing");
        let is_shared = sharing.chance(300);
        let (replicas, namespaces, shards) = if is_shared { some_shares(sharing) } else { (replicas, 1, 2) };
        // With one step at a time, new Resources wait until they are planned.
        let one_at_a_time = Seeded::new(seed, "limits").chance(200);
        let per_namespace = if one_at_a_time { 1 } else { Limits::default().per_namespace };
        let limits = Limits { per_namespace, ..Limits::default() };
        let mut acts = Vec::new();
        let mut add = |what| acts.push(Act { number: acts.len() as u64 + 1, what });
        for _ in 0..steps {
            if random.chance(800) {
                add(ActKind::User);
            }
            if has_approvals && approvals.chance(600) {
                add(ActKind::Approver);
            }
            if random.chance(administrator_acts) {
                add(ActKind::Administrator);
            }
            if random.chance(replica_faults) {
                add(match random.below(4) {
                    0 => ActKind::CutOff(random.millis(1_000, 40_000)),
                    1 => ActKind::Stop,
                    _ => ActKind::Kill(random.millis(0, 20_000)),
                });
            }
            if is_shared && sharing.chance(150) {
                add(match sharing.below(6) {
                    0 => ActKind::Pause(sharing.millis(2_000, 30_000)),
                    1 => ActKind::Outage(sharing.millis(2_000, 30_000)),
                    2 | 3 => ActKind::Leave,
                    _ => ActKind::Join,
                });
            }
            add(ActKind::Wait(random.millis(0, 8_000)));
        }
        let course = Self {
            seed,
            is_wild,
            has_approvals,
            replicas,
            namespaces,
            shards,
            limits,
            adds_finalizer: Seeded::new(seed, "admission").chance(500),
            network_faults,
            service_faults,
            recovery,
            acts,
        };
        let loses_nothing = Seeded::new(seed, "recovery").chance(100);
        if loses_nothing { course.without_lost_results() } else { course }
    }

    /// The same course without anything that may lose the result of a call. Then no user must resolve a create, although
    /// the driver cannot find out whether an interrupted create has created an object. Three replicas may hand over shards.
    fn without_lost_results(mut self) -> Self {
        (self.service_faults.loses_answer, self.service_faults.panics) = (0, 0);
        let replicas = if self.replicas < 3 { 1 } else { self.replicas };
        self.acts.retain(|act| match act.what {
            ActKind::Administrator | ActKind::Kill(_) | ActKind::Pause(_) | ActKind::Stop => false,
            ActKind::CutOff(_) | ActKind::Outage(_) => replicas == 1,
            ActKind::Join | ActKind::Leave => replicas > 1,
            ActKind::User | ActKind::Approver | ActKind::Wait(_) => true,
        });
        Self { is_wild: false, replicas, recovery: Recovery::Unknown, ..self }
    }

    /// Returns a shorter course that still fails: leaves out acts, as many at a time as possible, and then one kind of
    /// fault after the other.
    pub(crate) fn shortened(mut self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut size = self.acts.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.acts.len() {
                let mut shorter = self.clone();
                shorter.acts.drain(from..(from + size).min(self.acts.len()));
                if fails(&shorter) {
                    self = shorter;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        for number in 0..self.faults().len() {
            let mut reduced = self.clone();
            let mut faults = reduced.faults();
            if std::mem::take(faults[number].1) > 0 && fails(&reduced) {
                self = reduced;
            }
        }
        let simplify: [fn(&mut Self); 5] = [
            |one| one.adds_finalizer = false,
            |one| one.replicas = 1,
            |one| one.namespaces = 1,
            |one| one.shards = 2,
            |one| one.limits = Limits::default(),
        ];
        for simplify in simplify {
            let mut simpler = self.clone();
            simplify(&mut simpler);
            if fails(&simpler) {
                self = simpler;
            }
        }
        self
    }

    /// The name of every fault, and how often it happens in a thousand requests or calls.
    fn faults(&mut self) -> Vec<(&'static str, &mut u64)> {
        self.network_faults.faults().into_iter().chain(self.service_faults.faults()).collect()
    }
}

/// Numbers of replicas, namespaces and shards.
fn some_shares(random: &mut Seeded) -> (u64, usize, u16) {
    (*random.pick(&[2, 3, 3]), *random.pick(&[1, 2, 3, 3]), *random.pick(&[2, 2, 3, 5]))
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut course = self.clone();
        let faults = course.faults().into_iter().filter(|(_, often)| **often > 0);
        let faults: Vec<String> = faults.map(|(name, often)| format!("{name} {often}")).collect();
        let acts: Vec<String> = self.acts.iter().map(|act| format!("{}:{:?}", act.number, act.what)).collect();
        let (seed, replicas, recovery) = (self.seed, self.replicas, self.recovery);
        let approvals = if self.has_approvals { "approvals" } else { "no approvals" };
        let (namespaces, shards) = (self.namespaces, self.shards);
        write!(f, "seed {seed}, {replicas} replicas, {namespaces} namespaces, {shards} shards, ")?;
        write!(f, "{recovery:?}, {approvals}, {} steps at a time; ", self.limits.per_namespace)?;
        writeln!(f, "faults in a thousand: {}", faults.join(", "))?;
        write!(f, "acts: {}", acts.join(" "))
    }
}
