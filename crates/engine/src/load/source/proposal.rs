//! Reads the manifests of a preview, which would be applied to a namespace of a cluster.
//!
//! Only Resources, `DataSources` and `ConfigMaps` count. A preview uses the `ProviderConfigs` and Secrets of the
//! namespace: its author may not be allowed to write those, and a provider could send secrets to an address that its
//! configuration names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ClusterOrigin, Manifest, SourceText, decode_chunks, split_chunks};
use crate::load::{Instance, ProviderConfig, ServiceAccounts};
use model::data::StringData;
use model::{Address, DataKind, DataRef, Diagnostic, Diagnostics, Namespace, Path, Reason, Severity, Source, Stem};

/// Proposed manifests.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// Resources and DataSources. Problems of each are in it.
    pub instances: Vec<Instance>,
    /// The data of ConfigMaps.
    pub data: BTreeMap<DataRef, Arc<StringData>>,
    /// Problems that belong to no Resource.
    pub diagnostics: Diagnostics,
    /// The positions of the instances by name.
    names: BTreeMap<Stem, usize>,
}

/// What the author of a preview has listed, and the API server has checked.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The service accounts besides the default one.
    pub service_accounts: BTreeSet<String>,
    pub types: BTreeSet<String>,
}

impl Proposal {
    /// Reads YAML documents. An object in another namespace, and a second object of the same name, are errors.
    pub fn read(text: &str, namespace: &str, accounts: &ServiceAccounts) -> Self {
        let source = SourceText { name: "manifests".into(), source: None, text: text.to_owned() };
        let cluster = ClusterOrigin { namespace, accounts };
        let mut proposal = Self::default();
        for manifest in decode_chunks(&split_chunks(&source), Some(cluster)) {
            proposal.add(manifest, namespace);
        }
        proposal
    }

    /// Adds errors to objects whose service account or type is not listed.
    pub fn refuse_unlisted(&mut self, listed: &Listed, accounts: &ServiceAccounts) {
        for instance in &mut self.instances {
            let refused = unlisted_account(&instance.service_account, listed, accounts);
            let problems = refused.into_iter().chain(unlisted_type(&instance.type_name, listed));
            let problems: Diagnostics = problems.map(|problem| about(instance, problem)).collect();
            instance.problems.extend(problems);
        }
    }

    /// What the manifests use.
    pub fn uses(&self) -> Listed {
        let accounts = self.instances.iter().map(|instance| instance.service_account.to_string());
        let types = self.instances.iter().map(|instance| instance.type_name.to_string());
        Listed {
            service_accounts: accounts.filter(|name| !name.is_empty()).collect(),
            types: types.filter(|name| !name.is_empty()).collect(),
        }
    }

    pub(crate) fn add(&mut self, manifest: Manifest, namespace: &str) {
        match manifest {
            Manifest::Resource(mut instance, named) => {
                let problem = other_namespace(named, namespace).map(|problem| about(&instance, problem));
                instance.problems.extend(problem);
                self.add_instance(*instance);
            }
            Manifest::ProviderConfig(config, _) => {
                self.diagnostics.extend(config.problems.iter().cloned());
                self.diagnostics.push(not_previewed(&config));
            }
            Manifest::Data { object, texts, namespace: named, problems, .. } if object.kind == DataKind::ConfigMap => {
                self.diagnostics.extend(problems);
                match other_namespace(named, namespace) {
                    None => drop(self.data.insert(object, texts)),
                    Some(problem) => self.diagnostics.push(problem),
                }
            }
            Manifest::Unreadable(problem) => self.diagnostics.push(problem),
            // The preview of a namespace does not concern objects of the cluster, and other tools' kinds even less.
            Manifest::Data { .. } | Manifest::Provider(_) | Manifest::Namespace(..) | Manifest::Ignored(_) => {}
        }
    }

    /// Keeps the first object of each name, with an error.
    fn add_instance(&mut self, instance: Instance) {
        let known = self.names.insert(instance.address.stem.clone(), self.instances.len());
        let Some(first) = known else { return self.instances.push(instance) };
        self.names.insert(instance.address.stem.clone(), first);
        let known = &mut self.instances[first];
        let problem = Diagnostic::general(Reason::InvalidManifest, "the name is used more than once");
        let problem = problem.at(Path::of(&["metadata", "name"])).hint("names must be unique in a namespace");
        let problem = about(known, problem);
        known.problems.push(problem);
    }
}

/// The problem with the address and the line of the manifest.
fn about(instance: &Instance, problem: Diagnostic) -> Diagnostic {
    let source = problem.source.clone().or_else(|| instance.source_of(problem.path.as_ref()));
    let address: Option<Address> = Some(instance.address.clone());
    Diagnostic { address, source, ..problem }
}

fn other_namespace(named: Option<(Namespace, Source)>, namespace: &str) -> Option<Diagnostic> {
    let (named, source) = named.filter(|(named, _)| **named != *namespace)?;
    let what = format!("the namespace is `{named}`, but the Plan is in `{namespace}`");
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(Path::of(&["metadata", "namespace"]));
    Some(problem.from_source(Some(source)).hint("preview each namespace with a Plan of its own"))
}

fn not_previewed(config: &ProviderConfig) -> Diagnostic {
    let what = format!("the manifest of the ProviderConfig `{}` is not part of the preview", config.name);
    let problem = Diagnostic::general(Reason::NotSelected, what).from_source(config.source.clone());
    let hint = "objects are planned with the ProviderConfigs of the namespace: apply a changed one first";
    Diagnostic { severity: Severity::Warning, ..problem.hint(hint) }
}

