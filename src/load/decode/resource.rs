//! A Resource or a `DataSource` as the API server has it.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{FreeFields, Metadata, Written, annotations, instance};
use crate::api;
use crate::load::check::{self, Findings};
use crate::load::intern::Interner;
use crate::load::tree::Tree;
use crate::load::{Instance, deserialize, shape};
use crate::model::HookKind;

/// Returns the instance of a Resource as the API server has it. Rules of the CRD are checked again, because the schema
/// may have been older when the Resource was written. Without `serviceAccountName`, it acts as
/// `default_service_account`. Resources that are kept together share the strings of one `interner`.
pub fn from_api(resource: &api::Resource, default_service_account: &Arc<str>, interner: &mut Interner) -> Instance {
    let free = FreeFields::of_spec(&resource.spec, interner);
    decode(&resource.metadata, false, &resource.spec, free, Findings::default(), default_service_account, interner)
}

/// Returns the instance of a `DataSource`, like [`from_api`].
pub fn data_from_api(data: &api::DataSource, default_service_account: &Arc<str>, interner: &mut Interner) -> Instance {
    let resource = data.to_resource();
    let free = FreeFields::of_spec(&resource.spec, interner);
    decode(&resource.metadata, true, &resource.spec, free, Findings::default(), default_service_account, interner)
}

/// Returns the instance of an object with a `spec` that is not of its type, with the errors of the fields. The fields
/// that can be read count, such as `preventDestroy`.
pub fn from_untyped(
    metadata: &ObjectMeta,
    spec: &serde_json::Value,
    is_data: bool,
    default_service_account: &Arc<str>,
    interner: &mut Interner,
) -> Instance {
    let tree = Tree::from_json(&serde_json::json!({"spec": spec}), interner);
    let shape = shape::of(if is_data { api::DATA_SOURCE_KIND } else { api::KIND });
    let findings = check::check(&tree, shape, None);
    let typed = deserialize::read(tree.get("spec"), shape.spec()).unwrap_or_default();
    let free = FreeFields::of_tree(tree.get("spec"));
    decode(metadata, is_data, &typed, free, findings, default_service_account, interner)
}

fn decode(
    metadata: &ObjectMeta,
    is_data: bool,
    spec: &api::ResourceSpec,
    free: FreeFields<'_>,
    findings: Findings,
    default_service_account: &Arc<str>,
    interner: &mut Interner,
) -> Instance {
    let annotations = metadata.annotations.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let account = spec.service_account_name.as_deref();
    let written = Written {
        is_data,
        metadata: Metadata {
            name: metadata.name.as_deref().unwrap_or_default(),
            uid: metadata.uid.as_deref().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            annotations: annotations.filter(|(name, _)| annotations::is_own(name)).collect(),
            has_finalizer: metadata.finalizers.iter().flatten().any(|finalizer| finalizer == api::FINALIZER),
            deleting: metadata.deletion_timestamp.is_some(),
        },
        spec,
        free,
        runs: HookKind::Job,
        service_account: account.map_or_else(|| default_service_account.clone(), |name| interner.get(name)),
        findings,
    };
    instance(written, interner)
}
