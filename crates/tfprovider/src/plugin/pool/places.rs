//! The limits of processes: how many may run in total and for each namespace, and how much memory they may need.
//!
//! A process has a place from before its start until after its end. A place counts with the memory limit of its process,
//! so that all processes together fit into the memory that there is for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use process::lock;

/// How many processes may run, and what they may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceLimits {
    /// The maximum number of processes.
    pub total: usize,
    /// The maximum number of processes of one namespace.
    pub per_namespace: usize,
    /// The maximum sum of the memory limits of all processes in bytes. The processes of one namespace get at most half
    /// of it, or one process.
    pub memory: u64,
}

impl Default for PlaceLimits {
    /// No limits.
    fn default() -> Self {
        Self { total: usize::MAX, per_namespace: usize::MAX, memory: u64::MAX }
    }
}

/// Why a process cannot start now, and so which processes could end for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Its namespace has too many processes.
    Namespace,
    /// There are too many processes in total.
    Total,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    processes: usize,
    memory: u64,
}

impl Usage {
    fn add(&mut self, memory: u64) {
        self.processes += 1;
        self.memory = self.memory.saturating_add(memory);
    }

    fn remove(&mut self, memory: u64) {
        self.processes -= 1;
        self.memory = self.memory.saturating_sub(memory);
    }

    fn without(self, other: Self) -> Self {
        Self { processes: self.processes - other.processes, memory: self.memory.saturating_sub(other.memory) }
    }
}

#[derive(Debug, Default)]
struct PlacesState {
    taken: BTreeMap<Arc<str>, Usage>,
    /// Those of `taken` whose processes are ending.
    ending: BTreeMap<Arc<str>, Usage>,
    /// Who waits for a place, in the order of arrival: the namespace and the memory.
    waiting: BTreeMap<u64, (Arc<str>, u64)>,
    arrivals: u64,
    /// The namespaces in which a process could not start, with the memory that it needs.
    refused: BTreeMap<Arc<str>, u64>,
}

#[derive(Debug)]
pub struct Places {
    limits: PlaceLimits,
    state: Mutex<PlacesState>,
    /// Notified when a place is returned, or when a process becomes idle.
    changed: Notify,
    /// Notified when there are too few places.
    pub short: Notify,
}

/// The right to run a process, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    namespace: Arc<str>,
    memory: u64,
    is_ending: AtomicBool,
}

/// A position in the queue for places, until it is dropped.
pub struct Waiting<'a> {
    places: &'a Arc<Places>,
    number: u64,
    namespace: Arc<str>,
    memory: u64,
}

impl Place {
    /// The process is ending, so its place becomes free soon.
    pub(crate) fn mark_ending(&self) {
        if !self.is_ending.swap(true, Ordering::Relaxed) {
            lock(&self.places.state).ending.entry(self.namespace.clone()).or_default().add(self.memory);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = lock(&self.places.state);
        let PlacesState { taken, ending, .. } = &mut *state;
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        for usages in [Some(taken), is_ending.then_some(ending)].into_iter().flatten() {
            if let Some(usage) = usages.get_mut(&self.namespace) {
                usage.remove(self.memory);
                if usage.processes == 0 {
                    usages.remove(&self.namespace);
                }
            }
        }
        drop(state);
        self.places.changed.notify_waiters();
    }
}

impl PlacesState {
    /// What is missing for another process; `None` if it can start. `ended`: as if the ending processes had ended.
    fn shortage(&self, limits: &PlaceLimits, namespace: &str, memory: u64, ended: bool) -> Option<Shortage> {
        let mut share = usage(&self.taken, namespace);
        let mut total = total_usage(&self.taken);
        if ended {
            share = share.without(usage(&self.ending, namespace));
            total = total.without(total_usage(&self.ending));
        }
        let exceeds_share = share.processes > 0 && share.memory.saturating_add(memory) > limits.memory / 2;
        if share.processes >= limits.per_namespace || exceeds_share {
            return Some(Shortage::Namespace);
        }
        let is_full = total.processes >= limits.total || total.memory.saturating_add(memory) > limits.memory;
        is_full.then_some(Shortage::Total)
    }
}

fn usage(usages: &BTreeMap<Arc<str>, Usage>, namespace: &str) -> Usage {
    usages.get(namespace).copied().unwrap_or_default()
}

fn total_usage(usages: &BTreeMap<Arc<str>, Usage>) -> Usage {
    usages.values().fold(Usage::default(), |sum, usage| Usage {
        processes: sum.processes + usage.processes,
        memory: sum.memory.saturating_add(usage.memory),
    })
}

impl Places {
    pub fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default(), changed: Notify::new(), short: Notify::new() })
    }

    /// Joins the queue.
    pub fn queue(self: &Arc<Self>, namespace: &Arc<str>, memory: u64) -> Waiting<'_> {
        let mut state = lock(&self.state);
        state.arrivals += 1;
        let number = state.arrivals;
        state.waiting.insert(number, (namespace.clone(), memory));
        Waiting { places: self, number, namespace: namespace.clone(), memory }
    }

    /// A process has become idle, and can end for another one.
    pub fn became_idle(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for the next change. Registers immediately.
    pub fn change(&self) -> std::pin::Pin<Box<tokio::sync::futures::Notified<'_>>> {
        let mut changed = Box::pin(self.changed.notified());
        changed.as_mut().enable();
        changed
    }

    /// Removes and returns the namespaces in which a process could not start, and can now. `can_end`: whether an idle
    /// process can end for it.
    pub fn available(&self, can_end: impl Fn(&str, Shortage) -> bool) -> BTreeSet<Arc<str>> {
        let refused = lock(&self.state).refused.clone();
        let mut available = BTreeSet::new();
        for (namespace, memory) in refused {
            let shortage = lock(&self.state).shortage(&self.limits, &namespace, memory, true);
            if shortage.is_none_or(|shortage| can_end(&namespace, shortage)) {
                available.insert(namespace);
            }
        }
        lock(&self.state).refused.retain(|namespace, _| !available.contains(namespace));
        available
    }
}

