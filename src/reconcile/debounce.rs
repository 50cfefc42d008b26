//! The debounce: how long changes are gathered before they are acted on. Pure: the time comes in.
//!
//! Most changes start at once; events are gathered for a moment only, so that one `kubectl apply` of many objects is
//! planned in few plans. What destroys something waits until its component is quiet, since the object that still
//! needs it, or the second half of a rename, may be on its way. And a component that has just been planned rests for a
//! multiple of the time that this took: while a large one arrives and is made, something new is known of it all the
//! time, and planning must not eat what making needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::time::Time;

/// How long events are gathered before planning: the time in which the watch delivers what one request changed.
const GATHER: Duration = Duration::from_millis(10);
/// How long a component must have been quiet before something of it is destroyed.
const QUIET: Duration = Duration::from_millis(100);
/// No change waits longer than this, however busy its component is.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much longer than it took to be planned a component rests before it is planned again.
const REST: u32 = 3;
/// No component rests longer than this, however slow whoever was asked is.
const LONGEST_REST: Duration = Duration::from_millis(500);

/// When a name was touched since it was last planned.
#[derive(Clone, Copy, Debug)]
struct Touched {
    first: Time,
    last: Time,
    /// The first change that a plan which is being made does not know of.
    newer: Option<Time>,
}

/// A time in which nothing becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// `None`: as long as nothing happens.
    pub until: Option<Time>,
}

/// The names that changed and were not acted on yet.
#[derive(Debug, Default)]
pub struct Debounce {
    touched: BTreeMap<Arc<str>, Touched>,
    /// Until when names are not planned again.
    resting: BTreeMap<Arc<str>, Time>,
    /// Whoever looked last found nothing more to plan.
    asleep: Option<Sleep>,
}

impl Debounce {
    /// Something about the name has changed.
    pub fn touch(&mut self, name: &Arc<str>, now: Time) {
        let touched = self.touched.entry(name.clone()).or_insert(Touched { first: now, last: now, newer: None });
        touched.last = now;
        touched.newer.get_or_insert(now);
        self.asleep = None;
    }

