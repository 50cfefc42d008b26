//! Decisions without driver calls: objects that must not be changed, objects that cannot be planned, and objects that
//! the caller reports as up to date.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, Node, PlanInput};
use super::missing_record::missing_record;
use super::missing_reference::{excuse_missing, not_found};
use super::provider::unserved;
use super::{Mode, ObjectBlock, Refresh, RunningStep, cycle, destroys, drift, publish, select, trigger};
use crate::load::{Config, Instance, MovedFrom};
use model::{
    Action, Address, ChangeCause, Diagnostic, Health, ObjectStatus, Operation, Path, Reason, Severity, Words, errors,
};

/// The decisions that depend on no other object. `None` where planning continues.
pub fn decide_early(input: &PlanInput<'_>, config: &Config) -> Vec<Option<Decision>> {
    let cycles = cycle_errors(input, config);
    let claims = publish::conflicts(input);
    let mut new_objects = 0;
    (0..input.nodes.len())
        .map(|id| {
            let node = input.nodes[id];
            if input.is_junction(id) {
                let decision = cycles.get(&id).map(|cycle| Decision::blocked(Block::broken(cycle.clone()), None))?;
                return Some(Decision { decided_early: true, ..decision });
            }
            // A data source has no object to destroy.
            if node.address.is_data() && !node.desired {
                return Some(Decision { decided_early: true, ..Decision::no_op() });
            }
            let mut decision = if let Some(running) = input.running.get(&id) {
                Some(running_decision(node, running))
            } else {
                let block = match (frozen(input, id, cycles.get(&id)), node.desired) {
                    (Some(block), _) => Some(block),
                    (None, true) => fault(input, id)
                        .map(|block| excuse_missing(input, block))
                        .or_else(|| claims.get(&id).cloned().map(Block::broken))
                        .or_else(|| over_quota(input, id, &mut new_objects)),
                    (None, false) if input.options.mode == Mode::RefreshOnly => None,
                    (None, false) => destroys::early_block(input, id),
                };
                block.map(|block| Decision::blocked(block, node.current()))
            }?;
            // A blocked data source keeps its earlier reading.
            let known = input.options.readings.get(node.address);
            if let Some(known) = known.filter(|_| decision.block.as_ref().is_some_and(|block| block.held)) {
                (decision.value, decision.reading) = (Some(known.value.clone()), Some(Arc::clone(known)));
            }
            decision.deposed = destroys::decide_deposed(input, id, Vec::new());
            if input.running.contains_key(&id) {
                hold_deposed_of_running(input, id, cycles.get(&id), &mut decision);
            }
            decision.decided_early = true;
            Some(decision)
        })
        .collect()
}

/// The error of each object in a dependency cycle. Only relevant in `Mode::Normal`.
fn cycle_errors(input: &PlanInput<'_>, config: &Config) -> BTreeMap<Id, Diagnostic> {
    if input.options.mode != Mode::Normal || !input.has_cycle() {
        return BTreeMap::new();
    }
    let errors = cycle::find(config).into_iter().flat_map(|cycle| cycle.diagnostics());
    errors.filter_map(|diagnostic| Some((input.resolve(diagnostic.address.as_ref()?)?, diagnostic))).collect()
}

/// The running step does not permit other changes of the object, such as the destroy of a deposed object of a Resource
/// that was suspended since the step began.
fn hold_deposed_of_running(input: &PlanInput<'_>, id: Id, cycle_error: Option<&Diagnostic>, decision: &mut Decision) {
    let mut waiting = decision
        .deposed
        .iter_mut()
        .filter(|deposed| deposed.removes() && !input.running_deposed.contains_key(&(id, deposed.key)))
        .peekable();
    if waiting.peek().is_none() {
        return;
    }
    let block = frozen(input, id, cycle_error)
        .or_else(|| (!input.nodes[id].desired).then(|| destroys::early_block(input, id)).flatten());
    if let Some(block) = block.filter(|block| block.frozen) {
        waiting.for_each(|deposed| deposed.keep(input.nodes[id].address, &block));
    }
}

/// The running step determines the decision, regardless of the current configuration.
fn running_decision(node: Node<'_>, running: &RunningStep) -> Decision {
    let action = match running.step.operation {
        Operation::Create => Action::Create,
        Operation::Update => Action::Update,
        Operation::Record => Action::Record,
        Operation::Wait => Action::Wait,
        Operation::Destroy => Action::Destroy,
        Operation::Forget => Action::Forget,
        Operation::Read => Action::Read,
    };
    // An object that is being destroyed has no value. Its successor is planned after the destroy.
    let destroyed = running.step.operation.removes();
    let known = running.planned.clone().or_else(|| node.current().map(|object| object.value.clone()));
    let value = if destroyed { None } else { known };
    let changed = value.as_ref() != node.current().map(|object| &object.value);
    let drift = running.reported_drift.clone();
    Decision {
        action,
        because: Some(ChangeCause::Running),
        diagnostics: drift.iter().map(|drift| drift::warning(node.address, drift)).collect(),
        drift,
        value,
        changed,
        prior: node.current().cloned(),
        ..Decision::no_op()
    }
}

