//! Status, marks and leave-taking of single objects.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::{Chore, NamespaceTask};
use crate::controller::retry;
use crate::controller::status::{Target, Urgency};
use crate::controller::summarize::{Note, Situation, Summary, summarize};
use crate::controller::watch::published;
use crate::model::Address;
use crate::store::secrets::{Patience, record_name};

impl NamespaceTask {
    /// A timer of the object has rung.
    pub(super) fn look_at(&mut self, address: &Address, now: Instant) {
        self.pass_over_reading(address, now);
        let Some(tracked) = self.tracked.get_mut(address) else { return };
        let rung = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let noticed = rung(tracked.noticed_at);
        let read = rung(tracked.read_at);
        if noticed {
            tracked.noticed_at = None;
        }
        if read {
            // Should it not come to a reading now, the next one is due with the next plan, and not with every timer.
            tracked.read_at = None;
        }
        tracked.unread |= noticed || read;
        let plan_again = rung(tracked.retry_at) || noticed || read;
        if rung(tracked.retry_at) {
            tracked.retry_at = None;
        }
        let publish = rung(tracked.publish_at);
        if plan_again {
            self.settle.touch(&address.name, now);
        }
        if publish {
            self.publish_as(address, Urgency::Interim);
        }
    }

    /// Writes the status of an object that has come to rest, unless it says the same already.
    pub(super) fn publish(&mut self, address: &Address) {
        self.publish_as(address, Urgency::Settled);
    }

    fn publish_as(&mut self, address: &Address, urgency: Urgency) {
        let now = self.context.engine.clock.now();
        let Some(summary) = self.sum_up(address, now) else { return };
        let Some(tracked) = self.tracked.get_mut(address) else { return };
        let Some(instance) = tracked.instance.clone() else { return };
        tracked.publish_at = None;
        self.context.metrics.object_moved(tracked.state, Some(summary.state));
        tracked.state = Some(summary.state);
        let new = published(&summary.status);
        let terminating = {
            let mut index = self.shared.index();
            if index.published(&address.name).is_some_and(|old| old.digest == new.digest) {
                return;
            }
            index.publish(&address.name, new);
            index.is_terminating()
        };
        for note in summary.notes {
            self.context.tell(self.shared.name(), &instance, terminating, note);
        }
        let (namespace, name) = (self.shared.name().clone(), address.name.clone());
        self.context.status.write(Target { namespace, name, uid: instance.uid.clone() }, summary.status, urgency);
    }

    /// `None` when there is no Resource (any more) whose status could say something.
    fn sum_up(&self, address: &Address, now: Timestamp) -> Option<Summary> {
        let tracked = self.tracked.get(address)?;
        let planned = tracked.instance.as_ref()?;
        let index = self.shared.index();
        let present = index.instance(&address.name)?;
        if present.uid != planned.uid {
            return None;
        }
        Some(summarize(&Situation {
            instance: planned,
            record: self.run.records().get(address).map(|stored| &*stored.record),
            change: tracked.change.as_ref(),
            leftovers: &tracked.leftovers,
            lifecycle: tracked.lifecycle.as_ref(),
            wants: &tracked.wants,
            steps: &tracked.steps,
            waiting_for: &self.run.waiting_for(address),
            previous: index.published(&address.name)?,
            now,
        }))
    }

    /// What an adopted plan means for what is left of an object.
    pub(super) fn tidy(&mut self, address: &Address) {
        let recorded = self.run.records().contains_key(address);
        let present = self.shared.index().instance(&address.name);
        let settling = self.recovering.contains(address) || self.moving.contains(&address.name);
        let busy = settling || self.run.is_running(address);
        match present {
            None if recorded => self.report_abandoned(address, busy),
            None => self.forget(address),
            Some(instance) => {
                self.no_longer_abandoned(address);
                let open = self.tracked.get(address).is_some_and(|tracked| tracked.is_open());
                if instance.deleting && instance.has_finalizer && !recorded && !busy && !open {
                    self.release(address, &instance.uid);
                }
            }
        }
    }

    /// Takes our marks off a Resource that is being deleted and has no record: it never existed, or a crash cut its
    /// deletion between the record and the marks.
    fn release(&mut self, address: &Address, uid: &std::sync::Arc<str>) {
        if !self.released.insert(uid.clone()) {
            return;
        }
        let (context, namespace) = (self.context.clone(), self.shared.name().clone());
        let (address, uid) = (address.clone(), uid.clone());
        self.chores.spawn(async move {
            // The cache has no record; the server has the last word.
            match context.journal.secrets().get(&namespace, &address, Patience::SHORT).await {
                Ok(None) => {}
                // It is known in a moment.
                Ok(Some(_)) => return Chore::NotReleased(address, uid),
                Err(error) => {
                    tracing::warn!(%namespace, %address, %error, "cannot look for a record; it is tried again");
                    return Chore::NotReleased(address, uid);
                }
            }
            match context.journal.release(&namespace, &address, &uid).await {
                Ok(()) => Chore::Done,
                Err(error) => {
                    tracing::warn!(%namespace, %address, %error, "the finalizer stays for now; it is tried again");
                    Chore::NotReleased(address, uid)
                }
            }
        });
    }

    /// Takes in how a chore ended. A Resource that could not be let go is looked at again, ever later.
    pub(super) fn take_chore(&mut self, chore: Chore) {
        let Chore::NotReleased(address, uid) = chore else { return };
        self.released.remove(&uid);
        let (now, draw) = (Instant::now(), self.context.engine.random.number());
        let tracked = self.tracked.entry(address.clone()).or_default();
        tracked.failures += 1;
        let at = now + retry::delay(tracked.failures, draw);
        tracked.retry_at = Some(at);
        self.timers.insert((at, address));
    }

    /// A record without a Resource: the object is left alone until a Resource of its name and type comes.
    fn report_abandoned(&mut self, address: &Address, busy: bool) {
        let open = self.tracked.get(address).is_some_and(|tracked| tracked.is_open());
        if busy || open || !self.abandoned.insert(address.clone()) {
            return;
        }
        self.context.metrics.abandoned(1);
        let namespace = self.shared.name();
        let note = format!(
            "{namespace}/{address} has a record and no Resource; its object is left alone (hint: apply the Resource \
             again to adopt it, or drop the record with `purlin state rm`)"
        );
        tracing::warn!(%namespace, %address, reason = "Abandoned", "{note}");
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            namespace: Some(self.context.namespace.to_string()),
            name: Some(record_name(namespace, address)),
            ..ObjectReference::default()
        };
        self.context.events.tell(regarding, Note { warning: true, reason: "Abandoned", action: "Plan", note });
    }

    fn no_longer_abandoned(&mut self, address: &Address) {
        if self.abandoned.remove(address) {
            self.context.metrics.abandoned(-1);
        }
    }

    /// Neither Resource nor record: nothing to remember.
    fn forget(&mut self, address: &Address) {
        self.no_longer_abandoned(address);
        let open = self.tracked.get(address).is_some_and(|tracked| tracked.is_open());
        if open {
            return;
        }
        self.missing.forget(address);
        if let Some(mut tracked) = self.tracked.remove(address) {
            super::drift::end_watch(&self.context, &self.shared, address, &mut tracked);
            self.context.metrics.object_moved(tracked.state, None);
            if let Some(instance) = tracked.instance {
                self.released.remove(&instance.uid);
            }
        }
    }
}
