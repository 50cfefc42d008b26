//! Detects changes by other clients: with a watch where the driver supports it, otherwise by reading at the drift
//! interval.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::summarize::Note;
use super::{Command, Environment, Reconciler};
use engine::load::{Config, DriftAction};
use engine::plan::PlanOptions;
use model::{Address, Change, Drift, Health, Observed, Reason, Secrets, Stored};

/// The fraction of its interval by which an object is read early, together with others of its component.
const READ_TOGETHER: u32 = 20;

/// The delay before a missing object is created again, so that others that disappear with it are detected too.
const RECREATE_DELAY: Duration = Duration::from_secs(1);

/// How often the status follows the texts of an object that is not ready.
const HEALTH_INTERVAL: Duration = Duration::from_secs(10);

impl Reconciler {
    /// Starts, updates and ends the watches of the objects that changed in this turn.
    pub(super) fn update_watches(&mut self, environment: &dyn Environment) {
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

    pub(super) fn end_watches(&mut self) {
        for (address, tracked) in self.objects.all_mut() {
            if let Some(type_name) = tracked.watched.take() {
                self.commands.push(Command::Unwatch { address: address.clone(), type_name });
            }
        }
    }

    /// Handles what a watch or a call of the driver saw of an object.
    pub(super) fn object_seen(&mut self, address: &Address, seen: Observed) {
        let Some(tracked) = self.objects.get(address).filter(|tracked| tracked.watched.is_some()) else { return };
        let ignores = tracked.instance.as_ref().is_some_and(|i| i.drift.action == DriftAction::Ignore);
        let missing = || Health::Failed("the object no longer exists".to_owned());
        let health = seen.health.or_else(|| (seen.deleted && ignores).then(missing));
        if let Some(health) = health {
            let record = self.index.records().get(address).map(|stored| &stored.record);
            let values = || record.and_then(|record| Some(record.current.as_ref()?.value.clone()));
            self.set_health(address, &health.redacted(|text| Secrets::of(values()).redact(text)));
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
        let is_terminating = |health: &Health| matches!(health, Health::Terminating(_));
        let is_planned = is_terminating(health) != before.as_ref().is_some_and(is_terminating);
        if is_planned || (health.is_current() && self.is_awaited(address)) {
            self.touch(&address.name);
        }
        let was_ready = before.is_none_or(|before| before.is_current());
        match health {
            Health::Current => _ = self.resources.changed.insert(address.name.clone()),
            // It may pass at once.
            _ if was_ready => self.publish_later(&address.name),
            _ => self.publish_after(&address.name, HEALTH_INTERVAL),
        }
    }

    /// The objects to read because they were not seen since the start: those that a user wants to replace, which may exist
    /// in another cluster only, and those on which new objects depend, which may have to wait.
    pub(super) fn unseen_objects(
        &self,
        names: &BTreeSet<Arc<str>>,
        config: &Config,
        environment: &dyn Environment,
    ) -> BTreeSet<Address> {
        let is_new = |name: &Arc<str>| {
            self.recorded(name).next().is_none() || self.index.instance(name).is_some_and(|i| i.repetition.is_some())
        };
        let resource = |name: &Arc<str>| config.resource(&Address::single(name.clone()));
        let new = names.iter().filter(|name| is_new(name)).filter_map(resource);
        let targets: BTreeSet<&Arc<str>> =
            new.flat_map(|instance| instance.references.iter()).map(|reference| &reference.target.name).collect();
        let is_needed = |address: &Address, stored: &Stored| {
            let requested = resource(&address.name).map(|instance| &instance.replace_requested);
            targets.contains(&address.name)
                || requested.is_some_and(|at| !at.is_empty() && *at != stored.record.handled_replace_request)
        };
        let is_unseen = |address: &Address| self.objects.get(address).is_none_or(|tracked| !tracked.seen);
        let unseen = names.iter().flat_map(|name| self.recorded(name)).filter(|(address, stored)| {
            is_unseen(address)
                && stored.record.current.is_some()
                && is_needed(address, stored)
                && environment.reports_health(&stored.record.type_name)
        });
        unseen.map(|(address, _)| address.clone()).collect()
    }

    /// Whether a change waits until the object is ready.
    fn is_awaited(&self, address: &Address) -> bool {
        let waits = |change: &Change| {
            change.blocked == Some(Reason::DependencyNotReady)
                && change.waiting_for.iter().any(|awaited| awaited.name == address.name)
        };
        self.objects.all().any(|(_, tracked)| tracked.change.as_deref().is_some_and(waits))
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
    pub(super) fn read_together(&self, options: &mut PlanOptions, due: &mut BTreeSet<Address>) {
        let is_unread = |address: &Address| self.objects.get(address).is_some_and(|tracked| tracked.unread);
        if !due.iter().any(is_unread) {
            return;
        }
        let comes_soon = |address: &Address| {
            let tracked = self.objects.get(address).filter(|tracked| tracked.watched.is_none())?;
            Some(tracked.read_at? <= self.now.time + tracked.read_interval / READ_TOGETHER)
        };
        due.extend(options.up_to_date.extract_if(.., |address| comes_soon(address) == Some(true)));
    }

    /// Postpones the reading of an object whose watch is running.
    pub(super) fn postpone_reading(&mut self, address: &Address, environment: &dyn Environment) {
        let (now, random) = (self.now.time, self.random.number());
        let Some(tracked) = self.objects.get_mut(address) else { return };
        if tracked.read_at.is_none_or(|at| at > now) {
            return;
        }
        // No watch reports changes of the published objects.
        let publishes = tracked.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
        let is_watched = |type_name| environment.is_watching(type_name, address);
        let is_seen = !publishes && tracked.watched.as_deref().is_some_and(is_watched);
        if is_seen
            && tracked.read_again(true, now, random)
            && let Some(at) = tracked.read_at
        {
            self.objects.wake_at(address, at);
        }
    }

    /// Reports drift that is being corrected. The plan itself reports drift that is not.
    pub(super) fn report_drift(&mut self, address: &Address, drift: &Drift) {
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
    pub(super) fn plan_reading(&mut self, address: &Address, was_read: bool, blocked: Option<Reason>) {
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
