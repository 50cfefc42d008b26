//! Which shards this replica holds, for its other tasks.
//!
//! ```text
//! free --gain--> held --lists are complete--> leading --drain or lose--> ending --last task ends--> free
//! ```
//!
//! A held shard is watched. Its namespaces plan and start calls while it is leading. If it is lost, running calls are
//! awaited, and it is watched until the last one has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::shards::{Division, Shard};
use model::BUCKETS;
use process::Observable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Held,
    /// It is given back as soon as its tasks have ended.
    Draining,
    /// Another replica may hold it.
    Lost,
}

#[derive(Clone, Debug)]
struct Held {
    stage: Stage,
    /// The generation that gained it: lists of this generation or later contain its namespaces.
    since: u64,
    /// The number of running tasks of namespaces.
    tasks: usize,
    /// The number of namespaces in which calls run.
    busy: usize,
}

impl Held {
    fn since(since: u64) -> Self {
        Self { stage: Stage::Held, since, tasks: 0, busy: 0 }
    }

    /// It is given back, and its tasks have ended.
    fn is_drained(&self) -> bool {
        self.stage == Stage::Draining && self.tasks == 0
    }

    fn cost(&self) -> usize {
        2 * self.busy + usize::from(self.stage != Stage::Draining)
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    shards: BTreeMap<Shard, Held>,
    /// Counts how often shards were gained.
    generation: u64,
    /// The generation of the last complete list of each watch.
    listed: BTreeMap<Arc<str>, u64>,
    /// This replica could not renew in time.
    suspended: bool,
    /// The first attempt to get shards has ended.
    begun: bool,
}

impl State {
    fn is_leading(&self, shard: Shard) -> bool {
        let listed = self.listed.values().min().copied().unwrap_or_default();
        !self.suspended
            && self
                .shards
                .get(&shard)
                .is_some_and(|held| held.stage == Stage::Held && (shard == Shard::Cluster || held.since <= listed))
    }

    /// Removes a lost shard without tasks.
    fn forget_ended(&mut self) {
        self.shards.retain(|_, held| held.stage != Stage::Lost || held.tasks > 0);
    }
}

/// The shards of this replica. Cheap to clone; all clones share their state.
#[derive(Clone, Debug)]
pub struct Leadership {
    division: Division,
    state: Arc<Observable<State>>,
}

impl Leadership {
    /// For a replica that takes part in an election. It holds nothing yet.
    pub fn none(division: Division) -> Self {
        Self { division, state: Arc::default() }
    }

    /// For a single replica, which always holds all shards.
    pub fn alone(division: Division) -> Self {
        let shards = division.all().map(|shard| (shard, Held::since(0))).collect();
        let state = State { shards, begun: true, ..State::default() };
        Self { division, state: Arc::new(Observable::new(state)) }
    }

    pub fn division(&self) -> Division {
        self.division
    }

    /// Whether this replica may plan and start calls in a namespace.
    pub fn leads(&self, namespace: &str) -> bool {
        self.state.read(|state| state.is_leading(self.division.shard(namespace)))
    }

    /// Whether this replica does what exists once in a cluster.
    pub fn leads_cluster(&self) -> bool {
        self.state.read(|state| state.is_leading(Shard::Cluster))
    }

    /// The shards that are leading.
    pub fn leading(&self) -> BTreeSet<Shard> {
        self.state.read(|state| state.shards.keys().copied().filter(|shard| state.is_leading(*shard)).collect())
    }

    /// The shards whose namespaces are kept in memory, with a number that differs if one was dropped and gained again.
    pub fn gained(&self) -> BTreeMap<Shard, u64> {
        self.state.read(|state| state.shards.iter().map(|(shard, held)| (*shard, held.since)).collect())
    }

    /// Since when the objects of a namespace are kept in memory, as a number; `None`: they are not.
    pub fn watched_since(&self, namespace: &str) -> Option<u64> {
        self.state.read(|state| state.shards.get(&self.division.shard(namespace)).map(|held| held.since))
    }

    /// Whether the objects of a namespace are kept in memory.
    pub fn watches(&self, namespace: &str) -> bool {
        self.watched_since(namespace).is_some()
    }

