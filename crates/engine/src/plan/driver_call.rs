//! The driver calls for one object: which calls come first, and what follows from each response.

use std::sync::Arc;

use super::conform::below_config;
use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, PlanInput};
use super::progress::{CallPurpose, NextAction, Progress, RefreshResult, decided};
use super::provider::{configured_provider, provider_unavailable};
use super::{DriverRequest, DriverResponse, Mode, Refresh, data, desired, destroys, drift, ignore, marks};
use crate::load::DriftAction;
use model::{
    Diagnostic, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, ObjectStatus, Path, ProviderUse,
    Reason, RecordedObject, Schema, Words,
};

/// Requests all reads that must precede the evaluation.
pub fn start(progress: &mut Progress, scope: &EvalScope<'_, '_>, id: Id) -> NextAction {
    let input = scope.input;
    let node = input.nodes[id];
    let provided = node.instance.and_then(|instance| instance.provider.as_ref());
    progress.provider = match provided.filter(|_| node.desired).map(|provided| configured_provider(scope, provided)) {
        Some(Ok(used)) => Some(used),
        Some(Err(why)) => return decided(provider_unavailable(scope, id, why)),
        None => node.current().and_then(|object| object.provider.clone()),
    };
    let mut calls = Vec::new();
    let served = input.schema(id).is_some();
    if let Some(record) = node.record.filter(|_| served) {
        let due = input.refreshes(node.address);
        let unwatched = drift::action(node) == DriftAction::Ignore;
        // Only a read shows whether an interrupted object is complete. An object that is not ready yet is compared by its
        // driver, which may see the changes of other clients: only a read shows that these are drift. Ignored attributes
        // must have their current values, because an update would restore the recorded ones.
        let ignores = node.instance.is_some_and(|instance| !instance.ignore_changes.is_empty());
        let reads = !matches!(input.options.refresh, Refresh::None);
        if let Some(current) = &record.current {
            let is_awaited = current.readiness.is_some() && reads;
            let is_watched = (due || (is_awaited && node.desired)) && !unwatched;
            let is_needed = node.desired && ((ignores && reads) || current.status == ObjectStatus::Interrupted);
            if is_watched || is_needed {
                calls.push((CallPurpose::Current, DriverRequest::Read(current.clone())));
            }
        }
        let deposed = record.deposed.iter().filter(|(key, _)| !input.running_deposed.contains_key(&(id, **key)));
        for (key, object) in deposed.filter(|_| due) {
            calls.push((CallPurpose::Deposed(*key), DriverRequest::Read(object.clone())));
        }
        if due && node.desired && !record.published.is_empty() {
            calls.push((CallPurpose::Copies, DriverRequest::Copies(Box::new(record.clone()))));
        }
    }
    progress.open_reads = calls.len();
    if calls.is_empty() { after_reads(progress, input, id) } else { NextAction::Call(calls) }
}

pub fn handle_response(
    progress: &mut Progress,
    input: &PlanInput<'_>,
    id: Id,
    purpose: CallPurpose,
    response: DriverResponse,
) -> NextAction {
    match (purpose, response) {
        (CallPurpose::Import, DriverResponse::Object(warnings, result, configuration)) => {
            keep_warnings(progress, input, id, warnings);
            handle_import(progress, input, id, result, configuration)
        }
        (CallPurpose::Plan, DriverResponse::Planned(diagnostics, result, configuration)) => {
            progress.configuration = configuration;
            desired::handle_plan(input, id, progress, diagnostics, result)
        }
        (CallPurpose::Data, DriverResponse::Data(diagnostics, result)) => {
            data::handle_response(input, id, progress, diagnostics, result)
        }
        (CallPurpose::Current | CallPurpose::Deposed(_), DriverResponse::Object(warnings, result, configuration)) => {
            keep_warnings(progress, input, id, warnings);
            handle_read(progress, input, id, purpose, result, &configuration);
            finish_read(progress, input, id)
        }
        (CallPurpose::Copies, DriverResponse::Copies(drifted)) => {
            progress.copies_drifted = drifted;
            finish_read(progress, input, id)
        }
        _ => {
            let what = "the driver response does not match its request";
            let fault = Diagnostic::error(input.address(id), Reason::InternalError, what);
            decided(Decision::blocked(Block::broken(fault), input.nodes[id].current()))
        }
    }
}

