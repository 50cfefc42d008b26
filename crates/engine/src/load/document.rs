//! From a document of a file to its meaning, as strict as `kubectl apply --validate=strict`.

mod data;

use std::path::Path as FilePath;
use std::sync::Arc;

use super::check::{self, Findings};
use super::decode::{self, FreeFields, Kind, Metadata, Written};
use super::intern::Interner;
use super::lines::Lines;
use super::shape::{self, Shape};
use super::tree::{Entry, Node, Tree};
use super::yaml::{self, Fault};
use super::{Instance, ProviderConfig, ProviderSpec, ServiceAccounts, deserialize};
use model::data::StringData;
use model::suggest::closest;
use model::{DataKind, DataRef, Diagnostic, Diagnostics, HookKind, Namespace, Path, Reason, Source, Value};

/// The meaning of a document.
#[derive(Debug)]
pub enum Manifest {
    /// A Resource or a `DataSource`, with the namespace it names.
    Resource(Box<Instance>, Option<(Namespace, Source)>),
    /// A Namespace: its name, and its value as `ns` in expressions.
    Namespace(Namespace, Value),
    /// A `ConfigMap` or Secret, with the namespace it names and its errors.
    Data {
        object: DataRef,
        texts: Arc<StringData>,
        namespace: Option<(Namespace, Source)>,
        source: Source,
        problems: Diagnostics,
    },
    Provider(Box<ProviderSpec>),
    /// A `ProviderConfig`, with the namespace it names.
    ProviderConfig(Box<ProviderConfig>, Option<(Namespace, Source)>),
    /// A document of another kind.
    Ignored(Diagnostics),
    /// A document that cannot be used.
    Unreadable(Diagnostic),
}

/// Where a document comes from, and where its objects will be.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub file: &'a Arc<str>,
    /// `None` on files.
    pub cluster: Option<ClusterOrigin<'a>>,
}

/// The namespace of a cluster in which the objects of a document will be.
#[derive(Clone, Copy)]
pub struct ClusterOrigin<'a> {
    pub namespace: &'a str,
    pub accounts: &'a ServiceAccounts,
}

/// Decodes a document. A `List` results in one manifest for each of its items.
pub fn decode(document: &yaml::Document, origin: Origin<'_>, interner: &mut Interner, found: &mut Vec<Manifest>) {
    let faults = document.errors.iter().map(|fault| (fault, false));
    let faults = faults.chain(document.warnings.iter().map(|fault| (fault, true)));
    let problems = faults.map(|(fault, warning)| diagnostic(fault, origin.file, warning)).collect();
    decode_tree(&document.tree, problems, origin, interner, found);
}

/// Returns the diagnostic of a fault of the YAML.
pub fn diagnostic(fault: &Fault, file: &Arc<str>, warning: bool) -> Diagnostic {
    let mut problem = Diagnostic::general(Reason::InvalidManifest, fault.what.clone());
    if warning {
        problem.severity = model::Severity::Warning;
    }
    problem.hint.clone_from(&fault.hint);
    problem.from_source(Some(Source { file: file.clone(), line: fault.line }))
}

fn decode_tree(
    tree: &Tree,
    problems: Diagnostics,
    origin: Origin<'_>,
    interner: &mut Interner,
    found: &mut Vec<Manifest>,
) {
    let document = Document { tree, origin };
    let [version, kind] = ["apiVersion", "kind"].map(|key| tree.get(key).and_then(Tree::as_str).unwrap_or_default());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    found.push(match (group, kind) {
        (api::GROUP, api::PROVIDER_KIND) => document.provider(problems),
        (api::GROUP, api::PROVIDER_CONFIG_KIND) => document.provider_config(problems, interner),
        // A Plan is no part of the desired state.
        (api::GROUP, api::PLAN_KIND) => Manifest::Ignored(Vec::new()),
        (api::GROUP, api::MODULE_KIND) => {
            let problem = document.error("a Module is reconciled only in a cluster, and is ignored");
            let hint = "specify the directory of the module itself with -f, or apply the manifest with kubectl";
            Manifest::Ignored(vec![problem.hint(hint)])
        }
        (api::GROUP, _) | ("", api::KIND) => document.resource(problems, version, kind, interner),
        ("", "List") => {
            let Some(Tree { node: Node::List(items), .. }) = tree.get("items") else {
                return found.push(Manifest::Unreadable(document.error("the List has no `items`")));
            };
            for item in items {
                decode_tree(item, Vec::new(), origin, interner, found);
            }
            return;
        }
        (_, "") => {
            Manifest::Unreadable(document.error("the document has no `kind`").hint("set `apiVersion` and `kind`"))
        }
        // The group is misspelled.
        _ if closest(group, [api::GROUP]).is_some() => {
            let problem = document.error(format!("`{version}` is not supported"));
            let problem = problem.at(Path::of(&["apiVersion"])).hint(format!("did you mean `{}`?", api::API_VERSION));
            Manifest::Unreadable(document.located(problem))
        }
        ("", "Namespace") => namespace(tree),
        ("", "ConfigMap") => document.data(problems, DataKind::ConfigMap),
        ("", "Secret") => document.data(problems, DataKind::Secret),
        _ => {
            let mut problem = document.error(format!("{version} {kind} is ignored"));
            problem.severity = model::Severity::Warning;
            Manifest::Ignored(vec![problem.hint("Purlin reads only its own kinds, ConfigMap, Secret and Namespace")])
        }
    });
}

