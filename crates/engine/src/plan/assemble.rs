//! Assembles the plan from the decisions: changes in address order, prepared steps and diagnostics.

mod record_only;
mod report;
mod silent;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use self::record_only::prepare_record_only;
use self::report::{Report, deferred_warning, report_diagnostics, warn_of_orphans};
use super::decision::{Block, Decision, DeposedDecision};
use super::eval_scope::EvalScope;
use super::inherit::Inheritance;
use super::input::{Id, Node, PlanInput};
use super::{
    EffectiveLifecycle, Mode, Plan, PlannedObject, PreparedStep, constraints, families, hooks, protect, seed, select,
    trigger,
};
use crate::load::Instance;
use model::{
    Action, Address, Change, ChangeCause, DeposedKey, Diagnostic, RecordedHook, RecordedObject, ReplaceOrder, Severity,
    Triggers, Value,
};

/// Longer chains are cut.
const LONGEST_CHAIN: usize = 16;

/// Requires final decisions.
pub fn assemble(input: &PlanInput<'_>, mut decisions: Vec<Option<Decision>>, flags: &Inheritance) -> Plan {
    let mut report = Report::default();
    warn_of_orphans(input, &decisions, &mut report);
    let again = deferred_warning(input, &decisions);
    let faulty: Vec<Id> = (0..decisions.len()).filter(|id| constraints::is_faulty(input, &decisions, *id)).collect();
    let mut remedies = constraints::remedies(input, &decisions);
    let mut expressed = evaluated_flags(input, &decisions);
    let sources = sources(flags);
    // Junctions come after all objects.
    let junctions = decisions.split_off(input.objects);
    let objects = decisions.into_iter().enumerate().filter_map(|(id, decision)| {
        let flags_to_record = flags_of(input, id, flags, &mut expressed);
        let object = PlannedObject {
            lifecycle: lifecycle(input, id, flags, &sources),
            dependencies: dependencies(input, id),
            remedies: input.addresses(remedies.remove(&id).unwrap_or_default()),
            ..planned_object(input, id, decision?, flags, flags_to_record, &mut report)
        };
        Some((input.address(id).clone(), Box::new(object)))
    });
    let mut plan = Plan { objects: objects.collect(), ..Plan::default() };
    for (id, decision) in (input.objects..).zip(junctions) {
        if let Some(change) = decision.and_then(|decision| family_change(input, id, decision, &mut report)) {
            let object = plan.objects.entry(change.address.clone()).or_default();
            object.change = Some(Arc::new(change));
        }
    }
    for id in faulty {
        plan.objects.entry(input.address(id).clone()).or_default().is_faulty = true;
    }
    silent::mark(input, &mut plan.objects);
    plan.diagnostics = report.in_order(input);
    plan.diagnostics.extend(again);
    plan.diagnostics.extend(select::warning(input, &plan));
    plan
}

/// What the decision says about an object.
fn planned_object(
    input: &PlanInput<'_>,
    id: Id,
    mut decision: Decision,
    flags: &Inheritance,
    flags_to_record: Flags,
    report: &mut Report,
) -> PlannedObject {
    let node = input.nodes[id];
    if input.is_selected(id) {
        report_diagnostics(input, id, &mut decision, flags, report);
    }
    let blocked = decision.block.as_deref().map(Block::reason);
    let prepared = prepare(input, id, &mut decision, flags_to_record).map(Arc::new);
    select::clear_unselected(input, id, &mut decision);
    let deposed = std::mem::take(&mut decision.deposed);
    for object in &deposed {
        // A cause that blocks both the object and its deposed object is reported once.
        if let Some(block) = object.block.as_deref().filter(|block| Some(block.reason()) != blocked) {
            report.extend(
                id,
                block.diagnostics.iter().map(|problem| Diagnostic {
                    summary: format!("deposed {}: {}", object.key, problem.summary),
                    ..problem.clone()
                }),
            );
        }
    }
    let (is_read, is_missing, reading) = (decision.read, decision.missing, decision.reading.take());
    let change = shown(node, &decision, &deposed).then(|| {
        let is_kept = matches!(decision.action, Action::Record | Action::Wait | Action::Update | Action::Replace);
        let imported = is_kept && decision.imports(node) && !input.running.contains_key(&id);
        Arc::new(Change { imported, ..change(input, id, decision) })
    });
    let deposed = deposed.into_iter().map(|object| deposed_change(input, id, object)).collect();
    PlannedObject { change, deposed, prepared, reading, is_read, is_missing, ..PlannedObject::default() }
}