/// Keeps the warnings of a read, regardless of the decision about the object.
fn keep_warnings(progress: &mut Progress, input: &PlanInput<'_>, id: Id, warnings: Diagnostics) {
    let node = input.nodes[id];
    progress.read_warnings.extend(warnings.into_iter().map(|warning| Diagnostic {
        address: Some(node.address.clone()),
        path: warning.path.as_ref().map(below_config),
        ..warning
    }));
}

fn finish_read(progress: &mut Progress, input: &PlanInput<'_>, id: Id) -> NextAction {
    progress.open_reads -= 1;
    if progress.open_reads == 0 { after_reads(progress, input, id) } else { NextAction::Wait }
}

fn handle_read(
    progress: &mut Progress,
    input: &PlanInput<'_>,
    id: Id,
    purpose: CallPurpose,
    result: Result<Option<ObjectState>, DriverError>,
    configuration: &Arc<str>,
) {
    let node = input.nodes[id];
    let Some(record) = node.record else { return };
    let object = match purpose {
        CallPurpose::Deposed(key) => record.deposed.get(&key),
        _ => record.current.as_ref(),
    };
    let Some(object) = object else { return };
    let refreshed = match result {
        Ok(Some(state)) => {
            if purpose == CallPurpose::Current {
                progress.health.clone_from(&state.health);
            }
            let schema = input.schema(id).unwrap_or_default();
            let ignored = node.instance.map_or(&[][..], |instance| &instance.ignore_changes);
            let value = ignore::without_removed(state.value, &object.value, ignored, &schema);
            let state = ObjectState { value, ..state };
            RefreshResult::Found(refreshed(object, state, &schema, configuration, progress.provider.as_ref()))
        }
        // `constraints` checks later how many other objects are missing. An object with a requested replacement counts
        // as missing even if the provider configuration has changed.
        Ok(None) if object.was_last_read_with(configuration) => RefreshResult::Missing,
        Ok(None) if purpose == CallPurpose::Current && node.desired && input.is_replacement_requested(id) => {
            RefreshResult::Missing
        }
        Ok(None) => RefreshResult::MissingAfterConfigChange,
        Err(error) => RefreshResult::Failed(error),
    };
    match purpose {
        CallPurpose::Deposed(key) => progress.deposed.push((key, refreshed)),
        _ => progress.current = Some(refreshed),
    }
}

fn after_reads(progress: &mut Progress, input: &PlanInput<'_>, id: Id) -> NextAction {
    let node = input.nodes[id];
    if input.options.mode == Mode::RefreshOnly {
        return decided(destroys::refresh(input, id, progress));
    }
    if !node.desired {
        return decided(destroys::decide(input, id, progress));
    }
    let import = input.import_of(id).or_else(|| input.changed_import(id));
    match import.filter(|_| !progress.import_requested && !input.options.offline) {
        Some(import) => {
            progress.import_requested = true;
            NextAction::Call(vec![(CallPurpose::Import, DriverRequest::Import(import))])
        }
        None => NextAction::Evaluate,
    }
}

/// The field of `spec.import` that names the object, and its path.
fn import_field(import: Option<&ImportRequest>) -> (&'static str, Path) {
    let field = if matches!(import, Some(ImportRequest::Identity(_))) { "identity" } else { "id" };
    (field, Path::default().name("spec").name("import").name(field))
}

fn handle_import(
    progress: &mut Progress,
    input: &PlanInput<'_>,
    id: Id,
    result: Result<Option<ObjectState>, DriverError>,
    configuration: Arc<str>,
) -> NextAction {
    let node = input.nodes[id];
    if node.current().is_some() {
        return handle_changed_import(progress, input, id, result, configuration);
    }
    let import = input.import_of(id);
    let (field, at) = import_field(import.as_ref());
    let block = match result {
        Ok(Some(state)) => {
            progress.health.clone_from(&state.health);
            let schema = input.schema(id).unwrap_or_default();
            progress.imported = Some(Arc::new(RecordedObject {
                provider: progress.provider.clone(),
                ..imported(state, &schema, configuration)
            }));
            return NextAction::Evaluate;
        }
        Ok(None) => {
            let import = import.map_or_else(String::new, |import| import.to_string());
            let what = format!("the object to import does not exist: `{import}`");
            let hint = match Words::of(node.address) {
                Words::Manifest => {
                    format!("correct `spec.import.{field}`, or remove `spec.import` to create a new object")
                }
                Words::Terraform => {
                    format!("correct `{field}` of the `import` block, or remove the block to create a new object")
                }
            };
            let missing = Diagnostic::error(node.address, Reason::ImportNotFound, what).hint(hint);
            Block::broken(missing.at(at))
        }
        Err(error) => {
            let is_wrong = error.kind == ErrorKind::InvalidConfig;
            let block = Block::failed(node.address, "the object to import could not be read", error);
            if is_wrong { block.at(at) } else { block }
        }
    };
    decided(Decision::blocked(block, node.current()))
}

