//! Applies the constraints that need the whole plan: create-before-destroy flags, impossible replacements, destroys of
//! objects that are in use. Each rule removes steps and never adds one, so this terminates.

mod conflict;
mod follow;
mod hold;
mod orphans;
mod record_cycle;
mod refusal;

pub use conflict::identity_hash;
pub(super) use orphans::is_faulty;
pub(super) use refusal::remedies;

use super::decision::{Block, Decision};
use super::destroys::all_destroys_held;
use super::eval_scope::EvalScope;
use super::inherit::{self, FlagNode as Flagged, Inheritance};
use super::input::{Id, PlanInput};
use super::protect;
use model::{Action, Diagnostic, ObjectStatus, Reason, Value};

/// With this many deposed objects, no further create-first replacement starts: their destroys probably fail.
const MAX_DEPOSED: usize = 3;

/// Requires a decision for every object. Returns the flags, and the objects that must be planned again because the
/// change of a dependency was removed. If there are none, the plan is final.
pub(super) fn apply(input: &PlanInput<'_>, decisions: &mut [Option<Decision>]) -> (Inheritance, Vec<Id>) {
    loop {
        let flags = inherit::effective(&flagged(input, decisions));
        for (id, decision) in decisions.iter_mut().enumerate() {
            if let Some(decision) = decision {
                decision.create_first = decision.forget || flags.is_on(id);
            }
        }
        let protect::ForbiddenDestroys { objects: mut refused, deposed } =
            protect::forbidden_destroys(&EvalScope { input, decisions });
        for (id, position, block) in deposed {
            if let Some(decision) = &mut decisions[id] {
                decision.deposed[position].block(block);
            }
        }
        refused.extend(protect::claimed(input, decisions));
        refused.extend(impossible_steps(input, decisions, &flags));
        refused.extend(record_cycle::find(input, decisions));
        refused.extend(follow::find(input, decisions));
        refused.extend(orphans::find(input, decisions));
        refused.sort_by_key(|(id, _)| *id);
        refused.dedup_by_key(|(id, _)| *id);
        if !refused.is_empty() {
            let again = block_and_reset(input, decisions, refused, |_| true);
            if again.is_empty() {
                continue;
            }
            return (flags, again);
        }
        let (held, changed) = hold::hold(input, decisions);
        let again = block_and_reset(input, decisions, held, |decision| !decision.is_blocked());
        if !again.is_empty() || !changed {
            return (flags, again);
        }
    }
}

