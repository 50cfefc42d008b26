//! Which changes are planned, when, and together with which others.
//!
//! Most changes start immediately; they are gathered only for a moment, so that one `kubectl apply` of many objects
//! results in few plans. A plan that destroys something waits until its component is quiet: a Resource that still needs
//! the object, or the second half of a rename, may be about to arrive. A component that was just planned is throttled
//! for a multiple of the planning time, so that planning a large component does not slow down its execution.
//!
//! A planned object takes several times the memory of one that is up to date. So while many steps wait, components with
//! nothing but new Resources, or with nothing but deleted ones, are held back. A few are planned even then, so that their
//! status soon says what they wait for, however slow the steps are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::index::Index;
use super::planning::PlanScope;
use super::time::Time;
use super::{Environment, Policy, Reconciler};
use engine::load;
use model::{Address, Name};

/// How long changes are gathered: the time in which the watch delivers the changes of one request.
const GATHER: Duration = Duration::from_millis(10);
/// How long a component must be quiet before a plan destroys something of it.
const QUIET: Duration = Duration::from_millis(100);
/// The longest wait of a change, however busy its component is.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A component is throttled for this multiple of its planning time.
const THROTTLE_FACTOR: u32 = 3;
/// The longest throttle, however slow the drivers are.
const MAX_THROTTLE: Duration = Duration::from_millis(500);
/// How often held components are planned although many steps wait. Together with the number of names in a plan, that is
/// slower than the API server writes records, so that the steps that wait become more only behind slow calls.
const HELD_ANYWAY: Duration = Duration::from_secs(10);
/// The smallest share of a namespace in the steps that may wait: planning together is cheaper.
const SMALLEST_SHARE: usize = 8;

/// With more objects that wait for names, they are planned apart: all of them would be asked about again for each of them.
const MAX_AWAITING: usize = 50;

/// The changes that can be held back. Those of one queue do not wait for those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    New,
    Deletions,
}

impl Queue {
    pub const ALL: [Self; 2] = [Self::New, Self::Deletions];
}

/// When a name has changed since it was last planned.
#[derive(Clone, Copy, Debug)]
struct PendingChange {
    first: Time,
    last: Time,
    /// The first change that the running plan does not include.
    newer: Option<Time>,
    /// It was held back and released, so it is not held back again.
    released: bool,
}

/// A period in which nothing becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// `None`: until the next change.
    pub until: Option<Time>,
}

/// The names that changed and are not planned yet.
#[derive(Debug, Default)]
pub struct Debounce {
    touched: BTreeMap<Name, PendingChange>,
    /// The names of unfinished plans that include their last change.
    planned: BTreeMap<Name, PendingChange>,
    /// The names that are held back.
    held: BTreeMap<Name, PendingChange>,
    /// The order in which these names are released, for each [`Queue`]. Names that are no longer held back are skipped.
    order: [VecDeque<Name>; 2],
    /// Until when names are throttled.
    throttled: BTreeMap<Name, Time>,
    /// The last check found nothing more to plan.
    asleep: Option<Sleep>,
}

impl Debounce {
    /// Records a change of the name. It is no longer held back: it may have become another case.
    pub fn touch(&mut self, name: &Name, now: Time) {
        if let Some(pending) = self.held.remove(name).or_else(|| self.planned.remove(name)) {
            self.touched.insert(name.clone(), pending);
        }
        let new = PendingChange { first: now, last: now, newer: None, released: false };
        let touched = self.touched.entry(name.clone()).or_insert(new);
        touched.last = now;
        touched.newer.get_or_insert(now);
        self.asleep = None;
    }

    /// Records that planning of the names has started: they are due again only if they change, or after
    /// [`Self::finish`]. Later changes are newer than that plan.
    pub fn begin(&mut self, names: &BTreeSet<Name>) {
        for name in names {
            if let Some(pending) = self.held.remove(name).or_else(|| self.touched.remove(name)) {
                self.planned.insert(name.clone(), PendingChange { newer: None, ..pending });
            }
        }
    }

    /// Records that the plan of the names is finished or dropped: they are due again, unless [`Self::clear`] or
    /// [`Self::defer`] follows.
    pub fn finish(&mut self, names: &BTreeSet<Name>) {
        self.touched.extend(names.iter().filter_map(|name| self.planned.remove_entry(name)));
        self.asleep = None;
    }

