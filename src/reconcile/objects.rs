//! Single objects: what is remembered of them, their timers, and how they are let go of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::missing::Missing;
use super::summarize::Note;
use super::time::Time;
use super::tracked::Tracked;
use super::{About, Command, Outside, Reconciler, retry};
use crate::model::{Address, Reason, of_name};

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// In boxes, since the nodes of the map are half empty.
    tracked: BTreeMap<Address, Box<Tracked>>,
    /// When to look at an object, or at the status of a Resource, though nothing happens.
    timers: BTreeSet<(Time, Address)>,
    /// Objects that went missing lately.
    pub(super) missing: Missing,
    /// Records without a Resource.
    pub(super) abandoned: BTreeSet<Address>,
    /// Objects whose watch may have to begin, to change or to end.
    to_watch: BTreeSet<Address>,
}

impl Objects {
    pub(super) fn get(&self, address: &Address) -> Option<&Tracked> {
        self.tracked.get(address).map(AsRef::as_ref)
    }

    pub(super) fn get_mut(&mut self, address: &Address) -> Option<&mut Tracked> {
        self.tracked.get_mut(address).map(AsMut::as_mut)
    }

    /// What is remembered of an object, from now on at least.
    pub(super) fn entry(&mut self, address: &Address) -> &mut Tracked {
        self.tracked.entry(address.clone()).or_default()
    }

    /// The objects of a Resource.
    pub(super) fn of<'a>(&'a self, name: &'a Arc<str>) -> impl Iterator<Item = (&'a Address, &'a Tracked)> {
        of_name(&self.tracked, name).map(|(address, tracked)| (address, &**tracked))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&Address, &mut Tracked)> {
        self.tracked.iter_mut().map(|(address, tracked)| (address, &mut **tracked))
    }

    /// Asks for a look at an object at that time.
    pub(super) fn wake_at(&mut self, address: &Address, at: Time) {
        self.timers.insert((at, address.clone()));
    }

    /// Has an object planned at that time though nothing happens.
    pub(super) fn retry_at(&mut self, address: &Address, at: Time) {
        self.entry(address).retry_at = Some(at);
        self.wake_at(address, at);
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn due_timer(&mut self, now: Time) -> Option<Address> {
        let is_due = self.next_timer().is_some_and(|at| at <= now);
        is_due.then(|| self.timers.pop_first().map(|(_, address)| address))?
    }

    pub(super) fn stop_timers(&mut self) {
        self.timers.clear();
    }

    /// Sees to the watch over an object at the end of the turn.
    pub(super) fn watch(&mut self, address: &Address) {
        self.to_watch.insert(address.clone());
    }

    pub(super) fn take_to_watch(&mut self) -> BTreeSet<Address> {
        std::mem::take(&mut self.to_watch)
    }
}

impl Reconciler {
    /// Looks at all objects whose timer is due.
    pub(super) fn take_timers(&mut self, outside: &dyn Outside) {
        while let Some(address) = self.objects.due_timer(self.now.time) {
            self.look_at(&address, outside);
        }
    }

    fn look_at(&mut self, address: &Address, outside: &dyn Outside) {
        self.publish_if_due(&address.name);
        self.pass_over_reading(address, outside);
        let now = self.now.time;
        let Some(tracked) = self.objects.get_mut(address) else { return };
        // Should it not come to a reading now, the next one is due with the next plan, and not with every timer.
        let is_due = |at: &mut Option<Time>| at.take_if(|at| *at <= now).is_some();
        let is_to_be_read = is_due(&mut tracked.noticed_at) | is_due(&mut tracked.read_at);
        tracked.unread |= is_to_be_read;
        if is_due(&mut tracked.retry_at) | is_to_be_read {
            self.touch(&address.name);
        }
    }

    /// Has these objects read by their next plan, which is made now.
    pub(super) fn read_now(&mut self, objects: BTreeSet<Address>) {
        for address in objects {
            self.objects.entry(&address).unread = true;
            self.touch(&address.name);
        }
    }

    /// Tries what waits after a failure again, as far as `which` says so.
    pub(super) fn retry(&mut self, which: impl Fn(&Tracked) -> bool) {
        let mut names = BTreeSet::new();
        for (address, tracked) in self.objects.all_mut().filter(|(_, tracked)| which(tracked)) {
            if tracked.hold.take().is_some() || tracked.failures > 0 {
                tracked.failures = 0;
                names.insert(address.name.clone());
            }
        }
        names.iter().for_each(|name| self.touch(name));
    }

