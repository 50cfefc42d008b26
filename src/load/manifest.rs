//! From a document of a file to what it means, as strict as `kubectl apply --validate=strict`.

mod data_source;
mod hooks;
mod inputs;
mod provider;
mod publish;

use std::sync::Arc;

use data_source::{DATA_LIFECYCLE, DATA_SPEC};

use super::condition::{ConditionKind, ConditionSpec};
use super::decode::{COUNT, Draft, KEYS};
use super::intern::Interner;
use super::suggest::closest;
use super::tree::{Entry, Node, Tree};
use super::yaml::{Document, Fault};
use super::{DeletionPolicy, DriftAction, Instance, ProviderConfig, ProviderSpec};
use crate::api;
use crate::model::data::StringData;
use crate::model::{DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason, Source, Value};

/// What a document turned out to be.
#[derive(Debug)]
pub(super) enum Manifest {
    /// A Resource or a `DataSource`, with the namespace it names.
    Resource(Box<Instance>, Option<Arc<str>>),
    /// A Namespace: its name, and its value as `ns` in expressions.
    Namespace(Arc<str>, Value),
    /// A `ConfigMap` or Secret, with the namespace it names and what is wrong with it.
    Data { object: DataRef, texts: Arc<StringData>, namespace: Option<Arc<str>>, source: Source, problems: Diagnostics },
    /// A Provider.
    Provider(Box<ProviderSpec>),
    /// A `ProviderConfig`, with the namespace it names.
    ProviderConfig(Box<ProviderConfig>, Option<Arc<str>>),
    /// Nothing of ours.
    Ignored(Diagnostics),
    /// Its content is not usable.
    Unreadable(Diagnostic),
}

/// What a document is, of which file, with its problems.
pub(super) struct Reading<'a> {
    file: &'a Arc<str>,
    problems: Diagnostics,
}

/// Decodes a document; a `List` gives one manifest for each of its items.
pub(super) fn decode(document: &Document, file: &Arc<str>, interner: &mut Interner, found: &mut Vec<Manifest>) {
    let faults = document.errors.iter().map(|fault| (fault, false));
    let faults = faults.chain(document.warnings.iter().map(|fault| (fault, true)));
    let problems = faults.map(|(fault, warning)| diagnostic(fault, file, warning)).collect();
    decode_tree(&document.tree, problems, file, interner, found);
}

/// A fault of the text as a diagnostic.
pub(super) fn diagnostic(fault: &Fault, file: &Arc<str>, warning: bool) -> Diagnostic {
    let mut problem = Diagnostic::general(Reason::InvalidManifest, fault.what.clone());
    if warning {
        problem.severity = crate::model::Severity::Warning;
    }
    problem.hint.clone_from(&fault.hint);
    problem.from_source(Some(Source { file: file.clone(), line: fault.line }))
}

fn decode_tree(
    tree: &Tree,
    problems: Diagnostics,
    file: &Arc<str>,
    interner: &mut Interner,
    found: &mut Vec<Manifest>,
) {
    let reading = Reading { file, problems };
    let text = |key| tree.get(key).and_then(Tree::as_str);
    let (version, kind) = (text("apiVersion").unwrap_or_default(), text("kind").unwrap_or_default());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    found.push(match (group, kind) {
        (api::GROUP, "Provider") => reading.provider(tree, interner),
        (api::GROUP, "ProviderConfig") => reading.provider_config(tree, interner),
        (api::GROUP, _) | ("", api::KIND) => reading.resource(tree, version, kind, interner),
        ("", "List") => {
            let Some(Tree { node: Node::List(items), .. }) = tree.get("items") else {
                return found.push(Manifest::Unreadable(reading.error(tree.line, "the List has no `items`")));
            };
            for item in items {
                decode_tree(item, Vec::new(), file, interner, found);
            }
            return;
        }
        (_, "") => Manifest::Unreadable(
            reading.error(tree.line, "the document has no `kind`").hint("set `apiVersion` and `kind`"),
        ),
        // The group is misspelled.
        _ if closest(group, [api::GROUP]).is_some() => Manifest::Unreadable(
            reading
                .error(tree.line_of(&Path::of(&["apiVersion"])), format!("apiVersion: `{version}` is not supported"))
                .hint(format!("did you mean `{}`?", api::API_VERSION)),
        ),
        ("", "Namespace") => namespace(tree),
        ("", "ConfigMap") => reading.data(tree, DataKind::ConfigMap),
        ("", "Secret") => reading.data(tree, DataKind::Secret),
        _ => {
            let mut problem = reading.error(tree.line, format!("{version} {kind} is ignored"));
            problem.severity = crate::model::Severity::Warning;
            Manifest::Ignored(vec![problem.hint("Purlin reads only its own kinds, ConfigMap, Secret and Namespace")])
        }
    });
}