    /// Records that the plan of the names is executed later: until then, they are due only if they change.
    pub fn defer(&mut self, names: &BTreeSet<Name>) {
        for name in names {
            if !self.changed_since_planned(name)
                && let Some(unchanged) = self.touched.remove(name)
            {
                self.planned.insert(name.clone(), unchanged);
            }
        }
    }

    /// Holds names back until they change, or until [`Self::release`].
    pub fn hold(&mut self, queue: Queue, names: &BTreeSet<Name>) {
        for name in names {
            if let Some(touched) = self.touched.remove(name) {
                self.held.insert(name.clone(), touched);
                self.order[queue as usize].push_back(name.clone());
            }
        }
    }

    /// Releases as many names of a queue, or fewer if no more are held back.
    pub fn release(&mut self, queue: Queue, count: usize) {
        let Self { touched, held, order, asleep, .. } = self;
        let order = &mut order[queue as usize];
        let in_order = std::iter::from_fn(|| order.pop_front()).filter_map(|name| held.remove_entry(&name));
        for (name, held) in in_order.take(count) {
            touched.insert(name, PendingChange { released: true, ..held });
            *asleep = None;
        }
    }

    /// Whether names of a queue are held back, or were until they changed.
    pub fn holds_any(&self, queue: Queue) -> bool {
        !self.order[queue as usize].is_empty()
    }

    /// Whether a name was held back and released.
    pub fn is_released(&self, name: &str) -> bool {
        self.touched.get(name).is_some_and(|touched| touched.released)
    }

    fn pending(&self, name: &str) -> Option<&PendingChange> {
        self.touched.get(name).or_else(|| self.planned.get(name)).or_else(|| self.held.get(name))
    }

    /// Removes a name, unless it changed after its last plan began.
    pub fn clear(&mut self, name: &str) {
        if !self.changed_since_planned(name) {
            self.touched.remove(name);
            self.planned.remove(name);
            self.held.remove(name);
        }
    }

    /// Whether the name changed after its last plan began. Times are not compared, because both can have the same time.
    pub fn changed_since_planned(&self, name: &str) -> bool {
        self.pending(name).is_some_and(|pending| pending.newer.is_some())
    }

