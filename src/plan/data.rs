//! Data sources: what is only read. One is read for the plan when its configuration is known and nothing that it
//! depends on is about to change. Otherwise it is read by a step of its own, once that has changed, and until then
//! nobody knows what it will give.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::conditions::{self, Checked};
use super::conform::{conform, located};
use super::draft::{Block, Draft, Planned};
use super::progress::{Next, Progress, Topic, decided};
use super::scene::{Id, Scene};
use super::seen::{Evaluate, Seen, disabled};
use super::{Question, Refresh, marks};
use crate::load::Instance;
use crate::model::{Action, Address, Diagnostics, DriverError, Reading, Severity, Value};

/// Evaluates the configuration, and asks to read with it, or what reading will give.
pub(super) fn evaluate(seen: &Seen<'_, '_>, evaluator: &dyn Evaluate, id: Id, progress: &mut Progress) -> Next {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    let Some(instance) = subject.instance else { return Next::Wait };
    let conditions = match conditions::before(instance, seen) {
        Checked::Violated(problems) => return refused(problems),
        checked => checked,
    };
    let evaluated = match evaluator.evaluate(instance, seen) {
        Ok(value) => value,
        Err(problems) => return refused(disabled(scene, instance, located(instance, problems))),
    };
    let Some(schema) = scene.schema(id) else { return Next::Wait };
    let (config, problems) = conform(subject.address, evaluated, &schema);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return refused(problems);
    }
    progress.diagnostics.extend(problems);
    progress.delayed = match changing(seen, id, instance) {
        _ if config.has_unknown() => Some("its configuration is not known yet".to_owned()),
        Some(first) => Some(format!("`{}` changes first", scene.address(first))),
        None if conditions == Checked::Unknown => Some("its preconditions are not known yet".to_owned()),
        None => None,
    };
    if let (None, Some(known)) = (&progress.delayed, known(scene, instance, progress, &config)) {
        return decided(read(scene, progress, Arc::clone(known), subject.address));
    }
    progress.config = config.clone();
    Next::Ask(vec![(Topic::Data, Question::Data { config, read: progress.delayed.is_none() })])
}

/// Takes what was read, or what reading will give: that has unknown places.
pub(super) fn take(
    scene: &Scene<'_>,
    id: Id,
    progress: &mut Progress,
    found: Diagnostics,
    result: Result<Option<Value>, DriverError>,
) -> Next {
    let subject = scene.subjects[id];
    let Some(instance) = subject.instance else { return Next::Wait };
    let found = located(instance, found);
    if found.iter().any(|problem| problem.severity == Severity::Error) {
        return refused(found);
    }
    progress.diagnostics.extend(found);
    let value = match result {
        Ok(value) => value.unwrap_or(Value::Unknown),
        Err(error) => {
            let mut draft =
                Draft::blocked(Block::failed(subject.address, "the data source could not be read", error), None);
            draft.diagnostics = std::mem::take(&mut progress.diagnostics);
            return decided(draft);
        }
    };
    let schema = scene.schema(id).unwrap_or_default();
    let value = marks::like(marks::by_schema(value, &schema), &progress.config);
    if progress.delayed.is_none() && !value.has_unknown() {
        progress.data_read = true;
        let reading = Reading {
            config: std::mem::take(&mut progress.config),
            provider: progress.provider.clone(),
            service_account: instance.service_account.clone(),
            value,
        };
        return decided(read(scene, progress, Arc::new(reading), subject.address));
    }
    decided(Draft {
        action: Action::Read,
        because: progress.delayed.take(),
        seen: Some(value.clone()),
        changed: true,
        planned: Some(Box::new(Planned {
            config: std::mem::take(&mut progress.config),
            value,
            private: Arc::from([]),
            identity: None,
            replace_paths: Vec::new(),
            tells: false,
        })),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Draft::nothing()
    })
}

fn refused(diagnostics: Diagnostics) -> Next {
    decided(Draft::blocked(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }, None))
}

/// A data source that was read, now or before.
fn read(scene: &Scene<'_>, progress: &mut Progress, reading: Arc<Reading>, address: &Address) -> Draft {
    let before = scene.options.readings.get(address);
    Draft {
        seen: Some(reading.value.clone()),
        changed: before.is_none_or(|before| before.value != reading.value),
        reading: Some(reading),
        diagnostics: std::mem::take(&mut progress.diagnostics),
        ..Draft::nothing()
    }
}

/// What was read before, when the same is asked in the same way, and it is not yet time to look again.
fn known<'a>(scene: &Scene<'a>, instance: &Instance, progress: &Progress, config: &Value) -> Option<&'a Arc<Reading>> {
    let due = match &scene.options.refresh {
        Refresh::All => true,
        Refresh::None => false,
        Refresh::Due(due) => due.contains(&instance.address),
    };
    let known = scene.options.readings.get(&instance.address).filter(|_| !due)?;
    let same = known.config == *config
        && known.provider == progress.provider
        && known.service_account == instance.service_account;
    same.then_some(known)
}

/// The first dependency that is about to change, as Terraform has it: a direct one, or one behind a data source, whose
/// own changes cannot be seen. Conditions may hold only after any change, so with them all dependencies count.
fn changing(seen: &Seen<'_, '_>, id: Id, instance: &Instance) -> Option<Id> {
    let scene = seen.scene;
    let all = !instance.preconditions.is_empty() || !instance.postconditions.is_empty();
    let mut reached = BTreeSet::new();
    let mut open: Vec<Id> = scene.wants.of(id).rev().collect();
    while let Some(here) = open.pop() {
        if !reached.insert(here) {
            continue;
        }
        if changes(seen, here) {
            return Some(here);
        }
        if let Some(gone) = scene.members(here).find(|member| changes(seen, *member)) {
            return Some(gone);
        }
        let passes = scene.is_junction(here) || scene.address(here).is_data();
        if all || passes {
            open.extend(scene.wants.of(here).rev());
        }
    }
    None
}

/// Whether a step will change an object, or end it: one of a family that shrinks, which who reads the whole family
/// waits for.
fn changes(seen: &Seen<'_, '_>, id: Id) -> bool {
    let subject = seen.scene.subjects[id];
    match seen.draft(id) {
        Some(draft) => draft.makes() || draft.leaves() || matches!(draft.action, Action::Read | Action::Wait),
        None => !seen.scene.is_junction(id) && !subject.wanted && subject.current().is_some(),
    }
}