/// Reports the warnings of a family, and why its instances are not known. In the latter case it gets a change, unless
/// an object with the same address has one.
fn family_change(input: &PlanInput<'_>, id: Id, decision: Decision, report: &mut Report) -> Option<Change> {
    let node = input.nodes[id];
    let family = node.family?;
    let warnings = family.shared.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    report.extend(id, warnings.filter(|_| node.desired).cloned());
    let is_whole = !node.desired || families::is_unexpanded(input, id) || decision.decided_early;
    let block = decision.block.as_deref().filter(|_| is_whole)?;
    if !input.is_selected(id) {
        let because = Some(select::why_unselected(input, id));
        let type_name = family.shared.type_name.clone();
        let at_rest = finish_change(input, node, Decision { because, ..Decision::no_op() }, None, None);
        return input.find(node.address).is_none().then_some(Change { type_name, ..at_rest });
    }
    report.extend(id, block.diagnostics.iter().cloned());
    if input.find(node.address).is_some() {
        return None;
    }
    let type_name = family.shared.type_name.clone();
    Some(Change { type_name, ..finish_change(input, node, decision, None, None) })
}

/// An object of which only deposed objects remain has no change.
fn shown(node: Node<'_>, decision: &Decision, deposed: &[DeposedDecision]) -> bool {
    if node.address.is_data() && !node.desired {
        return false;
    }
    node.desired || node.current().is_some() || deposed.is_empty() || decision.is_blocked()
}

fn change(input: &PlanInput<'_>, id: Id, decision: Decision) -> Change {
    let node = input.nodes[id];
    let recorded = node.current().map(|object| object.value.clone());
    let running = input.running.get(&id);
    let prior = decision.prior.as_ref().map(|object| object.value.clone());
    let (before, after) = match decision.action {
        _ if running.is_some() => (recorded, running.and_then(|running| running.planned.clone())),
        Action::NoOp if node.address.is_data() => (decision.value.clone(), decision.value.clone()),
        Action::NoOp => (prior.clone(), prior),
        Action::Record | Action::Wait => (recorded, prior),
        Action::Create | Action::Read => (None, decision.planned.map(|planned| planned.value)),
        Action::Update | Action::Replace => {
            let planned = decision.planned.as_ref().map(|planned| planned.value.clone());
            return finish_change(input, node, Decision { prior: None, ..decision }, prior, planned);
        }
        Action::Destroy | Action::Forget => (prior.or(recorded), None),
        Action::Blocked => (recorded, None),
    };
    finish_change(input, node, Decision { planned: None, prior: None, ..decision }, before, after)
}

fn finish_change(
    input: &PlanInput<'_>,
    node: Node<'_>,
    decision: Decision,
    before: Option<Value>,
    after: Option<Value>,
) -> Change {
    let order = (decision.action == Action::Replace).then_some(if decision.create_first {
        ReplaceOrder::CreateFirst
    } else {
        ReplaceOrder::DestroyFirst
    });
    let block = decision.block.as_deref().or(decision.hold_destroy.as_deref());
    let moved = input.options.moved.get(node.address);
    let moved = moved.filter(|_| matches!(decision.action, Action::Update | Action::Replace));
    let because = ChangeCause::both(moved.cloned(), decision.because);
    Change {
        address: node.address.clone(),
        deposed: None,
        type_name: node.type_name(),
        action: decision.action,
        order,
        forget: decision.forget,
        hold_destroy: decision.hold_destroy.as_deref().map(Block::reason),
        blocked: decision.block.as_deref().map(Block::reason),
        message: block.map(|block| block.cause().message()).unwrap_or_default(),
        waiting_for: block.map(|block| input.addresses(block.waiting_for.iter().copied())).unwrap_or_default(),
        replace_paths: decision.planned.map(|planned| planned.replace_paths).unwrap_or_default(),
        silent: false,
        imported: false,
        drift: decision.drift,
        because,
        before,
        after,
    }
}