/// The objects as the create-before-destroy rule sees them. A junction has two entries: its desired instances, for
/// objects that reference it, and, after all other entries, its recorded instances, for objects that depended on it.
fn flagged(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<Flagged> {
    let count = input.nodes.len();
    let used = |id: Id| if input.is_junction(id) { count + id - input.objects } else { id };
    let one = |id: Id| {
        let node = input.nodes[id];
        let orphaned = |decision: &Decision| decision.action == Action::Replace && decision.forget;
        let orphaned = decisions[id].as_ref().is_some_and(orphaned);
        let explicit = node.instance.is_some_and(|instance| {
            instance.create_before_destroy == Some(true) || (orphaned && instance.keeps_object())
        });
        let deposed = node.record.iter().flat_map(|record| record.deposed.values());
        let recorded = input.running.get(&id).and_then(|running| running.recorded.as_ref()).or(node.current());
        Flagged {
            desired: node.desired,
            sets_flag: node.desired && explicit,
            recorded_flag: recorded.is_some_and(|object| object.create_before_destroy),
            dependencies: input.dependencies.of(id).collect(),
            recorded_dependencies: if input.is_junction(id) {
                Vec::new()
            } else {
                input.recorded_dependencies.of(id).map(used).collect()
            },
            deposed_dependencies: deposed
                .flat_map(|deposed| input.deposed_dependencies(id, deposed))
                .map(used)
                .collect(),
        }
    };
    let recorded =
        |id: Id| Flagged { recorded_dependencies: input.recorded_dependencies.of(id).collect(), ..Flagged::default() };
    (0..count).map(one).chain((input.objects..count).map(recorded)).collect()
}

/// The node of an entry of `flagged`.
pub(super) fn flagged_as(input: &PlanInput<'_>, number: usize) -> Id {
    let count = input.nodes.len();
    if number < count { number } else { input.objects + number - count }
}

/// The objects whose planned steps are impossible.
fn impossible_steps(input: &PlanInput<'_>, decisions: &[Option<Decision>], flags: &Inheritance) -> Vec<(Id, Block)> {
    let mut refused = conflict::conflicts(input, decisions);
    refused.extend(super::drift::many_missing(input, decisions));
    let stuck = blocked_dependencies(input, decisions);
    for (id, decision) in decisions.iter().enumerate() {
        let Some(decision) = decision else { continue };
        let refusal = match decision.action {
            _ if input.running.contains_key(&id) => None,
            Action::Replace if decision.create_first => block_create_first(input, id, decision, flags),
            Action::Replace => block_destroy_first(input, decisions, id, &stuck),
            Action::Create => clash_with_deposed(input, id, decision),
            _ => None,
        };
        let refusal = refusal.or_else(|| match input.running.contains_key(&id) {
            false => refusal::refused(input, decisions, id),
            true => None,
        });
        refused.extend(refusal.map(|block| (id, block)));
    }
    refused
}

/// For each object, a direct or indirect dependency that is blocked. A replacement destroys the old object first only
/// if nothing blocks the creation of the new one. It does not wait for a dependency with too many deposed objects,
/// because these may wait for this replacement. The new object then uses the dependency's current object.
fn blocked_dependencies(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<Option<Id>> {
    let waits_for_destroys = |id: Id, block: &Block| {
        let current = input.nodes[id].current();
        block.reason() == Reason::TooManyDeposedObjects
            && current.is_some_and(|object| object.status == ObjectStatus::Ready)
    };
    let blocked = |id: Id| {
        let block = decisions[id].as_ref().and_then(|decision| decision.block.as_deref());
        block.is_some_and(|block| !waits_for_destroys(id, block))
    };
    let mut stuck: Vec<Option<Id>> = vec![None; decisions.len()];
    let mut spread: Vec<Id> = (0..decisions.len()).filter(|id| blocked(*id)).collect();
    while let Some(id) = spread.pop() {
        let cause = if blocked(id) { id } else { stuck[id].unwrap_or(id) };
        for dependent in input.dependents.of(id) {
            if stuck[dependent].is_none() {
                stuck[dependent] = Some(cause);
                spread.push(dependent);
            }
        }
    }
    stuck
}

fn block_destroy_first(
    input: &PlanInput<'_>,
    decisions: &[Option<Decision>],
    id: Id,
    stuck: &[Option<Id>],
) -> Option<Block> {
    let node = input.nodes[id];
    all_destroys_held(input, node).or_else(|| {
        let cause = stuck[id]?;
        let what = format!(
            "must be replaced, but the old object is kept until the new one can be created: waits for `{}`",
            input.address(cause)
        );
        let mut diagnostic = Diagnostic::error(node.address, Reason::DependencyNotReady, what);
        if let Some(block) = decisions[cause].as_ref().and_then(|decision| decision.block.as_deref()) {
            diagnostic.severity = block.cause().severity;
            diagnostic.detail = format!("it is blocked ({})", block.reason());
        }
        Some(Block::held(diagnostic).waiting_for([cause]))
    })
}

fn block_create_first(input: &PlanInput<'_>, id: Id, decision: &Decision, flags: &Inheritance) -> Option<Block> {
    let node = input.nodes[id];
    let deposed = node.record.map_or(0, |record| record.deposed.len());
    if deposed >= MAX_DEPOSED {
        let what = format!("{deposed} deposed objects exist; no new object is created until they are destroyed");
        return Some(Block::held(Diagnostic::error(node.address, Reason::TooManyDeposedObjects, what)));
    }
    let planned = decision.planned.as_ref()?.identity.as_ref()?;
    let old = decision.prior.as_ref()?.identity.as_ref()?;
    if !planned.equals_unmarked(old) {
        return clash_with_deposed(input, id, decision);
    }
    let (why, hint) = match flags.forced_by(id).last().map(|source| flagged_as(input, source)) {
        Some(source) => {
            let hint = format!(
                "let the provider generate the name (such as with `generateName`), or remove `createBeforeDestroy` \
                 from `{}`",
                input.address(source)
            );
            (format!("create-before-destroy is required by {}", describe_chain(input, flags, id)), hint)
        }
        None if decision.forget => {
            let hint =
                "let the provider generate the name (such as with `generateName`), or set `deletionPolicy: Delete`";
            ("the old object is kept (`deletionPolicy: Orphan`)".to_owned(), hint.to_owned())
        }
        None => {
            let hint =
                "let the provider generate the name (such as with `generateName`), or remove `createBeforeDestroy`";
            ("the object has `createBeforeDestroy`".to_owned(), hint.to_owned())
        }
    };
    let what = format!("the old and the new object would have the same identity and exist at the same time: {why}");
    Some(Block::broken(Diagnostic::error(node.address, Reason::CreateBeforeDestroyImpossible, what).hint(hint)))
}

/// The objects that force a flag, as part of a message. A long chain is shortened.
pub(super) fn describe_chain(input: &PlanInput<'_>, flags: &Inheritance, id: Id) -> String {
    const MAX_SHOWN: usize = 6;
    let chain = || flags.forced_by(id).filter(|member| !input.is_junction(*member));
    let mut shown: Vec<String> = chain().take(MAX_SHOWN).map(|member| format!("`{}`", input.address(member))).collect();
    if let Some(last) = chain().skip(MAX_SHOWN).last() {
        shown.push(format!("... `{}`", input.address(last)));
    }
    shown.join(", because of ")
}

/// A deposed object is destroyed after the new object is created, so they must not have the same identity: the destroy
/// would destroy the new object.
fn clash_with_deposed(input: &PlanInput<'_>, id: Id, decision: &Decision) -> Option<Block> {
    let node = input.nodes[id];
    let planned = decision.planned.as_ref()?.identity.as_ref()?;
    let same = |identity: &Value| identity.equals_unmarked(planned);
    let mut deposed = decision.deposed.iter().filter(|deposed| deposed.action != Action::Forget);
    let clash = deposed.find(|deposed| deposed.object.identity.as_ref().is_some_and(same))?;
    let what = format!(
        "the new object would have the same identity as the deposed object {}, which is destroyed later",
        clash.key
    );
    let hint = format!(
        "destroy the deposed object manually and run `purlin state rm {}`, or change the name",
        node.address.shell_word()
    );
    Some(Block::broken(Diagnostic::error(node.address, Reason::CreateBeforeDestroyImpossible, what).hint(hint)))
}

/// Blocks objects, except those that are planned again because of another one. Returns the objects to plan again: those
/// that depend on a blocked object and were planned with its planned value.
fn block_and_reset(
    input: &PlanInput<'_>,
    decisions: &mut [Option<Decision>],
    blocks: Vec<(Id, Block)>,
    resets: impl Fn(&Decision) -> bool,
) -> Vec<Id> {
    let mut again = vec![false; decisions.len()];
    let blocked: std::collections::BTreeSet<Id> = blocks.iter().map(|(id, _)| *id).collect();
    let mut spread: Vec<Id> = blocks.iter().map(|(id, _)| *id).collect();
    let plannable = |id: Id, decision: &Option<Decision>| {
        !input.running.contains_key(&id)
            && decision.as_ref().is_some_and(|decision| resets(decision) && !decision.decided_early)
    };
    let visible = |decision: &Option<Decision>| {
        decision.as_ref().is_some_and(|decision| decision.changed || !decision.is_blocked())
    };
    spread.retain(|id| visible(&decisions[*id]) && !decisions[*id].as_ref().is_some_and(Decision::removes));
    while let Some(id) = spread.pop() {
        for dependent in input.dependents.of(id) {
            if !again[dependent] && plannable(dependent, &decisions[dependent]) {
                again[dependent] = true;
                spread.push(dependent);
            }
        }
    }
    // Two conflicting objects may depend on each other's dependents. Always block the first one in address order, so
    // that every round makes progress.
    if let Some(first) = blocked.iter().next().filter(|_| blocked.iter().all(|id| again[*id])) {
        again[*first] = false;
    }
    for (id, block) in blocks.into_iter().filter(|(id, _)| !again[*id]) {
        if let Some(decision) = &mut decisions[id] {
            decision.block(block, input.nodes[id].current());
        }
    }
    (0..again.len()).filter(|id| again[*id]).collect()
}
