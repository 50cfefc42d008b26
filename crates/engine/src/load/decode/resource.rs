//! A Resource or a `DataSource` as the API server has it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::account::ServiceAccounts;
use super::{FreeFields, Metadata, Written, annotations, instance, invalid, spec_path};
use crate::load::check::{self, Findings};
use crate::load::intern::Interner;
use crate::load::tree::Tree;
use crate::load::{Instance, deserialize, shape};
use model::{Diagnostic, HookKind, Reason};

/// Returns the instance of a Resource as the API server has it. Rules of the CRD are checked again, because the schema
/// may have been older when the Resource was written. Resources that are kept together share the strings of one `interner`.
pub fn from_api(resource: &api::Resource, accounts: &ServiceAccounts, interner: &mut Interner) -> Instance {
    let free = FreeFields::of_spec(&resource.spec, interner);
    decode(&resource.metadata, false, &resource.spec, free, Findings::default(), accounts, interner)
}

/// Returns the instance of a `DataSource`, like [`from_api`].
pub fn data_from_api(data: &api::DataSource, accounts: &ServiceAccounts, interner: &mut Interner) -> Instance {
    let resource = data.to_resource();
    let free = FreeFields::of_spec(&resource.spec, interner);
    decode(&resource.metadata, true, &resource.spec, free, Findings::default(), accounts, interner)
}

/// Returns the instance of a Resource that may not be decodable, and its status. A Resource that cannot be decoded exists
/// with errors, so that nothing is destroyed. The fields that can be read count, such as `preventDestroy`.
pub fn from_raw(
    raw: &api::RawObject<api::Resource>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> (Instance, Option<api::ResourceStatus>) {
    let instance = match raw.spec() {
        Ok(spec) => {
            let free = FreeFields::of_spec(&spec, interner);
            decode(&raw.metadata, false, &spec, free, Findings::default(), accounts, interner)
        }
        Err(unreadable) => undecodable(&raw.metadata, unreadable, false, accounts, interner),
    };
    (instance, raw.status())
}

/// Returns the instance of a `DataSource`, like [`from_raw`].
pub fn data_from_raw(
    raw: &api::RawObject<api::DataSource>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> (Instance, Option<api::ResourceStatus>) {
    match raw.spec() {
        Ok(spec) => {
            let data = api::DataSource { metadata: raw.metadata.clone(), spec, status: raw.status() };
            (data_from_api(&data, accounts, interner), data.to_resource().status)
        }
        Err(unreadable) => (undecodable(&raw.metadata, unreadable, true, accounts, interner), None),
    }
}

fn undecodable(
    metadata: &ObjectMeta,
    unreadable: api::UnreadableSpec,
    is_data: bool,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> Instance {
    let tree = Tree::from_json(&serde_json::json!({"spec": unreadable.fields}), interner);
    let shape = shape::of(if is_data { api::DATA_SOURCE_KIND } else { api::KIND });
    let findings = check::check(&tree, shape, None);
    let typed = deserialize::read(tree.get("spec"), shape.spec()).unwrap_or_default();
    let free = FreeFields::of_tree(tree.get("spec"));
    let mut instance = decode(metadata, is_data, &typed, free, findings, accounts, interner);
    for (field, why) in unreadable.undecodable {
        instance.problems.push(undecodable_field(&field, why));
    }
    if !instance.has_errors() {
        let what = format!("the {} cannot be read", instance.address.kind());
        let why = unreadable.message;
        instance.problems.push(Diagnostic::error(&instance.address, Reason::InvalidManifest, what).because(why));
    }
    instance
}

/// The error of a field that is no readable JSON.
pub fn undecodable_field(field: &str, why: String) -> Diagnostic {
    invalid(spec_path(&[field]), "the value cannot be decoded", "").because(why)
}

fn decode(
    metadata: &ObjectMeta,
    is_data: bool,
    spec: &api::ResourceSpec,
    free: FreeFields<'_>,
    findings: Findings,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> Instance {
    let annotations = metadata.annotations.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels = metadata.labels.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let (service_account, refused) =
        accounts.choose(metadata.namespace.as_deref(), spec.service_account_name.as_deref(), interner);
    let written = Written {
        is_data,
        metadata: Metadata {
            name: metadata.name.as_deref().unwrap_or_default(),
            uid: metadata.uid.as_deref().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            annotations: annotations.filter(|(name, _)| annotations::is_own(name)).collect(),
            labels: labels.filter(|(name, _)| annotations::means_moved_from(name)).collect(),
            has_finalizer: metadata.finalizers.iter().flatten().any(|finalizer| finalizer == api::FINALIZER),
            deleting: metadata.deletion_timestamp.is_some(),
        },
        spec,
        free,
        runs: HookKind::Job,
        service_account,
        findings,
    };
    let mut instance = instance(written, interner);
    instance.problems.extend(refused.map(|error| Diagnostic { address: Some(instance.address.clone()), ..error }));
    instance
}
