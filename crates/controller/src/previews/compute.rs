//! The computation of one Plan: from its manifests to its status.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use super::queue::Outcome;
use crate::approvals;
use crate::context::Context;
use crate::inputs;
use crate::watch::PlanKey;
use api::conditions::{self, ConditionType, condition, merge};
use api::{
    DataSource, PlanObject, PlanOutcome, PlanStatus, PlanUse, Preview, PreviewRefresh, Prune, RawObject, Resource,
};
use engine::graph::render;
use engine::load::{self, Listed, Proposal};
use engine::plan::approval::Guarded;
use engine::plan::{ResponseCache, published};
use model::{Address, Diagnostics, Name, Namespace, Reason};
use process::ProcessorShare;
use runtime::pipeline;
use runtime::reconcile::index::ApprovalPlan;
use runtime::reconcile::{PreviewTime, ProposedState};

/// How long a Plan is kept after it was computed, in seconds, unless it says otherwise.
const DEFAULT_TTL: u32 = 3600;
/// The same for a Plan of changes that were approved, or that are no longer planned.
const APPROVAL_TTL: u32 = 7 * 24 * 3600;
/// How often a Plan with a digest is read again, to delete it in time.
const RECHECK: SignedDuration = SignedDuration::from_mins(10);
/// The longest computation: time for slow providers, but one that does not respond must not block others forever.
const LIMIT: Duration = Duration::from_mins(5);
/// How long a preview waits for plans of changes. A namespace can be busy forever.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How often it checks whether they are complete: a fraction of the time that a plan takes.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum size of an object in bytes, with room for metadata: etcd accepts 1.5 MiB.
const MAX_OBJECT: usize = 1400 * 1024;
/// The space for a status however large the manifests are.
const MIN_STATUS: usize = 16 * 1024;
/// How many ConfigMaps and Secrets are read at the same time.
const MAX_READS: usize = 8;

/// Why there is no plan.
struct Failure {
    reason: Reason,
    message: String,
}

/// Computes a Plan unless it has a result, and deletes it if it has expired. Also returns a Plan with a digest, as the
/// reconciler needs it.
pub async fn compute(
    context: &Arc<Context>,
    processors: ProcessorShare,
    key: &PlanKey,
    uid: &str,
) -> Result<(Outcome, Option<ApprovalPlan>), kube::Error> {
    let api: Api<RawObject<PlanObject>> = Api::namespaced(context.client.clone(), &key.namespace);
    let Some(plan) = approvals::get(&api, &key.name).await?.filter(|plan| plan.uid().as_deref() == Some(uid)) else {
        return Ok((Outcome::Gone, None));
    };
    match plan.spec.preview.clone() {
        Some(preview) => Ok((compute_preview(context, processors, key, &api, &plan, preview).await?, None)),
        None => approval(context, &api, &plan).await,
    }
}

async fn compute_preview(
    context: &Arc<Context>,
    processors: ProcessorShare,
    key: &PlanKey,
    api: &Api<RawObject<PlanObject>>,
    plan: &PlanObject,
    preview: Preview,
) -> Result<Outcome, kube::Error> {
    if let Some(finished) = finished_at(plan.status.as_ref()) {
        let expiry = expiry(plan, finished);
        if expiry > context.engine.clock.now() {
            return Ok(Outcome::Finished(expiry));
        }
        approvals::delete(api, plan).await?;
        return Ok(Outcome::Gone);
    }
    let status = status(context, processors, key, plan, preview).await;
    if !context.leadership.leads(&key.namespace) || context.shutdown.is_triggered() {
        // The new leader computes it. If this replica leads there again, it does.
        return Ok(Outcome::Failed(context.engine.clock.now()));
    }
    let finished = finished_at(Some(&status)).unwrap_or_default();
    Ok(match approvals::patch_bounded(api, &key.name, &approvals::id(plan), PlanUse::Preview, &status).await? {
        Some(_) => Outcome::Finished(expiry(plan, finished)),
        None => Outcome::Gone,
    })
}

/// Reads a Plan with a digest. Deletes it if it has ended and expired, and Purlin created it.
async fn approval(
    context: &Context,
    api: &Api<RawObject<PlanObject>>,
    plan: &PlanObject,
) -> Result<(Outcome, Option<ApprovalPlan>), kube::Error> {
    let Some(observed) = approvals::observed(plan) else { return Ok((Outcome::Gone, None)) };
    let now = context.engine.clock.now();
    let is_obsolete =
        observed.is_final() && observed.is_own && ended_at(plan).is_some_and(|at| expiry(plan, at) <= now);
    if is_obsolete {
        approvals::delete(api, plan).await?;
        return Ok((Outcome::Gone, None));
    }
    let again = now.saturating_add(RECHECK).unwrap_or(Timestamp::MAX);
    Ok((Outcome::Finished(again), Some(observed)))
}

/// When the state of an approval last changed.
fn ended_at(plan: &PlanObject) -> Option<Timestamp> {
    let approved = conditions::find(&plan.status.as_ref()?.conditions, ConditionType::Approved)?;
    Some(approved.last_transition_time.0)
}

