//! Noticing what others do to objects: by a watch where that is possible, by reading at the interval where it is not.

use std::collections::BTreeSet;
use std::time::Duration;

use super::summarize::Note;
use super::{Command, Outside, Reconciler};
use crate::load::DriftAction;
use crate::model::{Address, Drift};
use crate::plan::PlanOptions;

/// What part of its interval an object is read early, to be read together with others of its component.
const READ_TOGETHER: u32 = 20;

/// Before an object that was destroyed is created again, others that go with it have this long to be noticed.
const GONE_TOGETHER: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Begins, changes and ends the watches over those objects about which something has changed in this turn.
    pub(super) fn update_watches(&mut self, outside: &dyn Outside) {
        for address in self.objects.take_to_watch() {
            self.update_watch(&address, outside);
        }
    }

    /// An object is watched as long as it matters what becomes of it.
    fn update_watch(&mut self, address: &Address, outside: &dyn Outside) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let instance = tracked.instance.clone().filter(|instance| {
            instance.is_wanted() && !instance.suspended && instance.drift.action != DriftAction::Ignore
        });
        let record = self.schedule.records().get(address).map(|stored| &stored.record);
        let object = record.and_then(|record| Some((&record.type_name, record.current.as_ref()?)));
        match (instance, object) {
            (Some(instance), Some((type_name, object))) => {
                if outside.can_watch(type_name) {
                    tracked.watched = Some(type_name.clone());
                    self.commands.push(Command::Watch {
                        address: address.clone(),
                        type_name: type_name.clone(),
                        service_account: instance.service_account.clone(),
                        object: object.clone(),
                    });
                }
            }
            _ => {
                if let Some(type_name) = tracked.watched.take() {
                    self.commands.push(Command::Unwatch { address: address.clone(), type_name });
                }
            }
        }
    }

    /// Ends all watches over objects.
    pub(super) fn end_watches(&mut self) {
        for (address, tracked) in self.objects.all_mut() {
            if let Some(type_name) = tracked.watched.take() {
                self.commands.push(Command::Unwatch { address: address.clone(), type_name });
            }
        }
    }

    /// An object was changed or destroyed by others. It is read soon.
    pub(super) fn notice(&mut self, address: &Address, gone: bool) {
        let (now, random) = (self.now.time, self.draws.number());
        let Some(tracked) = self.objects.get_mut(address).filter(|tracked| tracked.watched.is_some()) else { return };
        if tracked.noticed_at.is_none() || gone {
            let wait = tracked.pace.noticed(now, random);
            let at = now + if gone { wait.max(GONE_TOGETHER) } else { wait };
            tracked.noticed_at = Some(at);
            self.objects.wake_at(address, at);
            tracing::debug!(namespace = &**self.namespace(), %address, gone, ?wait, "changed by others");
        }
        if gone {
            self.objects.missing.gone(address, now);
        }
    }

    /// Objects whose time to be read comes soon are read together with those whose time has come, since whatever is read
    /// has its whole component planned.
    pub(super) fn read_together(&self, options: &mut PlanOptions, due: &mut BTreeSet<Address>) {
        let is_unread = |address: &Address| self.objects.get(address).is_some_and(|tracked| tracked.unread);
        if !due.iter().any(is_unread) {
            return;
        }
        let comes_soon = |address: &Address| {
            let tracked = self.objects.get(address).filter(|tracked| tracked.watched.is_none())?;
            Some(tracked.read_at? <= self.now.time + tracked.read_interval / READ_TOGETHER)
        };
        due.extend(options.settled.extract_if(.., |address| comes_soon(address) == Some(true)));
    }

    /// An object whose changes are seen need not be read at its interval.
    pub(super) fn pass_over_reading(&mut self, address: &Address, outside: &dyn Outside) {
        let (now, random) = (self.now.time, self.draws.number());
        let Some(tracked) = self.objects.get_mut(address) else { return };
        if tracked.read_at.is_none_or(|at| at > now) {
            return;
        }
        // Of changes to what it publishes no watch says anything.
        let publishes = tracked.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
        let is_watched = |type_name| outside.is_watching(type_name, address);
        let is_seen = !publishes && tracked.watched.as_deref().is_some_and(is_watched);
        if is_seen
            && tracked.read_again(true, now, random)
            && let Some(at) = tracked.read_at
        {
            self.objects.wake_at(address, at);
        }
    }

    /// Reports what others have done and is being set right. What stays is reported by the plan itself.
    pub(super) fn report_drift(&mut self, address: &Address, drift: &Drift) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let contested = tracked.pace.corrected(self.now.time);
        let reason = drift.reason().as_str();
        let note = format!("{drift}; it is set right");
        self.report_of(address, Note { warning: false, reason, action: "Reconcile", note });
        if contested {
            let note = format!(
                "{drift}, again and again; it is set right ever more slowly (hint: see who changes it, leave that \
                 field to them, or set `spec.drift.action: Report`)"
            );
            self.report_of(address, Note { warning: true, reason: "DriftContested", action: "Reconcile", note });
        }
    }

    /// When to read an object next, after a plan.
    pub(super) fn plan_reading(&mut self, address: &Address, was_read: bool) {
        let (now, random) = (self.now.time, self.draws.number());
        let tracked = self.objects.entry(address);
        if tracked.read_again(was_read, now, random)
            && let Some(at) = tracked.read_at
        {
            self.objects.wake_at(address, at);
        }
    }
}