/// A Resource that only observes reads the object that its import names now. Any other Resource keeps its object: the
/// import must name the same one.
fn handle_changed_import(
    progress: &mut Progress,
    input: &PlanInput<'_>,
    id: Id,
    result: Result<Option<ObjectState>, DriverError>,
    configuration: Arc<str>,
) -> NextAction {
    let node = input.nodes[id];
    let (Some(recorded), Some(instance)) = (node.current(), node.instance) else { return NextAction::Evaluate };
    let observes = instance.policies.only_observe();
    // An import that was never compared may belong to an object before this one.
    let is_first = node.record.is_some_and(|record| record.handled_import.is_empty());
    let (field, at) = import_field(instance.import.as_ref());
    let import = instance.import.as_ref().map_or_else(String::new, ToString::to_string);
    let block = match result {
        Ok(Some(state)) => {
            let schema = input.schema(id).unwrap_or_default();
            let imported_object = imported(state, &schema, configuration);
            if is_same_object(recorded, &imported_object) {
                return NextAction::Evaluate;
            }
            if observes {
                let provider = progress.provider.clone();
                progress.current = None;
                progress.imported = Some(Arc::new(RecordedObject { provider, ..imported_object }));
                return NextAction::Evaluate;
            }
            let owner = Words::of(node.address).owner();
            let what = format!("`{import}` is not the object that this {owner} manages");
            let hint = format!(
                "to give up the managed object without destroying it and to import the other one, run `purlin state rm \
                 {}`; or import the other object with another {owner}",
                node.address.shell_word()
            );
            Block::held(Diagnostic::error(node.address, Reason::IdentityConflict, what).hint(hint).at(at))
        }
        Ok(None) | Err(_) if is_first && !observes => return NextAction::Evaluate,
        Ok(None) => {
            let what = format!("the object to import does not exist: `{import}`");
            let hint = format!("correct {}", Words::of(node.address).import(field));
            Block::held(Diagnostic::error(node.address, Reason::ImportNotFound, what).hint(hint).at(at))
        }
        Err(error) => Block::failed(node.address, "the object to import could not be read", error).at(at),
    };
    // Dependents must not read the object that is no longer observed.
    decided(Decision::blocked(Block { held: !observes, ..block }, node.current()))
}

/// Whether an imported object is the recorded one.
fn is_same_object(recorded: &RecordedObject, imported: &RecordedObject) -> bool {
    match (&recorded.identity, &imported.identity) {
        (Some(recorded), Some(imported)) => recorded.equals_unmarked(imported),
        _ => match (recorded.id(), imported.id()) {
            (Some(recorded), Some(imported)) if !recorded.is_empty() => recorded == imported,
            _ => recorded.value.equals_unmarked(&imported.value),
        },
    }
}

/// The refreshed object, shared with the record if nothing has changed.
fn refreshed(
    object: &Arc<RecordedObject>,
    state: ObjectState,
    schema: &Schema,
    configuration: &Arc<str>,
    provider: Option<&Arc<ProviderUse>>,
) -> Arc<RecordedObject> {
    let value = marks::like(marks::by_schema(state.value, schema), &object.value);
    let identity = state.identity.or_else(|| object.identity.clone());
    let same = value == object.value
        && state.private == object.private
        && identity == object.identity
        && (configuration.is_empty() || *configuration == object.provider_config)
        && schema.version == object.schema_version;
    if same {
        return object.clone();
    }
    let schema_version = schema.version;
    // A driver without configuration ids keeps the recorded one.
    let known = if configuration.is_empty() { &object.provider_config } else { configuration };
    let (private, provider_config) = (state.private, Arc::clone(known));
    let before = object.as_ref().clone();
    let provider = provider.cloned().or_else(|| object.provider.clone());
    Arc::new(RecordedObject {
        value,
        private,
        identity,
        schema_version,
        provider_config,
        provider,
        matching_config: None,
        ..before
    })
}

/// An imported object. The first step records its flags and dependencies.
fn imported(state: ObjectState, schema: &Schema, provider_config: Arc<str>) -> RecordedObject {
    RecordedObject {
        value: marks::by_schema(state.value, schema),
        private: state.private,
        identity: state.identity,
        schema_version: schema.version,
        provider_config,
        ..RecordedObject::default()
    }
}
