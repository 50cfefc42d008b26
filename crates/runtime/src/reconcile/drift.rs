//! Detects changes by other clients: with a watch where the driver supports it, otherwise by reading at the drift
//! interval.

use std::collections::BTreeSet;
use std::time::Duration;

use super::summarize::Note;
use super::time::Time;
use super::{Command, Environment, Reconciler, retry};
use engine::load::{Config, DriftAction};
use engine::plan::PlanOptions;
use model::{Address, Drift, Health, Name, Observed, Reason, Secrets, Stored};

/// The fraction of its interval by which an object is read early, together with others of its component.
const READ_TOGETHER: u32 = 20;

/// The delay before a missing object is created again, so that others that disappear with it are detected too.
const RECREATE_DELAY: Duration = Duration::from_secs(1);

/// How often the status follows the texts of an object that is not ready.
const HEALTH_INTERVAL: Duration = Duration::from_secs(10);

/// How many changes are handled without delay: a user who edits the object makes a few.
const WITHOUT_DELAY: u32 = 3;
/// The count restarts after this long without a change. Longer than the longest delay.
const RESET_AFTER: Duration = Duration::from_mins(10);
/// After this many consecutive corrections the drift counts as contested.
const CONTESTED: u32 = 5;

impl Reconciler {
    /// Starts, updates and ends the watches of the objects that changed in this turn.
    pub fn update_watches(&mut self, environment: &dyn Environment) {
        for address in self.objects.take_to_watch() {
            self.update_watch(&address, environment);
        }
    }

