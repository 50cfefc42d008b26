//! Decides about objects that are not desired and about deposed objects: destroy, forget or block.
//!
//! Nothing is evaluated here: a destroy never depends on an expression.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{Block, Decision, DeposedDecision};
use super::drift::difference;
use super::input::{Id, Node, PlanInput};
use super::progress::{Progress, RefreshResult};
use super::protect::prevented_block;
use super::provider::unserved;
use super::{Mode, UNDECIDED, drift};
use model::{Action, ChangeCause, DeposedKey, Diagnostic, KeptBy, Lifecycle, Reason, RecordedObject, Words, errors};

/// Why an object that is not desired must not be changed, as far as no driver call is needed to decide this.
pub fn early_block(input: &PlanInput<'_>, id: Id) -> Option<Block> {
    let node = input.nodes[id];
    if node.instance.is_none() && input.options.mode == Mode::Normal {
        // The marks of a Resource are removed before its record. A process that ended in between has left the record.
        if node.record.is_some_and(|record| record.is_empty() && record.published.is_empty()) {
            return None;
        }
        if !input.options.destroy_orphans {
            let what = "the record has no Resource; the object is left unchanged";
            let hint = format!(
                "create the Resource again to adopt the object, or run `purlin state rm {}`",
                node.address.shell_word()
            );
            return Some(Block::frozen(Diagnostic::warning(node.address, Reason::Abandoned, what).hint(hint)));
        }
        if let Some(incomplete) = &input.incomplete {
            // A consequence of the problem of the source, which is an error of its own.
            let what = format!("not destroyed although its {} is missing", Words::of(node.address).source());
            let held = Diagnostic::warning(node.address, Reason::SourceIncomplete, what).because(incomplete.clone());
            return Some(Block::frozen(held));
        }
    }
    if let Some(block) = invalid_resource_block(input, id) {
        return Some(block);
    }
    let record = node.record.filter(|record| record.has_objects())?;
    all_destroys_held(input, node).or_else(|| {
        let mut objects = record.current.iter().chain(record.deposed.values());
        if input.schema(id).is_some() || objects.all(|object| node.keeps_object(object)) {
            return None;
        }
        let problem = unserved(input, id);
        let what = format!("cannot be destroyed: {}", problem.summary);
        Some(Block::frozen(Diagnostic { summary: what, path: None, ..problem }))
    })
}

/// Blocks recorded instances whose Resource has errors: `count` or `forEach` may be the invalid field. The error itself
/// is reported once, at the Resource.
pub fn invalid_resource_block(input: &PlanInput<'_>, id: Id) -> Option<Block> {
    let node = input.nodes[id];
    let of_single = node.family.is_none() && !node.configured && input.options.mode == Mode::Normal;
    let resource = node.instance.filter(|instance| of_single && instance.is_desired())?;
    let cause = errors(&resource.problems).next()?;
    let why = cause.path.iter().map(|path| format!("{path}: ")).chain([cause.summary.clone()]).collect::<String>();
    Some(Block::held(Diagnostic::error(node.address, cause.reason, UNDECIDED).because(why)))
}

/// Blocks a destroy when the options forbid all destroys.
pub fn all_destroys_held(input: &PlanInput<'_>, node: Node<'_>) -> Option<Block> {
    let held = input.options.hold_destroys.as_ref()?;
    Some(Block::held(held.error(node.address)))
}

/// Decides about an object that is not desired, after the refresh if one was due.
pub fn decide(input: &PlanInput<'_>, id: Id, progress: &mut Progress) -> Decision {
    let node = input.nodes[id];
    let Some(record) = node.record else { return Decision::no_op() };
    let Some(current) = &record.current else {
        // A record without objects is dropped. If it has deposed objects, the destroy of the last one drops it.
        let action = if record.has_objects() { Action::NoOp } else { Action::Forget };
        return Decision { action, because: Some(ChangeCause::EmptyRecord), ..Decision::no_op() };
    };
    let value = Some(current.value.clone());
    match removal(input, node, current, progress.current.take()) {
        Removal::Remove { action, because, object } => {
            let forget = action == Action::Forget;
            Decision { action, because: Some(because), forget, prior: object, value, ..Decision::no_op() }
        }
        Removal::Blocked(block) => Decision::blocked(block, Some(current)),
    }
}

/// The decision of a refresh-only plan: the record is updated, or dropped if the object no longer exists.
pub fn refresh(input: &PlanInput<'_>, id: Id, progress: &mut Progress) -> Decision {
    let node = input.nodes[id];
    let Some(current) = node.current() else { return Decision::no_op() };
    match progress.current.clone() {
        None => Decision::unchanged(Some(current)),
        Some(RefreshResult::Found(now)) => {
            Decision { record_differs: difference(current, &now), ..Decision::unchanged(Some(&now)) }
        }
        Some(RefreshResult::Missing) => {
            let because = Some(ChangeCause::Missing);
            Decision { action: Action::Forget, because, forget: true, ..Decision::no_op() }
        }
        Some(RefreshResult::MissingAfterConfigChange) => {
            Decision::blocked(drift::missing_after_config_change(input, node), Some(current))
        }
        Some(RefreshResult::Failed(error)) => {
            Decision::blocked(Block::failed(node.address, "the object could not be read", error), Some(current))
        }
    }
}

