//! Settling the intents that a crash, or another process, has left open: in the background, one object at a time,
//! while everything else goes on.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::NamespaceTask;
use super::tracked::Hold;
use crate::api;
use crate::controller::context::Context;
use crate::execute::{Recovery, recover};
use crate::load::{self, Instance};
use crate::model::{Address, Diagnostics, InstanceKey, Reason, Stored, of_name};
use crate::plan::Held;
use crate::store::secrets::Patience;

/// The pause after a recovery that panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(30);

/// What became of a recovery.
pub(super) struct Recovered {
    address: Address,
    outcome: Recovery,
    warnings: Diagnostics,
}

impl NamespaceTask {
    /// Starts the recovery of every object of these names that has an open intent of nobody here.
    pub(super) fn start_recoveries(&mut self, names: &BTreeSet<Arc<str>>, now: Instant) {
        let mut open = Vec::new();
        for name in names {
            let own = of_name(self.run.records(), name);
            open.extend(own.filter(|(_, stored)| stored.record.intent.is_some()).map(|(a, s)| (a.clone(), s.clone())));
        }
        for (address, stored) in open {
            let fingerprint = self.shared.index().fingerprint(&address);
            let tracked = self.tracked.entry(address.clone()).or_default();
            let held = tracked.held(fingerprint, now).is_some();
            if held || self.run.is_running(&address) || !self.recovering.insert(address.clone()) {
                continue;
            }
            self.shared.index().begin(&address, Some(stored.version));
            let (context, namespace) = (self.context.clone(), self.shared.name().clone());
            self.recoveries.spawn(async move {
                let settled = AssertUnwindSafe(settle(&context, &namespace, &stored)).catch_unwind().await;
                let (outcome, warnings) = settled.unwrap_or_else(|_| (failed(context.engine.clock.now()), Vec::new()));
                Recovered { address, outcome, warnings }
            });
        }
    }

    /// Takes in what a recovery came to; the object is planned again.
    pub(super) fn take_recovery(&mut self, recovered: Recovered) {
        let Recovered { address, outcome, warnings } = recovered;
        let now = Instant::now();
        self.tell_advice(&address, &warnings.iter().collect::<Vec<_>>());
        // What waits for it is connected with it by the record as it was, and perhaps by nothing else.
        let connected = self.shared.index().component([address.name.clone()]);
        self.recovering.remove(&address);
        match &outcome {
            Recovery::Settled(stored) => drop(self.run.records_mut().insert(address.clone(), stored.clone())),
            Recovery::Erased => drop(self.run.records_mut().remove(&address)),
            Recovery::Held(..) => {}
        }
        // Of the situation that was judged: what the watch has said meanwhile ends a hold.
        let fingerprint = self.shared.index().fingerprint(&address);
        let own = self.run.records().get(&address).cloned();
        self.shared.index().end(&address, own.as_ref());
        self.bring_in(&address);
        match outcome {
            Recovery::Held(held, until) => {
                tracing::warn!(
                    namespace = &**self.shared.name(), %address, reason = %held.reason,
                    "an open operation could not be settled yet: {}", held.message
                );
                let until = until.map(|at| self.instant_of(at, now));
                let tracked = self.tracked.entry(address.clone()).or_default();
                tracked.hold = Some(Hold { held, until, fingerprint });
                tracked.retry_at = until;
                self.timers.extend(until.map(|at| (at, address.clone())));
            }
            Recovery::Settled(_) | Recovery::Erased => {
                tracing::info!(namespace = &**self.shared.name(), %address, "settled an open operation");
            }
        }
        for name in connected {
            self.settle.touch(&name, now);
        }
    }
}

/// A recovery that panicked is tried again; until then the object is left alone.
fn failed(now: Timestamp) -> Recovery {
    let message = "an operation was cut off, and settling it failed by a fault of Purlin".to_owned();
    let again = now.saturating_add(AFTER_PANIC).unwrap_or(now);
    Recovery::Held(Held { reason: Reason::InternalError, message }, Some(again))
}

/// Settles one intent. What the Resource looks like is read from the server itself: whether a call was ever made is
/// told by marks on it, which a watch may deliver late.
async fn settle(context: &Context, namespace: &Arc<str>, stored: &Stored) -> (Recovery, Diagnostics) {
    let Some(intent) = &stored.record.intent else { return (Recovery::Settled(stored.clone()), Vec::new()) };
    let now = context.engine.clock.now();
    let holder = context.holders.state(intent, now).await;
    match live_instance(context, namespace, &stored.record.address).await {
        Ok(instance) => recover(&context.engine, stored, instance.as_ref(), holder).await,
        Err(error) => {
            let message = format!("an operation was cut off, and the Resource cannot be read to settle it: {error}");
            let again = now.saturating_add(jiff::SignedDuration::from_secs(5)).unwrap_or(now);
            (Recovery::Held(Held { reason: Reason::OperationInProgress, message }, Some(again)), Vec::new())
        }
    }
}

async fn live_instance(context: &Context, namespace: &str, address: &Address) -> anyhow::Result<Option<Instance>> {
    let api: Api<api::Resource> = Api::namespaced(context.client.clone(), namespace);
    let resource = api.get_opt(&address.name).await?;
    let Some(resource) = resource.filter(|resource| resource.name_any() == *address.name) else { return Ok(None) };
    let service_account = &context.default_service_account;
    let mut instance = load::from_api(&resource, service_account, &mut load::Interner::default());
    instance.address = address.clone();
    // The marks of a family are there because of any of its instances; its index is what tells of this one.
    if address.key != InstanceKey::None {
        let family = context.journal.secrets().get_family(namespace, &address.name, Patience::SHORT).await;
        let family = family.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        if !family.is_some_and(|family| family.instances.contains(address)) {
            instance.has_finalizer = false;
            instance.record_annotation = "".into();
        }
    }
    Ok(Some(instance))
}