fn unlisted_type(name: &str, listed: &Listed) -> Option<Diagnostic> {
    if name.is_empty() || listed.types.contains(name) {
        return None;
    }
    let what = format!("the type `{name}` is not listed in `spec.preview.types` of the Plan");
    let problem = Diagnostic::general(Reason::Forbidden, what).at(Path::of(&["spec", "type"]));
    Some(problem.hint("list it there; the API server checks whether you may use it"))
}

fn unlisted_account(name: &str, listed: &Listed, accounts: &ServiceAccounts) -> Option<Diagnostic> {
    if name.is_empty() || *name == *accounts.default || listed.service_accounts.contains(name) {
        return None;
    }
    let what = format!("the service account `{name}` is not listed in `spec.preview.serviceAccountNames` of the Plan");
    let problem = Diagnostic::general(Reason::Forbidden, what).at(Path::of(&["spec", "serviceAccountName"]));
    Some(problem.hint("list it there; the API server checks whether you may use it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\n";

    fn read(text: &str) -> Proposal {
        Proposal::read(text, "shop", &"default".into())
    }

    fn problems(proposal: &Proposal) -> Vec<String> {
        let of_instances = proposal.instances.iter().flat_map(|instance| &instance.problems);
        of_instances.chain(&proposal.diagnostics).map(ToString::to_string).collect()
    }

    #[test]
    fn an_error_has_the_line_of_its_field() {
        let proposal = read(&format!(
            "{HEAD}metadata: {{ name: a }}\nspec:\n  type: t\n  drift: {{ intervall: 1m }}\n{HEAD}metadata:\n  name: \
             b\n  namespace: bank\nspec: {{ type: t }}\n{HEAD}metadata: {{ name: a }}\nspec: {{ type: t }}\n---\na: [\n"
        ));
        let found = problems(&proposal).join("\n");
        for part in [
            "manifests:7: a: spec.drift.intervall",
            "manifests:4: a: metadata.name: the name is used more than once",
            "manifests:13: b: metadata.namespace: the namespace is `bank`, but the Plan is in `shop`",
            "manifests:21: unclosed bracket",
        ] {
            assert!(found.contains(part), "{part}:\n{found}");
        }
        assert_eq!(proposal.instances.len(), 2);
    }

    #[test]
    fn what_could_expand_to_any_size_is_an_error() {
        for (text, expected) in [
            ("a: &x [1]\n", "manifests:1: a preview reads no anchors and aliases (hint: write the values out)"),
            ("a: 1\n<<: { b: 1 }\n", "manifests:2: a preview reads no merge keys (hint: write the values out)"),
            ("a: 1\nb: 1\na: 1\n", "manifests:3: duplicate key `a`"),
        ] {
            assert_eq!(problems(&read(text)), [expected]);
        }
        let many = format!("{HEAD}metadata: {{ name: a }}\nspec: {{ type: t }}\n").repeat(1_000);
        assert_eq!(read(&many).instances.len(), 1);
    }

    #[test]
    fn only_resources_data_sources_and_config_maps_count() {
        let proposal = read(
            "{ apiVersion: v1, kind: ConfigMap, metadata: { name: site }, data: { a: b } }\n---\n\
             { apiVersion: v1, kind: Secret, metadata: { name: site }, stringData: { a: b } }\n---\n\
             { apiVersion: apps/v1, kind: Deployment, metadata: { name: site } }\n---\n\
             { apiVersion: purlin.dev/v1alpha1, kind: ProviderConfig, metadata: { name: cloud } }\n---\n\
             { apiVersion: purlin.dev/v1alpha1, kind: DataSource, metadata: { name: image }, spec: { type: t } }\n",
        );
        let data: Vec<DataKind> = proposal.data.keys().map(|object| object.kind).collect();
        assert_eq!(data, [DataKind::ConfigMap]);
        let addresses: Vec<String> = proposal.instances.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(addresses, ["data.image"]);
        let [warning] = problems(&proposal).try_into().unwrap();
        assert!(warning.starts_with("manifests:7: the manifest of the ProviderConfig `cloud` is not"), "{warning}");
    }

    #[test]
    fn types_and_service_accounts_must_be_listed() {
        let text = |account: &str| format!("{HEAD}metadata: {{ name: a }}\nspec: {{ type: t{account} }}\n");
        let refuse = |account: &str, listed: Listed| {
            let mut proposal = read(&text(account));
            proposal.refuse_unlisted(&listed, &"default".into());
            problems(&proposal)
        };
        let listed = |types: &[&str], accounts: &[&str]| Listed {
            types: types.iter().map(ToString::to_string).collect(),
            service_accounts: accounts.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(refuse("", listed(&["t"], &[])), Vec::<String>::new());
        assert_eq!(refuse(", serviceAccountName: owner", listed(&["t"], &["owner"])), Vec::<String>::new());
        let [refused] = refuse("", listed(&["u"], &[])).try_into().unwrap();
        assert!(refused.starts_with("manifests:5: a: spec.type: the type `t` is not listed in"), "{refused}");
        let [refused] = refuse(", serviceAccountName: owner", listed(&["t"], &[])).try_into().unwrap();
        assert!(
            refused.starts_with("manifests:5: a: spec.serviceAccountName: the service account `owner`"),
            "{refused}"
        );
        let used = read(&text(", serviceAccountName: owner")).uses();
        assert_eq!((used.types, used.service_accounts), (listed(&["t"], &["owner"]).types, ["owner".into()].into()));
    }
}
