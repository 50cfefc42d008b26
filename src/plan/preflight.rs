//! What can be decided about an object before any driver is asked: what must not be touched, what cannot be planned,
//! and what the caller vouches for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Block, Draft};
use super::requests::{import_of, replacement_requested};
use super::scene::{Id, Scene, Subject};
use super::seen::Seen;
use super::served::unserved;
use super::{Held, Mode, Refresh, RunningStep, cycle, leaving, publish, select, trigger};
use crate::load::{Config, Instance, Reference, closest};
use crate::model::{
    Action, Address, Diagnostic, InstanceKey, ObjectStatus, Operation, Path, Reason, RecordedObject, Severity,
};

/// Decides what depends on nothing else: one entry for each object, `None` where planning has to go on.
pub(super) fn decide_at_once(scene: &Scene<'_>, config: &Config) -> Vec<Option<Draft>> {
    let rings = rings(scene, config);
    let claims = publish::claimed_twice(scene);
    (0..scene.subjects.len())
        .map(|id| {
            let subject = scene.subjects[id];
            if scene.is_junction(id) {
                let draft = rings.get(&id).map(|ring| Draft::blocked(Block::broken(ring.clone()), None))?;
                return Some(Draft { at_once: true, ..draft });
            }
            // What is only read has nothing that could go.
            if subject.address.is_data() && !subject.wanted {
                return Some(Draft { at_once: true, ..Draft::nothing() });
            }
            let mut draft = if let Some(running) = scene.running.get(&id) {
                Some(running_draft(subject, running))
            } else {
                let block = match (frozen(scene, id, rings.get(&id)), subject.wanted) {
                    (Some(block), _) => Some(block),
                    (None, true) => broken(scene, id).or_else(|| claims.get(&id).cloned().map(Block::broken)),
                    (None, false) if scene.options.mode == Mode::RefreshOnly => None,
                    (None, false) => leaving::at_once(scene, id),
                };
                block.map(|block| Draft::blocked(block, subject.current()))
            }?;
            // What was read before counts while nothing is done about a data source.
            let known = scene.options.readings.get(subject.address);
            if let Some(known) = known.filter(|_| draft.block.as_ref().is_some_and(|block| block.held)) {
                (draft.seen, draft.reading) = (Some(known.value.clone()), Some(Arc::clone(known)));
            }
            draft.leftovers = leaving::leftovers(scene, id, Vec::new());
            draft.at_once = true;
            Some(draft)
        })
        .collect()
}

/// The error of each object that stands in a ring. Other plans than towards the configuration do not ask for it.
fn rings(scene: &Scene<'_>, config: &Config) -> BTreeMap<Id, Diagnostic> {
    if scene.options.mode != Mode::Normal || !scene.has_ring() {
        return BTreeMap::new();
    }
    let told = cycle::find(config).into_iter().flat_map(|ring| ring.diagnostics());
    told.filter_map(|diagnostic| Some((scene.resolve(diagnostic.address.as_ref()?)?, diagnostic))).collect()
}

/// A running step is what happens to its object, whatever is wanted by now.
fn running_draft(subject: Subject<'_>, running: &RunningStep) -> Draft {
    let action = match running.step.operation {
        Operation::Create => Action::Create,
        Operation::Update => Action::Update,
        Operation::Record => Action::Record,
        Operation::Wait => Action::Wait,
        Operation::Destroy => Action::Destroy,
        Operation::Forget => Action::Forget,
        Operation::Read => Action::Read,
    };
    // Of an object that is just being destroyed there is nothing to see: what comes after is planned when it is gone.
    let destroyed = running.step.operation.removes();
    let known = running.planned.clone().or_else(|| subject.current().map(|object| object.value.clone()));
    let seen = if destroyed { None } else { known };
    let changed = seen.as_ref() != subject.current().map(|object| &object.value);
    Draft {
        action,
        because: Some(super::RUNNING.to_owned()),
        seen,
        changed,
        prior: subject.current().cloned(),
        ..Draft::nothing()
    }
}

/// Why nothing at all may be done about an object. What is not selected is nobody's trouble; then the caller's reason comes first: it knows most.
fn frozen(scene: &Scene<'_>, id: Id, ring: Option<&Diagnostic>) -> Option<Block> {
    let subject = scene.subjects[id];
    let address = subject.address;
    if !scene.is_selected(id) {
        return Some(select::left_out(address));
    }
    let importing = subject.wanted && import_of(scene, id).is_some();
    let held = scene.options.held.get(address);
    if let Some(held) = held.filter(|held| !(importing && held.reason == Reason::CreateOutcomeUnknown)) {
        let mut diagnostics = vec![Diagnostic::error(address, held.reason, held.message.clone())];
        // What is wrong with the manifest has to be corrected as well.
        let instance = subject.instance.filter(|_| subject.wanted);
        diagnostics.extend(instance.into_iter().flat_map(|instance| errors(instance)).cloned());
        let held = may_be_seen(scene, subject, held);
        return Some(Block { diagnostics, waiting_for: Vec::new(), held, frozen: true });
    }
    // Each member of a ring is blocked by the ring, whatever else is the matter with it: otherwise the ring would
    // come into the ordering graph.
    if let Some(diagnostic) = ring {
        return Some(Block::broken(diagnostic.clone()));
    }
    if subject.instance.is_some_and(|instance| instance.suspended) {
        let (what, hint) = ("suspended", "set `spec.suspend: false` and remove the annotation `purlin.dev/paused`");
        return Some(Block::frozen(Diagnostic::warning(address, Reason::Suspended, what).hint(hint)));
    }
    record_problem(scene, subject, importing || held.is_some())
        .map(|problem| Block { held: !is_of_other_type(scene, subject), ..Block::frozen(problem) })
}