    /// The buckets of all namespaces that are not kept in memory.
    pub fn unwatched_buckets(&self) -> Vec<u16> {
        self.state.read(|state| {
            (0..BUCKETS).filter(|bucket| !state.shards.contains_key(&self.division.shard_of_bucket(*bucket))).collect()
        })
    }

    /// Returns when [`Self::leads`] has the given value.
    pub async fn becomes(&self, namespace: &str, expected: bool) {
        let shard = self.division.shard(namespace);
        self.state.wait_for(|state| state.is_leading(shard) == expected).await;
    }

    /// Waits for the next change, as [`Observable::changed`] does.
    pub async fn changed(&self, seen: &mut Option<u64>) {
        self.state.changed(seen).await;
    }
}

/// For the supervisor of the tasks of namespaces.
impl Leadership {
    /// Counts a task of a namespace, if this replica leads there.
    pub fn start_task(&self, namespace: &str) -> bool {
        let shard = self.division.shard(namespace);
        let mut is_leading = false;
        self.state.modify(|state| {
            is_leading = state.is_leading(shard);
            if let Some(held) = state.shards.get_mut(&shard).filter(|_| is_leading) {
                held.tasks += 1;
            }
            false
        });
        is_leading
    }

    /// Calls have started to run in a namespace, or the last one has ended.
    pub fn set_busy(&self, namespace: &str, is_busy: bool) {
        let shard = self.division.shard(namespace);
        self.state.modify(|state| {
            if let Some(held) = state.shards.get_mut(&shard) {
                held.busy = if is_busy { held.busy + 1 } else { held.busy.saturating_sub(1) };
            }
            false
        });
    }

    /// The task of a namespace has ended, with all its calls.
    pub fn end_task(&self, namespace: &str) {
        let shard = self.division.shard(namespace);
        self.state.modify(|state| {
            let Some(held) = state.shards.get_mut(&shard) else { return false };
            held.tasks = held.tasks.saturating_sub(1);
            let is_over = held.tasks == 0 && held.stage != Stage::Held;
            state.forget_ended();
            is_over
        });
    }
}

/// For the watches.
impl Leadership {
    /// Adds a watch: no shard leads before it has listed the namespaces of the shard.
    pub fn add_watch(&self, name: &Arc<str>) {
        self.state.modify(|state| state.listed.insert(name.clone(), 0) != Some(0));
    }

    /// Waits for the first attempt to get shards, and returns the generation of the held ones.
    pub async fn begun(self) -> u64 {
        self.state.wait_for(|state| state.begun).await;
        self.state.read(|state| state.generation)
    }

    /// Waits until shards were gained after a generation.
    pub async fn gained_after(self, generation: u64) {
        self.state.wait_for(|state| state.generation > generation).await;
    }

    /// A watch has listed the namespaces of all shards of a generation.
    pub fn listed(&self, watch: &Arc<str>, generation: u64) {
        self.state.modify(|state| {
            let before = state.listed.get(watch).copied();
            state.listed.insert(watch.clone(), generation);
            before != Some(generation)
        });
    }
}

/// For the elector.
impl Leadership {
    /// An attempt has ended with these shards. Other shards are lost. Those of `give_back` end.
    pub fn hold(&self, shards: &BTreeSet<Shard>, give_back: &BTreeSet<Shard>) {
        self.state.modify(|state| {
            let before: BTreeMap<Shard, Stage> =
                state.shards.iter().map(|(shard, held)| (*shard, held.stage)).collect();
            let was_suspended = std::mem::replace(&mut state.suspended, false);
            let had_begun = std::mem::replace(&mut state.begun, true);
            let gained: Vec<Shard> = shards.iter().filter(|shard| !state.shards.contains_key(shard)).copied().collect();
            state.generation += u64::from(!gained.is_empty());
            let since = state.generation;
            state.shards.extend(gained.into_iter().map(|shard| (shard, Held::since(since))));
            for (shard, held) in &mut state.shards {
                held.stage = match (shards.contains(shard), give_back.contains(shard)) {
                    (false, _) => Stage::Lost,
                    (true, true) => Stage::Draining,
                    (true, false) => Stage::Held,
                };
            }
            state.forget_ended();
            let after: BTreeMap<Shard, Stage> = state.shards.iter().map(|(shard, held)| (*shard, held.stage)).collect();
            before != after || was_suspended || !had_begun
        });
    }

