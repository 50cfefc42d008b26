//! Timers, marks and leave-taking of single objects.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::{Chore, NamespaceTask};
use crate::controller::retry;
use crate::controller::summarize::Note;
use crate::model::{Address, of_name};
use crate::store::secrets::record_name;

impl NamespaceTask {
    /// A timer of the object has rung.
    pub(super) fn look_at(&mut self, address: &Address, now: Instant) {
        self.publish_if_due(&address.name, now);
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
        if plan_again {
            self.settle.touch(&address.name, now);
        }
    }

    /// What an adopted plan means for what is left of an object.
    pub(super) fn tidy(&mut self, address: &Address) {
        let recorded = self.run.records().contains_key(address);
        let present = self.shared.index().instance(&address.name);
        let settling = self.recovering.contains(address) || self.moving.contains(&address.name);
        let busy = settling || self.run.is_running(address);
        if present.is_none() {
            return if recorded { self.report_abandoned(address, busy) } else { self.forget(address) };
        }
        self.no_longer_abandoned(address);
        if !self.release_if_empty(&address.name)
            && !recorded
            && !busy
            && self.tracked.get(address).is_some_and(|tracked| tracked.stands_for_nothing())
        {
            // An instance that is not wanted any more, and of which nothing is left.
            self.forget(address);
        }
    }

    /// Takes our marks off a Resource that is being deleted, once nothing is left of it; a family may have no instance at
    /// all by then. Returns whether that is so.
    pub(super) fn release_if_empty(&mut self, name: &Arc<str>) -> bool {
        let resource = self.shared.index().instance(name);
        let Some(resource) = resource.filter(|resource| resource.deleting && resource.has_finalizer) else {
            return false;
        };
        let is_empty = !self.has_traces(name);
        if is_empty {
            self.release(name, &resource.uid);
        }
        is_empty
    }

    /// Whether any instance of a Resource is recorded, or something is being done about it.
    fn has_traces(&self, name: &Arc<str>) -> bool {
        let busy = |address: &Address| self.run.is_running(address) || self.recovering.contains(address);
        self.moving.contains(name)
            || of_name(self.run.records(), name).next().is_some()
            || of_name(&self.tracked, name).any(|(address, tracked)| tracked.is_open() || busy(address))
    }

    /// Takes our marks off a Resource that is being deleted and has no record: it never existed, or a crash cut its
    /// deletion between the record and the marks.
    fn release(&mut self, name: &Arc<str>, uid: &Arc<str>) {
        if !self.released.insert(uid.clone()) {
            return;
        }
        let (context, namespace) = (self.context.clone(), self.shared.name().clone());
        let (name, uid) = (name.clone(), uid.clone());
        self.chores.spawn(async move {
            // The cache has no record; the server has the last word.
            match context.journal.release_all(&namespace, &name, &uid).await {
                Ok(true) => Chore::Done,
                // It is known in a moment.
                Ok(false) => Chore::NotReleased(Address::single(name), uid),
                Err(error) => {
                    tracing::warn!(%namespace, %name, %error, "the finalizer stays for now; it is tried again");
                    Chore::NotReleased(Address::single(name), uid)
                }
            }
        });
    }

    /// Takes in how a chore ended. A Resource that could not be let go is looked at again, ever later.
    pub(super) fn take_chore(&mut self, chore: Chore) {
        let (address, uid) = match chore {
            Chore::Done => return,
            Chore::Settings(name, done) => return self.take_settings(&name, done),
            Chore::NotReleased(address, uid) => (address, uid),
        };
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
        self.memo.forget(address);
        self.run.forget_reading(address);
        if let Some(mut tracked) = self.tracked.remove(address) {
            super::drift::end_watch(&self.context, &self.shared, address, &mut tracked);
        }
        self.forget_resource(&address.name);
    }
}
