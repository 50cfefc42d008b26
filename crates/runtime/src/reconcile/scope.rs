//! Selects the components to plan next: those of the names that are due.
//!
//! A planned object takes several times the memory of one that is up to date. So while many steps wait, components with
//! nothing but new Resources, or with nothing but deleted ones, are held back. A few are planned even then, so that their
//! status soon says what they wait for, however slow the steps are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::debounce::{Queue, Sleep};
use super::index::Index;
use super::plan_request::PlanScope;
use super::time::Time;
use super::{Environment, Policy, Reconciler};
use engine::load;
use model::Address;

/// How often held components are planned although many steps wait. Together with the number of names in a plan, that is
/// slower than the API server writes records, so that the steps that wait become more only behind slow calls.
const HELD_ANYWAY: Duration = Duration::from_secs(10);
/// The smallest share of a namespace in the steps that may wait: planning together is cheaper.
const SMALLEST_SHARE: usize = 8;

/// With more objects that wait for names, they are planned apart: all of them would be asked about again for each of them.
const MAX_AWAITING: usize = 50;

/// The share of one namespace in the backlog of planned steps.
#[derive(Clone, Copy, Debug)]
pub struct BacklogShare {
    /// How many steps may wait before components are held back: so many creates, and so many destroys.
    steps: usize,
    /// How many names are planned although many steps wait, and how often, so that all namespaces together plan as many
    /// in a second as one alone.
    anyway: usize,
    interval: Duration,
}

impl BacklogShare {
    fn new(policy: &Policy, namespaces: usize) -> Option<Self> {
        let (limit, namespaces) = (policy.max_waiting_steps?, namespaces.max(1));
        let steps = (limit / namespaces).max(SMALLEST_SHARE.min(limit));
        let anyway = policy.max_names_per_plan.min(steps);
        let turns = (anyway * namespaces).div_ceil(policy.max_names_per_plan);
        Some(Self { steps, anyway, interval: HELD_ANYWAY * u32::try_from(turns).unwrap_or(u32::MAX) })
    }
}

impl Reconciler {
    /// Starts planning of the names that are due. Returns when more will be due.
    pub fn plan_due(&mut self, environment: &dyn Environment) -> Option<Time> {
        self.planning.share = BacklogShare::new(&self.policy, environment.sharing_namespaces());
        let released = Queue::ALL.map(|queue| self.release_held(queue));
        let due = self.plan_scopes(environment);
        released.into_iter().flatten().chain(due).min()
    }

    fn plan_scopes(&mut self, environment: &dyn Environment) -> Option<Time> {
        let now = self.now.time;
        if let Some(Sleep { until }) = self.planning.debounce.current_sleep(now) {
            return until;
        }
        let mut waiting = self.planning.debounce.due(now);
        // Often nothing is due, and the steps that wait can be many.
        let share = self.planning.share.filter(|_| !waiting.is_empty());
        let mut room = share.map_or([usize::MAX; 2], |share| self.room(share));
        while let Some(scope) = self.next_scope(&mut waiting, &mut room) {
            waiting.extend(self.planning.drop_deferred(&scope.names));
            self.start_planning(scope, environment);
        }
        self.planning.debounce.sleep(now)
    }

    /// How many further names of each [`Queue`] may be planned: the share, without the steps that wait and the names whose
    /// plan is not adopted yet.
    fn room(&self, share: BacklogShare) -> [usize; 2] {
        let removals = self.schedule.ready_removals();
        let planned = [self.schedule.ready_steps() - removals, removals + self.planning.deferred_names()];
        planned.map(|steps| share.steps.saturating_sub(steps + self.planning.in_progress.len()))
    }

    /// Releases names for which there is room. Returns when some are released in any case.
    fn release_held(&mut self, queue: Queue) -> Option<Time> {
        let now = self.now.time;
        let Some(share) = self.planning.share.filter(|_| self.planning.debounce.holds_any(queue)) else {
            self.planning.released_at[queue as usize] = now;
            return None;
        };
        let room = self.room(share)[queue as usize];
        let anyway_at = self.planning.released_at[queue as usize] + share.interval;
        // Not for each step: planning together is cheaper.
        let count = match room > share.steps / 2 {
            true => room,
            false if anyway_at <= now => share.anyway,
            false => 0,
        };
        if count > 0 {
            self.planning.debounce.release(queue, count);
            self.planning.released_at[queue as usize] = now;
        }
        let holds_more = self.planning.debounce.holds_any(queue);
        holds_more.then(|| self.planning.released_at[queue as usize] + share.interval)
    }

    /// The queue in which a component can wait. `None`: it is planned immediately, because something of it changes or
    /// must be recovered, or because it is being executed.
    fn queue_of(&self, component: &BTreeSet<Arc<str>>) -> Option<Queue> {
        let queue = self.queue_of_name(component.first()?)?;
        let is_whole = component.iter().all(|name| self.queue_of_name(name) == Some(queue));
        (is_whole && self.schedule.touching(component).next().is_none()).then_some(queue)
    }

