//! Executes the tasks that must always finish: recoveries of open intents, and moves of records.

use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use crate::context::Context;
use crate::metrics::recovery_outcome;
use crate::namespaces::NamespaceHandle;
use engine::load::{self, Instance};
use engine::plan::ObjectBlock;
use engine::plan::moves::rounds;
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, ResourceExt};
use model::{Address, Diagnostics, Namespace, Reason, Stored};
use process::request_error;
use runtime::execute::{self, JournalError, Recovery};
use runtime::reconcile::{MoveRequest, MoveResult, RecoveryResult, Signal};
use runtime::store::secrets::{RetryPolicy, SecretContent};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

/// The delay after a recovery that panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(30);
/// The delay if a Resource could not be read.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(5);

pub async fn recover(context: Arc<Context>, shared: Arc<NamespaceHandle>, stored: Stored) -> Signal {
    let (span, began) = (span(&stored), Instant::now());
    let resolving = resolve(&context, shared.name(), &stored).instrument(span.clone());
    let resolved = AssertUnwindSafe(resolving).catch_unwind().await;
    let (outcome, warnings) = resolved.unwrap_or_else(|_| {
        let message = "an operation was interrupted, and resolving it failed because of a bug in Purlin";
        (held(context.engine.clock.now(), AFTER_PANIC, Reason::InternalError, message.to_owned()), Vec::new())
    });
    context.metrics.steps.recovered(&outcome);
    let (outcome_name, seconds) = (recovery_outcome(&outcome), began.elapsed().as_secs_f64());
    span.in_scope(|| tracing::info!(outcome = outcome_name, seconds, "recovery ended"));
    Signal::Recovered(Box::new(RecoveryResult { address: stored.record.address.clone(), outcome, warnings }))
}

/// The fields that the log lines of a recovery share.
fn span(stored: &Stored) -> Span {
    let record = &stored.record;
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!(
        "recovery",
        namespace = &*record.namespace,
        object = %record.address,
        resource_type = &*record.type_name,
        operation = record.intent.as_ref().map(|intent| intent.operation.as_str()),
        operation_id = record.intent.as_ref().map(|intent| &*intent.operation_id),
    )
}

/// Holds the object until the next attempt.
fn held(now: Timestamp, pause: SignedDuration, reason: Reason, message: String) -> Recovery {
    Recovery::Blocked(ObjectBlock { reason, message }, Some(now.saturating_add(pause).unwrap_or(now)))
}

/// Resolves one intent. Record and Resource are read from the API server, because the watch may be late: a call for an
/// operation that is over would be made twice, and finalizer and annotation show whether a call was ever made.
async fn resolve(context: &Context, namespace: &Namespace, known: &Stored) -> (Recovery, Diagnostics) {
    let address = &known.record.address;
    let stored = match context.journal.secrets().get(namespace, address, RetryPolicy::SHORT).await {
        Ok(Some(Ok(SecretContent::Record(stored)))) => stored,
        Ok(Some(Ok(_))) => return unread(context, "record", &"its Secret holds no record"),
        Ok(Some(Err(unreadable))) => return unread(context, "record", &unreadable.message),
        Ok(None) => return (Recovery::Missing, Vec::new()),
        Err(error) => return unread(context, "record", &error),
    };
    let Some(intent) = &stored.record.intent else { return (Recovery::Resolved(stored), Vec::new()) };
    let now = context.engine.clock.now();
    let holder = match stored.record.has_runner() {
        true => context.holders.state_with_runner(namespace, intent, now).await,
        false => context.holders.state(namespace, intent, now).await,
    };
    match live_instance(context, namespace, address).await {
        Ok(instance) => execute::recover(&context.engine, &stored, instance.as_ref(), holder).await,
        Err(error) => unread(context, "Resource", &error),
    }
}

fn unread(context: &Context, what: &str, error: &dyn Display) -> (Recovery, Diagnostics) {
    let message = format!("an operation was interrupted, and the {what} cannot be read to resolve it: {error}");
    (held(context.engine.clock.now(), READ_AGAIN, Reason::OperationInProgress, message), Vec::new())
}

async fn live_instance(context: &Context, namespace: &str, address: &Address) -> anyhow::Result<Option<Instance>> {
    let strings = &mut load::Interner::default();
    let found = match address.kind() {
        api::MODULE_KIND => live::<api::Module>(context, namespace, address)
            .await?
            .map(|module| load::module_from_raw(&module, &context.accounts, strings).0),
        _ => live::<api::Resource>(context, namespace, address)
            .await?
            .map(|resource| load::from_raw(&resource, &context.accounts, strings)),
    };
    let Some(mut instance) = found else { return Ok(None) };
    instance.address = address.clone();
    // Any instance causes the finalizer and the annotation of a family. The family index shows the state of this
    // instance.
    if !address.is_single() {
        let family = context.journal.secrets().get_family(namespace, address.name(), RetryPolicy::SHORT).await;
        let family = family.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        // The index is written before the finalizer and the annotation: one that is missing, or was rebuilt, was lost.
        if family.is_some_and(|family| !family.rebuilt && !family.instances.contains(address)) {
            instance.has_finalizer = false;
            instance.record_annotation = "".into();
        }
    }
    Ok(Some(instance))
}

/// What has the status of an object, as the server has it.
async fn live<K>(context: &Context, namespace: &str, address: &Address) -> anyhow::Result<Option<api::RawObject<K>>>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + 'static,
{
    let api: Api<api::RawObject<K>> = Api::namespaced(context.client.clone(), namespace);
    let found = api.get_opt(address.object_name()).await.map_err(|error| anyhow::anyhow!(request_error(&error)))?;
    Ok(found.filter(|object| object.name_any() == address.object_name()))
}

pub async fn carry_out_moves(context: Arc<Context>, mut request: MoveRequest) -> Signal {
    let carried = AssertUnwindSafe(carry_out(&context, &mut request)).catch_unwind().await;
    let outcome = carried.unwrap_or_else(|_| {
        let message = "the move failed because of a bug in Purlin".to_owned();
        let address = request.moves.first().map_or_else(|| Address::single(""), |first| first.from.clone());
        Err(JournalError::Unavailable { address, message })
    });
    Signal::Moved(Box::new(MoveResult { request, outcome }))
}

/// Between the two halves of a round both Resources exist. The published copies of the old one get their new owner
/// before the API server deletes them with it.
async fn carry_out(context: &Context, request: &mut MoveRequest) -> Result<(), JournalError> {
    let (engine, journal) = (&context.engine, context.engine.journal.as_ref());
    for round in rounds(&request.moves) {
        execute::prepare_moves(journal, &mut request.records, round).await?;
        for moved in round.iter().filter(|moved| !moved.reverted) {
            execute::transfer_copies(engine, &mut request.records, &moved.to).await?;
        }
        execute::conclude_moves(journal, &mut request.records, round).await?;
    }
    Ok(())
}
