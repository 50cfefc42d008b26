//! Tracks single objects: their state, their timers, and their removal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::missing::MissingObjects;
use super::quota::OverQuota;
use super::summarize::Note;
use super::time::Time;
use super::tracked::{MadeChanges, TrackedObject};
use super::{Command, Environment, Reconciler, ReportSubject, retry};
use model::{Address, Reason, in_family, with_namespace};

#[derive(Debug, Default)]
pub struct Objects {
    /// Boxed, because the nodes of the map are half empty.
    tracked: BTreeMap<Address, Box<TrackedObject>>,
    made: MadeChanges,
    /// When to check an object or the status of a Resource.
    timers: BTreeSet<(Time, Address)>,
    /// Objects that went missing recently.
    pub missing: MissingObjects,
    pub abandoned: BTreeSet<Address>,
    pub over_quota: OverQuota,
    /// Objects that cannot be created because another object has their identity, with their type.
    pub taken: BTreeMap<Address, Arc<str>>,
    /// Objects whose watch may have to start, change or end.
    to_watch: BTreeSet<Address>,
}

impl Objects {
    pub fn get(&self, address: &Address) -> Option<&TrackedObject> {
        self.tracked.get(address).map(AsRef::as_ref)
    }

    pub fn get_mut(&mut self, address: &Address) -> Option<&mut TrackedObject> {
        self.tracked.get_mut(address).map(AsMut::as_mut)
    }

    /// The object, and the changes that were made, to share them.
    pub fn with_made_changes(&mut self, address: &Address) -> Option<(&mut TrackedObject, &mut MadeChanges)> {
        Some((self.tracked.get_mut(address)?, &mut self.made))
    }

    pub fn entry(&mut self, address: &Address) -> &mut TrackedObject {
        self.tracked.entry(address.clone()).or_default()
    }

    pub fn of<'a>(&'a self, name: &'a Arc<str>) -> impl Iterator<Item = (&'a Address, &'a TrackedObject)> {
        in_family(&self.tracked, name).map(|(address, tracked)| (address, &**tracked))
    }

    pub fn count(&self) -> usize {
        self.tracked.len()
    }

    pub fn all(&self) -> impl Iterator<Item = (&Address, &TrackedObject)> {
        self.tracked.iter().map(|(address, tracked)| (address, &**tracked))
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (&Address, &mut TrackedObject)> {
        self.tracked.iter_mut().map(|(address, tracked)| (address, &mut **tracked))
    }

    /// Schedules a check of an object.
    pub fn wake_at(&mut self, address: &Address, at: Time) {
        self.timers.insert((at, address.clone()));
    }

    /// Schedules a plan of an object.
    pub fn retry_at(&mut self, address: &Address, at: Time) {
        self.entry(address).retry_at = Some(at);
        self.wake_at(address, at);
    }

    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn due_timer(&mut self, now: Time) -> Option<Address> {
        let is_due = self.next_timer().is_some_and(|at| at <= now);
        is_due.then(|| self.timers.pop_first().map(|(_, address)| address))?
    }

    pub fn stop_timers(&mut self) {
        self.timers.clear();
    }

    /// Updates the watch of an object at the end of the turn.
    pub fn watch(&mut self, address: &Address) {
        self.to_watch.insert(address.clone());
    }

    pub fn take_to_watch(&mut self) -> BTreeSet<Address> {
        std::mem::take(&mut self.to_watch)
    }
}

impl Reconciler {
    /// Checks all objects whose timer is due.
    pub fn handle_timers(&mut self, environment: &dyn Environment) {
        while let Some(address) = self.objects.due_timer(self.now.time) {
            self.check_object(&address, environment);
        }
    }

    fn check_object(&mut self, address: &Address, environment: &dyn Environment) {
        self.publish_if_due(&address.name);
        self.postpone_reading(address, environment);
        let now = self.now.time;
        let Some(tracked) = self.objects.get_mut(address) else { return };
        // The timers are cleared even if no reading happens now: the next plan reads the object, not every timer.
        let is_to_be_read = end_timer(&mut tracked.check_at, now) | end_timer(&mut tracked.read_at, now);
        tracked.unread |= is_to_be_read;
        let is_retry = end_timer(&mut tracked.retry_at, now);
        self.counts.retries += u64::from(is_retry && tracked.failures > 0);
        if is_retry | is_to_be_read {
            self.touch(&address.name);
        }
    }

    /// Plans these objects now, with a reading.
    pub fn read_now(&mut self, objects: BTreeSet<Address>) {
        for address in objects {
            self.objects.entry(&address).unread = true;
            self.touch(&address.name);
        }
    }

    /// Retries the objects that wait after a failure and for which `which` returns `true`.
    pub fn retry(&mut self, which: impl Fn(&TrackedObject) -> bool) {
        let mut names = BTreeSet::new();
        for (address, tracked) in self.objects.all_mut().filter(|(_, tracked)| which(tracked)) {
            if tracked.hold.take().is_some() || tracked.failures > 0 {
                tracked.failures = 0;
                names.insert(address.name.clone());
            }
        }
        names.iter().for_each(|name| self.touch(name));
    }

    /// Cleans up an object after a plan or a step: reports an abandoned record, drops an object that no longer exists,
    /// or releases its Resource.
    pub fn clean_up(&mut self, address: &Address) {
        let recorded = self.index.records().contains_key(address);
        let busy = self.index.records().work_on(address).is_some() || self.moving.contains(&address.name);
        if self.index.instance(&address.name).is_none() {
            return match recorded {
                true if self.policy.destroy_orphans => {}
                true => self.report_abandoned(address, busy),
                false => self.forget(address),
            };
        }
        self.objects.abandoned.remove(address);
        if !self.release_if_empty(&address.name)
            && !recorded
            && !busy
            && self.objects.get(address).is_some_and(TrackedObject::is_unused)
        {
            // An instance that is no longer desired and has no record.
            self.forget(address);
        }
    }