fn deposed_change(input: &PlanInput<'_>, id: Id, deposed: DeposedDecision) -> Change {
    let block = deposed.block.as_deref();
    Change {
        address: input.address(id).clone(),
        deposed: Some(deposed.key),
        type_name: input.nodes[id].type_name(),
        action: deposed.action,
        order: None,
        forget: deposed.action == Action::Forget,
        hold_destroy: None,
        blocked: block.map(Block::reason),
        message: block.map(|block| block.cause().message()).unwrap_or_default(),
        waiting_for: block.map(|block| input.addresses(block.waiting_for.iter().copied())).unwrap_or_default(),
        replace_paths: Vec::new(),
        silent: false,
        imported: false,
        drift: None,
        because: deposed.because,
        before: Some(deposed.object.value.clone()),
        after: None,
    }
}

/// The flags to record with an object that do not depend on its spec alone.
#[derive(Clone)]
struct Flags {
    create_first: bool,
    expressed: EvaluatedFlags,
}

/// The values to record that expressions determine.
#[derive(Clone)]
struct EvaluatedFlags {
    prevent_destroy: bool,
    triggers: Option<Arc<Triggers>>,
}

fn flags_of(input: &PlanInput<'_>, id: Id, flags: &Inheritance, expressed: &mut BTreeMap<Id, EvaluatedFlags>) -> Flags {
    let expressed = expressed.remove(&id).unwrap_or_else(|| EvaluatedFlags {
        prevent_destroy: input.nodes[id].instance.is_some_and(|instance| instance.prevent_destroy),
        triggers: None,
    });
    Flags { create_first: flags.is_on(id), expressed }
}