    /// An object is watched while its Resource exists and is not suspended.
    fn update_watch(&mut self, address: &Address, environment: &dyn Environment) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let instance = tracked.instance.clone().filter(|instance| instance.is_desired() && !instance.suspended);
        let record = self.index.records().get(address).map(|stored| &stored.record);
        let object = record.and_then(|record| Some((&record.type_name, record.current.as_ref()?)));
        match (instance, object) {
            (Some(instance), Some((type_name, object))) => {
                if environment.can_watch(type_name) {
                    tracked.watched = Some(type_name.clone());
                    tracked.seen |= !environment.reports_health(type_name);
                    self.commands.push(Command::Watch {
                        address: address.clone(),
                        type_name: type_name.clone(),
                        service_account: instance.service_account.clone(),
                        object: object.clone(),
                    });
                }
            }
            _ => {
                (tracked.seen, tracked.health) = (false, None);
                if let Some(type_name) = tracked.watched.take() {
                    self.commands.push(Command::Unwatch { address: address.clone(), type_name });
                }
            }
        }
    }

    pub fn end_watches(&mut self) {
        for (address, tracked) in self.objects.all_mut() {
            if let Some(type_name) = tracked.watched.take() {
                self.commands.push(Command::Unwatch { address: address.clone(), type_name });
            }
        }
    }

    /// Handles what a watch or a call of the driver saw of an object.
    pub fn object_seen(&mut self, address: &Address, seen: Observed) {
        let Some(tracked) = self.objects.get(address).filter(|tracked| tracked.watched.is_some()) else { return };
        let ignores = tracked.instance.as_ref().is_some_and(|i| i.drift.action == DriftAction::Ignore);
        let health = seen
            .health
            .or_else(|| (seen.deleted && ignores).then(|| Health::Failed("the object no longer exists".to_owned())));
        if let Some(health) = health {
            let health = health.redacted(|text| {
                let record = self.index.records().get(address).map(|stored| &stored.record);
                Secrets::of(record.and_then(|record| Some(record.current.as_ref()?.value.clone()))).redact(text)
            });
            self.set_health(address, &health);
        } else if let Some(tracked) = self.objects.get_mut(address).filter(|_| seen.deleted) {
            // The next plan reads it.
            (tracked.seen, tracked.health) = (false, None);
        }
        match seen.unwatched {
            true if ignores => self.set_health(address, &Health::Current),
            true => self.read_now([address.clone()].into()),
            false => {}
        }
        if seen.changed && !ignores {
            self.object_changed(address, seen.deleted);
        }
    }

    /// Changes nothing but the status, unless changes wait for the object.
    fn set_health(&mut self, address: &Address, health: &Health) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let before = tracked.set_health(health.clone());
        if before.as_ref() == Some(health) {
            return;
        }
        let is_planned = is_terminating(health) != before.as_ref().is_some_and(is_terminating);
        if is_planned || (health.is_current() && self.is_awaited(address)) {
            self.touch(address.name());
        }
        let was_ready = before.is_none_or(|before| before.is_current());
        match health {
            Health::Current => _ = self.resources.changed.insert(address.name().clone()),
            // It may pass at once.
            _ if was_ready => self.publish_later(address.name()),
            _ => self.publish_after(address.name(), HEALTH_INTERVAL),
        }
    }

    /// The objects to read because they were not seen since the start: those that a user wants to replace, which may exist
    /// in another cluster only, and those on which new objects depend, which may have to wait.
    pub fn unseen_objects(
        &self,
        names: &BTreeSet<Name>,
        config: &Config,
        environment: &dyn Environment,
    ) -> BTreeSet<Address> {
        let targets: BTreeSet<&Name> = names
            .iter()
            .filter(|name| self.may_have_new_objects(name))
            .filter_map(|name| config.resource(&Address::single(name.clone())))
            .flat_map(|instance| instance.references.iter())
            .map(|reference| reference.target.name())
            .collect();
        names
            .iter()
            .flat_map(|name| self.recorded(name))
            .filter(|(address, stored)| {
                self.objects.get(address).is_none_or(|tracked| !tracked.seen)
                    && stored.record.current.is_some()
                    && (targets.contains(address.name()) || is_to_be_replaced(config, address.name(), stored))
                    && environment.reports_health(&stored.record.type_name)
            })
            .map(|(address, _)| address.clone())
            .collect()
    }

    fn may_have_new_objects(&self, name: &Name) -> bool {
        self.recorded(name).next().is_none() || self.index.instance(name).is_some_and(|instance| instance.is_family())
    }

    /// Whether a change waits until the object is ready.
    fn is_awaited(&self, address: &Address) -> bool {
        self.objects.all().filter_map(|(_, tracked)| tracked.change.as_deref()).any(|change| {
            change.blocked == Some(Reason::DependencyNotReady)
                && change.waiting_for.iter().any(|awaited| awaited.stem == address.stem)
        })
    }

    /// Another client changed or destroyed an object. It is read soon.
    fn object_changed(&mut self, address: &Address, is_destroyed: bool) {
        let (now, random) = (self.now.time, self.random.number());
        let Some(tracked) = self.objects.get_mut(address).filter(|tracked| tracked.watched.is_some()) else { return };
        tracked.changed_meanwhile = true;
        if tracked.check_at.is_none() || is_destroyed {
            let wait = tracked.drift_backoff.get_or_insert_default().changed(now, random);
            let at = now + if is_destroyed { wait.max(RECREATE_DELAY) } else { wait };
            tracked.check_at = Some(at);
            self.objects.wake_at(address, at);
            let namespace = &**self.namespace();
            tracing::debug!(namespace, object = %address, is_destroyed, ?wait, "changed by another client");
        }
        if is_destroyed {
            self.objects.missing.mark_missing(address, now);
        }
    }

    /// Also reads objects that are due soon: a reading causes a plan of the whole component anyway.
    pub fn read_together(&self, options: &mut PlanOptions, due: &mut BTreeSet<Address>) {
        if due.iter().any(|address| self.objects.get(address).is_some_and(|tracked| tracked.unread)) {
            due.extend(options.up_to_date.extract_if(.., |address| self.is_due_soon(address)));
        }
    }

    /// Whether the reading of an object without a watch is nearly due.
    fn is_due_soon(&self, address: &Address) -> bool {
        self.objects.get(address).filter(|tracked| tracked.watched.is_none()).is_some_and(|tracked| {
            tracked.read_at.is_some_and(|at| at <= self.now.time + tracked.read_interval / READ_TOGETHER)
        })
    }

    /// Postpones the reading of an object whose watch is running.
    pub fn postpone_reading(&mut self, address: &Address, environment: &dyn Environment) {
        let (now, random) = (self.now.time, self.random.number());
        let Some(tracked) = self.objects.get_mut(address) else { return };
        if tracked.read_at.is_none_or(|at| at > now) {
            return;
        }
        // No watch reports changes of the published objects.
        let publishes = tracked.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
        let is_seen = !publishes
            && tracked.watched.as_deref().is_some_and(|type_name| environment.is_watching(type_name, address));
        if is_seen
            && tracked.read_again(true, now, random)
            && let Some(at) = tracked.read_at
        {
            self.objects.wake_at(address, at);
        }
    }

    /// Reports drift that is being corrected. The plan itself reports drift that is not.
    pub fn report_drift(&mut self, address: &Address, drift: &Drift) {
        let Some(tracked) = self.objects.get_mut(address) else { return };
        let contested = tracked.drift_backoff.get_or_insert_default().corrected(self.now.time);
        let reason = drift.reason().as_str();
        let note = format!("{drift}; Purlin corrects it");
        self.report_object(address, Note { warning: false, reason, action: "Reconcile", note });
        if contested {
            let note = format!(
                "{drift}; this keeps happening, so Purlin corrects it with increasing delays (hint: find the client \
                 that changes the object, leave the field to that client, or set `spec.drift.action: Report`)"
            );
            self.report_object(address, Note { warning: true, reason: "DriftContested", action: "Reconcile", note });
        }
    }

    /// Schedules the next reading of an object after a plan, which may have found it blocked for a reason.
    pub fn plan_reading(&mut self, address: &Address, was_read: bool, blocked: Option<Reason>) {
        let (now, random) = (self.now.time, self.random.number());
        let tracked = self.objects.entry(address);
        let before = tracked.read_at;
        tracked.read_again(was_read, now, random);
        blocked.into_iter().for_each(|reason| tracked.back_off_reading(reason, now, random));
        if let Some(at) = tracked.read_at.filter(|at| before != Some(*at)) {
            self.objects.wake_at(address, at);
        }
    }
}