fn named(tree: &Tree, name: &str) -> Option<Arc<str>> {
    match &tree.get("metadata")?.get(name)?.node {
        Node::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn namespace(tree: &Tree) -> Manifest {
    let texts = |key: &str| {
        let Some(Node::Map(entries)) = tree.get("metadata").and_then(|meta| meta.get(key)).map(|tree| &tree.node)
        else {
            return Value::map::<Arc<str>>([]);
        };
        let text = |entry: &Entry| Some((entry.key.clone(), Value::from(entry.value.as_str()?)));
        Value::map(entries.iter().filter_map(text))
    };
    let name = named(tree, "name").unwrap_or_else(|| "".into());
    Manifest::Namespace(name.clone(), namespace_value(&name, texts("labels"), texts("annotations")))
}

/// `ns` of expressions.
pub(super) fn namespace_value(name: &Arc<str>, labels: Value, annotations: Value) -> Value {
    Value::map([("name", Value::String(name.clone())), ("labels", labels), ("annotations", annotations)])
}

/// Fields of `metadata` that a manifest, or what `kubectl get` printed, may hold.
const METADATA: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

const SPEC: &[&str] = &[
    "config",
    "count",
    "deletionPolicy",
    "dependsOn",
    "drift",
    "enabled",
    "enabledWhen",
    "forEach",
    "hooks",
    "import",
    "inputs",
    "lifecycle",
    "managementPolicies",
    "providerConfigRef",
    "publish",
    "serviceAccountName",
    "suspend",
    "timeouts",
    "type",
];

const LIFECYCLE: &[&str] = &[
    "createBeforeDestroy",
    "ignoreChanges",
    "postconditions",
    "preconditions",
    "preventDestroy",
    "preventDestroyWhen",
    "replaceTriggeredBy",
];

const TIMEOUTS: &[&str] = &["create", "update", "delete", "read"];

impl Reading<'_> {
    fn source(&self, line: usize) -> Source {
        Source { file: self.file.clone(), line }
    }

    fn error(&self, line: usize, what: impl Into<String>) -> Diagnostic {
        Diagnostic::general(Reason::InvalidManifest, what).from_source(Some(self.source(line)))
    }

    fn problem(&mut self, line: usize, at: Path, what: impl Into<String>, hint: Option<String>) {
        let mut problem = self.error(line, what).at(at);
        problem.hint = hint;
        self.problems.push(problem);
    }

    /// A document of our group. Whatever is wrong with it, it counts as present once its name can be read.
    fn resource(mut self, tree: &Tree, version: &str, kind: &str, interner: &mut Interner) -> Manifest {
        let Some(name) = named(tree, "name").filter(|name| !name.is_empty()) else {
            let line = tree.get("metadata").map_or(tree.line, |metadata| metadata.line);
            let what = format!("the {kind} has no name").replace("the  ", "the document ");
            return Manifest::Unreadable(self.error(line, what).hint("set `metadata.name`"));
        };
        let line_of = |key: &str| tree.line_of(&Path::of(&[key]));
        if version != api::API_VERSION {
            let what = if version.is_empty() {
                "required field is missing".to_owned()
            } else {
                format!("`{version}` is not supported")
            };
            let hint = format!("write `apiVersion: {}`", api::API_VERSION);
            self.problem(line_of("apiVersion"), Path::of(&["apiVersion"]), what, Some(hint));
        }
        let is_data = kind == api::DATA_SOURCE_KIND;
        if kind != api::KIND && !is_data {
            let what = format!("unknown kind `{kind}`");
            let meant = closest(kind, [api::KIND, api::DATA_SOURCE_KIND]).unwrap_or(api::KIND);
            self.problem(line_of("kind"), Path::of(&["kind"]), what, Some(format!("write `kind: {meant}`")));
        }
        let mut draft = Draft { is_data, name: interner.get(&name), ..Draft::default() };
        let mut config = None;
        for entry in self.entries(tree, &[]) {
            match entry.key.as_ref() {
                "apiVersion" | "kind" | "status" => {}
                "metadata" => self.metadata(&entry.value, &mut draft),
                "spec" => {
                    draft.generation = entry.value.fingerprint();
                    config = self.spec(&entry.value, &mut draft, interner);
                }
                _ => self.unknown(entry, &[], &["apiVersion", "kind", "metadata", "spec", "status"]),
            }
        }
        let namespace = named(tree, "namespace");
        let problems = std::mem::take(&mut self.problems);
        draft.problems = problems;
        let mut instance = draft.finish(config, interner);
        for problem in &mut instance.problems {
            let line = || problem.path.as_ref().map_or(tree.line, |path| tree.line_of(path));
            problem.source = problem.source.take().or_else(|| Some(self.source(line())));
        }
        instance.source = Some(self.source(tree.line));
        Manifest::Resource(Box::new(instance), namespace)
    }

    fn metadata(&mut self, tree: &Tree, draft: &mut Draft) {
        for entry in self.entries(tree, &["metadata"]) {
            let at = ["metadata", entry.key.as_ref()];
            match entry.key.as_ref() {
                "name" | "namespace" => drop(self.text(&entry.value, &at)),
                "annotations" => {
                    for annotation in self.entries(&entry.value, &at) {
                        let text = self.text(&annotation.value, &[at[0], at[1], &annotation.key]);
                        match (annotation.key.as_ref(), text) {
                            (api::MOVED_FROM | api::REPLACE_REQUESTED_AT, Some(_)) if draft.is_data => {
                                let at = Path::of(&[at[0], at[1], &annotation.key]);
                                self.problem(
                                    annotation.line,
                                    at,
                                    "this annotation does not apply to a DataSource",
                                    None,
                                );
                            }
                            (api::PAUSED, Some(text)) => draft.suspended |= text.as_ref() == "true",
                            (api::MOVED_FROM, Some(text)) => draft.moved_from = text,
                            (api::REPLACE_REQUESTED_AT, Some(text)) => draft.replace_requested = text,
                            (api::RECONCILE_REQUESTED_AT, Some(text)) => draft.reconcile_requested = text,
                            _ => {}
                        }
                    }
                }
                "labels" => {
                    for label in self.entries(&entry.value, &at) {
                        self.text(&label.value, &[at[0], at[1], &label.key]);
                    }
                }
                "generateName" => {
                    let hint = "references and records need a fixed name: set `metadata.name`".to_owned();
                    self.problem(entry.line, Path::of(&at), "generated names are not supported", Some(hint));
                }
                known if METADATA.contains(&known) => {}
                _ => self.unknown(entry, &["metadata"], METADATA),
            }
        }
    }

    /// Reads the spec into the draft, and gives `spec.config`.
    fn spec<'t>(&mut self, tree: &'t Tree, draft: &mut Draft, interner: &mut Interner) -> Option<&'t Tree> {
        let mut config = None;
        for entry in self.entries(tree, &["spec"]) {
            let at = ["spec", entry.key.as_ref()];
            let value = &entry.value;
            match entry.key.as_ref() {
                _ if draft.is_data && !DATA_SPEC.contains(&entry.key.as_ref()) => self.only_managed(entry, &["spec"]),
                "type" => draft.type_name = interner.get(self.text(value, &at).as_deref().unwrap_or_default()),
                "config" => {
                    self.entries(value, &at);
                    config = Some(value);
                }
                "count" => match &value.node {
                    Node::Number(_) | Node::String(_) => draft.count = Some(value.clone()),
                    _ => self.wrong(value, Path::of(&at), COUNT),
                },
                "forEach" => match &value.node {
                    Node::Map(_) | Node::List(_) | Node::String(_) => draft.for_each = Some(value.clone()),
                    _ => self.wrong(value, Path::of(&at), KEYS),
                },
                "enabled" => draft.enabled = self.boolean(value, &at),
                "enabledWhen" => draft.enabled_when = self.text(value, &at),
                "dependsOn" => draft.depends_on = self.dependencies(value, interner),
                "hooks" => draft.hooks = self.hooks(value),
                "lifecycle" => self.lifecycle(value, draft, interner),
                "inputs" => draft.inputs = self.inputs(value),
                "providerConfigRef" => {
                    for entry in self.entries(value, &at) {
                        match entry.key.as_ref() {
                            "name" => draft.provider_config = self.text(&entry.value, &[at[0], at[1], "name"]),
                            _ => self.unknown(entry, &at, &["name"]),
                        }
                    }
                }
                "publish" => draft.publish = self.publish(value),
                "deletionPolicy" => match self.text(value, &at).as_deref() {
                    None | Some("Delete") => draft.deletion_policy = DeletionPolicy::Delete,
                    Some("Orphan") => draft.deletion_policy = DeletionPolicy::Orphan,
                    Some(other) => {
                        let what = format!("must be `Delete` or `Orphan`, not `{other}`");
                        let meant =
                            closest(other, ["Delete", "Orphan"]).map(|meant| format!("did you mean `{meant}`?"));
                        self.problem(value.line, Path::of(&at), what, meant);
                    }
                },
                "managementPolicies" if !matches!(value.node, Node::Null) => {
                    draft.policies = Some(self.texts(value, &at, interner));
                }
                "managementPolicies" => {}
                "drift" => self.drift(value, draft),
                "import" => {
                    for entry in self.entries(value, &at) {
                        match entry.key.as_ref() {
                            "id" => draft.import = self.text(&entry.value, &["spec", "import", "id"]),
                            "identity" => draft.import_identity = Some(entry.value.clone()),
                            _ => self.unknown(entry, &at, &["id", "identity"]),
                        }
                    }
                    // With `import`, no new object is created.
                    if matches!(value.node, Node::Map(_)) && draft.import_identity.is_none() {
                        draft.import.get_or_insert_default();
                    }
                }
                // Locally everything is done as the user who runs it.
                "serviceAccountName" => {
                    if self.text(value, &at).is_some_and(|name| name.is_empty()) {
                        let hint = "omit it in local mode, where Purlin acts as the user who runs it".to_owned();
                        self.problem(value.line, Path::of(&at), "the name must not be empty", Some(hint));
                    }
                }
                "suspend" => draft.suspended |= self.boolean(value, &at).unwrap_or_default(),
                "timeouts" => self.timeouts(value, draft),
                _ => self.unknown(entry, &["spec"], SPEC),
            }
        }
        config
    }

    fn dependencies(&mut self, tree: &Tree, interner: &mut Interner) -> Vec<Arc<str>> {
        let items = self.items(tree, &Path::of(&["spec", "dependsOn"]));
        let mut names = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = Path::of(&["spec", "dependsOn"]).index(index);
            let Node::Map(entries) = &item.node else {
                self.wrong(item, at, "a map with a `name`");
                continue;
            };
            if item.get("name").is_none() {
                self.problem(
                    item.line,
                    at.clone(),
                    "`name` is missing",
                    Some("write `name:` and the name of the Resource".to_owned()),
                );
            }
            for entry in entries {
                match (entry.key.as_ref(), &entry.value.node) {
                    ("name", Node::String(text)) => names.push(interner.get(text)),
                    ("name", _) => self.wrong(&entry.value, at.name("name"), "a string"),
                    _ => self.unknown_at(entry, &at, &["name"]),
                }
            }
        }
        names
    }

    fn lifecycle(&mut self, tree: &Tree, draft: &mut Draft, interner: &mut Interner) {
        let at = ["spec", "lifecycle"];
        for entry in self.entries(tree, &at) {
            let place = [at[0], at[1], entry.key.as_ref()];
            match entry.key.as_ref() {
                _ if draft.is_data && !DATA_LIFECYCLE.contains(&entry.key.as_ref()) => self.only_managed(entry, &at),
                "createBeforeDestroy" => draft.create_before_destroy = self.boolean(&entry.value, &place),
                "preventDestroy" => draft.prevent_destroy = self.boolean(&entry.value, &place),
                "preventDestroyWhen" => draft.prevent_destroy_when = self.text(&entry.value, &place),
                "ignoreChanges" => draft.ignore_changes = self.texts(&entry.value, &place, interner),
                "preconditions" => draft.preconditions = self.conditions(&entry.value, ConditionKind::Precondition),
                "postconditions" => draft.postconditions = self.conditions(&entry.value, ConditionKind::Postcondition),
                "replaceTriggeredBy" => draft.replace_triggered_by = self.texts(&entry.value, &place, interner),
                _ => self.unknown(entry, &at, LIFECYCLE),
            }
        }
    }

    fn conditions(&mut self, tree: &Tree, moment: ConditionKind) -> Vec<ConditionSpec> {
        let list = Path::of(&["spec", "lifecycle", moment.field()]);
        let items = self.items(tree, &list);
        let mut conditions = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = list.index(index);
            // An error that is reported here is not reported again by the parser.
            let faulty = || Some(Arc::from("${true}"));
            let mut written = ConditionSpec::default();
            let Node::Map(entries) = &item.node else {
                self.wrong(item, at, "a map with a `condition` and an `errorMessage`");
                conditions.push(ConditionSpec { condition: faulty(), message: faulty() });
                continue;
            };
            for entry in entries {
                let place = match entry.key.as_ref() {
                    "condition" => &mut written.condition,
                    "errorMessage" => &mut written.message,
                    _ => {
                        self.unknown_at(entry, &at, &["condition", "errorMessage"]);
                        continue;
                    }
                };
                match &entry.value.node {
                    Node::String(text) => *place = Some(text.clone()),
                    _ => {
                        *place = faulty();
                        self.wrong(&entry.value, at.name(entry.key.clone()), "a string");
                    }
                }
            }
            conditions.push(written);
        }
        conditions
    }

    fn drift(&mut self, tree: &Tree, draft: &mut Draft) {
        const ACTIONS: [&str; 3] = ["Correct", "Report", "Ignore"];
        let at = ["spec", "drift"];
        for entry in self.entries(tree, &at) {
            let (value, place) = (&entry.value, [at[0], at[1], entry.key.as_ref()]);
            match entry.key.as_ref() {
                "action" if draft.is_data => self.only_managed(entry, &at),
                "interval" => draft.drift_interval = self.text(value, &place),
                "action" => match self.text(value, &place).as_deref() {
                    None | Some("Correct") => draft.drift_action = DriftAction::Correct,
                    Some("Report") => draft.drift_action = DriftAction::Report,
                    Some("Ignore") => draft.drift_action = DriftAction::Ignore,
                    Some(other) => {
                        let what = format!("must be `Correct`, `Report` or `Ignore`, not `{other}`");
                        let meant = closest(other, ACTIONS).map(|meant| format!("did you mean `{meant}`?"));
                        self.problem(value.line, Path::of(&place), what, meant);
                    }
                },
                _ => self.unknown(entry, &at, &["action", "interval"]),
            }
        }
    }

    fn timeouts(&mut self, tree: &Tree, draft: &mut Draft) {
        for entry in self.entries(tree, &["spec", "timeouts"]) {
            if draft.is_data && *entry.key != *"read" {
                self.only_managed(entry, &["spec", "timeouts"]);
                continue;
            }
            match TIMEOUTS.iter().position(|name| *name == entry.key.as_ref()) {
                Some(position) => {
                    draft.timeouts[position] = self.text(&entry.value, &["spec", "timeouts", &entry.key]);
                }
                None => self.unknown(entry, &["spec", "timeouts"], TIMEOUTS),
            }
        }
    }

    /// The entries of a map; none, with an error, of anything else but null.
    fn entries<'t>(&mut self, tree: &'t Tree, at: &[&str]) -> &'t [Entry] {
        self.entries_at(tree, &Path::of(at))
    }

    fn entries_at<'t>(&mut self, tree: &'t Tree, at: &Path) -> &'t [Entry] {
        match &tree.node {
            Node::Map(entries) => entries,
            Node::Null => &[],
            _ => {
                self.wrong(tree, at.clone(), "a map");
                &[]
            }
        }
    }

    /// The items of a list; none, with an error, of anything else but null.
    fn items<'t>(&mut self, tree: &'t Tree, at: &Path) -> &'t [Tree] {
        match &tree.node {
            Node::List(items) => items,
            Node::Null => &[],
            _ => {
                self.wrong(tree, at.clone(), "a list");
                &[]
            }
        }
    }

    fn text(&mut self, tree: &Tree, at: &[&str]) -> Option<Arc<str>> {
        self.text_at(tree, Path::of(at))
    }

    fn text_at(&mut self, tree: &Tree, at: Path) -> Option<Arc<str>> {
        match &tree.node {
            Node::String(text) => Some(text.clone()),
            Node::Null => None,
            _ => {
                self.wrong(tree, at, "a string");
                None
            }
        }
    }

    /// The items of a list of texts; an item of another kind is an error, and left out.
    fn texts(&mut self, tree: &Tree, at: &[&str], interner: &mut Interner) -> Vec<Arc<str>> {
        let items = match &tree.node {
            Node::List(items) => items.as_slice(),
            Node::Null => &[],
            _ => {
                self.wrong(tree, Path::of(at), "a list");
                &[]
            }
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match &item.node {
                Node::String(text) => texts.push(interner.get(text)),
                _ => self.wrong(item, Path::of(at).index(index), "a string"),
            }
        }
        texts
    }

    fn boolean(&mut self, tree: &Tree, at: &[&str]) -> Option<bool> {
        match &tree.node {
            Node::Bool(bool) => Some(*bool),
            Node::Null => None,
            _ => {
                self.wrong(tree, Path::of(at), "true or false");
                None
            }
        }
    }

    fn wrong(&mut self, tree: &Tree, at: Path, expected: &str) {
        let hint = match (&tree.node, expected) {
            (Node::Bool(_) | Node::Number(_), "a string") => Some("quote it".to_owned()),
            (Node::String(text), "a map with a `name`") => Some(format!("write `name: {text}`")),
            (Node::Null, "a whole number, or an expression" | "a map, a list of strings, or an expression") => {
                Some("omit the field to manage one object".to_owned())
            }
            (Node::String(_), "true or false") => Some("write `true` or `false` without quotes".to_owned()),
            _ => None,
        };
        self.problem(tree.line, at, format!("expected {expected}, found {}", tree.describe()), hint);
    }

    fn unknown(&mut self, entry: &Entry, at: &[&str], known: &[&str]) {
        self.unknown_at(entry, &Path::of(at), known);
    }

    fn unknown_at(&mut self, entry: &Entry, at: &Path, known: &[&str]) {
        let hint = match closest(&entry.key, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known fields are {}", known.join(", ")),
        };
        self.problem(entry.line, at.name(entry.key.clone()), "unknown field", Some(hint));
    }
}