/// Why an object must not be changed at all. After the selection, the reason of the caller takes precedence.
fn frozen(input: &PlanInput<'_>, id: Id, cycle_error: Option<&Diagnostic>) -> Option<Block> {
    let node = input.nodes[id];
    let address = node.address;
    if !input.is_selected(id) {
        return Some(select::unselected_block(input, id));
    }
    let importing = node.desired && input.import_of(id).is_some();
    let held = input.options.blocked.get(address);
    if let Some(held) = held.filter(|held| !(importing && held.reason == Reason::CreateOutcomeUnknown)) {
        let mut diagnostics = vec![held.error(address)];
        // Nothing is wrong with an object that waits for an approval, and its deposed objects are not a part of the change.
        let waits = matches!(held.reason, Reason::ApprovalRequired | Reason::Rejected | Reason::Waiting);
        if waits {
            diagnostics[0].severity = Severity::Warning;
        }
        // The claim of a desired object, and not the object, is to be corrected.
        if let Some(instance) = node.instance.filter(|_| node.desired && held.reason == Reason::MoveBlocked) {
            diagnostics[0].path = instance.moved_from.first().and_then(MovedFrom::path);
        }
        // Errors of the manifest are reported too.
        let instance = node.instance.filter(|_| node.desired);
        diagnostics.extend(instance.into_iter().flat_map(|instance| errors(&instance.problems)).cloned());
        let held = keeps_value(input, node, held);
        return Some(Block { diagnostics, waiting_for: Vec::new(), held, frozen: !waits });
    }
    // Every member of a cycle is blocked by the cycle, regardless of other problems. Otherwise the cycle would be part
    // of the ordering graph.
    if let Some(diagnostic) = cycle_error {
        return Some(Block::broken(diagnostic.clone()));
    }
    if node.instance.is_some_and(|instance| instance.suspended) {
        let (what, hint) = ("suspended", "set `spec.suspend: false`");
        return Some(Block::frozen(Diagnostic::warning(address, Reason::Suspended, what).hint(hint)));
    }
    record_problem(input, node, importing || held.is_some())
        .map(|problem| Block { held: !has_type_mismatch(input, node), ..Block::frozen(problem) })
}

/// Whether dependents may proceed with the recorded value of a blocked object. Not if the record has another type, or
/// if the object is tainted, has pending hooks or violates a postcondition.
fn keeps_value(input: &PlanInput<'_>, node: Node<'_>, held: &ObjectBlock) -> bool {
    let is_half_made =
        node.current().is_some_and(|object| object.status == ObjectStatus::Tainted || object.hooks_pending);
    !has_type_mismatch(input, node) && !is_half_made && held.reason != Reason::PostconditionFailed
}

/// Whether record and Resource have different types. An invalid type is reported separately.
fn has_type_mismatch(input: &PlanInput<'_>, node: Node<'_>) -> bool {
    input.options.mode == Mode::Normal
        && node
            .instance
            .zip(node.record)
            .is_some_and(|(instance, record)| !instance.type_name.is_empty() && instance.type_name != record.type_name)
}

/// A problem of the record of an object. `excused`: an import by the user resolves the problem.
fn record_problem(input: &PlanInput<'_>, node: Node<'_>, excused: bool) -> Option<Diagnostic> {
    let address = node.address;
    let Some(record) = node.record else {
        return Some(missing_record(input, node)?).filter(|_| !excused);
    };
    if let Some(instance) = node.instance.filter(|_| has_type_mismatch(input, node)) {
        let what = format!("the record of this name has the type `{}`, not `{}`", record.type_name, instance.type_name);
        let hint = format!(
            "use another name for the new object, destroy the recorded object first, or, if the provider can take it \
             over, add the annotation `{}: {address}`",
            api::MOVED_FROM
        );
        return Some(Diagnostic::error(address, Reason::RecordTypeMismatch, what).hint(hint));
    }
    let open = record.intent.as_ref().filter(|_| !excused)?;
    let what = format!("an earlier {} is unresolved", open.operation.as_str());
    Some(Diagnostic::error(address, Reason::OperationInProgress, what))
}

/// Why a desired object cannot be planned, according to its Resource alone.
fn fault(input: &PlanInput<'_>, id: Id) -> Option<Block> {
    let node = input.nodes[id];
    let address = node.address;
    let instance = node.instance?;
    if instance.has_errors() {
        let diagnostics = errors(&instance.problems).cloned().collect();
        return Some(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false });
    }
    if let Some(problem) = instance.provider.as_ref().and_then(|provided| provided.problem()) {
        return Some(Block::broken(Diagnostic { address: Some(address.clone()), ..problem }));
    }
    if input.schema(id).is_none() {
        return Some(Block::broken(unserved(input, id)));
    }
    if !instance.inputs.problems.is_empty() {
        let diagnostics = instance.inputs.problems.clone();
        return Some(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false });
    }
    if let Some(missing) = input.missing.get(&id) {
        return Some(Block::broken(not_found(input, input.address(id), missing)));
    }
    exhausted(input, id)
}

