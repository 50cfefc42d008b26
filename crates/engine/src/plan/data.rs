//! Data sources. A data source is read during planning if its configuration is known and none of its dependencies is
//! about to change. Otherwise a step reads it after these changes, and its value is unknown until then.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::conditions::{self, ConditionOutcome};
use super::conform::{conform_config, located};
use super::decision::{Block, Decision, PlannedChange};
use super::eval_scope::{EvalScope, Evaluate, disabled};
use super::input::{Id, PlanInput};
use super::progress::{CallPurpose, NextAction, Progress, decided};
use super::{DriverRequest, Refresh, marks};
use crate::load::{Instance, ReadsAfter};
use model::{Action, Address, ChangeCause, Diagnostics, DriverError, ReadResult, Value, has_errors};

/// Evaluates the configuration, and requests a read or the planned result of one.
pub fn evaluate(scope: &EvalScope<'_, '_>, evaluator: &dyn Evaluate, id: Id, progress: &mut Progress) -> NextAction {
    let input = scope.input;
    let node = input.nodes[id];
    let Some(instance) = node.instance else { return NextAction::Wait };
    let conditions = match conditions::before(instance, scope) {
        ConditionOutcome::Violated(problems) => return blocked(problems),
        checked => checked,
    };
    let evaluated = match evaluator.evaluate(instance, scope) {
        Ok(value) => value,
        Err(problems) => return blocked(disabled(input, instance, located(instance, problems))),
    };
    let Some(schema) = input.schema(id) else { return NextAction::Wait };
    let config = match conform_config(node.address, evaluated, &schema) {
        Ok(config) => config,
        Err(problems) => return blocked(problems),
    };
    progress.delayed = match changing(scope, id, instance) {
        _ if config.has_unknown() => Some(ChangeCause::UnknownConfiguration),
        Some(first) => Some(ChangeCause::ChangesFirst(input.address(first).clone())),
        None if conditions == ConditionOutcome::Unknown => Some(ChangeCause::UnknownPreconditions),
        None => None,
    };
    if let (None, Some(known)) = (&progress.delayed, earlier_reading(input, instance, progress, &config)) {
        return decided(read(input, progress, Arc::clone(known), node.address));
    }
    if input.options.preview && config.has_sensitive() {
        progress.delayed.get_or_insert(ChangeCause::SensitivePreview);
    }
    progress.config = config.clone();
    NextAction::Call(vec![(CallPurpose::Data, DriverRequest::Data { config, read: progress.delayed.is_none() })])
}

/// Handles the value that was read, or the planned result, which contains unknown values.
pub fn handle_response(
    input: &PlanInput<'_>,
    id: Id,
    progress: &mut Progress,
    diagnostics: Diagnostics,
    result: Result<Option<Value>, DriverError>,
) -> NextAction {
    let node = input.nodes[id];
    let Some(instance) = node.instance else { return NextAction::Wait };
    let diagnostics = located(instance, diagnostics);
    if has_errors(&diagnostics) {
        return blocked(diagnostics);
    }
    progress.diagnostics.extend(diagnostics);
    let value = match result {
        Ok(value) => value,
        Err(error) => {
            let mut decision =
                Decision::blocked(Block::failed(node.address, "the data source could not be read", error), None);
            decision.diagnostics = std::mem::take(&mut progress.diagnostics);
            return decided(decision);
        }
    };
    let schema = input.schema(id).unwrap_or_default();
    let value = value.map_or(Value::Unknown, |value| marks::like(marks::by_schema(value, &schema), &progress.config));
    if progress.delayed.is_none() && !value.has_unknown() {
        progress.data_read = true;
        let reading = ReadResult {
            config: std::mem::take(&mut progress.config),
            provider: progress.provider.clone(),
            service_account: instance.service_account.clone(),
            value,
        };
        return decided(read(input, progress, Arc::new(reading), node.address));
    }
    decided(Decision {
        action: Action::Read,
        because: progress.delayed.take(),
        value: Some(value.clone()),
        changed: true,
        planned: Some(Box::new(PlannedChange {
            config: std::mem::take(&mut progress.config),
            value,
            private: Arc::from([]),
            destroy_private: Arc::from([]),
            identity: None,
            replace_paths: Vec::new(),
            requires_update: false,
            configuration: Arc::default(),
            refusal: None,
        })),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Decision::no_op()
    })
}

