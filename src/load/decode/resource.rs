//! A Resource as the API server has it.

use std::sync::Arc;

use super::{Draft, DraftInput, DraftPublication};
use crate::api;
use crate::load::condition::ConditionSpec;
use crate::load::intern::Interner;
use crate::load::tree::{Node, Tree};
use crate::load::{DeletionPolicy, DriftAction, Instance, hook};
use crate::model::HookKind;

/// The instance of a Resource as the API server has it. What the schema of the CRD checks is checked again, since an
/// older schema may have let it through. Without `serviceAccountName` it acts as `default_service_account`. Resources
/// that are kept together share the texts of one `interner`.
pub fn from_api(resource: &api::Resource, default_service_account: &Arc<str>, interner: &mut Interner) -> Instance {
    decoded(resource, false, default_service_account, interner)
}

/// The same of a `DataSource`.
pub fn data_from_api(data: &api::DataSource, default_service_account: &Arc<str>, interner: &mut Interner) -> Instance {
    decoded(&data.to_resource(), true, default_service_account, interner)
}

fn decoded(
    resource: &api::Resource,
    is_data: bool,
    default_service_account: &Arc<str>,
    interner: &mut Interner,
) -> Instance {
    let (metadata, spec) = (&resource.metadata, &resource.spec);
    let lifecycle = spec.lifecycle.clone().unwrap_or_default();
    let timeouts = spec.timeouts.clone().unwrap_or_default();
    let text = |text: Option<String>| text.map(Arc::from);
    let draft = Draft {
        is_data,
        name: interner.get(metadata.name.as_deref().unwrap_or_default()),
        uid: interner.get(metadata.uid.as_deref().unwrap_or_default()),
        generation: metadata.generation.unwrap_or_default(),
        type_name: interner.get(&spec.type_name),
        provider_config: spec.provider_config_ref.as_ref().map(|named| interner.get(&named.name)),
        count: spec.count.as_ref().map(|count| Tree::from_json(count, interner)),
        for_each: spec.for_each.as_ref().map(|keys| Tree::from_json(keys, interner)),
        enabled: spec.enabled,
        enabled_when: spec.enabled_when.as_deref().map(Arc::from),
        depends_on: spec.depends_on.iter().map(|dependency| interner.get(&dependency.name)).collect(),
        inputs: spec.inputs.iter().map(DraftInput::from).collect(),
        publish: spec.publish.iter().map(|publish| DraftPublication::of(publish, interner)).collect(),
        create_before_destroy: lifecycle.create_before_destroy,
        prevent_destroy: lifecycle.prevent_destroy,
        prevent_destroy_when: lifecycle.prevent_destroy_when.as_deref().map(Arc::from),
        replace_triggered_by: lifecycle.replace_triggered_by.iter().map(|text| interner.get(text)).collect(),
        ignore_changes: lifecycle.ignore_changes.iter().map(|text| interner.get(text)).collect(),
        preconditions: lifecycle.preconditions.iter().map(written).collect(),
        postconditions: lifecycle.postconditions.iter().map(written).collect(),
        policies: spec.management_policies.as_ref().map(|all| all.iter().map(|text| interner.get(text)).collect()),
        hooks: spec.hooks.iter().map(|hook| written_hook(hook, interner)).collect(),
        runs: Some(HookKind::Job),
        deletion_policy: match spec.deletion_policy.unwrap_or_default() {
            api::DeletionPolicy::Delete => DeletionPolicy::Delete,
            api::DeletionPolicy::Orphan => DeletionPolicy::Orphan,
        },
        drift_action: match spec.drift.as_ref().and_then(|drift| drift.action).unwrap_or_default() {
            api::DriftAction::Correct => DriftAction::Correct,
            api::DriftAction::Report => DriftAction::Report,
            api::DriftAction::Ignore => DriftAction::Ignore,
        },
        drift_interval: spec.drift.as_ref().and_then(|drift| drift.interval.as_deref()).map(Arc::from),
        import: spec.import.as_ref().and_then(imported).map(Arc::from),
        import_identity: spec
            .import
            .as_ref()
            .and_then(|import| import.identity.as_ref())
            .map(|identity| Tree::from_json(identity, interner)),
        service_account: spec
            .service_account_name
            .as_deref()
            .map_or_else(|| default_service_account.clone(), |name| interner.get(name)),
        suspended: spec.suspend || resource.annotation(api::PAUSED) == "true",
        timeouts: [text(timeouts.create), text(timeouts.update), text(timeouts.delete), text(timeouts.read)],
        replace_requested: interner.get(resource.annotation(api::REPLACE_REQUESTED_AT)),
        reconcile_requested: interner.get(resource.annotation(api::RECONCILE_REQUESTED_AT)),
        moved_from: interner.get(resource.annotation(api::MOVED_FROM)),
        record_annotation: interner.get(resource.annotation(api::RECORD)),
        has_finalizer: metadata.finalizers.iter().flatten().any(|finalizer| finalizer == api::FINALIZER),
        deleting: metadata.deletion_timestamp.is_some(),
        problems: Vec::new(),
    };
    let mut draft = draft;
    if is_data {
        draft.only_read();
    }
    draft.check_repetition();
    let config = Tree::from_json_map(&spec.config, interner);
    draft.finish(Some(&config), interner)
}

/// The id to import by. An empty `import` must not create an object, so it counts as an empty
/// id, which is refused.
fn imported(import: &api::Import) -> Option<&str> {
    match (&import.id, &import.identity) {
        (None, None) => Some(""),
        (id, _) => id.as_deref(),
    }
}

fn written(condition: &api::Requirement) -> ConditionSpec {
    ConditionSpec {
        condition: Some(condition.condition.as_str().into()),
        message: Some(condition.error_message.as_str().into()),
    }
}

fn written_hook(hook: &api::Hook, interner: &mut Interner) -> hook::HookSpec {
    let text = |text: &str| Some(Arc::from(text));
    let word = |word: &String| Tree { line: 0, node: Node::String(word.as_str().into()) };
    hook::HookSpec {
        name: text(&hook.name),
        when: text(&hook.when),
        on_failure: hook.on_failure.as_deref().and_then(text),
        exec: hook
            .exec
            .as_ref()
            .map(|exec| Tree { line: 0, node: Node::List(exec.command.iter().map(word).collect()) }),
        job: hook.job.as_ref().map(|job| Tree::from_json_map(&job.template, interner)),
        invalid: false,
    }
}
