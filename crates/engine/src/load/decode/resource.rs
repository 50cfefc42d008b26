//! Objects as the API server has them: their `spec` is read as that of a document.

use super::account::ServiceAccounts;
use super::{FreeFields, Kind, Metadata, Written, annotations, instance, invalid, spec_path};
use crate::load::check::{self, Findings};
use crate::load::intern::Interner;
use crate::load::tree::{Entry, Node, Tree};
use crate::load::{Instance, deserialize, shape};
use api::RawObject;
use model::HookKind;
use serde::de::DeserializeOwned;

/// Returns the instance of a Resource. One with errors exists, so that nothing is destroyed. The fields that can be read
/// count, such as `preventDestroy`. Rules of the CRD are checked again, because the schema may have been older when the
/// Resource was written. Resources that are kept together share the strings of one `interner`.
pub fn from_raw(raw: &RawObject<api::Resource>, accounts: &ServiceAccounts, interner: &mut Interner) -> Instance {
    let (tree, spec, findings) = read(raw, api::KIND, interner);
    decode(raw, Kind::Resource, &tree, &spec, findings, accounts, interner)
}

/// Returns the instance of a `DataSource`, like [`from_raw`].
pub fn data_from_raw(
    raw: &RawObject<api::DataSource>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> Instance {
    let (tree, spec, findings) = read(raw, api::DATA_SOURCE_KIND, interner);
    decode(raw, Kind::DataSource, &tree, &spec, findings, accounts, interner)
}

/// Returns the instance of a Module, whose program is made from its `spec`, like [`from_raw`].
pub fn module_from_raw(
    raw: &RawObject<api::Module>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> (Instance, api::ModuleSpec) {
    let (tree, spec, findings) = read::<_, api::ModuleSpec>(raw, api::MODULE_KIND, interner);
    let instance = decode(raw, Kind::Module, &tree, &spec.to_resource(), findings, accounts, interner);
    (instance, spec)
}

/// Reads the `spec` of an object as far as it is readable. Returns it also as a tree.
pub fn read<K, S: DeserializeOwned + Default>(
    raw: &RawObject<K>,
    kind: &str,
    interner: &mut Interner,
) -> (Tree, S, Findings) {
    let (fields, undecodable) = raw.fields();
    let spec = Entry { key: interner.get("spec"), line: 0, value: Tree::from_json_map(&fields, interner) };
    let tree = Tree { line: 0, node: Node::Map(vec![spec]) };
    let shape = shape::of(kind);
    let mut findings = check::check_stored(&tree, shape);
    let undecodable = undecodable
        .into_iter()
        .map(|(field, why)| invalid(spec_path(&[&field]), "the value cannot be decoded", "").because(why));
    findings.unreadable.extend(undecodable);
    let spec = deserialize::spec(&tree, shape, &mut findings);
    (tree, spec, findings)
}

fn decode<K>(
    raw: &RawObject<K>,
    kind: Kind,
    tree: &Tree,
    spec: &api::ResourceSpec,
    mut findings: Findings,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> Instance {
    let metadata = &raw.metadata;
    let annotations = metadata.annotations.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels = metadata.labels.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let (service_account, refused) =
        accounts.choose(metadata.namespace.as_deref(), spec.service_account_name.as_deref(), interner);
    findings.unreadable.extend(refused);
    let written = Written {
        kind,
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
        free: FreeFields::of_tree(kind, tree.get("spec")),
        runs: HookKind::Job,
        service_account,
        findings,
    };
    instance(written, interner)
}
