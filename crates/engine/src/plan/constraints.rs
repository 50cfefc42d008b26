//! Applies the constraints that need the whole plan: create-before-destroy flags, impossible replacements, destroys of
//! objects that are in use. Each rule removes steps and never adds one, so this terminates.

mod conflict;
mod follow;
mod hold;
mod orphans;
mod record_cycle;
mod refusal;

pub use conflict::identity_hash;
pub use orphans::is_faulty;
pub use refusal::remedies;

use super::decision::{Block, Decision};
use super::destroys::all_destroys_held;
use super::eval_scope::EvalScope;
use super::inherit::{self, FlagNode as Flagged, Inheritance};
use super::input::{Id, PlanInput};
use super::protect;
use model::{Action, Diagnostic, Lifecycle, ObjectStatus, Reason, Words};

/// With this many deposed objects, no further create-first replacement starts: their destroys probably fail.
const MAX_DEPOSED: usize = 3;

/// Requires a decision for every object. Returns the flags, and the objects that must be planned again because the
/// change of a dependency was removed. If there are none, the plan is final.
pub fn apply(input: &PlanInput<'_>, decisions: &mut [Option<Decision>]) -> (Inheritance, Vec<Id>) {
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
    let nodes = (0..count).map(|id| flagged_node(input, decisions[id].as_ref(), id));
    let recorded_junctions = (input.objects..count).map(|id| Flagged {
        recorded_dependencies: input.recorded_dependencies.of(id).collect(),
        ..Flagged::default()
    });
    nodes.chain(recorded_junctions).collect()
}

fn flagged_node(input: &PlanInput<'_>, decision: Option<&Decision>, id: Id) -> Flagged {
    let node = input.nodes[id];
    let orphaned = decision.is_some_and(|decision| decision.action == Action::Replace && decision.forget);
    let explicit = node
        .instance
        .is_some_and(|instance| instance.create_before_destroy == Some(true) || (orphaned && instance.keeps_object()));
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
            input.recorded_dependencies.of(id).map(|used| recorded_entry(input, used)).collect()
        },
        deposed_dependencies: deposed
            .flat_map(|deposed| input.deposed_dependencies(id, deposed))
            .map(|used| recorded_entry(input, used))
            .collect(),
    }
}

/// The entry in `flagged` of a recorded dependency.
fn recorded_entry(input: &PlanInput<'_>, id: Id) -> usize {
    if input.is_junction(id) { input.nodes.len() + id - input.objects } else { id }
}

/// The node of an entry of `flagged`.
pub fn flagged_as(input: &PlanInput<'_>, number: usize) -> Id {
    let count = input.nodes.len();
    if number < count { number } else { input.objects + number - count }
}

/// The objects whose planned steps are impossible.
fn impossible_steps(input: &PlanInput<'_>, decisions: &[Option<Decision>], flags: &Inheritance) -> Vec<(Id, Block)> {
    let mut refused = conflict::conflicts(input, decisions);
    refused.extend(super::drift::many_missing(input, decisions));
    let stuck = blocked_dependencies(input, decisions);
    let remedies = remedies(input, decisions);
    for (id, decision) in decisions.iter().enumerate() {
        let Some(decision) = decision else { continue };
        let refusal = match decision.action {
            _ if input.running.contains_key(&id) => None,
            Action::Replace if decision.create_first => block_create_first(input, id, decision, flags),
            Action::Replace => block_destroy_first(input, decisions, id, &stuck),
            Action::Create => clash_with_deposed(input, id, decision),
            _ => None,
        };
        let may_be_made = input.running.contains_key(&id) || remedies.contains_key(&id);
        let refusal = refusal.or_else(|| if may_be_made { None } else { refusal::refused(input, decisions, id) });
        refused.extend(refusal.map(|block| (id, block)));
    }
    refused
}

/// For each object, a direct or indirect dependency that is blocked. A replacement destroys the old object first only
/// if nothing blocks the creation of the new one. It does not wait for a dependency with too many deposed objects,
/// because these may wait for this replacement. The new object then uses the dependency's current object.
fn blocked_dependencies(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<Option<Id>> {
    let mut stuck: Vec<Option<Id>> = vec![None; decisions.len()];
    let mut spread: Vec<Id> = (0..decisions.len()).filter(|id| blocks_dependents(input, decisions, *id)).collect();
    while let Some(id) = spread.pop() {
        let cause = if blocks_dependents(input, decisions, id) { id } else { stuck[id].unwrap_or(id) };
        for dependent in input.dependents.of(id) {
            if stuck[dependent].is_none() {
                stuck[dependent] = Some(cause);
                spread.push(dependent);
            }
        }
    }
    stuck
}

fn blocks_dependents(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    let Some(block) = decisions[id].as_ref().and_then(|decision| decision.block.as_deref()) else { return false };
    let is_ready = input.nodes[id].current().is_some_and(|object| object.status == ObjectStatus::Ready);
    block.reason() != Reason::TooManyDeposedObjects || !is_ready
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
    let words = Words::of(node.address);
    let setting = words.setting(Lifecycle::CreateBeforeDestroy);
    let such = match words {
        Words::Manifest => "generateName",
        Words::Terraform => "name_prefix",
    };
    let generated = format!("let the provider generate the name (such as with `{such}`)");
    let (why, hint) = match flags.forced_by(id).last().map(|source| flagged_as(input, source)) {
        Some(source) => {
            let hint = format!("{generated}, or remove `{setting}` from `{}`", input.address(source));
            (format!("create-before-destroy is required by {}", describe_chain(input, flags, id)), hint)
        }
        None if decision.forget => {
            let hint = format!("{generated}, or set {}", words.destroys());
            (format!("the old object is kept ({})", words.keeps()), hint)
        }
        None => (format!("the object has `{setting}`"), format!("{generated}, or remove `{setting}`")),
    };
    let what = format!("the old and the new object would have the same identity and exist at the same time: {why}");
    Some(Block::broken(Diagnostic::error(node.address, Reason::CreateBeforeDestroyImpossible, what).hint(hint)))
}

/// The objects that force a flag, as part of a message. A long chain is shortened.
pub fn describe_chain(input: &PlanInput<'_>, flags: &Inheritance, id: Id) -> String {
    const MAX_SHOWN: usize = 6;
    let mut chain = flags.forced_by(id).filter(|member| !input.is_junction(*member));
    let mut shown: Vec<String> =
        chain.by_ref().take(MAX_SHOWN).map(|member| format!("`{}`", input.address(member))).collect();
    if let Some(last) = chain.last() {
        shown.push(format!("... `{}`", input.address(last)));
    }
    shown.join(", because of ")
}

/// A deposed object is destroyed after the new object is created, so they must not have the same identity: the destroy
/// would destroy the new object.
fn clash_with_deposed(input: &PlanInput<'_>, id: Id, decision: &Decision) -> Option<Block> {
    let node = input.nodes[id];
    let planned = decision.planned.as_ref()?.identity.as_ref()?;
    let clash = decision.deposed.iter().find(|deposed| {
        deposed.action != Action::Forget
            && deposed.object.identity.as_ref().is_some_and(|identity| identity.equals_unmarked(planned))
    })?;
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
    spread.retain(|id| {
        decisions[*id]
            .as_ref()
            .is_some_and(|decision| (decision.changed || !decision.is_blocked()) && !decision.removes())
    });
    while let Some(id) = spread.pop() {
        for dependent in input.dependents.of(id) {
            if again[dependent] || input.running.contains_key(&dependent) {
                continue;
            }
            if decisions[dependent].as_ref().is_some_and(|decision| resets(decision) && !decision.decided_early) {
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