fn blocked(diagnostics: Diagnostics) -> NextAction {
    decided(Decision::blocked(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }, None))
}

/// The decision about a data source that was read, now or in an earlier plan.
fn read(input: &PlanInput<'_>, progress: &mut Progress, reading: Arc<ReadResult>, address: &Address) -> Decision {
    let before = input.options.readings.get(address);
    Decision {
        value: Some(reading.value.clone()),
        changed: before.is_none_or(|before| before.value != reading.value),
        reading: Some(reading),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Decision::no_op()
    }
}

/// The earlier reading, if the request is the same and no refresh is due.
fn earlier_reading<'a>(
    input: &PlanInput<'a>,
    instance: &Instance,
    progress: &Progress,
    config: &Value,
) -> Option<&'a Arc<ReadResult>> {
    // In a preview, it could not be read again.
    let is_kept = input.options.preview && config.has_sensitive();
    let due = !is_kept
        && match &input.options.refresh {
            Refresh::All => true,
            Refresh::None => false,
            Refresh::Due(due) => due.contains(&instance.address),
        };
    let known = input.options.readings.get(&instance.address).filter(|_| !due)?;
    let same = known.config == *config
        && known.provider == progress.provider
        && known.service_account == instance.service_account;
    same.then_some(known)
}

/// The first object that is about to change and delays the read.
fn changing(scope: &EvalScope<'_, '_>, id: Id, instance: &Instance) -> Option<Id> {
    match &instance.reads_after {
        Some(named) => changing_of(scope, named),
        None => changing_dependency(scope, id, instance),
    }
}

/// The first of the named objects that is about to change, or of what the transitive ones depend on. Data sources change
/// nothing.
fn changing_of(scope: &EvalScope<'_, '_>, named: &[ReadsAfter]) -> Option<Id> {
    let input = scope.input;
    let mut reached = BTreeSet::new();
    let mut open: Vec<(Id, bool)> =
        named.iter().rev().filter_map(|named| Some((input.resolve(&named.target)?, named.transitive))).collect();
    while let Some((here, transitive)) = open.pop() {
        if !reached.insert((here, transitive)) {
            continue;
        }
        if !input.address(here).is_data() && changes(scope, here) {
            return Some(here);
        }
        open.extend(input.members(here).rev().map(|member| (member, transitive)));
        if transitive {
            open.extend(input.dependencies.of(here).rev().map(|next| (next, true)));
        }
    }
    None
}

/// The first dependency that is about to change: a direct one, or one behind another data source. If the data source has
/// conditions, indirect dependencies count too, because the conditions may depend on their changes.
fn changing_dependency(scope: &EvalScope<'_, '_>, id: Id, instance: &Instance) -> Option<Id> {
    let input = scope.input;
    let has_conditions = !instance.preconditions.is_empty() || !instance.postconditions.is_empty();
    let mut reached = BTreeSet::new();
    let mut open: Vec<Id> = input.dependencies.of(id).rev().collect();
    while let Some(here) = open.pop() {
        if !reached.insert(here) {
            continue;
        }
        if changes(scope, here) {
            return Some(here);
        }
        if let Some(gone) = input.members(here).find(|member| changes(scope, *member)) {
            return Some(gone);
        }
        let passes = input.is_junction(here) || input.address(here).is_data();
        if has_conditions || passes {
            open.extend(input.dependencies.of(here).rev());
        }
    }
    None
}

/// Whether a step changes or removes an object. Removal matters for instances of a shrinking family.
fn changes(scope: &EvalScope<'_, '_>, id: Id) -> bool {
    let node = scope.input.nodes[id];
    match scope.decision(id) {
        Some(decision) => {
            decision.changes_object() || decision.removes() || matches!(decision.action, Action::Read | Action::Wait)
        }
        None => !scope.input.is_junction(id) && !node.desired && node.current().is_some(),
    }
}
