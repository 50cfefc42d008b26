//! What somebody else has done to an object, and what becomes of it: `spec.drift.action`.
//!
//! Drift is what a plan would do to an object whose configuration asks for nothing that is not recorded. So nobody has
//! to know which attributes matter to whom: what the driver would leave as it is, and what `ignoreChanges` hides from
//! it, is no drift.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Block, Draft};
use super::options::{Configuration, Others};
use super::progress::{Progress, Refreshed};
use super::requests::replacement_requested;
use super::scene::{Id, Scene, Subject};
use super::{GONE_ELSEWHERE, Mode, ignore};
use crate::load::DriftAction;
use crate::model::{Action, Diagnostic, Drift, ObjectStatus, Path, Reason, RecordedObject, Schema, Value};

/// Why a change is made that only sets right what somebody else has done.
pub(super) const BECAUSE: &str = "it was changed outside of Purlin";

/// What is to become of drift. Objects that nobody wants any more are read whatever was said about them, since what is
/// gone needs no destroy.
pub(super) fn action(subject: Subject<'_>) -> DriftAction {
    subject.instance.filter(|_| subject.wanted).map_or(DriftAction::Correct, |instance| instance.drift.action)
}

/// The recorded object, when the configuration asks for nothing else: then whatever differs is somebody else's doing.
pub(super) fn undisputed<'a>(scene: &Scene<'a>, id: Id, progress: &Progress) -> Option<&'a Arc<RecordedObject>> {
    let subject = scene.subjects[id];
    let schema = scene.schema(id)?;
    let recorded = subject.current().filter(|object| object.status == ObjectStatus::Ready)?;
    let written = progress.configured.as_ref().unwrap_or(&progress.config).clone();
    let ignored = subject.instance.map_or(&[][..], |instance| &instance.ignore_changes);
    let asked = ignore::keep(written, &recorded.value, ignored, &schema);
    (asks_for(&recorded.value, &asked, &schema) && !replacement_requested(scene, id)).then_some(recorded)
}

/// Whether a configuration asks for just this value. What it does not set is as it should be when the driver may set
/// it, and must be absent otherwise.
fn asks_for(value: &Value, config: &Value, schema: &Schema) -> bool {
    schema.attributes.iter().all(|(name, attribute)| {
        let is = value.get(name).unwrap_or(&Value::Null);
        match config.get(name).unwrap_or(&Value::Null) {
            Value::Null => attribute.computed || matches!(is.unmarked(), Value::Null),
            asked => !asked.has_unknown() && asked.same(is),
        }
    })
}

/// The attributes that somebody else has changed: those that the plan sets back, or, where it tells none, those that
/// are not as they were left. `None` when the plan sets only what is as it was left: that is our own doing, such as the
/// mark of an object that has another name by now.
pub(super) fn changed(recorded: &Value, now: &Value, planned: &Value) -> Option<Drift> {
    let mut paths = now.differences(planned);
    paths.retain(|path| planned.at(path).is_none_or(|planned| !planned.has_unknown()));
    if paths.is_empty() {
        return Some(Drift::Changed(recorded.differences(now)));
    }
    let as_left = |path: &Path| match (recorded.at(path), now.at(path)) {
        (Some(recorded), Some(now)) => recorded.same(&now),
        (recorded, now) => recorded.is_none() && now.is_none(),
    };
    paths.retain(|path| !as_left(path));
    (!paths.is_empty()).then_some(Drift::Changed(paths))
}

/// An object that stays as somebody else has left it. Its dependents go on with what is recorded, and so does the next
/// comparison: the record is not touched.
pub(super) fn reported(
    subject: Subject<'_>,
    progress: &mut Progress,
    recorded: &Arc<RecordedObject>,
    drift: Drift,
) -> Draft {
    let what = match &drift {
        Drift::Changed(_) => format!("{drift}; it stays so (`drift.action: Report`)"),
        Drift::Gone => format!("{drift}, and is not made anew (`drift.action: Report`)"),
    };
    let hint = "set `spec.drift.action: Correct` to have it corrected, or change what is wanted";
    let mut diagnostics = std::mem::take(&mut progress.diagnostics);
    diagnostics.push(Diagnostic::warning(subject.address, drift.reason(), what).hint(hint));
    Draft { because: Some(drift.to_string()), drift: Some(drift), diagnostics, ..Draft::unchanged(Some(recorded)) }
}

/// The drift to report instead of making a new object.
pub(super) fn reports_gone(scene: &Scene<'_>, id: Id, progress: &Progress) -> bool {
    let gone = matches!(progress.current, Some(Refreshed::Gone));
    gone && action(scene.subjects[id]) == DriftAction::Report
}

/// An object that is missing under another configuration than the one that last saw it.
pub(super) fn elsewhere(scene: &Scene<'_>, subject: Subject<'_>) -> Block {
    let address = subject.address;
    let again = match (subject.wanted, scene.options.destroy_orphans) {
        (false, _) => String::new(),
        (true, true) => format!(", have it made anew with `--replace {address}`"),
        (true, false) => ", have it made anew with the annotation `purlin.dev/replace-requested-at`".to_owned(),
    };
    let hint =
        format!("go back to the configuration that made it{again}, or forget it with `purlin state rm {address}`");
    Block::held(Diagnostic::error(address, Reason::GoneAfterConfigChange, GONE_ELSEWHERE).hint(hint))
}

/// So many may go missing whatever their share is: a few objects are gone quickly.
const FEW: usize = 5;

/// One in so many may go missing.
const SHARE: usize = 5;