    /// What an adopted plan means for what is left of an object.
    pub(super) fn tidy(&mut self, address: &Address) {
        let recorded = self.schedule.records().contains_key(address);
        let settling = self.recovering.contains(address) || self.moving.contains(&address.name);
        let busy = settling || self.schedule.is_running(address);
        if self.index.instance(&address.name).is_none() {
            return match recorded {
                true if self.policy.destroys_orphans => {}
                true => self.report_abandoned(address, busy),
                false => self.forget(address),
            };
        }
        self.objects.abandoned.remove(address);
        if !self.release_if_empty(&address.name)
            && !recorded
            && !busy
            && self.objects.get(address).is_some_and(Tracked::stands_for_nothing)
        {
            // An instance that is not wanted any more, and of which nothing is left.
            self.forget(address);
        }
    }

    /// Takes our marks off a Resource that is being deleted, once nothing is left of it; a family may have no instance at
    /// all at that time. Returns whether that is so.
    pub(super) fn release_if_empty(&mut self, name: &Arc<str>) -> bool {
        let resource = self.index.instance(name);
        let Some(resource) = resource.filter(|resource| resource.deleting && resource.has_finalizer) else {
            return false;
        };
        // One that says that it is recorded has lost its record: an object may exist, and `state rm` gives it up.
        let is_empty = !self.has_traces(name) && !resource.says_it_is_recorded();
        if is_empty && self.resources.released.insert(resource.uid.clone()) {
            self.commands.push(Command::Release { name: name.clone(), uid: resource.uid.clone() });
        }
        is_empty
    }

    /// Whether any instance of a Resource is recorded, or something is being done about it.
    fn has_traces(&self, name: &Arc<str>) -> bool {
        let busy = |address: &Address| self.schedule.is_running(address) || self.recovering.contains(address);
        self.moving.contains(name)
            || self.recorded(name).next().is_some()
            || self.objects.of(name).any(|(address, tracked)| tracked.is_open() || busy(address))
    }

    /// A Resource that could not be let go of is looked at again, ever later.
    pub(super) fn not_released(&mut self, name: Arc<str>, uid: &Arc<str>) {
        self.resources.released.remove(uid);
        let address = Address::single(name);
        let wait = self.wait_after_failure(&address, Reason::OperationFailed);
        self.objects.retry_at(&address, self.now.time + wait);
    }

    /// The wait after one more failure of an object.
    pub(super) fn wait_after_failure(&mut self, address: &Address, reason: Reason) -> Duration {
        let draw = self.draws.number();
        let tracked = self.objects.entry(address);
        tracked.failures += 1;
        retry::delay_after(reason, tracked.failures, draw)
    }

    /// A record without a Resource: the object is left alone until a Resource of its name and type comes.
    fn report_abandoned(&mut self, address: &Address, busy: bool) {
        let open = self.objects.get(address).is_some_and(Tracked::is_open);
        let hold = self.objects.get(address).and_then(|tracked| tracked.hold.clone());
        // An operation that is settled at a later time says then what there is.
        let is_settled_later = hold.as_ref().is_some_and(|hold| hold.until.is_some());
        if busy || open || is_settled_later || !self.objects.abandoned.insert(address.clone()) {
            return;
        }
        let namespace = self.namespace();
        let note = match hold {
            Some(hold) => format!("{namespace}/{address} has a record and no Resource: {}", hold.held.message),
            None => format!(
                "{namespace}/{address} has a record and no Resource; its object is left alone (hint: apply the Resource \
                 again to adopt it, or drop the record with `purlin state rm {address}`)"
            ),
        };
        let note = Note { warning: true, reason: "Abandoned", action: "Plan", note };
        // It is reported where the record is, which does not terminate with the namespace.
        self.commands.push(Command::Report { about: About::Record(address.clone()), note, terminating: false });
    }

    /// Neither Resource nor record: nothing to remember.
    fn forget(&mut self, address: &Address) {
        self.objects.abandoned.remove(address);
        if self.objects.get(address).is_some_and(Tracked::is_open) {
            return;
        }
        self.objects.missing.forget(address);
        self.planning.memo.forget(address);
        self.schedule.forget_reading(address);
        if let Some(type_name) = self.objects.tracked.remove(address).and_then(|tracked| tracked.watched) {
            self.commands.push(Command::Unwatch { address: address.clone(), type_name });
        }
        self.forget_resource(&address.name);
    }
}
