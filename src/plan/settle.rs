//! What only the whole plan can tell: who is create-before-destroy, which replacements cannot work, who is held by
//! whom. Each rule takes steps away and never adds one, so settling ends.

mod conflict;
mod hold;
mod ring;

use super::draft::{Block, Draft};
use super::inherit::{self, Inheritance, Subject as Flagged};
use super::leaving::all_destroys_held;
use super::protect;
use super::scene::{Id, Scene};
use super::seen::Seen;
use crate::model::{Action, Diagnostic, Reason, Value};

/// With so many leftovers no further create-first replacement is made: whatever makes them fail to go would make more.
const MAX_LEFTOVERS: usize = 3;

/// Settles a plan in which every object is decided. Gives the flags, and the objects that must be planned again
/// because a dependency does not change after all; without any, the plan is final.
pub(super) fn settle(scene: &Scene<'_>, drafts: &mut [Option<Draft>]) -> (Inheritance, Vec<Id>) {
    loop {
        let flags = inherit::effective(&flagged(scene, drafts));
        for (id, draft) in drafts.iter_mut().enumerate() {
            if let Some(draft) = draft {
                draft.create_first = draft.forget || flags.is_on(id);
            }
        }
        let protect::Refusals { objects: mut refused, leftovers } = protect::refusals(&Seen { scene, drafts });
        for (id, position, block) in leftovers {
            if let Some(draft) = &mut drafts[id] {
                draft.leftovers[position].block(block);
            }
        }
        refused.extend(refusals(scene, drafts, &flags));
        refused.extend(ring::refusals(scene, drafts));
        refused.sort_by_key(|(id, _)| *id);
        refused.dedup_by_key(|(id, _)| *id);
        if !refused.is_empty() {
            let again = block_and_reset(scene, drafts, refused, |_| true);
            if again.is_empty() {
                continue;
            }
            return (flags, again);
        }
        let (held, changed) = hold::hold(scene, drafts);
        let again = block_and_reset(scene, drafts, held, |draft| !draft.is_blocked());
        if !again.is_empty() || !changed {
            return (flags, again);
        }
    }
}