    /// The names are being planned, as of now: what comes from here on is newer than that plan.
    pub fn begin(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            if let Some(touched) = self.touched.get_mut(name) {
                touched.newer = None;
            }
        }
    }

    /// Takes a name off the list, unless it was touched since its last plan began: what happened before is acted on.
    pub fn clear(&mut self, name: &str) {
        if !self.is_newer(name) {
            self.touched.remove(name);
        }
    }

    /// Whether the name was touched since its last plan began. Not by comparing times: both may happen at one time.
    pub fn is_newer(&self, name: &str) -> bool {
        self.touched.get(name).is_some_and(|touched| touched.newer.is_some())
    }

    /// Whether a plan for these names has waited as long as it may for others to come to rest: since the first change
    /// that it does not know of.
    pub fn out_of_patience<'a>(&'a self, names: impl Iterator<Item = &'a Arc<str>>, now: Time) -> bool {
        names.filter_map(|name| self.touched.get(name)?.newer).any(|newer| newer + PATIENCE <= now)
    }

    /// Whether the name waits to be acted on.
    pub fn contains(&self, name: &str) -> bool {
        self.touched.contains_key(name)
    }

    /// How many names wait.
    pub fn len(&self) -> usize {
        self.touched.len()
    }

    /// A component whose planning took that long begins to rest.
    pub fn rest(&mut self, component: &BTreeSet<Arc<str>>, took: Duration, now: Time) {
        let rest = took.saturating_mul(REST).min(LONGEST_REST);
        if rest > GATHER {
            self.rest_until(component, now + rest);
        }
    }

    /// Names rest until then: those that have joined a component that rests.
    pub fn rest_until(&mut self, names: &BTreeSet<Arc<str>>, until: Time) {
        self.resting.extend(names.iter().map(|name| (name.clone(), until)));
    }

    /// Until when any of the names rests, if any does.
    pub fn rests(&self, names: &BTreeSet<Arc<str>>, now: Time) -> Option<Time> {
        if self.resting.is_empty() {
            return None;
        }
        names.iter().find_map(|name| self.resting.get(name).copied().filter(|until| *until > now))
    }

    /// All that may be planned now is being planned, or waits for something other than time. Nobody needs to look again
    /// before another name is due, which it gives, or is touched, or [`Self::wake`] is called: thousands of names may
    /// wait, and each step that ends has somebody look.
    pub fn sleep(&mut self, now: Time) -> Option<Time> {
        let own = self.touched.keys().filter_map(|name| self.due_at(name));
        let until = own.filter(|at| *at > now).min();
        self.asleep = Some(Sleep { until });
        until
    }

    /// What names waited for may have happened.
    pub fn wake(&mut self) {
        self.asleep = None;
    }

    /// The time in which nobody needs to look, if it is not over.
    pub fn sleeps(&self, now: Time) -> Option<Sleep> {
        self.asleep.filter(|sleep| sleep.until.is_none_or(|until| until > now))
    }

    /// The names that may be planned now.
    pub fn due(&mut self, now: Time) -> BTreeSet<Arc<str>> {
        self.resting.retain(|_, until| *until > now);
        self.touched.keys().filter(|name| self.due_at(name) <= Some(now)).cloned().collect()
    }

    fn due_at(&self, name: &str) -> Option<Time> {
        let gathered = self.touched.get(name)?.first + GATHER;
        Some(self.resting.get(name).map_or(gathered, |rested| gathered.max(*rested)))
    }

    /// When a plan over these names may destroy something.
    pub fn may_destroy_at<'a>(&'a self, names: impl Iterator<Item = &'a Arc<str>>) -> Option<Time> {
        let touched = names.filter_map(|name| self.touched.get(name)).copied();
        let span = touched.reduce(|a, b| Touched {
            first: a.first.min(b.first),
            last: a.last.max(b.last),
            newer: a.newer.or(b.newer),
        })?;
        Some((span.last + QUIET).min(span.first + PATIENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn creates_start_after_ten_milliseconds_however_busy_it_is() {
        let (mut debounce, start, name) = (Debounce::default(), Time::default(), Arc::from("a"));
        for at in 0..10 {
            debounce.touch(&name, start + ms(at));
        }
        assert_eq!((debounce.due(start + ms(9)).len(), debounce.sleep(start + ms(9))), (0, Some(start + ms(10))));
        assert_eq!((debounce.due(start + ms(10)).contains(&name), debounce.sleep(start + ms(10))), (true, None));
        assert_eq!(debounce.sleeps(start + ms(500)), Some(Sleep { until: None }), "it is being planned");
        debounce.wake();
        assert_eq!(debounce.sleeps(start + ms(500)), None, "that is over, and it was touched meanwhile");
    }

    #[test]
    fn a_component_rests_longer_than_it_was_planned_and_so_does_what_joins_it() {
        let (mut debounce, start) = (Debounce::default(), Time::default());
        let (a, b, c): (Arc<str>, Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"), Arc::from("c"));
        debounce.rest(&[a.clone(), b.clone()].into(), ms(40), start);
        debounce.rest(&[c.clone()].into(), ms(2), start);
        for name in [&a, &c] {
            debounce.touch(name, start);
        }
        assert_eq!(
            debounce.due(start + ms(10)),
            [c.clone()].into(),
            "what was planned in no time is planned again at once"
        );
        let rested = Some(start + ms(120));
        assert_eq!(debounce.sleep(start + ms(10)), rested);
        assert_eq!(debounce.sleeps(start + ms(119)), Some(Sleep { until: rested }));
        assert_eq!(debounce.sleeps(start + ms(120)), None);
        let until = debounce.rests(&[c.clone(), b].into(), start + ms(10));
        assert_eq!(until, Some(start + ms(120)), "a new name is found to belong to the component");
        debounce.rest_until(&[c.clone()].into(), start + ms(120));
        assert!(debounce.due(start + ms(119)).is_empty());
        assert_eq!(debounce.due(start + ms(120)), [a.clone(), c].into());
        assert_eq!(debounce.rests(&[a.clone()].into(), start + ms(120)), None);
        // Whoever was asked took a minute; a change is acted on within a second all the same.
        debounce.rest(&[a].into(), Duration::from_mins(1), start);
        assert_eq!(debounce.due(start + ms(500)).len(), 2);
    }

    #[test]
    fn destroys_wait_for_a_quiet_component_but_no_longer_than_a_second() {
        let (mut debounce, start) = (Debounce::default(), Time::default());
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        debounce.touch(&a, start);
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(100)));
        debounce.touch(&b, start + ms(60));
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(160)));
        for at in (100..2000).step_by(50) {
            debounce.touch(&b, start + ms(at));
        }
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), Some(start + ms(1000)));
        assert!(debounce.out_of_patience([&b].into_iter(), start + ms(1060)));
        debounce.begin(&[a.clone(), b.clone()].into());
        assert!(
            !debounce.out_of_patience([&b].into_iter(), start + ms(9999)),
            "the plan that is made knows of all that"
        );
        // At the very time at which the plan begins, and after that.
        debounce.begin(&[b.clone()].into());
        debounce.touch(&b, start + ms(1950));
        debounce.clear("a");
        debounce.clear("b");
        assert_eq!(debounce.len(), 1);
        assert!(debounce.is_newer("b"), "it was touched again since");
        debounce.begin(&[b.clone()].into());
        debounce.clear("b");
        assert_eq!(debounce.may_destroy_at([&a, &b].into_iter()), None);
        assert!(debounce.len() == 0 && !debounce.contains("a"));
    }
}