/// The protection and the triggers to record for objects whose expressions determine them.
fn evaluated_flags(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> BTreeMap<Id, EvaluatedFlags> {
    let scope = EvalScope { input, decisions };
    input.nodes.iter().enumerate().filter_map(|(id, node)| Some((id, expressed_flags(&scope, *node)?))).collect()
}

fn expressed_flags(scope: &EvalScope<'_, '_>, node: Node<'_>) -> Option<EvaluatedFlags> {
    let instance = node.instance?;
    if instance.prevent_destroy_when.is_none() && instance.triggers.is_empty() {
        return None;
    }
    let recorded = node.current();
    let known_salt = recorded.and_then(|object| object.triggers.as_ref()).map(|triggers| triggers.salt);
    let salt = known_salt.unwrap_or_else(|| seed::salt(scope.input.options.seed, node.address));
    let is_triggered = node.desired && !instance.triggers.is_empty();
    let triggers = is_triggered.then(|| Arc::new(trigger::planned_fingerprints(scope, instance, salt)));
    let was_prevented = recorded.is_some_and(|object| object.prevent_destroy);
    let instance = node.own_instance()?;
    Some(EvaluatedFlags { prevent_destroy: protect::recorded(&instance, scope, was_prevented), triggers })
}

/// Prepares the step `C(x)`. An unchanged object gets a record-only step if its record is out of date.
fn prepare(input: &PlanInput<'_>, id: Id, decision: &mut Decision, flags: Flags) -> Option<PreparedStep> {
    let node = input.nodes[id];
    if decision.is_blocked() || input.options.mode == Mode::RefreshOnly {
        return prepare_record_only(input, id, decision, &flags.expressed);
    }
    if decision.action == Action::Destroy {
        // Without a difference, the recorded object is destroyed.
        let now = decision.prior.clone().filter(|now| node.current().is_some_and(|known| !Arc::ptr_eq(known, now)))?;
        return Some(PreparedStep { replaced: Some(now), ..prepared_from(input, id, decision.action) });
    }
    let instance = node.instance.filter(|_| node.desired && !input.running.contains_key(&id))?;
    if decision.action == Action::Read {
        let planned = decision.planned.as_ref()?;
        let service_account = instance.service_account.clone();
        return Some(PreparedStep {
            config: planned.config.clone(),
            planned: planned.value.clone(),
            recorded: RecordedObject { provider: decision.provider.clone(), service_account, ..Default::default() },
            ..prepared_from(input, id, decision.action)
        });
    }
    if matches!(decision.action, Action::NoOp | Action::Wait) {
        let object = decision.prior.clone()?;
        if decision.action == Action::NoOp {
            let because = record_reason(input, node, instance, &object, decision, &flags);
            let moved = input.options.moved.get(node.address).cloned();
            decision.because = Some(moved.or(because)?);
            decision.action = Action::Record;
        }
        return Some(PreparedStep {
            config: Value::Null,
            planned: decision
                .value
                .clone()
                .filter(|_| decision.action == Action::Wait)
                .unwrap_or_else(|| object.value.clone()),
            private: object.private.clone(),
            recorded: RecordedObject {
                provider: decision.provider.clone().or_else(|| object.provider.clone()),
                ..recorded(input, instance, Some(&object), &object.value, flags, object.schema_version)
            },
            prior: Some(object),
            publish_again: decision.copies_drifted,
            is_drift_reported: decision.drift.is_some(),
            ..prepared_from(input, id, decision.action)
        });
    }
    let planned = decision.planned.as_ref().filter(|_| decision.changes_object())?;
    let base = decision.prior.as_ref().filter(|_| decision.action == Action::Update);
    let replaced = decision.prior.as_ref().filter(|_| decision.action == Action::Replace);
    let version = input.schema(id).map_or(0, |schema| schema.version);
    Some(PreparedStep {
        prior: base.cloned(),
        replaced: replaced.cloned(),
        config: planned.config.clone(),
        planned: planned.value.clone(),
        private: planned.private.clone(),
        destroy_private: planned.destroy_private.clone(),
        entropy: seed::entropy(input.options.seed, node.address),
        replace_paths: planned.replace_paths.clone(),
        requires_update: planned.requires_update,
        identity: planned.identity.clone(),
        recorded: RecordedObject {
            provider: decision.provider.clone(),
            ..recorded(
                input,
                instance,
                base,
                &planned.value,
                Flags { create_first: flags.create_first || decision.forget, ..flags },
                version,
            )
        },
        publish_again: decision.copies_drifted,
        ..prepared_from(input, id, decision.action)
    })
}

fn prepared_from(input: &PlanInput<'_>, id: Id, action: Action) -> PreparedStep {
    let node = input.nodes[id];
    PreparedStep {
        prior: None,
        replaced: None,
        config: Value::Null,
        planned: Value::Null,
        private: Arc::new([]),
        destroy_private: Arc::new([]),
        entropy: [0; 16],
        replace_paths: Vec::new(),
        requires_update: false,
        identity: None,
        publish_again: false,
        recorded: RecordedObject::default(),
        deposed_key: match action {
            Action::Replace => seed::deposed_key(input.options.seed, node.address, node.record),
            _ => DeposedKey(0),
        },
        record_only: false,
        is_drift_reported: false,
    }
}

/// The flags, direct dependencies and service account to record with an object.
fn recorded(
    input: &PlanInput<'_>,
    instance: &Instance,
    base: Option<&Arc<RecordedObject>>,
    value: &Value,
    flags: Flags,
    version: u64,
) -> RecordedObject {
    let object = base.map_or_else(RecordedObject::default, |object| object.as_ref().clone());
    let dependencies = match base {
        Some(base) if has_dependencies(input, instance, &base.dependencies) => base.dependencies.clone(),
        _ => match input.dependencies_through_data(instance) {
            Some(targets) => targets.into_iter().collect(),
            None => targets(instance).cloned().collect(),
        },
    };
    RecordedObject {
        schema_version: version,
        dependencies,
        create_before_destroy: flags.create_first,
        prevent_destroy: flags.expressed.prevent_destroy,
        triggers: flags.expressed.triggers,
        skip_destroy: instance.keeps_object(),
        service_account: instance.service_account.clone(),
        hooks: recorded_hooks(instance, value, base),
        hooks_pending: base.is_none_or(|base| base.hooks_pending) && hooks::follow_create(instance),
        ..object
    }
}

/// The hooks before a destroy, shared with the record if they are unchanged.
fn recorded_hooks(instance: &Instance, value: &Value, base: Option<&Arc<RecordedObject>>) -> Arc<[RecordedHook]> {
    match base {
        Some(base) if has_hooks(instance, value, &base.hooks) => base.hooks.clone(),
        _ if instance.hooks.is_empty() => Arc::default(),
        _ => hooks::to_record(instance, value).map(Cow::into_owned).collect(),
    }
}

/// Whether `recorded` equals the hooks to record with an object.
fn has_hooks(instance: &Instance, value: &Value, recorded: &[RecordedHook]) -> bool {
    hooks::to_record(instance, value).eq(recorded.iter().map(Cow::Borrowed))
}

/// The direct dependencies as recorded: in address order, without duplicates, a whole family as one entry.
fn targets(instance: &Instance) -> impl Iterator<Item = &Address> {
    instance.references.chunk_by(|a, b| a.target == b.target).map(|references| &references[0].target)
}

/// Whether `recorded` equals the direct dependencies to record.
fn has_dependencies(input: &PlanInput<'_>, instance: &Instance, recorded: &[Address]) -> bool {
    match input.dependencies_through_data(instance) {
        Some(targets) => targets.iter().eq(recorded),
        None => targets(instance).eq(recorded),
    }
}

/// Why the record of an unchanged object must be written. `None` if it is up to date.
fn record_reason(
    input: &PlanInput<'_>,
    node: Node<'_>,
    instance: &Instance,
    object: &RecordedObject,
    decision: &Decision,
    flags: &Flags,
) -> Option<ChangeCause> {
    let rules = [
        (!has_dependencies(input, instance, &object.dependencies), ChangeCause::Dependencies),
        (object.create_before_destroy != flags.create_first, ChangeCause::CreateBeforeDestroy),
        (object.prevent_destroy != flags.expressed.prevent_destroy, ChangeCause::PreventDestroy),
        (object.skip_destroy != instance.keeps_object(), ChangeCause::DeletionPolicy),
        (object.triggers != flags.expressed.triggers, ChangeCause::Triggers),
        (object.service_account != instance.service_account, ChangeCause::ServiceAccount),
        (!has_hooks(instance, &object.value, &object.hooks), ChangeCause::Hooks),
        (object.hooks_pending, ChangeCause::HooksPending),
        (node.record.is_some_and(|record| record.uid != instance.uid), ChangeCause::OtherResource),
        (is_import_changed(node, instance), ChangeCause::Import),
    ];
    decision
        .record_differs
        .clone()
        .or_else(|| decision.publishes.clone())
        .or_else(|| rules.into_iter().find(|(changed, _)| *changed).map(|(_, because)| because))
        .or(decision.check_later.then_some(ChangeCause::ConditionsPending))
}

fn is_import_changed(node: Node<'_>, instance: &Instance) -> bool {
    let import = instance.import.as_ref().map_or_else(String::new, ToString::to_string);
    node.record.is_some_and(|record| !record.handled_import.is_empty() && *record.handled_import != *import)
}

/// The direct dependencies of a desired object that exist.
fn dependencies(input: &PlanInput<'_>, id: Id) -> Option<Arc<[Address]>> {
    let node = input.nodes[id];
    if !node.desired {
        return None;
    }
    let mut targets: Vec<Address> = input
        .dependencies
        .of(id)
        // A family without instances has nothing to wait for.
        .filter(|target| {
            !input.is_junction(*target) || input.members(*target).any(|member| input.nodes[member].desired)
        })
        .map(|target| input.address(target).clone())
        .collect();
    targets.sort();
    let recorded = node.current().map(|object| &object.dependencies);
    let shared = recorded.filter(|recorded| ***recorded == *targets).cloned();
    Some(shared.unwrap_or_else(|| targets.into()))
}

/// The effective lifecycle of a desired or recorded object. `sources`: the object at the end of each chain.
fn lifecycle(input: &PlanInput<'_>, id: Id, flags: &Inheritance, sources: &[Option<Id>]) -> Option<EffectiveLifecycle> {
    if !input.nodes[id].desired && input.nodes[id].record.is_none() {
        return None;
    }
    let objects = flags.forced_by(id).filter(|member| !input.is_junction(*member));
    let mut chain: Vec<Id> = objects.take(LONGEST_CHAIN - 1).collect();
    if let Some(source) = sources[id].filter(|source| chain.last().is_some_and(|last| last != source)) {
        chain.push(source);
    }
    let forced_by = input.addresses(chain.into_iter().map(|member| constraints::flagged_as(input, member)));
    Some(EffectiveLifecycle { create_before_destroy: flags.is_on(id), forced_by })
}

/// The object at the end of each chain. Shared links are followed once.
fn sources(flags: &Inheritance) -> Vec<Option<Id>> {
    let mut sources: Vec<Option<Id>> = vec![None; flags.len()];
    for id in 0..sources.len() {
        let mut walked = vec![id];
        let mut end = None;
        for next in flags.forced_by(id) {
            end = sources[next].or(Some(next));
            if sources[next].is_some() {
                break;
            }
            walked.push(next);
        }
        if let Some(end) = end {
            walked.into_iter().filter(|member| *member != end).for_each(|member| sources[member] = Some(end));
        }
    }
    sources
}