/// The objects as the rule of create-before-destroy sees them. A family is its wanted instances to who refers to it, and
/// its recorded ones, which stand behind all others, to who used it.
fn flagged(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<Flagged> {
    let count = scene.subjects.len();
    let used = |id: Id| if scene.is_junction(id) { count + id - scene.objects } else { id };
    let one = |id: Id| {
        let subject = scene.subjects[id];
        let orphaned = |draft: &Draft| draft.action == Action::Replace && draft.forget;
        let orphaned = drafts[id].as_ref().is_some_and(orphaned);
        let explicit = subject.instance.is_some_and(|instance| {
            instance.create_before_destroy == Some(true) || (orphaned && instance.keeps_object())
        });
        let leftovers = subject.record.iter().flat_map(|record| record.deposed.values());
        let recorded = scene.running.get(&id).and_then(|running| running.recorded.as_ref()).or(subject.current());
        Flagged {
            wanted: subject.wanted,
            asks: subject.wanted && explicit,
            recorded_flag: recorded.is_some_and(|object| object.create_before_destroy),
            wants: scene.wants.of(id).collect(),
            used: if scene.is_junction(id) { Vec::new() } else { scene.used.of(id).map(used).collect() },
            leftovers_used: leftovers.flat_map(|leftover| scene.leftover_used(id, leftover)).map(used).collect(),
        }
    };
    let recorded = |id: Id| Flagged { used: scene.used.of(id).collect(), ..Flagged::default() };
    (0..count).map(one).chain((scene.objects..count).map(recorded)).collect()
}

/// The subject that a number of the flags stands for: beyond all subjects stand the families once more, as recorded.
pub(super) fn flagged_as(scene: &Scene<'_>, number: usize) -> Id {
    let count = scene.subjects.len();
    if number < count { number } else { scene.objects + number - count }
}

/// Objects that cannot be done as planned for a reason of their own.
fn refusals(scene: &Scene<'_>, drafts: &[Option<Draft>], flags: &Inheritance) -> Vec<(Id, Block)> {
    let mut refused = conflict::conflicts(scene, drafts);
    refused.extend(super::drift::mass_disappearances(scene, drafts));
    let stuck = stuck_dependencies(scene, drafts);
    for (id, draft) in drafts.iter().enumerate() {
        let Some(draft) = draft else { continue };
        let refusal = match draft.action {
            _ if scene.running.contains_key(&id) => None,
            Action::Replace if draft.create_first => refuse_create_first(scene, id, draft, flags),
            Action::Replace => refuse_destroy_first(scene, drafts, id, &stuck),
            Action::Create => clash_with_leftover(scene, id, draft),
            _ => None,
        };
        refused.extend(refusal.map(|block| (id, block)));
    }
    refused
}

/// For each object a direct or indirect dependency that fails, is suspended or held. An object is given up before its
/// successor is made only when nothing stands in the way of the successor.
fn stuck_dependencies(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<Option<Id>> {
    let blocked = |id: Id| drafts[id].as_ref().is_some_and(Draft::is_blocked);
    let mut stuck: Vec<Option<Id>> = vec![None; drafts.len()];
    let mut spread: Vec<Id> = (0..drafts.len()).filter(|id| blocked(*id)).collect();
    while let Some(id) = spread.pop() {
        let cause = if blocked(id) { id } else { stuck[id].unwrap_or(id) };
        for dependent in scene.dependents.of(id) {
            if stuck[dependent].is_none() {
                stuck[dependent] = Some(cause);
                spread.push(dependent);
            }
        }
    }
    stuck
}

fn refuse_destroy_first(scene: &Scene<'_>, drafts: &[Option<Draft>], id: Id, stuck: &[Option<Id>]) -> Option<Block> {
    let subject = scene.subjects[id];
    all_destroys_held(scene, subject).or_else(|| {
        let cause = stuck[id]?;
        let what = format!(
            "must be replaced, and the old object is not given up before its successor can be made: waits for `{}`",
            scene.address(cause)
        );
        let mut diagnostic = Diagnostic::error(subject.address, Reason::DependencyNotReady, what);
        if let Some(block) = drafts[cause].as_ref().and_then(|draft| draft.block.as_deref()) {
            diagnostic.severity = block.leading().severity;
            diagnostic.detail = format!("which is blocked ({})", block.reason());
        }
        Some(Block::held(diagnostic).waiting_for([cause]))
    })
}

fn refuse_create_first(scene: &Scene<'_>, id: Id, draft: &Draft, flags: &Inheritance) -> Option<Block> {
    let subject = scene.subjects[id];
    let leftovers = subject.record.map_or(0, |record| record.deposed.len());
    if leftovers >= MAX_LEFTOVERS {
        let what = format!("{leftovers} old objects are left over; no further one is made before they are gone");
        return Some(Block::held(Diagnostic::error(subject.address, Reason::TooManyLeftovers, what)));
    }
    let planned = draft.planned.as_ref()?.identity.as_ref()?;
    let old = draft.prior.as_ref()?.identity.as_ref()?;
    if !planned.same(old) {
        return clash_with_leftover(scene, id, draft);
    }
    let (why, hint) = match flags.forced_by(id).last().map(|source| flagged_as(scene, source)) {
        Some(source) => {
            let hint = format!(
                "let the provider draw the name (such as `generateName`), or remove `createBeforeDestroy` from `{}`",
                scene.address(source)
            );
            (format!("create-before-destroy is required by {}", told_chain(scene, flags, id)), hint)
        }
        None if draft.forget => {
            let hint = "let the provider draw the name (such as `generateName`), or set `deletionPolicy: Delete`";
            ("the old object stays (`deletionPolicy: Orphan`)".to_owned(), hint.to_owned())
        }
        None => {
            let hint = "let the provider draw the name (such as `generateName`), or remove `createBeforeDestroy`";
            ("the object is create-before-destroy".to_owned(), hint.to_owned())
        }
    };
    let what = format!("old and new object would have one identity, and would exist at the same time: {why}");
    Some(Block::broken(Diagnostic::error(subject.address, Reason::FixedIdentity, what).hint(hint)))
}

/// The objects that force a flag, as a sentence: a long chain is told by its ends.
pub(super) fn told_chain(scene: &Scene<'_>, flags: &Inheritance, id: Id) -> String {
    const MOST_TOLD: usize = 6;
    let chain = || flags.forced_by(id).filter(|member| !scene.is_junction(*member));
    let mut told: Vec<String> = chain().take(MOST_TOLD).map(|member| format!("`{}`", scene.address(member))).collect();
    if let Some(last) = chain().skip(MOST_TOLD).last() {
        told.push(format!("... `{}`", scene.address(last)));
    }
    told.join(", because of ")
}

/// A leftover goes after its successor is made, so both must not have one identity: destroying the leftover would
/// destroy the new object.
fn clash_with_leftover(scene: &Scene<'_>, id: Id, draft: &Draft) -> Option<Block> {
    let subject = scene.subjects[id];
    let planned = draft.planned.as_ref()?.identity.as_ref()?;
    let same = |identity: &Value| identity.same(planned);
    let mut leftovers = draft.leftovers.iter().filter(|leftover| leftover.action != Action::Forget);
    let clash = leftovers.find(|leftover| leftover.object.identity.as_ref().is_some_and(same))?;
    let what = format!("the new object would have the identity of the leftover {}, which goes later", clash.key);
    let hint =
        format!("destroy the leftover by hand and run `purlin state rm {}`, or change the name", subject.address);
    Some(Block::broken(Diagnostic::error(subject.address, Reason::FixedIdentity, what).hint(hint)))
}

/// Blocks objects, each unless it will be planned again anyway because of another one. Gives all that must be planned
/// again: what depends on a blocked object and was planned upon what it would have become.
fn block_and_reset(
    scene: &Scene<'_>,
    drafts: &mut [Option<Draft>],
    blocks: Vec<(Id, Block)>,
    resets: impl Fn(&Draft) -> bool,
) -> Vec<Id> {
    let mut again = vec![false; drafts.len()];
    let blocked: std::collections::BTreeSet<Id> = blocks.iter().map(|(id, _)| *id).collect();
    let mut spread: Vec<Id> = blocks.iter().map(|(id, _)| *id).collect();
    let plannable = |id: Id, draft: &Option<Draft>| {
        !scene.running.contains_key(&id) && draft.as_ref().is_some_and(|draft| resets(draft) && !draft.at_once)
    };
    let visible = |draft: &Option<Draft>| draft.as_ref().is_some_and(|draft| draft.changed || !draft.is_blocked());
    spread.retain(|id| visible(&drafts[*id]) && !drafts[*id].as_ref().is_some_and(Draft::leaves));
    while let Some(id) = spread.pop() {
        for dependent in scene.dependents.of(id) {
            if !again[dependent] && plannable(dependent, &drafts[dependent]) {
                again[dependent] = true;
                spread.push(dependent);
            }
        }
    }
    // Two that conflict may depend on each other's dependents; the first in address order is blocked in any case, so
    // that every round gets further.
    if let Some(first) = blocked.iter().next().filter(|_| blocked.iter().all(|id| again[*id])) {
        again[*first] = false;
    }
    for (id, block) in blocks.into_iter().filter(|(id, _)| !again[*id]) {
        if let Some(draft) = &mut drafts[id] {
            draft.block(block, scene.subjects[id].current());
        }
    }
    (0..again.len()).filter(|id| again[*id]).collect()
}