fn is_terminating(health: &Health) -> bool {
    matches!(health, Health::Terminating(_))
}

/// Whether a user wants to replace a recorded object of this name, and no plan has handled that.
fn is_to_be_replaced(config: &Config, name: &Name, stored: &Stored) -> bool {
    config.resource(&Address::single(name.clone())).is_some_and(|instance| {
        let requested = &instance.replace_requested;
        !requested.is_empty() && *requested != stored.record.handled_replace_request
    })
}

/// The recent changes and corrections of one object, which determine the delay before a change by another client is
/// handled. The first changes are handled without delay. If another client, such as a controller that manages the same
/// field, keeps changing the object, the delay grows, so that the two do not overload the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriftBackoff {
    changes: u32,
    corrections: u32,
    /// When the last change was, or will be, handled.
    last: Option<Time>,
}

impl DriftBackoff {
    /// Records a change. Returns the delay before it is handled.
    pub fn changed(&mut self, now: Time, random: u64) -> Duration {
        self.reset_if_idle(now);
        self.changes = self.changes.saturating_add(1);
        let wait = match self.changes.saturating_sub(WITHOUT_DELAY) {
            0 => Duration::ZERO,
            more => retry::delay(more, random),
        };
        self.last = Some(now + wait);
        wait
    }

    /// Records a correction. Returns whether to report that the drift is contested.
    pub fn corrected(&mut self, now: Time) -> bool {
        self.reset_if_idle(now);
        self.last = self.last.max(Some(now));
        self.corrections = self.corrections.saturating_add(1);
        self.corrections == CONTESTED
    }

    fn reset_if_idle(&mut self, now: Time) {
        if self.last.is_some_and(|last| last + RESET_AFTER <= now) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_are_handled_with_increasing_delays_until_they_cease() {
        let (mut backoff, mut now) = (DriftBackoff::default(), Time::default());
        let mut waits = Vec::new();
        for _ in 0..14 {
            let wait = backoff.changed(now, 1000);
            now = now + wait;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.changed(now + RESET_AFTER, 1000), Duration::ZERO);
    }

    #[test]
    fn contested_drift_is_reported_once() {
        let (mut backoff, now) = (DriftBackoff::default(), Time::default());
        let reported: Vec<bool> = (0..8).map(|_| backoff.corrected(now)).collect();
        assert_eq!(reported, [false, false, false, false, true, false, false, false]);
        let reported = (0..5).filter(|_| backoff.corrected(now + RESET_AFTER)).count();
        assert_eq!(reported, 1, "it is reported again after a pause");
    }
}
