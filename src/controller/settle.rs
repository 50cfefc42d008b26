//! The settle window: how long changes are gathered before they are acted on. Pure: the time comes in.
//!
//! Most changes start at once; events are gathered for a moment only, so that one `kubectl apply` of many objects is
//! planned in few plans. What destroys something waits until its component is quiet, since the object that still
//! needs it, or the second half of a rename, may be on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// How long events are gathered before planning: the time in which the watch delivers what one request changed.
const GATHER: Duration = Duration::from_millis(10);
/// How long a component must have been quiet before something of it is destroyed.
const QUIET: Duration = Duration::from_millis(100);
/// No change waits longer than this, however busy its component is.
const PATIENCE: Duration = Duration::from_secs(1);

/// When a name was touched since it was last planned.
#[derive(Clone, Copy, Debug)]
struct Touched {
    first: Instant,
    last: Instant,
}

/// The names that changed and were not acted on yet.
#[derive(Debug, Default)]
pub struct Settle {
    touched: BTreeMap<Arc<str>, Touched>,
}

impl Settle {
    /// Something about the name has changed.
    pub fn touch(&mut self, name: &Arc<str>, now: Instant) {
        self.touched.entry(name.clone()).or_insert(Touched { first: now, last: now }).last = now;
    }

    /// Takes a name off the list, unless it was touched again after `seen`: what happened until then is acted on.
    pub fn clear(&mut self, name: &str, seen: Instant) {
        if self.touched.get(name).is_some_and(|touched| touched.last <= seen) {
            self.touched.remove(name);
        }
    }

    /// Whether the name was touched after `seen`.
    pub fn touched_after(&self, name: &str, seen: Instant) -> bool {
        self.touched.get(name).is_some_and(|touched| touched.last > seen)
    }

    /// Whether any of the names has waited as long as it may.
    pub fn out_of_patience<'a>(&'a self, names: impl Iterator<Item = &'a Arc<str>>, now: Instant) -> bool {
        names.filter_map(|name| self.touched.get(name)).any(|touched| touched.first + PATIENCE <= now)
    }

    /// Whether the name waits to be acted on.
    pub fn contains(&self, name: &str) -> bool {
        self.touched.contains_key(name)
    }

    /// How many names wait.
    pub fn len(&self) -> usize {
        self.touched.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// The names that may be planned now, and when the next one may be.
    pub fn due(&self, now: Instant) -> (Vec<Arc<str>>, Option<Instant>) {
        let mut next: Option<Instant> = None;
        let mut due = Vec::new();
        for (name, touched) in &self.touched {
            let at = touched.first + GATHER;
            if at <= now {
                due.push(name.clone());
            } else {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        (due, next)
    }

    /// When a plan over these names may destroy something.
    pub fn may_destroy_at<'a>(&'a self, names: impl Iterator<Item = &'a Arc<str>>) -> Option<Instant> {
        let touched = names.filter_map(|name| self.touched.get(name)).copied();
        let span = touched.reduce(|a, b| Touched { first: a.first.min(b.first), last: a.last.max(b.last) })?;
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
        let (mut settle, start, name) = (Settle::default(), Instant::now(), Arc::from("a"));
        for at in 0..10 {
            settle.touch(&name, start + ms(at));
        }
        assert_eq!(settle.due(start + ms(9)), (vec![], Some(start + ms(10))));
        assert_eq!(settle.due(start + ms(10)).0, [name]);
    }

    #[test]
    fn destroys_wait_for_a_quiet_component_but_no_longer_than_a_second() {
        let (mut settle, start) = (Settle::default(), Instant::now());
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        settle.touch(&a, start);
        assert_eq!(settle.may_destroy_at([&a, &b].into_iter()), Some(start + ms(100)));
        settle.touch(&b, start + ms(60));
        assert_eq!(settle.may_destroy_at([&a, &b].into_iter()), Some(start + ms(160)));
        for at in (100..2000).step_by(50) {
            settle.touch(&b, start + ms(at));
        }
        assert_eq!(settle.may_destroy_at([&a, &b].into_iter()), Some(start + ms(1000)));
        assert!(settle.out_of_patience([&b].into_iter(), start + ms(1060)));
        settle.clear("a", start);
        settle.clear("b", start + ms(200));
        assert_eq!(settle.len(), 1);
        assert!(settle.touched_after("b", start + ms(200)), "it was touched again since");
        settle.clear("b", start + ms(2000));
        assert_eq!(settle.may_destroy_at([&a, &b].into_iter()), None);
        assert!(settle.is_empty() && !settle.contains("a"));
    }
}
