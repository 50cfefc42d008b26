//! Drift: changes made outside of Purlin, and how `spec.drift.action` handles them.
//!
//! Drift is a planned change of an object whose recorded state matches its configuration. A difference that the driver
//! does not plan to correct, or that `ignoreChanges` covers, is not drift.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{Block, Decision};
use super::input::{Id, Node, PlanInput};
use super::options::{MissingCount, ProviderConfigId};
use super::progress::{Progress, RefreshResult};
use super::{MISSING_AFTER_CONFIG_CHANGE, Mode, ignore};
use crate::load::DriftAction;
use model::{
    Action, Address, ChangeCause, ConfigDigest, Diagnostic, Drift, ObjectStatus, Reason, RecordedObject, Schema, Value,
    Words, visible,
};

/// Objects that are not desired use `Correct` and are always read, because a missing object needs no destroy.
pub fn action(node: Node<'_>) -> DriftAction {
    node.instance.filter(|_| node.desired).map_or(DriftAction::Correct, |instance| instance.drift.action)
}

/// The recorded object if it matches the configuration, so that any difference is drift. It does if the driver has
/// applied this configuration, or has planned no change for it. Without a record of that, the values are compared.
pub fn matching_record<'a>(input: &PlanInput<'a>, id: Id, progress: &Progress) -> Option<&'a Arc<RecordedObject>> {
    let node = input.nodes[id];
    let schema = input.schema(id)?;
    let recorded = node.current().filter(|object| object.status == ObjectStatus::Ready)?;
    let written = progress.configured.as_ref().unwrap_or(&progress.config).clone();
    let ignored = node.instance.map_or(&[][..], |instance| &instance.ignore_changes);
    let asked = ignore::keep(written, &recorded.value, ignored, &schema);
    let applied = recorded.matching_config;
    let is_applied = applied.is_some() && applied == ConfigDigest::new(&asked, recorded.revision);
    let matches = is_applied || matches(&recorded.value, &asked, &schema);
    (matches && !input.is_replacement_requested(id)).then_some(recorded)
}

/// Whether a value matches a configuration. An attribute that the configuration does not set matches if it is computed
/// or null.
fn matches(value: &Value, config: &Value, schema: &Schema) -> bool {
    schema.attributes.iter().all(|(name, attribute)| {
        let is = value.get(name).unwrap_or(&Value::Null);
        match config.get(name).unwrap_or(&Value::Null) {
            Value::Null => attribute.computed || matches!(is.unmarked(), Value::Null),
            asked => !asked.has_unknown() && asked.equals_unmarked(is),
        }
    })
}

/// The drifted attributes: those that the plan corrects, or all that differ from the record if the plan names none.
/// `None` if the plan changes only attributes that equal the record: such a change is not drift.
pub fn changed(recorded: &Value, now: &Value, planned: &Value) -> Option<Drift> {
    let mut paths = now.differences(planned);
    paths.retain(|path| planned.at(path).is_none_or(|planned| !planned.has_unknown()));
    if paths.is_empty() {
        paths = recorded.differences(now);
    } else {
        paths.retain(|path| match (recorded.at(path), now.at(path)) {
            (Some(recorded), Some(now)) => !recorded.equals_unmarked(&now),
            (recorded, now) => recorded.is_some() || now.is_some(),
        });
        if paths.is_empty() {
            return None;
        }
    }
    Some(Drift::Changed(visible::paths(paths, &[recorded, now, planned])))
}

/// The decision about drift that is reported and not corrected. The record is not updated, so dependents and the next
/// plan use the recorded value.
pub fn report_drift(node: Node<'_>, progress: &mut Progress, recorded: &Arc<RecordedObject>, drift: Drift) -> Decision {
    let mut diagnostics = std::mem::take(&mut progress.diagnostics);
    diagnostics.push(warning(node.address, &drift));
    Decision {
        because: Some(ChangeCause::Reported(drift.clone())),
        drift: Some(drift),
        diagnostics,
        ..Decision::unchanged(Some(recorded))
    }
}