/// Whether dependents may go on with what is recorded of an object that is held. Not with what is recorded under another
/// type, and not with an object of which is known that it is not as it must be, or whose hooks have not all run.
fn may_be_seen(scene: &Scene<'_>, subject: Subject<'_>, held: &Held) -> bool {
    let is_half_made = |object: &Arc<RecordedObject>| object.status == ObjectStatus::Tainted || object.hooks_pending;
    !is_of_other_type(scene, subject)
        && !subject.current().is_some_and(is_half_made)
        && held.reason != Reason::PostconditionFailed
}

/// Whether its record is of another type than its Resource. A type that cannot be read is told as such.
fn is_of_other_type(scene: &Scene<'_>, subject: Subject<'_>) -> bool {
    scene.options.mode == Mode::Normal
        && subject
            .instance
            .zip(subject.record)
            .is_some_and(|(instance, record)| !instance.type_name.is_empty() && instance.type_name != record.type_name)
}

/// What is wrong with the record of an object. `excused`: an import is the way out that the user has taken.
fn record_problem(scene: &Scene<'_>, subject: Subject<'_>, excused: bool) -> Option<Diagnostic> {
    let address = subject.address;
    let Some(record) = subject.record else {
        return Some(lost_record(scene, subject)?).filter(|_| !excused);
    };
    if let Some(instance) = subject.instance.filter(|_| is_of_other_type(scene, subject)) {
        let what = format!("the record of this name is of type `{}`, not `{}`", record.type_name, instance.type_name);
        let hint = format!(
            "use another name for the new object, destroy the recorded one first, or annotate with \
             `{}: {address}` what its provider can take over",
            crate::api::MOVED_FROM
        );
        return Some(Diagnostic::error(address, Reason::RecordOfOtherType, what).hint(hint));
    }
    let open = record.intent.as_ref().filter(|_| !excused)?;
    let what = format!("an earlier {} is still open", open.operation.as_str());
    Some(Diagnostic::error(address, Reason::OperationInProgress, what))
}

/// A record that is missing, though there must be one: the Resource says that one of its instances has a record, and
/// the index of a family says which ones.
fn lost_record(scene: &Scene<'_>, subject: Subject<'_>) -> Option<Diagnostic> {
    let (address, instance) = (subject.address, subject.instance?);
    let hint = match address.key {
        InstanceKey::None => format!(
            "set `spec.import.id` to take the object over, or run `purlin state rm {address}` when there is none"
        ),
        _ => format!("look for the object and destroy it by hand, then run `purlin state rm {address}`"),
    };
    let lost = |what: &str| Some(Diagnostic::error(address, Reason::RecordMissing, what).hint(hint));
    if scene.options.indexed.contains(address) {
        return lost("the index of the family says that it has a record, and there is none: an object may exist");
    }
    if instance.says_it_is_recorded() && !scene.has_traces(&address.name) {
        return lost("the Resource says that it has a record, and there is none: an object may exist");
    }
    None
}

/// Why a wanted object cannot be planned, as far as its Resource alone tells.
fn broken(scene: &Scene<'_>, id: Id) -> Option<Block> {
    let subject = scene.subjects[id];
    let address = subject.address;
    let instance = subject.instance?;
    if errors(instance).next().is_some() {
        let diagnostics = errors(instance).cloned().collect();
        return Some(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false });
    }
    if let Some(problem) = instance.provider.as_ref().and_then(|provided| provided.problem()) {
        return Some(Block::broken(Diagnostic { address: Some(address.clone()), ..problem }));
    }
    if scene.schema(id).is_none() {
        return Some(Block::broken(unserved(scene, id)));
    }
    if !instance.inputs.problems.is_empty() {
        let diagnostics = instance.inputs.problems.clone();
        return Some(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false });
    }
    if let Some(missing) = scene.missing.get(&id) {
        return Some(Block::broken(not_found(scene, scene.address(id), missing)));
    }
    exhausted(scene, id)
}

/// The errors of a manifest.
fn errors(instance: &Instance) -> impl Iterator<Item = &Diagnostic> {
    instance.problems.iter().filter(|problem| problem.severity == Severity::Error)
}