/// The block of a new object beyond the limit of the namespace. `new_objects` counts those within it.
fn over_quota(input: &PlanInput<'_>, id: Id, new_objects: &mut usize) -> Option<Block> {
    let node = input.nodes[id];
    let quota = input.options.object_quota.filter(|_| node.record.is_none() && !node.address.is_data())?;
    *new_objects += 1;
    if *new_objects <= quota.left {
        return None;
    }
    let what = format!("the namespace has reached its limit of {} objects", quota.limit);
    let hint = format!(
        "delete other objects, or ask an administrator to set `objects` in the annotation `{}` of the Namespace",
        api::QUOTA
    );
    Some(Block::broken(Diagnostic::error(node.address, Reason::QuotaExceeded, what).hint(hint)))
}

/// The block after too many failed creations: a replacement stops until the user changes the Resource.
fn exhausted(input: &PlanInput<'_>, id: Id) -> Option<Block> {
    let node = input.nodes[id];
    let record = node.record?;
    let pending = match &record.current {
        Some(current) => current.status == ObjectStatus::Tainted,
        None => record.replacement_pending,
    };
    // A changed Resource resets the count.
    let same = node.instance.is_some_and(|instance| instance.generation == record.failed_generation);
    let failed = if same { record.failed_creates } else { 0 };
    let reached = input.options.max_failed_creates.is_some_and(|most| failed >= most);
    if !reached || !pending || input.is_replacement_requested(id) {
        return None;
    }
    let what = format!("creating the new object failed {failed} times in a row");
    let hint = match Words::of(node.address) {
        Words::Manifest => "change the Resource, or set the annotation `purlin.dev/replace-requested-at` to try again",
        Words::Terraform => "change the configuration, or save one of its files, to try again",
    };
    Some(Block::broken(Diagnostic::error(node.address, Reason::RepeatedCreateFailures, what).hint(hint)))
}

/// The decision once all dependencies are decided: an object waits if a dependency has no value, and is unchanged if
/// the caller reports it as up to date and no dependency changes.
pub fn after_dependencies(scope: &EvalScope<'_, '_>, id: Id) -> Option<Decision> {
    let input = scope.input;
    let node = input.nodes[id];
    let waits = input.dependencies.of(id).flat_map(|dependency| {
        // A new reference to an object that is being deleted targets its successor, and does not hold the destroy.
        let is_current =
            input.nodes[dependency].desired || input.recorded_dependencies.of(id).any(|used| used == dependency);
        if is_current { scope.hidden(dependency) } else { vec![dependency] }
    });
    let unresolved = trigger::unresolved(scope, id).into_iter().filter(|_| node.current().is_none());
    let waits: Vec<Id> = waits.chain(unresolved).collect();
    if let Some(first) = waits.first() {
        return Some(Decision::blocked(waiting(scope, id, *first).waiting_for(waits), node.current()));
    }
    let asked = matches!(&input.options.refresh, Refresh::Due(due) if due.contains(node.address));
    let vouched = input.options.up_to_date.contains(node.address)
        && !asked
        && !matches!(input.options.health.get(node.address), Some(Health::Terminating(_)))
        && node.current().is_some_and(|object| object.status == ObjectStatus::Ready)
        && node.record.is_some_and(|record| record.deposed.is_empty())
        && !input.is_replacement_requested(id);
    let is_unchanged = vouched
        && input
            .dependencies
            .of(id)
            .all(|dependency| scope.decision(dependency).is_some_and(|decision| !decision.changed));
    is_unchanged.then(|| Decision::unchanged(node.current()))
}

/// The block of an object that waits for a dependency without a value. It has the severity of the cause: waiting for a
/// suspended object is not an error.
fn waiting(scope: &EvalScope<'_, '_>, id: Id, dependency: Id) -> Block {
    let (address, target) = (scope.input.address(id), scope.input.address(dependency));
    let (severity, why) = match scope.decision(dependency).and_then(|decision| decision.block.as_deref()) {
        Some(block) => {
            let cause = block.cause();
            let state = if block.held { "is blocked" } else { "cannot be planned" };
            (cause.severity, format!("it {state} ({}: {})", cause.reason, cause.cause()))
        }
        None => (Severity::Warning, "it is being deleted".to_owned()),
    };
    let at = scope.input.nodes[id].instance.and_then(|instance| field_naming(instance, target));
    let mut diagnostic = Diagnostic::error(address, Reason::DependencyNotReady, format!("waits for `{target}`"));
    diagnostic.severity = severity;
    diagnostic.path = at;
    Block::broken(diagnostic.because(why))
}

pub fn field_naming(instance: &Instance, target: &Address) -> Option<Path> {
    let reference = instance
        .references
        .iter()
        .map(|reference| (&reference.target, &reference.at))
        .find(|(named, _)| *named == target || (named.stem == target.stem && !named.is_instance()));
    reference.map(|(_, at)| at.clone())
}