    /// Releases a Resource that is being deleted once it has no objects; a family may never have had any. Returns
    /// whether that is so.
    pub fn release_if_empty(&mut self, name: &Arc<str>) -> bool {
        let resource = self.index.instance(name);
        let Some(resource) = resource.filter(|resource| resource.deleting && resource.has_finalizer) else {
            return false;
        };
        // A Resource that claims a record but has none has lost it: its object may exist, so only `state rm` releases
        // it.
        let is_empty = !self.has_traces(name) && !resource.has_record_annotation();
        if is_empty && self.resources.released.insert(resource.uid.clone()) {
            self.commands.push(Command::Release { name: name.clone(), uid: resource.uid.clone() });
        }
        is_empty
    }

    /// Whether any instance of a Resource has a record or work in progress.
    fn has_traces(&self, name: &Arc<str>) -> bool {
        let records = self.index.records();
        self.moving.contains(name)
            || self.recorded(name).next().is_some()
            || self.objects.of(name).any(|(address, tracked)| tracked.is_open() || records.work_on(address).is_some())
    }

    /// Retries a failed release with back-off.
    pub fn release_failed(&mut self, name: Arc<str>, uid: &Arc<str>) {
        self.resources.released.remove(uid);
        let address = Address::single(name);
        let wait = self.wait_after_failure(&address, Reason::OperationFailed);
        self.objects.retry_at(&address, self.now.time + wait);
    }

    /// Gives a Resource its finalizer and annotation back, whatever its state: without them, its deletion would leave its
    /// object behind.
    pub fn claim(&mut self, name: &Arc<str>) {
        if self.moving.contains(name) || self.resources.claiming.contains(name) {
            return;
        }
        if let Some((address, uid)) = self.index.unclaimed(name) {
            self.resources.claiming.insert(name.clone());
            self.commands.push(Command::Claim { uid, address });
        }
    }

    /// Retries a failed claim with back-off.
    pub fn claimed(&mut self, name: Arc<str>, done: bool) {
        if self.resources.claiming.remove(&name) && !done {
            let address = Address::single(name);
            let wait = self.wait_after_failure(&address, Reason::OperationFailed);
            self.objects.retry_at(&address, self.now.time + wait);
        }
    }

    /// Counts a failure of an object. Returns the delay before the next attempt.
    pub fn wait_after_failure(&mut self, address: &Address, reason: Reason) -> Duration {
        let draw = self.random.number();
        let tracked = self.objects.entry(address);
        tracked.failures += 1;
        retry::delay_after(reason, tracked.failures, draw)
    }

    /// Reports a record without a Resource. Its object stays unchanged until a Resource of its name and type exists.
    fn report_abandoned(&mut self, address: &Address, busy: bool) {
        let open = self.objects.get(address).is_some_and(TrackedObject::is_open);
        let hold = self.objects.get(address).and_then(|tracked| tracked.hold.clone());
        // An operation that is resolved later reports the result then.
        let is_resolved_later = hold.as_ref().is_some_and(|hold| hold.until.is_some());
        if busy || open || is_resolved_later || !self.objects.abandoned.insert(address.clone()) {
            return;
        }
        let namespace = self.namespace();
        let note = match hold {
            Some(hold) => format!("{namespace}/{address} has a record but no Resource: {}", hold.held.message),
            None => format!(
                "{namespace}/{address} has a record but no Resource; Purlin does not change its object (hint: apply \
                 the Resource again to adopt it, or remove the record with `purlin state rm {}`)",
                address.shell_word()
            ),
        };
        let note = with_namespace(&note, self.command_namespace());
        let note = Note { warning: true, reason: "Abandoned", action: "Plan", note };
        // The event belongs to the record, whose namespace is not the terminating one.
        self.commands.push(Command::Report { about: ReportSubject::Record(address.clone()), note, terminating: false });
    }

    /// An object of this type was destroyed: plans those that cannot be created because another one has their identity.
    pub fn identity_freed(&mut self, type_name: &Arc<str>) {
        let waiting = self.objects.taken.iter().filter(|(_, of)| *of == type_name);
        let names: BTreeSet<Arc<str>> = waiting.map(|(address, _)| address.name.clone()).collect();
        names.iter().for_each(|name| self.touch(name));
    }

    /// Drops an object that has neither a Resource nor a record.
    fn forget(&mut self, address: &Address) {
        self.objects.abandoned.remove(address);
        if self.objects.get(address).is_some_and(TrackedObject::is_open) {
            return;
        }
        self.objects.missing.forget(address);
        self.objects.taken.remove(address);
        self.planning.memo.remove(address);
        self.schedule.forget_reading(address);
        if let Some(type_name) = self.objects.tracked.remove(address).and_then(|tracked| tracked.watched) {
            self.commands.push(Command::Unwatch { address: address.clone(), type_name });
        }
        self.untrack_resource(&address.name);
        // Only now does its absence show that an approved destroy was made.
        self.index.approvals_mut().touch_names([&address.name]);
    }
}

/// Clears a timer if it is due. Returns whether it was.
fn end_timer(timer: &mut Option<Time>, now: Time) -> bool {
    timer.take_if(|at| *at <= now).is_some()
}