    fn queue_of_name(&self, name: &Arc<str>) -> Option<Queue> {
        let exists = self.objects.of(name).next().is_some() || self.recorded(name).next().is_some();
        match (self.index.instance(name)?.deleting, exists) {
            (false, false) => Some(Queue::New),
            (true, true) if self.recorded(name).all(|(_, stored)| stored.record.intent.is_none()) => {
                Some(Queue::Deletions)
            }
            _ => None,
        }
    }

    /// Takes whole components off `waiting`, as many as may be planned together, and off the room of each [`Queue`]. A
    /// component that is being planned, or is throttled, stays in the debounce until later.
    fn next_scope(&mut self, waiting: &mut BTreeSet<Arc<str>>, room: &mut [usize; 2]) -> Option<PlanScope> {
        let mut scope = PlanScope::default();
        let mut providers = None;
        let mut others = BTreeSet::new();
        while scope.names.len() < self.policy.max_names_per_plan
            && let Some(name) = waiting.pop_first()
        {
            if [&self.planning.in_progress, &self.moving, &self.planning.joining]
                .iter()
                .any(|busy| busy.contains(&name))
            {
                continue;
            }
            let component = self.whole_component(name.clone());
            if self.is_put_off(&component) {
                component.iter().for_each(|name| _ = waiting.remove(name));
                continue;
            }
            let queue = self.queue_of(&component);
            let is_released = component.iter().any(|name| self.planning.debounce.is_released(name));
            if let Some(queue) = queue.filter(|queue| room[*queue as usize] == 0 && !is_released) {
                component.iter().for_each(|name| _ = waiting.remove(name));
                self.planning.debounce.hold(queue, &component);
                continue;
            }
            let used = self.providers_of(&component);
            if *providers.get_or_insert_with(|| used.clone()) != used {
                others.insert(name);
                continue;
            }
            if let Some(queue) = queue {
                room[queue as usize] = room[queue as usize].saturating_sub(component.len());
            }
            scope.asks_providers = !used.is_empty();
            component.iter().for_each(|name| _ = waiting.remove(name));
            scope.names.extend(component.iter().cloned());
            scope.connected.extend(self.connected_parts(&component));
            scope.components.push(component);
        }
        waiting.append(&mut others);
        (!scope.components.is_empty()).then_some(scope)
    }

    /// Whether a component is being planned or is throttled. Names that have joined it since wait too.
    fn is_put_off(&mut self, component: &BTreeSet<Arc<str>>) -> bool {
        let planning = &mut self.planning;
        if !component.is_disjoint(&planning.in_progress) || !component.is_disjoint(&self.moving) {
            planning.joining.extend(component.iter().cloned());
            return true;
        }
        let Some(until) = planning.debounce.throttled_until(component, self.now.time) else { return false };
        planning.debounce.throttle_until(component, until);
        true
    }

    /// The names of the provider configurations that manage, or managed, the objects of these names.
    fn providers_of(&self, names: &BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        let index = &self.index;
        let mut used = BTreeSet::new();
        for name in names {
            let instance = index.instance(name).filter(|instance| !load::BUILT_IN.contains(&&*instance.type_name));
            used.extend(instance.map(|instance| load::provider_config_name(&instance)));
            for (_, stored) in self.recorded(name) {
                let objects = stored.record.current.iter().chain(stored.record.deposed.values());
                used.extend(objects.filter_map(|object| Some(object.provider.as_ref()?.name.clone())));
            }
        }
        used
    }

    /// The current component, including everything that a running plan has joined to it.
    fn whole_component(&self, name: Arc<str>) -> BTreeSet<Arc<str>> {
        self.whole_components(&self.index, [name])
    }

    /// The parts of a component that a running plan joins.
    fn connected_parts(&self, component: &BTreeSet<Arc<str>>) -> Vec<BTreeSet<Arc<str>>> {
        let mut left = component.clone();
        let mut parts = Vec::new();
        while let Some(name) = left.pop_first() {
            let part = self.index.component([name]);
            left.retain(|name| !part.contains(name));
            parts.push(part);
        }
        parts
    }

    /// The components of these names, as [`Self::whole_component`].
    pub fn whole_components(&self, index: &Index, names: impl IntoIterator<Item = Arc<str>>) -> BTreeSet<Arc<str>> {
        let mut names = index.component(names);
        loop {
            let touching = self.schedule.touching(&names).chain(self.awaiting_names(&names));
            let more: BTreeSet<Arc<str>> = touching.map(|address| address.name.clone()).collect();
            if more.is_subset(&names) {
                return names;
            }
            names = index.component(names.union(&more).cloned());
        }
    }

    /// The objects that wait for the names of others, if one of these Resources does: only together they show that each
    /// waits for the next one.
    fn awaiting_names(&self, names: &BTreeSet<Arc<str>>) -> impl Iterator<Item = &Address> {
        let waiting = self.objects.taken.keys().filter(|address| self.index.records().has_current(address));
        let is_few = self.objects.taken.len() <= MAX_AWAITING;
        let concerns = is_few && waiting.clone().any(|address| names.contains(&address.name));
        waiting.filter(move |_| concerns)
    }
}