/// The objects that are not made anew, nor forgotten by a plan that only reads, since more than five and more than one in five of their configuration's objects
/// are gone: more likely the provider looks at the wrong place, or somebody made a mistake that should not be followed
/// by a second one.
pub(super) fn mass_disappearances(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<(Id, Block)> {
    let is_gone = |id: Id| drafts[id].as_ref().is_some_and(|draft| draft.gone);
    if !(0..drafts.len()).any(is_gone) {
        return Vec::new();
    }
    let mut counts: BTreeMap<Configuration, Others> = scene.options.others.clone();
    let of = |id: Id| {
        let (record, object) = (scene.subjects[id].record?, scene.subjects[id].current()?);
        Some(Configuration::of(&record.type_name, object))
    };
    for id in 0..drafts.len() {
        if let Some(configuration) = of(id) {
            let count = counts.entry(configuration).or_default();
            count.objects += 1;
            count.gone += usize::from(is_gone(id));
        }
    }
    let held = |id: Id| {
        let draft = drafts[id].as_ref()?;
        let count = counts.get(&of(id)?)?;
        let many = count.gone > FEW && count.gone * SHARE > count.objects;
        let only_reads = scene.options.mode == Mode::RefreshOnly;
        let believed = match only_reads {
            true => draft.action == Action::Forget,
            false => draft.action == Action::Create && !replacement_requested(scene, id),
        };
        (many && draft.gone && believed && !scene.running.contains_key(&id))
            .then(|| (id, missing_with_others(scene, id, *count)))
    };
    (0..drafts.len()).filter_map(held).collect()
}

fn missing_with_others(scene: &Scene<'_>, id: Id, count: Others) -> Block {
    let address = scene.address(id);
    let Others { objects, gone } = count;
    let only_reads = scene.options.mode == Mode::RefreshOnly;
    let done = if only_reads { "forgotten" } else { "made anew" };
    let what = format!(
        "the object does not exist any more; {gone} of {objects} objects of its provider are gone, and none is {done} \
         before somebody says so"
    );
    let hint = match scene.options.destroy_orphans {
        _ if only_reads => format!("see what became of them; `--target {address}` forgets this one alone"),
        true => format!(
            "see what became of them; `purlin apply --replace {address}` makes this one anew, and so does, also while \
             `purlin dev` runs, the annotation `purlin.dev/replace-requested-at` in its manifest"
        ),
        false => {
            "see what became of them; the annotation `purlin.dev/replace-requested-at` has it made anew".to_owned()
        }
    };
    Block::held(Diagnostic::error(address, Reason::MassDisappearance, what).hint(hint))
}

/// What reading found, when it is not what is recorded.
pub(super) fn found<'a>(recorded: &RecordedObject, progress: &'a Progress) -> Option<&'a Value> {
    match &progress.current {
        Some(Refreshed::Found(now)) if now.value != recorded.value => Some(&now.value),
        _ => None,
    }
}

/// In what the object differs from its record, if it does.
pub(super) fn difference(recorded: &Arc<RecordedObject>, object: &Arc<RecordedObject>) -> Option<&'static str> {
    if Arc::ptr_eq(recorded, object) || recorded == object {
        return None;
    }
    Some(if !recorded.value.same(&object.value) {
        BECAUSE
    } else if recorded.provider_config != object.provider_config {
        "the provider's configuration changed"
    } else {
        "sensitive marks or provider data changed"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Attribute, AttributeType};

    fn value(json: serde_json::Value) -> Value {
        Value::from_json(json)
    }

    #[test]
    fn what_is_not_set_may_be_anything_the_driver_sets() {
        let attribute = |optional, computed| Attribute {
            kind: AttributeType::Any,
            required: false,
            optional,
            computed,
            sensitive: false,
            shown_in: None,
            description: String::new(),
        };
        let attributes = [("given", true, false), ("both", true, true), ("id", false, true)];
        let attributes = attributes.map(|(name, optional, computed)| (name.into(), attribute(optional, computed)));
        let schema = Schema { version: 0, attributes: BTreeMap::from(attributes) };
        let recorded = value(json!({"given": 1, "both": "x", "id": "i"}));
        let asks = |config| asks_for(&recorded, &value(config), &schema);
        assert!(asks(json!({"given": 1})) && asks(json!({"given": 1, "both": "x"})));
        assert!(!asks(json!({})), "what was set is to be unset");
        assert!(!asks(json!({"given": 1, "both": "y"})));
        let unknown = Value::map([("given", Value::Unknown)]);
        assert!(!asks_for(&recorded, &unknown, &schema), "what is not known yet may be anything");
    }

    #[test]
    fn drift_names_what_is_set_back_and_leaves_out_what_only_the_driver_knows() {
        let recorded = value(json!({"a": 1, "count": 1}));
        let now = value(json!({"a": 2, "count": 2}));
        let planned = value(json!({"a": 1})).with("count", Value::Unknown);
        let told = |planned: &Value| changed(&recorded, &now, planned).map(|drift| drift.to_string());
        assert_eq!(told(&planned).as_deref(), Some("changed outside of Purlin: `a`"));
        let unknown = Value::map([("a", Value::Unknown), ("count", Value::Unknown)]);
        assert_eq!(told(&unknown).as_deref(), Some("changed outside of Purlin: `a`, `count`"));
    }

    #[test]
    fn what_the_plan_alone_changes_is_no_drift() {
        let recorded = value(json!({"a": 1, "mark": "old", "status": 1}));
        let now = value(json!({"a": 1, "mark": "old", "status": 2}));
        let planned = |a: i64| value(json!({"a": a, "mark": "new", "status": 2}));
        assert_eq!(changed(&recorded, &now, &planned(1)), None);
        let changed_too = value(json!({"a": 2, "mark": "old", "status": 2}));
        let told = changed(&recorded, &changed_too, &planned(1)).map(|drift| drift.to_string());
        assert_eq!(told.as_deref(), Some("changed outside of Purlin: `a`"));
    }
}