/// The warning about drift that is reported and not corrected.
pub fn warning(address: &Address, drift: &Drift) -> Diagnostic {
    let what = match drift {
        Drift::Changed(_) => format!("{drift}; not corrected (`drift.action: Report`)"),
        Drift::Missing => format!("{drift}; not created again (`drift.action: Report`)"),
    };
    let hint = "set `spec.drift.action: Correct` to correct it, or change the configuration";
    Diagnostic::warning(address, drift.reason(), what).hint(hint)
}

/// Whether a missing object is reported instead of created again. The create of an object that was not ready yet is not
/// complete: it is tried again, as if the wait for the object had found that it is missing.
pub fn reports_missing(input: &PlanInput<'_>, id: Id, progress: &Progress) -> bool {
    let gone = matches!(progress.current, Some(RefreshResult::Missing));
    let node = input.nodes[id];
    let was_ready = node.current().is_none_or(|object| object.readiness.is_none_or(|readiness| !readiness.is_new));
    gone && was_ready && action(node) == DriftAction::Report
}

/// The block of an object that is missing after the provider configuration has changed.
pub fn missing_after_config_change(input: &PlanInput<'_>, node: Node<'_>) -> Block {
    let address = node.address.shell_word();
    let again = match (node.desired, input.options.destroy_orphans) {
        (false, _) => String::new(),
        (true, true) => format!(", create the object again with `--replace {address}`"),
        (true, false) => ", create the object again with the annotation `purlin.dev/replace-requested-at`".to_owned(),
    };
    let hint = format!(
        "restore the previous provider configuration{again}, or drop the record with `purlin state rm {address}`"
    );
    Block::held(
        Diagnostic::error(node.address, Reason::ObjectMissingAfterConfigChange, MISSING_AFTER_CONFIG_CHANGE).hint(hint),
    )
}

/// How many objects may be missing regardless of their share.
const ALLOWED_MISSING: usize = 5;

/// One in this many objects may be missing.
const ALLOWED_SHARE: usize = 5;

/// The missing objects that are not created again, or not forgotten by a refresh-only plan, because more than five and
/// more than one in five objects of their provider configuration are missing. The provider configuration is probably
/// wrong, or the objects were deleted by mistake.
pub fn many_missing(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    if !decisions.iter().flatten().any(|decision| decision.missing) {
        return Vec::new();
    }
    let mut counts: BTreeMap<ProviderConfigId, MissingCount> = input.options.missing_counts.clone();
    for (node, decision) in input.nodes.iter().zip(decisions) {
        if let Some(configuration) = node.record.and_then(ProviderConfigId::of_record) {
            let count = counts.entry(configuration).or_default();
            count.objects += 1;
            count.missing += usize::from(decision.as_ref().is_some_and(|decision| decision.missing));
        }
    }
    let mut held = Vec::new();
    for (id, decision) in decisions.iter().enumerate() {
        let Some(decision) = decision.as_ref().filter(|decision| decision.missing) else { continue };
        let configuration = input.nodes[id].record.and_then(ProviderConfigId::of_record);
        let Some(count) = configuration.and_then(|configuration| counts.get(&configuration)) else { continue };
        let is_many = count.missing > ALLOWED_MISSING && count.missing * ALLOWED_SHARE > count.objects;
        let is_believed = match input.options.mode {
            Mode::RefreshOnly => decision.action == Action::Forget,
            Mode::Normal | Mode::Destroy => decision.action == Action::Create && !input.is_replacement_requested(id),
        };
        if is_many && is_believed && !input.running.contains_key(&id) {
            held.push((id, missing_with_others(input, id, *count)));
        }
    }
    held
}