    /// Stops all shards, until [`Self::hold`] says which ones this replica still holds.
    pub fn suspend(&self) {
        self.state.modify(|state| !std::mem::replace(&mut state.suspended, true));
    }

    /// The shards that this replica holds by their Leases, as it knows.
    pub fn held(&self) -> BTreeSet<Shard> {
        self.shards_that(|held| held.stage != Stage::Lost)
    }

    /// The shards to release: they are given back, and their tasks have ended.
    pub fn drained(&self) -> BTreeSet<Shard> {
        self.shards_that(Held::is_drained)
    }

    /// Waits until there is a shard to release.
    pub async fn becomes_drained(&self) {
        self.state.wait_for(|state| state.shards.values().any(Held::is_drained)).await;
    }

    /// The cost of giving a shard back, for comparison: its namespaces wait for their running calls meanwhile.
    pub fn cost(&self, shard: Shard) -> usize {
        self.state.read(|state| state.shards.get(&shard).map_or(0, Held::cost))
    }

    fn shards_that(&self, test: impl Fn(&Held) -> bool) -> BTreeSet<Shard> {
        self.state.read(|state| state.shards.iter().filter(|(_, held)| test(held)).map(|(shard, _)| *shard).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With one shard of namespaces.
    fn single() -> (Leadership, Arc<str>, BTreeSet<Shard>) {
        let leadership = Leadership::none(Division::new(1));
        let watch: Arc<str> = "resources".into();
        leadership.add_watch(&watch);
        (leadership, watch, BTreeSet::from([Shard::Namespaces(0)]))
    }

    #[test]
    fn a_shard_leads_after_its_first_list() {
        let (leadership, watch, shards) = single();
        leadership.hold(&shards, &BTreeSet::new());
        assert!(leadership.watches("shop") && !leadership.leads("shop") && !leadership.start_task("shop"));
        // A list that began before the shard was gained.
        leadership.listed(&watch, 0);
        assert!(!leadership.leads("shop"));
        leadership.listed(&watch, 1);
        assert!(leadership.leads("shop") && !leadership.leads_cluster());
        assert!(leadership.unwatched_buckets().is_empty());
    }

    #[test]
    fn the_shard_of_the_cluster_needs_no_list() {
        let (leadership, ..) = single();
        leadership.hold(&BTreeSet::from([Shard::Cluster]), &BTreeSet::new());
        assert!(leadership.leads_cluster());
    }

    #[test]
    fn a_shard_is_released_after_its_last_task() {
        let (leadership, watch, shards) = single();
        leadership.hold(&shards, &BTreeSet::new());
        leadership.listed(&watch, 1);
        assert!(leadership.start_task("shop"));
        leadership.hold(&shards, &shards);
        assert!(!leadership.leads("shop") && leadership.watches("shop"));
        assert!(leadership.drained().is_empty());
        leadership.end_task("shop");
        assert_eq!(leadership.drained(), shards);
        leadership.hold(&BTreeSet::new(), &BTreeSet::new());
        assert!(!leadership.watches("shop"));
    }

    #[test]
    fn a_lost_shard_is_watched_while_its_calls_run() {
        let (leadership, watch, shards) = single();
        leadership.hold(&shards, &BTreeSet::new());
        leadership.listed(&watch, 1);
        assert!(leadership.start_task("shop"));
        leadership.suspend();
        assert!(!leadership.leads("shop"));
        leadership.hold(&BTreeSet::new(), &BTreeSet::new());
        assert!(!leadership.leads("shop") && leadership.watches("shop") && leadership.held().is_empty());
        // It returns while the call runs: it was watched all the time.
        leadership.hold(&shards, &BTreeSet::new());
        assert!(leadership.leads("shop"));
        leadership.hold(&BTreeSet::new(), &BTreeSet::new());
        leadership.end_task("shop");
        assert!(!leadership.watches("shop"));
        leadership.hold(&shards, &BTreeSet::new());
        assert!(!leadership.leads("shop"), "it is listed again");
    }

    #[test]
    fn a_shard_that_stays_leads_at_once_after_an_interruption() {
        let (leadership, watch, shards) = single();
        leadership.hold(&shards, &BTreeSet::new());
        leadership.listed(&watch, 1);
        leadership.suspend();
        leadership.hold(&shards, &BTreeSet::new());
        assert!(leadership.leads("shop"));
    }
}