/// When the Plan got its result.
fn finished_at(status: Option<&PlanStatus>) -> Option<Timestamp> {
    let status = status.filter(|status| status.result.is_some())?;
    let computed = conditions::find(&status.conditions, ConditionType::Computed)?;
    Some(computed.last_transition_time.0)
}

fn expiry(plan: &PlanObject, finished: Timestamp) -> Timestamp {
    let default = if plan.spec.preview.is_some() { DEFAULT_TTL } else { APPROVAL_TTL };
    let ttl = plan.spec.ttl_seconds_after_finished.unwrap_or(default);
    finished.saturating_add(SignedDuration::from_secs(ttl.into())).unwrap_or(Timestamp::MAX)
}

/// The status with the result.
async fn status(
    context: &Arc<Context>,
    processors: ProcessorShare,
    key: &PlanKey,
    plan: &PlanObject,
    preview: Preview,
) -> PlanStatus {
    let size = serde_json::to_vec(&preview).map_or(0, |json| json.len());
    let limit = MAX_OBJECT.saturating_sub(size).max(MIN_STATUS);
    let computing = computed(context, processors, &key.namespace, preview, limit);
    let result = AssertUnwindSafe(computing).catch_unwind().await;
    let result = result.unwrap_or_else(|_| {
        let (namespace, name) = (&*key.namespace, &*key.name);
        tracing::error!(namespace, name, "the computation of a Plan panicked because of a bug in Purlin");
        Err(Failure { reason: Reason::InternalError, message: "it failed because of a bug in Purlin".to_owned() })
    });
    let generation = plan.metadata.generation.unwrap_or_default();
    let (status, computed) = match result {
        Ok((status, headline)) => {
            (status, condition(ConditionType::Computed, "True", Reason::PlanComputed, headline, generation))
        }
        Err(Failure { reason, message }) => {
            let status = PlanStatus { result: Some(PlanOutcome::Errors), ..PlanStatus::default() };
            (status, condition(ConditionType::Computed, "False", reason, message, generation))
        }
    };
    let before = plan.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let conditions = merge(before, [computed], context.engine.clock.now());
    PlanStatus { observed_generation: generation, conditions, ..status }
}

/// The plan in at most `limit` bytes, and its headline.
async fn computed(
    context: &Arc<Context>,
    processors: ProcessorShare,
    namespace: &Namespace,
    preview: Preview,
    limit: usize,
) -> Result<(PlanStatus, String), Failure> {
    let end = Instant::now() + LIMIT;
    let waiting = async {
        wait_for_turn(context, namespace).await;
        match (preview.prune, &preview.selector) {
            (Some(Prune::Selector), Some(selector)) => selected(&context.client, namespace, selector).await,
            _ => Ok(BTreeSet::new()),
        }
    };
    let selected = tokio::time::timeout_at(end, waiting).await.unwrap_or_else(|_| Err(too_slow()))?;
    let (on_thread, namespace) = (Arc::clone(context), namespace.clone());
    // The end of the thread is awaited in any case: a computation that does not end occupies its place.
    let computing = async move {
        let context = on_thread;
        let (prune, refresh) = (preview.prune.unwrap_or_default(), preview.refresh.unwrap_or_default());
        let proposal = proposal(&context, &namespace, preview)?;
        let diagnostics = proposal.diagnostics.clone();
        // The copy is made under the lock of the reconciler, and changed without it.
        let index = context.namespaces.look(&namespace, |reconciler| reconciler.index().copy());
        let removed = if prune == Prune::All { index.all_names().cloned().collect() } else { selected };
        let proposed = ProposedState::new(index, proposal, &removed);
        tokio::select! {
            biased;
            (ordered, guarded) = planned(&context, &namespace, proposed, refresh) => {
                let approvals = guarded.iter().map(Guarded::published).collect();
                let packed = published::pack(PlanStatus { approvals, ..PlanStatus::default() });
                let rest = limit.saturating_sub(published::size(&packed)).max(MIN_STATUS);
                let (status, headline) = result(&ordered, &guarded, diagnostics, rest);
                let approvals = published::unpack(packed).approvals;
                Ok((PlanStatus { approvals, ..status }, headline))
            }
            () = tokio::time::sleep_until(end) => Err(too_slow()),
            () = context.shutdown.triggered() => Err(interrupted()),
        }
    };
    let computing = Box::pin(async move { Box::pin(processors.run(computing)).await });
    context.threads.compute(computing).await.unwrap_or_else(|| Err(interrupted()))
}

/// Plans the proposed state, and finds the changes that need an approval.
async fn planned(
    context: &Context,
    namespace: &Namespace,
    mut proposed: ProposedState,
    refresh: PreviewRefresh,
) -> (pipeline::OrderedPlan, Vec<Guarded>) {
    read_inputs(context, namespace, &mut proposed).await;
    let (seed, now) = (context.engine.random.number(), context.moment());
    let request = context.namespaces.look(namespace, |reconciler| reconciler.preview(&proposed, refresh, seed, now));
    let Some(request) = request else { return Default::default() };
    let (config, recorded) = (&request.config, &request.recorded);
    let planned =
        pipeline::plan(&context.engine, config, recorded, &request.options, &mut ResponseCache::default()).await;
    let mut guarded = Vec::new();
    if request.may_need_approval() {
        guarded = request.required_approvals(&approvals::salt(context).await, &planned.plan);
    }
    (planned, guarded)
}