fn missing_with_others(input: &PlanInput<'_>, id: Id, count: MissingCount) -> Block {
    let address = input.address(id);
    let MissingCount { objects, missing: gone } = count;
    let only_reads = input.options.mode == Mode::RefreshOnly;
    let done = if only_reads { "forgotten" } else { "created again" };
    let what = format!(
        "the object no longer exists; {gone} of {objects} objects of its provider are missing, so none is {done} \
         without confirmation"
    );
    let hint = match input.options.destroy_orphans {
        _ if only_reads => {
            format!("check what happened to them; `--target {}` forgets only this object", address.shell_word())
        }
        true => {
            let dev = match Words::of(address) {
                Words::Manifest => "use the annotation `purlin.dev/replace-requested-at` in its manifest",
                Words::Terraform => "stop it first",
            };
            format!(
                "check what happened to them; `purlin apply --replace {}` creates this object again; while `purlin dev` \
                 runs, {dev}",
                address.shell_word()
            )
        }
        false => {
            "check what happened to them; the annotation `purlin.dev/replace-requested-at` creates the object again"
                .to_owned()
        }
    };
    Block::held(Diagnostic::error(address, Reason::ManyObjectsMissing, what).hint(hint))
}

/// The value that was read, if it differs from the record.
pub fn read_value<'a>(recorded: &RecordedObject, progress: &'a Progress) -> Option<&'a Value> {
    match &progress.current {
        Some(RefreshResult::Found(now)) if now.value != recorded.value => Some(&now.value),
        _ => None,
    }
}

/// How the object differs from its record, if it does.
pub fn difference(recorded: &Arc<RecordedObject>, object: &Arc<RecordedObject>) -> Option<ChangeCause> {
    if Arc::ptr_eq(recorded, object) || recorded == object {
        return None;
    }
    Some(if !recorded.value.equals_unmarked(&object.value) {
        ChangeCause::Drifted
    } else if recorded.provider_config != object.provider_config {
        ChangeCause::OtherConfiguration
    } else {
        ChangeCause::HiddenDifference
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use model::{Attribute, AttributeType};

    fn value(json: serde_json::Value) -> Value {
        Value::from_json(json)
    }

    #[test]
    fn an_unset_computed_attribute_matches_any_value() {
        let attributes = [("given", true, false), ("both", true, true), ("id", false, true)];
        let attributes = attributes.map(|(name, optional, computed)| {
            let attribute = Attribute {
                kind: AttributeType::Any,
                required: false,
                optional,
                computed,
                sensitive: false,
                observed_in: None,
                description: String::new(),
            };
            (name.into(), attribute)
        });
        let schema = Schema { attributes: BTreeMap::from(attributes), ..Schema::default() };
        let recorded = value(json!({"given": 1, "both": "x", "id": "i"}));
        let asks = |config| matches(&recorded, &value(config), &schema);
        assert!(asks(json!({"given": 1})) && asks(json!({"given": 1, "both": "x"})));
        assert!(!asks(json!({})), "a set attribute is removed");
        assert!(!asks(json!({"given": 1, "both": "y"})));
        let unknown = Value::map([("given", Value::Unknown)]);
        assert!(!matches(&recorded, &unknown, &schema), "an unknown value may be anything");
    }

    #[test]
    fn drift_names_corrected_attributes_and_omits_unknown_ones() {
        let recorded = value(json!({"a": 1, "count": 1}));
        let now = value(json!({"a": 2, "count": 2}));
        let planned = value(json!({"a": 1})).with("count", Value::Unknown);
        let drift = |planned: &Value| changed(&recorded, &now, planned).map(|drift| drift.to_string());
        assert_eq!(drift(&planned).as_deref(), Some("changed outside of Purlin: `a`"));
        let unknown = Value::map([("a", Value::Unknown), ("count", Value::Unknown)]);
        assert_eq!(drift(&unknown).as_deref(), Some("changed outside of Purlin: `a`, `count`"));
    }

    #[test]
    fn a_change_of_a_recorded_value_is_not_drift() {
        let recorded = value(json!({"a": 1, "mark": "old", "status": 1}));
        let now = value(json!({"a": 1, "mark": "old", "status": 2}));
        let planned = value(json!({"a": 1, "mark": "new", "status": 2}));
        assert_eq!(changed(&recorded, &now, &planned), None);
        let changed_too = value(json!({"a": 2, "mark": "old", "status": 2}));
        let drift = changed(&recorded, &changed_too, &planned).map(|drift| drift.to_string());
        assert_eq!(drift.as_deref(), Some("changed outside of Purlin: `a`"));
    }
}
