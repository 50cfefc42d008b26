//! The way of one object that is asked about: what is read first, and where each reply leads.

use std::sync::Arc;

use super::conform::below_config;
use super::draft::{Block, Draft};
use super::progress::{Next, Progress, Refreshed, Topic, decided};
use super::requests::{import_of, replacement_requested};
use super::scene::{Id, Scene};
use super::seen::Seen;
use super::served::{settled, unsettled};
use super::{Mode, Question, Refresh, Reply, data, drift, ignore, leaving, marks, wanted};
use crate::load::DriftAction;
use crate::model::{
    Diagnostic, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, ObjectStatus, Path, ProviderUse,
    Reason, RecordedObject, Schema,
};

/// Asks for everything that must be read first.
pub(super) fn begin(progress: &mut Progress, seen: &Seen<'_, '_>, id: Id) -> Next {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    let provided = subject.instance.and_then(|instance| instance.provider.as_ref());
    progress.provider = match provided.filter(|_| subject.wanted).map(|provided| settled(seen, provided)) {
        Some(Ok(used)) => Some(used),
        Some(Err(why)) => return decided(unsettled(seen, id, why)),
        None => subject.current().and_then(|object| object.provider.clone()),
    };
    let mut questions = Vec::new();
    let served = scene.schema(id).is_some();
    if let Some(record) = subject.record.filter(|_| served) {
        let due = scene.refreshes(subject.address);
        let unwatched = drift::action(subject) == DriftAction::Ignore;
        // Whether an interrupted object is complete can only be told by looking, and what is ignored stays as it is
        // now, not as it was when it was last read: an update would put that back.
        let ignores = subject.instance.is_some_and(|instance| !instance.ignore_changes.is_empty());
        let ignores = ignores && !matches!(scene.options.refresh, Refresh::None);
        let look = |object: &RecordedObject| {
            (due && !unwatched) || (subject.wanted && (ignores || object.status == ObjectStatus::Interrupted))
        };
        if let Some(current) = record.current.as_ref().filter(|object| look(object)) {
            questions.push((Topic::Current, Question::Read(current.clone())));
        }
        let leftovers = record.deposed.iter().filter(|(key, _)| !scene.running_leftovers.contains_key(&(id, **key)));
        for (key, object) in leftovers.filter(|_| due) {
            questions.push((Topic::Leftover(*key), Question::Read(object.clone())));
        }
        if due && subject.wanted && !record.published.is_empty() {
            questions.push((Topic::Copies, Question::Copies(Box::new(record.clone()))));
        }
    }
    progress.reads_open = questions.len();
    if questions.is_empty() { after_reads(progress, scene, id) } else { Next::Ask(questions) }
}

/// Takes a reply.
pub(super) fn take_reply(progress: &mut Progress, scene: &Scene<'_>, id: Id, topic: Topic, reply: Reply) -> Next {
    match (topic, reply) {
        (Topic::Import, Reply::Object(warnings, result, configuration)) => {
            hear(progress, scene, id, warnings);
            take_import(progress, scene, id, result, configuration)
        }
        (Topic::Plan, Reply::Planned(diagnostics, result)) => {
            wanted::take_plan(scene, id, progress, diagnostics, result)
        }
        (Topic::Data, Reply::Data(diagnostics, result)) => data::take(scene, id, progress, diagnostics, result),
        (Topic::Current | Topic::Leftover(_), Reply::Object(warnings, result, configuration)) => {
            hear(progress, scene, id, warnings);
            take_read(progress, scene, id, topic, result, &configuration);
            one_read_less(progress, scene, id)
        }
        (Topic::Copies, Reply::Copies(drifted)) => {
            progress.copies_drifted = drifted;
            one_read_less(progress, scene, id)
        }
        _ => {
            let what = "a reply does not fit its question";
            let fault = Diagnostic::error(scene.address(id), Reason::InternalError, what);
            decided(Draft::blocked(Block::broken(fault), scene.subjects[id].current()))
        }
    }
}

/// What was warned of while the object was looked for, whatever is decided about it.
fn hear(progress: &mut Progress, scene: &Scene<'_>, id: Id, warnings: Diagnostics) {
    let subject = scene.subjects[id];
    let source = subject.instance.and_then(|instance| instance.source.clone());
    progress.heard.extend(warnings.into_iter().map(|warning| Diagnostic {
        address: Some(subject.address.clone()),
        path: warning.path.as_ref().map(below_config),
        source: source.clone(),
        ..warning
    }));
}