fn result(
    ordered: &pipeline::OrderedPlan,
    guarded: &[Guarded],
    mut diagnostics: Diagnostics,
    limit: usize,
) -> (PlanStatus, String) {
    let changes = ordered.plan.changes();
    diagnostics.extend(ordered.plan.diagnostics.iter().cloned());
    let proofs = guarded.iter().flat_map(Guarded::proofs).collect();
    let status = published::status(limit, changes.clone(), &diagnostics, render::published(&ordered.graph), &proofs);
    let message = published::message(&published::headline(changes, &diagnostics), &status);
    (status, message)
}

fn too_slow() -> Failure {
    let message = format!("it took longer than {} minutes: a provider may not respond", LIMIT.as_secs() / 60);
    Failure { reason: Reason::TimeLimitExceeded, message }
}

/// The status is not written: the process terminates.
fn interrupted() -> Failure {
    Failure { reason: Reason::InternalError, message: "the controller was terminated".to_owned() }
}

/// Waits until changes of the namespace are planned, but not for long.
async fn wait_for_turn(context: &Context, namespace: &Namespace) {
    let began = Instant::now();
    loop {
        match context.namespaces.look(namespace, runtime::reconcile::Reconciler::preview_time) {
            PreviewTime::Now => return,
            PreviewTime::Later if began.elapsed() >= MAX_WAIT => return,
            PreviewTime::Later | PreviewTime::Unknown => tokio::time::sleep(CHECK_INTERVAL).await,
        }
    }
}

/// Decodes the manifests.
fn proposal(context: &Context, namespace: &str, preview: Preview) -> Result<Proposal, Failure> {
    let Preview { manifests, manifests_zstd, service_account_names, types, .. } = preview;
    let text = match (manifests, manifests_zstd) {
        (Some(text), _) => text,
        (None, Some(compressed)) => load::decompress(&compressed).map_err(|error| Failure {
            reason: Reason::InvalidManifest,
            message: format!("spec.preview.manifestsZstd: {error}"),
        })?,
        (None, None) => String::new(),
    };
    let mut proposal = Proposal::read(&text, namespace, &context.accounts);
    let listed =
        Listed { service_accounts: service_account_names.into_iter().collect(), types: types.into_iter().collect() };
    proposal.refuse_unlisted(&listed, &context.accounts);
    Ok(proposal)
}

/// Reads the ConfigMaps and Secrets that are not known, as the service accounts that the manifests name.
async fn read_inputs(context: &Context, namespace: &str, proposed: &mut ProposedState) {
    let reads = stream::iter(proposed.unread_inputs()).map(|key| async {
        let data = inputs::read(&context.client, namespace, &key).await;
        (key, data)
    });
    let read: Vec<_> = reads.buffer_unordered(MAX_READS).collect().await;
    read.into_iter().for_each(|(key, data)| proposed.observe_input(key, data));
}

/// The names of the Resources and `DataSources` with these labels.
async fn selected(client: &Client, namespace: &str, selector: &str) -> Result<BTreeSet<Name>, Failure> {
    let params = ListParams::default().labels(selector);
    let resources: Api<Resource> = Api::namespaced(client.clone(), namespace);
    let data: Api<DataSource> = Api::namespaced(client.clone(), namespace);
    let resources = resources.list_metadata(&params).await.map_err(failed_selection)?;
    let data = data.list_metadata(&params).await.map_err(failed_selection)?;
    let names = resources.iter().map(|resource| Name::from(resource.name_any()));
    Ok(names.chain(data.iter().map(|source| Address::data(&source.name_any()).stem.name)).collect())
}

fn failed_selection(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 400 => {
            Failure { reason: Reason::InvalidManifest, message: format!("spec.preview.selector: {}", status.message) }
        }
        error => Failure { reason: Reason::OperationFailed, message: format!("the selected objects: {error}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::PlanSpec;

    #[test]
    fn a_plan_expires_after_its_time_to_live() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let computed = condition(ConditionType::Computed, "True", Reason::PlanComputed, "", 1);
        let mut status = PlanStatus { conditions: merge(&[], [computed], at(100)), ..PlanStatus::default() };
        assert_eq!(finished_at(Some(&status)), None, "it has no result");
        status.result = Some(PlanOutcome::NoChanges);
        assert_eq!(finished_at(Some(&status)), Some(at(100)));
        let plan = |ttl| {
            let preview = Some(Preview::default());
            let spec = PlanSpec { preview, ttl_seconds_after_finished: ttl, ..PlanSpec::default() };
            PlanObject { spec, ..PlanObject::default() }
        };
        assert_eq!(expiry(&plan(None), at(100)), at(3700));
        assert_eq!(expiry(&plan(Some(0)), at(100)), at(100));
        assert_eq!(expiry(&PlanObject::default(), at(100)), at(100 + 7 * 86_400), "an approval");
    }
}