    /// Whether a plan for these names has waited for the maximum time since the first change that it does not include.
    pub fn has_waited_too_long<'a>(&'a self, names: impl Iterator<Item = &'a Name>, now: Time) -> bool {
        names.filter_map(|name| self.pending(name)?.newer).any(|newer| newer + MAX_WAIT <= now)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.pending(name).is_some()
    }

    pub fn len(&self) -> usize {
        self.touched.len() + self.planned.len() + self.held.len()
    }

    /// Throttles a component after planning that took `took`.
    pub fn throttle(&mut self, component: &BTreeSet<Name>, took: Duration, now: Time) {
        let throttle = took.saturating_mul(THROTTLE_FACTOR).min(MAX_THROTTLE);
        if throttle > GATHER {
            self.throttle_until(component, now + throttle);
        }
    }

    /// Throttles names that have joined a throttled component.
    pub fn throttle_until(&mut self, names: &BTreeSet<Name>, until: Time) {
        self.throttled.extend(names.iter().map(|name| (name.clone(), until)));
    }

    /// Until when any of the names is throttled.
    pub fn throttled_until(&self, names: &BTreeSet<Name>, now: Time) -> Option<Time> {
        if self.throttled.is_empty() {
            return None;
        }
        names.iter().find_map(|name| self.throttled.get(name).copied().filter(|until| *until > now))
    }

    /// Records that nothing more can be planned until the returned time, a change, or the end of a plan. It saves a check
    /// of thousands of waiting names after each step.
    pub fn sleep(&mut self, now: Time) -> Option<Time> {
        let until = self.touched.keys().filter_map(|name| self.due_at(name)).filter(|at| *at > now).min();
        self.asleep = Some(Sleep { until });
        until
    }

    /// The current sleep, if it is not over.
    pub fn current_sleep(&self, now: Time) -> Option<Sleep> {
        self.asleep.filter(|sleep| sleep.until.is_none_or(|until| until > now))
    }

    pub fn due(&mut self, now: Time) -> BTreeSet<Name> {
        self.throttled.retain(|_, until| *until > now);
        self.touched.keys().filter(|name| self.due_at(name) <= Some(now)).cloned().collect()
    }

    fn due_at(&self, name: &str) -> Option<Time> {
        let gathered = self.touched.get(name)?.first + GATHER;
        Some(self.throttled.get(name).map_or(gathered, |rested| gathered.max(*rested)))
    }

    /// When a plan of these names may destroy something.
    pub fn may_destroy_at<'a>(&'a self, names: impl Iterator<Item = &'a Name>) -> Option<Time> {
        let pending = names.filter_map(|name| self.pending(name)).copied();
        let span = pending.reduce(|a, b| PendingChange {
            first: a.first.min(b.first),
            last: a.last.max(b.last),
            newer: a.newer.or(b.newer),
            released: false,
        })?;
        Some((span.last + QUIET).min(span.first + MAX_WAIT))
    }
}

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
    fn queue_of(&self, component: &BTreeSet<Name>) -> Option<Queue> {
        let queue = self.queue_of_name(component.first()?)?;
        let is_whole = component.iter().all(|name| self.queue_of_name(name) == Some(queue));
        (is_whole && self.schedule.touching(component).next().is_none()).then_some(queue)
    }

    fn queue_of_name(&self, name: &Name) -> Option<Queue> {
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
    fn next_scope(&mut self, waiting: &mut BTreeSet<Name>, room: &mut [usize; 2]) -> Option<PlanScope> {
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
    fn is_put_off(&mut self, component: &BTreeSet<Name>) -> bool {
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
    fn providers_of(&self, names: &BTreeSet<Name>) -> BTreeSet<Arc<str>> {
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
    fn whole_component(&self, name: Name) -> BTreeSet<Name> {
        self.whole_components(&self.index, [name])
    }

    /// The parts of a component that a running plan joins.
    fn connected_parts(&self, component: &BTreeSet<Name>) -> Vec<BTreeSet<Name>> {
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
    pub fn whole_components(&self, index: &Index, names: impl IntoIterator<Item = Name>) -> BTreeSet<Name> {
        let mut names = index.component(names);
        loop {
            let touching = self.schedule.touching(&names).chain(self.awaiting_names(&names));
            let more: BTreeSet<Name> = touching.map(|address| address.name().clone()).collect();
            if more.is_subset(&names) {
                return names;
            }
            names = index.component(names.union(&more).cloned());
        }
    }

    /// The objects that wait for the names of others, if one of these Resources does: only together they show that each
    /// waits for the next one.
    fn awaiting_names(&self, names: &BTreeSet<Name>) -> impl Iterator<Item = &Address> {
        let waiting = self.objects.taken.keys().filter(|address| self.index.records().has_current(address));
        let is_few = self.objects.taken.len() <= MAX_AWAITING;
        let concerns = is_few && waiting.clone().any(|address| names.contains(address.name()));
        waiting.filter(move |_| concerns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn creates_start_after_ten_milliseconds_even_in_a_busy_component() {
        let (mut debounce, start, name) = (Debounce::default(), Time::default(), Name::from("a"));
        for at in 0..10 {
            debounce.touch(&name, start + ms(at));
        }
        assert_eq!((debounce.due(start + ms(9)).len(), debounce.sleep(start + ms(9))), (0, Some(start + ms(10))));
        assert_eq!((debounce.due(start + ms(10)).contains(&name), debounce.sleep(start + ms(10))), (true, None));
        assert_eq!(debounce.current_sleep(start + ms(500)), Some(Sleep { until: None }), "the name is being planned");
        debounce.finish(&BTreeSet::new());
        assert_eq!(debounce.current_sleep(start + ms(500)), None, "planning is over, and the name has changed since");
    }

    #[test]
    fn held_names_are_released_in_their_order_and_only_once() {
        let (mut debounce, start) = (Debounce::default(), Time::default());
        let names: Vec<Name> = ["c", "a", "b"].map(Name::from).into();
        let set = |names: &[Name]| names.iter().cloned().collect::<BTreeSet<_>>();
        for name in &names {
            debounce.touch(name, start);
            debounce.hold(Queue::New, &set(std::slice::from_ref(name)));
        }
        assert_eq!((debounce.due(start + ms(20)), debounce.len()), (BTreeSet::new(), 3));
        assert!(debounce.contains("a") && debounce.changed_since_planned("a"));
        debounce.touch(&names[0], start + ms(5));
        assert_eq!(debounce.due(start + ms(20)), set(&names[..1]), "it has changed");
        debounce.hold(Queue::New, &set(&names[..1]));
        debounce.begin(&set(&names[1..2]));
        debounce.clear("a");
        assert_eq!(
            (debounce.contains("a"), debounce.holds_any(Queue::New)),
            (false, true),
            "a was planned with another component"
        );
        debounce.release(Queue::Deletions, 1);
        assert_eq!(debounce.due(start + ms(20)), BTreeSet::new(), "nothing of that queue is held back");
        debounce.release(Queue::New, 1);
        assert_eq!((debounce.due(start + ms(20)), debounce.is_released("c")), (set(&names[..1]), true));
        debounce.release(Queue::New, 9);
        assert_eq!((debounce.due(start + ms(20)).len(), debounce.holds_any(Queue::New)), (2, false));
    }

    #[test]
    fn a_component_is_throttled_longer_than_its_planning_and_so_are_names_that_join_it() {
        let (mut debounce, start) = (Debounce::default(), Time::default());
        let (a, b, c): (Name, Name, Name) = ("a".into(), "b".into(), "c".into());
        debounce.throttle(&[a.clone(), b.clone()].into(), ms(40), start);
        debounce.throttle(&[c.clone()].into(), ms(2), start);
        for name in [&a, &c] {
            debounce.touch(name, start);
        }
        assert_eq!(debounce.due(start + ms(10)), [c.clone()].into(), "a fast planning causes no throttle");
        let rested = Some(start + ms(120));
        assert_eq!(debounce.sleep(start + ms(10)), rested);
        assert_eq!(debounce.current_sleep(start + ms(119)), Some(Sleep { until: rested }));
        assert_eq!(debounce.current_sleep(start + ms(120)), None);
        let until = debounce.throttled_until(&[c.clone(), b].into(), start + ms(10));
        assert_eq!(until, Some(start + ms(120)), "a new name joins the component");
        debounce.throttle_until(&[c.clone()].into(), start + ms(120));
        assert!(debounce.due(start + ms(119)).is_empty());
        assert_eq!(debounce.due(start + ms(120)), [a.clone(), c].into());
        assert_eq!(debounce.throttled_until(&[a.clone()].into(), start + ms(120)), None);
        // Planning took a minute; the throttle is bounded all the same.
        debounce.throttle(&[a].into(), Duration::from_mins(1), start);
        assert_eq!(debounce.due(start + ms(500)).len(), 2);
    }

    #[test]
    fn a_name_is_due_again_only_if_it_changes_or_its_plan_ends() {
        let (mut debounce, start, name) = (Debounce::default(), Time::default(), Name::from("a"));
        let (names, later) = (BTreeSet::from([name.clone()]), start + ms(20));
        debounce.touch(&name, start);
        debounce.begin(&names);
        assert!(debounce.due(later).is_empty() && debounce.contains("a"), "it is being planned");
        debounce.finish(&names);
        debounce.defer(&names);
        assert!(debounce.due(later).is_empty() && debounce.current_sleep(later).is_none(), "its plan is deferred");
        debounce.touch(&name, later);
        debounce.defer(&names);
        assert_eq!(debounce.due(later), names, "the deferred plan does not include the change");
        debounce.begin(&names);
        debounce.finish(&names);
        assert_eq!(debounce.due(later), names, "its plan was dropped");
        debounce.begin(&names);
        debounce.clear("a");
        assert_eq!(debounce.len(), 0);
    }

    #[test]
    fn destroys_wait_for_a_quiet_component_but_no_longer_than_a_second() {
        let (mut debounce, start) = (Debounce::default(), Time::default());
        let (a, b): (Name, Name) = ("a".into(), "b".into());
        debounce.touch(&a, start);
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(100)));
        debounce.touch(&b, start + ms(60));
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(160)));
        for at in (100..2000).step_by(50) {
            debounce.touch(&b, start + ms(at));
        }
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(1000)));
        assert!(debounce.has_waited_too_long([&b].into_iter(), start + ms(1060)));
        debounce.begin(&[a.clone(), b.clone()].into());
        assert!(
            !debounce.has_waited_too_long([&b].into_iter(), start + ms(9999)),
            "the running plan includes all changes"
        );
        // A change at the same time as the start of the plan, and a later one.
        debounce.begin(&[b.clone()].into());
        debounce.touch(&b, start + ms(1950));
        debounce.clear("a");
        debounce.clear("b");
        assert_eq!(debounce.len(), 1);
        assert!(debounce.changed_since_planned("b"), "it changed again");
        debounce.begin(&[b.clone()].into());
        debounce.clear("b");
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), None);
        assert!(debounce.len() == 0 && !debounce.contains("a"));
    }
}
