//! What must be brought to an end whatever happens: open intents, and moves of records.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};

use crate::api;
use crate::controller::context::Context;
use crate::controller::world::Shared;
use crate::execute::{self, JournalError, Recovery};
use crate::load::{self, Instance};
use crate::model::{Address, Diagnostics, InstanceKey, Reason, Stored};
use crate::plan::Held;
use crate::plan::moves::rounds;
use crate::reconcile::{Happened, MoveRequest, Moved, Recovered};
use crate::store::secrets::Patience;

/// The pause after a recovery that panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(30);
/// The pause when a Resource could not be read.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Settles the open intent of a record.
pub(super) async fn recover(context: Arc<Context>, shared: Arc<Shared>, stored: Stored) -> Happened {
    let settled = AssertUnwindSafe(settle(&context, shared.name(), &stored)).catch_unwind().await;
    let failed = |_| {
        let message = "an operation was cut off, and settling it failed by a fault of Purlin";
        (held(context.engine.clock.now(), AFTER_PANIC, Reason::InternalError, message.to_owned()), Vec::new())
    };
    let (outcome, warnings) = settled.unwrap_or_else(failed);
    Happened::Recovered(Box::new(Recovered { address: stored.record.address.clone(), outcome, warnings }))
}

/// The object is left alone until recovery is tried again.
fn held(now: Timestamp, pause: SignedDuration, reason: Reason, message: String) -> Recovery {
    Recovery::Held(Held { reason, message }, Some(now.saturating_add(pause).unwrap_or(now)))
}

/// Settles one intent. What the Resource looks like is read from the server itself: marks on it say whether a call was
/// ever made, and a watch may deliver them late.
async fn settle(context: &Context, namespace: &Arc<str>, stored: &Stored) -> (Recovery, Diagnostics) {
    let Some(intent) = &stored.record.intent else { return (Recovery::Settled(stored.clone()), Vec::new()) };
    let now = context.engine.clock.now();
    let holder = context.holders.state(intent, now).await;
    match live_instance(context, namespace, &stored.record.address).await {
        Ok(instance) => execute::recover(&context.engine, stored, instance.as_ref(), holder).await,
        Err(error) => {
            let message = format!("an operation was cut off, and the Resource cannot be read to settle it: {error}");
            (held(now, READ_AGAIN, Reason::OperationInProgress, message), Vec::new())
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
    // The marks of a family are there because of any of its instances; its index is what speaks of this one.
    if address.key != InstanceKey::None {
        let family = context.journal.secrets().get_family(namespace, &address.name, Patience::SHORT).await;
        let family = family.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        // It is written before the marks are: one that is not there, or was written again, was lost.
        if family.is_some_and(|family| !family.rebuilt && !family.instances.contains(address)) {
            instance.has_finalizer = false;
            instance.record_annotation = "".into();
        }
    }
    Ok(Some(instance))
}

/// Moves records.
pub(super) async fn carry_out_moves(context: Arc<Context>, mut request: MoveRequest) -> Happened {
    let carried = AssertUnwindSafe(carry_out(&context, &mut request)).catch_unwind().await;
    let lost = |_| {
        let message = "the move failed by a fault of Purlin".to_owned();
        let address = request.moves.first().map_or_else(|| Address::single(""), |one| one.from.clone());
        Err(JournalError::Unavailable { address, message })
    };
    let outcome = carried.unwrap_or_else(lost);
    Happened::Moved(Box::new(Moved { request, outcome }))
}

/// Between the two halves of a round both Resources are there, and so are the copies that belong to the old one: they
/// are handed over before the server removes them with it.
async fn carry_out(context: &Context, request: &mut MoveRequest) -> Result<(), JournalError> {
    let (engine, journal) = (&context.engine, context.engine.journal.as_ref());
    for round in rounds(&request.moves) {
        execute::prepare(journal, &mut request.records, round).await?;
        for one in round.iter().filter(|one| !one.back) {
            execute::hand_over_copies(engine, &mut request.records, &one.to).await?;
        }
        execute::conclude(journal, &mut request.records, round).await?;
    }
    Ok(())
}