pub fn decide_deposed(
    input: &PlanInput<'_>,
    id: Id,
    refreshed: Vec<(DeposedKey, RefreshResult)>,
) -> Vec<DeposedDecision> {
    let node = input.nodes[id];
    let Some(record) = node.record.filter(|record| !record.deposed.is_empty()) else { return Vec::new() };
    let mut refreshed: BTreeMap<_, _> = refreshed.into_iter().collect();
    record
        .deposed
        .iter()
        .map(|(key, object)| {
            let mut decision = DeposedDecision {
                key: *key,
                object: object.clone(),
                action: Action::Destroy,
                block: None,
                because: Some(ChangeCause::Deposed),
                exists: true,
            };
            if input.running_deposed.contains_key(&(id, *key)) {
                decision.because = Some(ChangeCause::Running);
            } else {
                decide_idle_deposed(input, node, &mut decision, refreshed.remove(key));
            }
            decision
        })
        .collect()
}

/// Decides about a deposed object that no step is destroying.
fn decide_idle_deposed(
    input: &PlanInput<'_>,
    node: Node<'_>,
    decision: &mut DeposedDecision,
    refreshed: Option<RefreshResult>,
) {
    match all_destroys_held(input, node) {
        _ if input.options.mode == Mode::RefreshOnly => refresh_deposed(input, node, decision, refreshed),
        Some(block) => decision.block(block),
        None => match removal(input, node, &decision.object, refreshed) {
            Removal::Remove { action, because, object: now } => {
                decision.exists = now.is_some();
                // The flag at the time when it was deposed applies too, as in Terraform.
                decision.action = if decision.object.skip_destroy { Action::Forget } else { action };
                decision.because = Some(because);
            }
            Removal::Blocked(block) => decision.block(block),
        },
    }
}

/// A refresh-only plan does not update the record of a deposed object. It only drops one that no longer exists.
fn refresh_deposed(
    input: &PlanInput<'_>,
    node: Node<'_>,
    decision: &mut DeposedDecision,
    refreshed: Option<RefreshResult>,
) {
    decision.because = None;
    match refreshed {
        None | Some(RefreshResult::Found(_)) => decision.action = Action::NoOp,
        Some(RefreshResult::Missing) => {
            decision.action = Action::Forget;
            decision.because = Some(ChangeCause::Missing);
        }
        Some(RefreshResult::MissingAfterConfigChange) => {
            decision.block(drift::missing_after_config_change(input, node));
        }
        Some(RefreshResult::Failed(error)) => {
            decision.block(Block::failed(node.address, "the object could not be read", error));
        }
    }
}

enum Removal {
    Remove { action: Action, because: ChangeCause, object: Option<Arc<RecordedObject>> },
    Blocked(Block),
}

fn removal(
    input: &PlanInput<'_>,
    node: Node<'_>,
    object: &Arc<RecordedObject>,
    refreshed: Option<RefreshResult>,
) -> Removal {
    let deposed = node.current().is_none_or(|current| !Arc::ptr_eq(current, object));
    let now = match refreshed {
        None => object.clone(),
        Some(RefreshResult::Found(now)) => now,
        Some(RefreshResult::Missing) => {
            let because = ChangeCause::Missing;
            return Removal::Remove { action: Action::Forget, because, object: None };
        }
        Some(RefreshResult::MissingAfterConfigChange) => {
            return Removal::Blocked(drift::missing_after_config_change(input, node));
        }
        Some(RefreshResult::Failed(error)) => {
            return Removal::Blocked(Block::failed(node.address, "the object could not be read", error));
        }
    };
    let because = match (deposed, input.options.mode, node.instance) {
        (true, ..) => ChangeCause::Deposed,
        (false, Mode::Destroy, _) if input.selected.is_empty() => ChangeCause::DestroyAll,
        (false, Mode::Destroy, _) if input.options.targets.is_empty() => ChangeCause::DestroySources,
        (false, Mode::Destroy, _) => ChangeCause::DestroySelected,
        (false, Mode::Normal, Some(instance)) if !instance.is_desired() && node.address.is_qualified() => {
            ChangeCause::RemovedByBlock
        }
        (false, Mode::Normal, Some(instance)) if !instance.is_desired() => ChangeCause::ResourceDeleted,
        (false, Mode::Normal, Some(_)) if node.family.is_some_and(|family| family.is_disabled()) => {
            ChangeCause::Disabled
        }
        (false, ..) => ChangeCause::NotConfigured,
    };
    if node.keeps_object(object) {
        let policy = match node.resources().find(|instance| instance.keeps_object()) {
            Some(instance) if !instance.policies.delete => KeptBy::Policies,
            Some(_) if node.address.is_qualified() => KeptBy::Configuration,
            Some(_) => KeptBy::DeletionPolicy,
            None => KeptBy::Record,
        };
        let because = ChangeCause::Kept { cause: Box::new(because), policy };
        return Removal::Remove { action: Action::Forget, because, object: Some(now) };
    }
    if node.prevents_destroy(object) {
        let setting = Words::of(node.address).setting(Lifecycle::PreventDestroy);
        let what = format!("the object must be destroyed, but `{setting}` forbids it: {because}");
        return Removal::Blocked(prevented_block(input, node, what));
    }
    Removal::Remove { action: Action::Destroy, because, object: Some(now) }
}