/// A reference to what does not exist.
pub(super) fn not_found(scene: &Scene<'_>, address: &Address, missing: &Reference) -> Diagnostic {
    const MOST_TOLD: usize = 5;
    let target = &missing.target;
    let what = format!("refers to `{target}`, which does not exist");
    let mut error = Diagnostic::error(address, Reason::DependencyNotFound, what).at(missing.at.clone());
    let Some(junction) = scene.junction(&target.name) else {
        let names = scene.subjects.iter().filter(|subject| subject.wanted).map(|subject| &*subject.address.name);
        let meant = closest(&target.name, names.filter(|name| *name != &*address.name));
        error.hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        return error;
    };
    let Some(family) = scene.subjects[junction].family else { return error };
    if family.is_disabled() {
        return error.because(format!("`{}` is disabled", target.name));
    }
    let members = || scene.members(junction).filter(|member| scene.subjects[*member].wanted);
    let told: Vec<String> = members().take(MOST_TOLD).map(|member| format!("`{}`", scene.address(member))).collect();
    error.hint = Some(match members().count() {
        0 => format!("`{}` has no instances", target.name),
        count if count <= MOST_TOLD => format!("`{}` has {}", target.name, told.join(", ")),
        count => format!("`{}` has {count} instances: {}, ...", target.name, told.join(", ")),
    });
    error
}

/// The cap on failed creations: a replacement that keeps failing stops until somebody changes something.
fn exhausted(scene: &Scene<'_>, id: Id) -> Option<Block> {
    let subject = scene.subjects[id];
    let record = subject.record?;
    let pending = match &record.current {
        Some(current) => current.status == ObjectStatus::Tainted,
        None => record.replacement_pending,
    };
    // A changed Resource starts the count anew.
    let same = subject.instance.is_some_and(|instance| instance.generation == record.failed_generation);
    let failed = if same { record.failed_creates } else { 0 };
    let reached = scene.options.max_failed_creates.is_some_and(|most| failed >= most);
    if !reached || !pending || replacement_requested(scene, id) {
        return None;
    }
    let what = format!("the new object failed to be created {failed} times in a row");
    let hint = "change the Resource, or set the annotation `purlin.dev/replace-requested-at` to try again";
    Some(Block::broken(Diagnostic::error(subject.address, Reason::CreateKeepsFailing, what).hint(hint)))
}

/// What can be decided once all dependencies are: an object waits when one of them has no value to give, and stays as
/// it is when the caller vouches for it and none of them changes.
pub(super) fn after_dependencies(seen: &Seen<'_, '_>, id: Id) -> Option<Draft> {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    // What is being deleted goes unless it is used already: a new reference means its successor, and holds nothing.
    let uses = |target: Id| scene.used.of(id).any(|used| used == target);
    let waits = scene.wants.of(id).flat_map(|dependency| match scene.subjects[dependency].wanted || uses(dependency) {
        true => seen.hidden(dependency),
        false => vec![dependency],
    });
    let unsettled = trigger::unsettled(seen, id).into_iter().filter(|_| subject.current().is_none());
    let waits: Vec<Id> = waits.chain(unsettled).collect();
    if let Some(first) = waits.first() {
        return Some(Draft::blocked(waiting(seen, id, *first).waiting_for(waits), subject.current()));
    }
    let asked = matches!(&scene.options.refresh, Refresh::Due(due) if due.contains(subject.address));
    let vouched = scene.options.settled.contains(subject.address)
        && !asked
        && subject.current().is_some_and(|object| object.status == ObjectStatus::Ready)
        && subject.record.is_some_and(|record| record.deposed.is_empty())
        && !replacement_requested(scene, id);
    let quiet = |dependency: Id| seen.draft(dependency).is_some_and(|draft| !draft.changed);
    (vouched && scene.wants.of(id).all(quiet)).then(|| Draft::unchanged(subject.current()))
}

/// An object that waits for a dependency that has no value to give. As bad as the cause: who waits for an object that
/// is only suspended is no error either.
fn waiting(seen: &Seen<'_, '_>, id: Id, dependency: Id) -> Block {
    let (address, target) = (seen.scene.address(id), seen.scene.address(dependency));
    let (severity, why) = match seen.draft(dependency).and_then(|draft| draft.block.as_deref()) {
        Some(block) => {
            let cause = block.leading();
            let state = if block.held { "is held" } else { "cannot be planned" };
            (cause.severity, format!("it {state} ({}: {})", cause.reason, cause.summary))
        }
        None => (Severity::Warning, "it is being deleted".to_owned()),
    };
    let at = seen.scene.subjects[id].instance.and_then(|instance| field_naming(instance, target));
    let mut diagnostic = Diagnostic::error(address, Reason::DependencyNotReady, format!("waits for `{target}`"));
    diagnostic.severity = severity;
    diagnostic.path = at;
    Block::broken(diagnostic.because(why))
}

fn field_naming(instance: &Instance, target: &Address) -> Option<Path> {
    let names = |named: &Address| named == target || (named.name == target.name && !named.is_instance());
    instance.references.iter().find(|reference| names(&reference.target)).map(|reference| reference.at.clone())
}