fn namespace(tree: &Tree) -> Manifest {
    let name: Namespace = metadata(tree, "name").unwrap_or_default().into();
    let [labels, annotations] = ["labels", "annotations"].map(|field| metadata_map(tree, field));
    Manifest::Namespace(name.clone(), namespace_value(&name, labels, annotations))
}

/// The texts of a map of the metadata, as a value.
fn metadata_map(tree: &Tree, field: &str) -> Value {
    let entries = metadata_entries(tree, field).iter();
    Value::map(entries.filter_map(|entry| Some((entry.key.clone(), Value::from(entry.value.as_str()?)))))
}

fn metadata_entries<'a>(tree: &'a Tree, field: &str) -> &'a [Entry] {
    tree.get("metadata").and_then(|metadata| metadata.get(field)).map_or(&[][..], Tree::entries)
}

/// `ns` of expressions.
pub fn namespace_value(name: &Namespace, labels: Value, annotations: Value) -> Value {
    Value::map([("name", Value::String(name.text().clone())), ("labels", labels), ("annotations", annotations)])
}

/// A field of `metadata`, if it is a string that is not empty.
fn metadata<'a>(tree: &'a Tree, name: &str) -> Option<&'a str> {
    tree.get("metadata")?.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Purlin's annotations in a document.
fn annotations(tree: &Tree) -> Vec<(&str, &str)> {
    metadata_texts(tree, "annotations", decode::is_own)
}

/// The names and texts of a map of the metadata.
fn metadata_texts<'a>(tree: &'a Tree, field: &str, is_meant: fn(&str) -> bool) -> Vec<(&'a str, &'a str)> {
    metadata_entries(tree, field)
        .iter()
        .filter_map(|entry| Some((entry.key.as_ref(), entry.value.as_str()?)))
        .filter(|(name, _)| is_meant(name))
        .collect()
}

/// A document of a file.
struct Document<'a> {
    tree: &'a Tree,
    origin: Origin<'a>,
}