impl Waiting<'_> {
    /// Takes a place, unless someone who arrived earlier can take one. Otherwise returns what is missing; `None` if
    /// enough processes are ending.
    pub fn try_take(&self) -> Result<Place, Option<Shortage>> {
        let (limits, mut state) = (&self.places.limits, lock(&self.places.state));
        let is_first = !state
            .waiting
            .range(..self.number)
            .any(|(_, (namespace, memory))| state.shortage(limits, namespace, *memory, false).is_none());
        if is_first && state.shortage(limits, &self.namespace, self.memory, false).is_none() {
            state.taken.entry(self.namespace.clone()).or_default().add(self.memory);
            let (places, namespace) = (Arc::clone(self.places), self.namespace.clone());
            return Ok(Place { places, namespace, memory: self.memory, is_ending: AtomicBool::new(false) });
        }
        Err(state.shortage(limits, &self.namespace, self.memory, true))
    }

    /// Gives up. [`Places::available`] reports when a process can start.
    pub fn refuse(&self) {
        lock(&self.places.state).refused.insert(self.namespace.clone(), self.memory);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.places.state).waiting.remove(&self.number);
        // Others may have waited only for this one.
        self.places.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PlaceLimits = PlaceLimits { total: 4, per_namespace: 3, memory: 1000 };

    fn take(places: &Arc<Places>, namespace: &str, memory: u64) -> Result<Place, Option<Shortage>> {
        places.queue(&namespace.into(), memory).try_take()
    }

    #[test]
    fn processes_are_limited_in_total_and_for_each_namespace() {
        let places = Places::new(LIMITS);
        let mut held: Vec<_> = (0..3).map(|_| take(&places, "a", 10).unwrap()).collect();
        assert_eq!(take(&places, "a", 10).unwrap_err(), Some(Shortage::Namespace));
        held.push(take(&places, "b", 10).unwrap());
        assert_eq!(take(&places, "c", 10).unwrap_err(), Some(Shortage::Total));
        held[0].mark_ending();
        assert_eq!(take(&places, "c", 10).unwrap_err(), None, "a process is ending");
        held.clear();
        assert!(lock(&places.state).taken.is_empty());
        assert!(lock(&places.state).ending.is_empty());
    }

    #[test]
    fn a_namespace_gets_half_of_the_memory_or_one_process() {
        let places = Places::new(LIMITS);
        let _small = [take(&places, "a", 250).unwrap(), take(&places, "a", 250).unwrap()];
        assert_eq!(take(&places, "a", 1).unwrap_err(), Some(Shortage::Namespace));
        assert_eq!(take(&places, "b", 501).unwrap_err(), Some(Shortage::Total));
        let _large = take(&places, "b", 500).unwrap();
        assert_eq!(take(&places, "c", 1).unwrap_err(), Some(Shortage::Total));
    }

    #[test]
    fn the_first_that_can_take_a_place_gets_it() {
        let places = Places::new(PlaceLimits { total: 2, per_namespace: 1, memory: 1000 });
        let a = take(&places, "a", 10).unwrap();
        let b = take(&places, "b", 10).unwrap();
        let (first, second, third) =
            (places.queue(&"a".into(), 10), places.queue(&"c".into(), 10), places.queue(&"d".into(), 10));
        drop(b);
        assert_eq!(first.try_take().unwrap_err(), Some(Shortage::Namespace));
        assert!(third.try_take().is_err(), "`c` arrived earlier");
        let taken = second.try_take().unwrap();
        drop(second);
        drop(a);
        drop((taken, first));
        assert!(third.try_take().is_ok());
    }

    #[test]
    fn a_refused_namespace_is_reported_once_when_a_process_can_start() {
        let places = Places::new(PlaceLimits { total: 1, per_namespace: 1, memory: 1000 });
        let held = take(&places, "a", 10).unwrap();
        let waiting = places.queue(&"b".into(), 10);
        assert_eq!(waiting.try_take().unwrap_err(), Some(Shortage::Total));
        waiting.refuse();
        drop(waiting);
        assert!(places.available(|_, _| false).is_empty());
        let available = places.available(|namespace, shortage| namespace == "b" && shortage == Shortage::Total);
        assert_eq!(available, BTreeSet::from(["b".into()]));
        assert!(places.available(|_, _| true).is_empty());
        drop(held);
        assert!(take(&places, "b", 10).is_ok());
    }
}