fn one_read_less(progress: &mut Progress, scene: &Scene<'_>, id: Id) -> Next {
    progress.reads_open -= 1;
    if progress.reads_open == 0 { after_reads(progress, scene, id) } else { Next::Wait }
}

fn take_read(
    progress: &mut Progress,
    scene: &Scene<'_>,
    id: Id,
    topic: Topic,
    result: Result<Option<ObjectState>, DriverError>,
    configuration: &Arc<str>,
) {
    let subject = scene.subjects[id];
    let Some(record) = subject.record else { return };
    let object = match topic {
        Topic::Leftover(key) => record.deposed.get(&key),
        _ => record.current.as_ref(),
    };
    let Some(object) = object else { return };
    let refreshed = match result {
        Ok(Some(state)) => {
            let schema = scene.schema(id).unwrap_or_default();
            let ignored = subject.instance.map_or(&[][..], |instance| &instance.ignore_changes);
            let value = ignore::without_removed(state.value, &object.value, ignored, &schema);
            let state = ObjectState { value, ..state };
            Refreshed::Found(refreshed(object, state, &schema, configuration, progress.provider.as_ref()))
        }
        // How many others are gone with it is asked when the whole plan is settled. A current object whose
        // replacement is requested is given up, wherever it may be.
        Ok(None) if object.is_known_to(configuration) => Refreshed::Gone,
        Ok(None) if topic == Topic::Current && subject.wanted && replacement_requested(scene, id) => Refreshed::Gone,
        Ok(None) => Refreshed::Elsewhere,
        Err(error) => Refreshed::Failed(error),
    };
    match topic {
        Topic::Leftover(key) => progress.leftovers.push((key, refreshed)),
        _ => progress.current = Some(refreshed),
    }
}

fn after_reads(progress: &mut Progress, scene: &Scene<'_>, id: Id) -> Next {
    let subject = scene.subjects[id];
    if scene.options.mode == Mode::RefreshOnly {
        return decided(leaving::refreshed(scene, id, progress));
    }
    if !subject.wanted {
        return decided(leaving::decide(scene, id, progress));
    }
    match import_of(scene, id).filter(|_| !progress.import_asked) {
        Some(import) => {
            progress.import_asked = true;
            Next::Ask(vec![(Topic::Import, Question::Import(import))])
        }
        None => Next::Evaluate,
    }
}

fn take_import(
    progress: &mut Progress,
    scene: &Scene<'_>,
    id: Id,
    result: Result<Option<ObjectState>, DriverError>,
    configuration: Arc<str>,
) -> Next {
    let subject = scene.subjects[id];
    let import = import_of(scene, id);
    let field = if matches!(import, Some(ImportRequest::Identity(_))) { "identity" } else { "id" };
    let at = Path::default().name("spec").name("import").name(field);
    let block = match result {
        Ok(Some(state)) => {
            let schema = scene.schema(id).unwrap_or_default();
            progress.imported = Some(Arc::new(RecordedObject {
                provider: progress.provider.clone(),
                ..imported(state, &schema, configuration)
            }));
            return Next::Evaluate;
        }
        Ok(None) => {
            let import = import.map_or_else(String::new, |import| import.to_string());
            let what = format!("the object to import does not exist: `{import}`");
            let hint = format!("correct `spec.import.{field}`, or remove `spec.import` to create a new object");
            let missing = Diagnostic::error(subject.address, Reason::ImportNotFound, what).hint(hint);
            Block::broken(missing.at(at))
        }
        Err(error) => {
            let is_wrong = error.kind == ErrorKind::InvalidConfig;
            let block = Block::failed(subject.address, "the object to import could not be read", error);
            if is_wrong { block.at(at) } else { block }
        }
    };
    decided(Draft::blocked(block, subject.current()))
}

/// A recorded object as it is now. Shared with the record when nothing has changed.
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
    // Who cannot tell one configuration from another leaves what is recorded.
    let known = if configuration.is_empty() { &object.provider_config } else { configuration };
    let (private, provider_config) = (state.private, Arc::clone(known));
    let before = object.as_ref().clone();
    let provider = provider.cloned().or_else(|| object.provider.clone());
    let agrees_with = None;
    Arc::new(RecordedObject {
        value,
        private,
        identity,
        schema_version,
        provider_config,
        provider,
        agrees_with,
        ..before
    })
}

/// An object that had no record until now. Its flags and edges come with the first step.
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