impl Document<'_> {
    fn source(&self, line: usize) -> Source {
        Source { file: self.origin.file.clone(), line }
    }

    /// An error of the whole document.
    fn error(&self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::general(Reason::InvalidManifest, what).from_source(Some(self.source(self.tree.line)))
    }

    /// The diagnostic with the line of its field.
    fn located(&self, problem: Diagnostic) -> Diagnostic {
        let line = problem.path.as_ref().map_or(self.tree.line, |path| self.tree.line_of(path));
        problem.from_source(Some(self.source(line)))
    }

    fn locate(&self, problems: &mut Diagnostics) {
        for problem in problems.iter_mut().filter(|problem| problem.source.is_none()) {
            *problem = self.located(problem.clone());
        }
    }

    /// Checks the document and adds the errors to those of its YAML.
    fn check(&self, problems: Diagnostics, shape: &Shape, superset: Option<(&str, &Shape)>) -> Findings {
        let mut findings = check::check(self.tree, shape, superset);
        if self.tree.get("metadata").is_some_and(|metadata| metadata.get("generateName").is_some()) {
            let problem = Diagnostic::general(Reason::InvalidManifest, "generated names are not supported");
            let hint = "references and records need a fixed name: set `metadata.name`";
            findings.unreadable.push(problem.at(Path::of(&["metadata", "generateName"])).hint(hint));
        }
        findings.unreadable.splice(0..0, problems);
        findings
    }

    /// A document of our group. Whatever its errors are, it counts as present once its name can be read.
    fn resource(&self, problems: Diagnostics, version: &str, kind: &str, interner: &mut Interner) -> Manifest {
        let Some(name) = metadata(self.tree, "name") else {
            let kind = if kind.is_empty() { "document" } else { kind };
            let problem = self.error(format!("the {kind} has no name")).at(Path::of(&["metadata"]));
            let problem = Diagnostic { path: None, ..self.located(problem) };
            return Manifest::Unreadable(problem.hint("set `metadata.name`"));
        };
        let shape = shape::of(kind);
        let superset = (kind == api::DATA_SOURCE_KIND).then(|| (kind, shape::of(api::KIND)));
        let mut findings = self.check(problems, shape, superset);
        check_kind(version, kind, &mut findings);
        let spec: api::ResourceSpec = deserialize::spec(self.tree, shape, &mut findings);
        let tree = self.tree.get("spec");
        // The annotation is about records in a cluster.
        let mut annotations = annotations(self.tree);
        annotations.retain(|(name, _)| *name != api::RECORD);
        let metadata = Metadata {
            name,
            generation: tree.map(Tree::fingerprint).unwrap_or_default(),
            annotations,
            labels: metadata_texts(self.tree, "labels", decode::means_moved_from),
            ..Metadata::default()
        };
        let kind = Kind::named(kind);
        let free = FreeFields::of_tree(kind, tree);
        let (service_account, refused) = self.service_account(spec.service_account_name.as_deref(), interner);
        findings.unreadable.extend(refused);
        let runs = if self.origin.cluster.is_some() { HookKind::Job } else { HookKind::Exec };
        let written = Written { kind, metadata, spec: &spec, free, runs, service_account, findings };
        let mut instance = decode::instance(written, interner);
        self.locate(&mut instance.problems);
        instance.source = Some(self.source(self.tree.line));
        instance.lines = Lines::of(self.tree);
        Manifest::Resource(Box::new(instance), self.namespace())
    }

    /// The account that the object acts as; empty on files.
    fn service_account(&self, named: Option<&str>, interner: &mut Interner) -> (Arc<str>, Option<Diagnostic>) {
        match self.origin.cluster {
            Some(cluster) => cluster.accounts.choose(Some(cluster.namespace), named, interner),
            None => (Arc::default(), None),
        }
    }

    /// `metadata.namespace` and its position.
    fn namespace(&self) -> Option<(Namespace, Source)> {
        let name = metadata(self.tree, "namespace")?;
        Some((name.into(), self.source(self.tree.line_of(&Path::of(&["metadata", "namespace"])))))
    }

    /// A `Provider`. Its errors are reported for the objects that need it.
    fn provider(&self, problems: Diagnostics) -> Manifest {
        let shape = shape::of(api::PROVIDER_KIND);
        let mut findings = self.check(problems, shape, None);
        let mut spec: api::ProviderSpec = deserialize::spec(self.tree, shape, &mut findings);
        let package = spec.package.iter_mut();
        for path in package.flat_map(|package| [&mut package.path, &mut package.filesystem_mirror]).flatten() {
            *path = self.beside(path);
        }
        let mut provider = decode::provider(metadata(self.tree, "name").unwrap_or_default(), &spec);
        provider.problems.extend(decode::unusable_annotations(&annotations(self.tree), api::PROVIDER_KIND));
        provider.problems = findings.with(provider.problems);
        self.locate(&mut provider.problems);
        provider.source = Some(self.source(self.tree.line));
        Manifest::Provider(Box::new(provider))
    }

    /// A path relative to the directory of the file.
    fn beside(&self, path: &str) -> String {
        let folder = FilePath::new(&**self.origin.file).parent().unwrap_or(FilePath::new(""));
        folder.join(path).to_string_lossy().into_owned()
    }

    fn provider_config(&self, problems: Diagnostics, interner: &mut Interner) -> Manifest {
        let shape = shape::of(api::PROVIDER_CONFIG_KIND);
        let mut findings = self.check(problems, shape, None);
        let spec: api::ProviderConfigSpec = deserialize::spec(self.tree, shape, &mut findings);
        let arguments = self.tree.get("spec").and_then(|spec| spec.get("config"));
        let name = metadata(self.tree, "name").unwrap_or_default();
        let mut config = decode::provider_config(name, &spec, arguments, interner);
        config.problems.extend(decode::unusable_annotations(&annotations(self.tree), api::PROVIDER_CONFIG_KIND));
        config.problems = findings.with(config.problems);
        self.locate(&mut config.problems);
        config.source = Some(self.source(self.tree.line));
        config.lines = Lines::of(self.tree);
        Manifest::ProviderConfig(Box::new(config), self.namespace())
    }
}

/// Checks `apiVersion` and `kind` of a document that is a Resource or means one.
fn check_kind(version: &str, kind: &str, findings: &mut Findings) {
    if version != api::API_VERSION {
        let what = match version {
            "" => "required field is missing".to_owned(),
            _ => format!("`{version}` is not supported"),
        };
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(Path::of(&["apiVersion"]));
        findings.unreadable.push(problem.hint(format!("write `apiVersion: {}`", api::API_VERSION)));
    }
    let kinds = [api::KIND, api::DATA_SOURCE_KIND, api::MODULE_KIND, api::PROVIDER_KIND, api::PROVIDER_CONFIG_KIND];
    if !kinds.contains(&kind) {
        let meant = closest(kind, kinds).unwrap_or(api::KIND);
        let problem = Diagnostic::general(Reason::InvalidManifest, format!("unknown kind `{kind}`"));
        findings.unreadable.push(problem.at(Path::of(&["kind"])).hint(format!("write `kind: {meant}`")));
    }
}

#[cfg(test)]
mod tests;
