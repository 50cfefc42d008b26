//! From a Resource to an [`Instance`]: the checks and defaults that hold for files and cluster objects alike.

mod account;
mod annotations;
mod free;
mod import;
mod inputs;
mod kind;
mod moved;
mod provider;
mod publish;
mod resource;
mod runner;

use std::sync::Arc;
use std::time::Duration;

use super::check::Findings;
use super::condition::{self, ConditionKind};
use super::hook;
use super::intern::{Interner, shared_slice};
use super::tree::{Node, Tree};
use super::{
    Condition, DeletionPolicy, Drift, DriftAction, Inputs, Instance, Reference, Repeat, Repetition, Template, Timeouts,
    duration, lifecycle,
};
use crate::load::expression::Variable;
use crate::load::publication::NAME_HINT;
use model::kube_names::{is_label, is_subdomain};
use model::{Address, Diagnostic, Diagnostics, HookKind, Path, Reason, Segment, Value};

pub use account::{ServiceAccount, ServiceAccounts};
pub(crate) use annotations::concerns_moves;
pub(crate) use annotations::{holds_destroys, is_own, means_moved_from, unusable_annotations};
pub(crate) use free::FreeFields;
pub(crate) use kind::Kind;
pub use provider::{address as provider_source, provider_config_from_raw, provider_from_raw};
pub(crate) use provider::{provider, provider_config};
pub use resource::{data_from_raw, from_raw, module_from_raw};

/// A Resource, a `DataSource` or a Module, from a file or from the API server.
pub(crate) struct Written<'a> {
    pub(crate) kind: Kind,
    pub(crate) metadata: Metadata<'a>,
    pub(crate) spec: &'a api::ResourceSpec,
    pub(crate) free: FreeFields<'a>,
    /// The kind of hooks that can run: `Exec` for files, `Job` in a cluster.
    pub(crate) runs: HookKind,
    /// Empty on files.
    pub(crate) service_account: Arc<str>,
    /// The errors that are known already.
    pub(crate) findings: Findings,
}

/// The fields of `metadata` that matter.
#[derive(Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) generation: i64,
    /// The annotations of Purlin, as names and values.
    pub(crate) annotations: Vec<(&'a str, &'a str)>,
    /// Labels in the place of an annotation that moves an object.
    pub(crate) labels: Vec<(&'a str, &'a str)>,
    pub(crate) has_finalizer: bool,
    pub(crate) deleting: bool,
}

/// Checks a Resource and makes its instance. Errors become part of the instance.
pub(crate) fn instance(written: Written<'_>, interner: &mut Interner) -> Instance {
    let Written { kind, metadata, spec, free, runs, service_account, findings } = written;
    let name = interner.get(metadata.name);
    let mut decoder = Decoder { kind, address: kind.address(name), spec, free, problems: Diagnostics::new() };
    let annotations = annotations::decode(&metadata, kind, &mut decoder.problems);
    let lifecycle = spec.lifecycle.as_ref();
    let moved_from = moved::moved(metadata.name, &spec.moved, &annotations.moved_from, &mut decoder.problems);
    let timeouts = decoder.timeouts();
    let drift = decoder.drift();
    decoder.check(metadata.name);
    let texts = lifecycle.map_or(&[][..], |lifecycle| &lifecycle.ignore_changes);
    let (ignore_changes, faults) = lifecycle::ignore_changes(texts);
    decoder.problems.extend(faults);
    let (policies, faults) = lifecycle::policies(spec.management_policies.as_deref());
    decoder.problems.extend(faults);
    let mut repetition = decoder.repetition(interner);
    let import = decoder.import(repetition.as_mut(), interner);
    let config_path = Path(vec![name_segment("spec", interner), name_segment(kind.arguments(), interner)]);
    let (template, mut references) = decoder.template(&config_path, interner);
    let preconditions = lifecycle.map_or(&[][..], |lifecycle| &lifecycle.preconditions);
    let postconditions = lifecycle.map_or(&[][..], |lifecycle| &lifecycle.postconditions);
    let [preconditions, postconditions] =
        [(preconditions, ConditionKind::Precondition), (postconditions, ConditionKind::Postcondition)]
            .map(|(written, kind)| condition::parse(written, kind, &mut references, &mut decoder.problems, interner));
    let texts = lifecycle.map_or(&[][..], |lifecycle| &lifecycle.replace_triggered_by);
    let (triggers, faults) = lifecycle::replace_triggered_by(texts, decoder.variables(), &mut references, interner);
    decoder.problems.extend(faults);
    let (prevent_destroy, prevent_destroy_when) = decoder.prevent_destroy(&mut references, interner);
    let hooks = hook::parse(&spec.hooks, &decoder.free.jobs, runs, &mut references, &mut decoder.problems, interner);
    let inputs = inputs::decode(&spec.inputs, &mut decoder.problems);
    decoder.refuse_undeclared(&inputs, &template, &config_path);
    if let Some(template) = &prevent_destroy_when {
        decoder.refuse_undeclared(&inputs, template, &spec_path(&["lifecycle", "preventDestroy"]));
    }
    for Condition { condition, message, at } in preconditions.iter().chain(postconditions.iter()) {
        decoder.refuse_undeclared(&inputs, condition, &at.name("condition"));
        decoder.refuse_undeclared(&inputs, message, &at.name("errorMessage"));
    }
    for hook in hooks.iter() {
        decoder.refuse_undeclared(&inputs, &hook.template, &hook.at);
    }
    if let Some(repetition) = &repetition {
        decoder.refuse_undeclared_in_repetition(&inputs, repetition);
    }
    let publish = decoder.publications(&inputs, &mut references, interner);
    references.extend(repetition.iter().flat_map(|repetition| repetition.references.iter().cloned()));
    decoder.add_dependencies(&mut references, interner);
    decoder.refuse_self_references(&mut references);
    references.sort();
    let Decoder { address, problems, .. } = decoder;
    let mut problems = findings.with(problems);
    for problem in &mut problems {
        problem.address = Some(address.clone());
    }
    let type_name = interner.get(&spec.type_name);
    Instance {
        uid: interner.get(metadata.uid).into(),
        generation: metadata.generation,
        provider_config: spec.provider_config_ref.as_ref().map(|reference| interner.get(&reference.name)),
        config: template,
        inputs,
        publish: shared_slice(publish),
        repetition: repetition.map(Arc::new),
        references: shared_slice(references),
        create_before_destroy: lifecycle.and_then(|lifecycle| lifecycle.create_before_destroy),
        prevent_destroy,
        prevent_destroy_when,
        ignore_changes,
        preconditions,
        postconditions,
        triggers,
        policies,
        hooks,
        deletion_policy: deletion_policy(spec),
        drift,
        require_approval: spec.approval.iter().flat_map(|approval| approval.require_for.iter().copied()).collect(),
        import,
        service_account,
        suspended: spec.suspend,
        timeouts,
        replace_requested: annotations.replace_requested,
        reconcile_requested: annotations.reconcile_requested,
        moved_from: shared_slice(moved_from),
        record_annotation: annotations.record,
        // The controller sets none on a `DataSource`.
        has_finalizer: metadata.has_finalizer && kind != Kind::DataSource,
        deleting: metadata.deleting,
        problems,
        ..Instance::plain(address, type_name)
    }
}

fn deletion_policy(spec: &api::ResourceSpec) -> DeletionPolicy {
    match spec.deletion_policy.unwrap_or_default() {
        api::DeletionPolicy::Delete => DeletionPolicy::Delete,
        api::DeletionPolicy::Orphan => DeletionPolicy::Orphan,
    }
}

/// The value of a field that is true, false or an expression.
enum Switch<'a> {
    Fixed(bool),
    Expression(&'a Tree),
}

struct Decoder<'a> {
    kind: Kind,
    address: Address,
    spec: &'a api::ResourceSpec,
    free: FreeFields<'a>,
    problems: Diagnostics,
}

impl Decoder<'_> {
    fn problem(&mut self, reason: Reason, at: Path, what: impl Into<String>, hint: &str) {
        self.problems.push(Diagnostic::general(reason, what).at(at).hint(hint));
    }

    fn invalid(&mut self, at: Path, what: impl Into<String>, hint: &str) {
        self.problems.push(invalid(at, what, hint));
    }

    fn check(&mut self, name: &str) {
        if !is_label(name) {
            self.invalid(Path::of(&["metadata", "name"]), format!("`{name}` is not a valid DNS label"), LABEL);
        }
        if let Some(account) =
            self.spec.service_account_name.as_deref().filter(|account| !account.is_empty() && !is_subdomain(account))
        {
            let what = format!("`{account}` is not a valid ServiceAccount name");
            self.invalid(spec_path(&["serviceAccountName"]), what, NAME_HINT);
        }
        let type_name = &self.spec.type_name;
        if self.kind == Kind::Module {
            // The objects of a Module have types of their own.
        } else if type_name.is_empty() {
            let hint = "set it to a resource type, such as `terraform_data`";
            self.invalid(spec_path(&["type"]), "the type is missing", hint);
        } else if !is_type_name(type_name) {
            let hint = "a type consists of lowercase letters, digits, `_` and `-`, and starts with a letter";
            self.invalid(spec_path(&["type"]), format!("`{type_name}` is not a valid type"), hint);
        }
    }

    fn timeouts(&mut self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        let Some(written) = &self.spec.timeouts else { return timeouts };
        let fields: [(&str, &Option<String>, &mut Duration); 4] = [
            ("create", &written.create, &mut timeouts.create),
            ("update", &written.update, &mut timeouts.update),
            ("delete", &written.delete, &mut timeouts.delete),
            ("read", &written.read, &mut timeouts.read),
        ];
        for (name, text, place) in fields {
            if let Some(duration) = text.as_ref().and_then(|text| self.duration(text, &["timeouts", name])) {
                *place = duration;
            }
        }
        timeouts
    }

    fn drift(&mut self) -> Drift {
        let mut drift = Drift::default();
        let Some(written) = &self.spec.drift else { return drift };
        drift.action = match written.action.unwrap_or_default() {
            api::DriftAction::Correct => DriftAction::Correct,
            api::DriftAction::Report => DriftAction::Report,
            api::DriftAction::Ignore => DriftAction::Ignore,
        };
        let interval = written.interval.as_ref().and_then(|text| self.duration(text, &["drift", "interval"]));
        drift.interval = interval.unwrap_or(drift.interval).max(Drift::SHORTEST);
        drift
    }

    fn duration(&mut self, text: &str, at: &[&str]) -> Option<Duration> {
        let duration = duration::parse(text);
        if duration.is_none() {
            let what = format!("`{text}` is not a positive duration");
            self.invalid(spec_path(at), what, "write it as `30m` or `1h30m`");
        }
        duration
    }

    /// What expressions can read besides other objects.
    fn variables(&self) -> &'static [Variable] {
        match (&self.free.count, &self.free.for_each) {
            (Some(_), _) => &[Variable::Inputs, Variable::Count],
            (None, Some(_)) => &[Variable::Inputs, Variable::Each],
            (None, None) => &[Variable::Inputs],
        }
    }

    /// The arguments, which are at `at`, and their references.
    fn template(&mut self, at: &Path, interner: &mut Interner) -> (Template, Vec<Reference>) {
        let (template, references, faults) = config(self.free.config, at, self.variables(), interner);
        self.problems.extend(faults);
        (template, references)
    }

    /// Drops a `count` or `forEach` of a wrong type, which the schema allows. Recorded objects stay meanwhile.
    fn check_repetition(&mut self) {
        let count = self.free.count.take_if(|tree| !matches!(tree.node, Node::Number(_) | Node::String(_)));
        let for_each =
            self.free.for_each.take_if(|tree| !matches!(tree.node, Node::Map(_) | Node::List(_) | Node::String(_)));
        for (field, tree, expected) in [
            ("count", count, "a whole number, or an expression"),
            ("forEach", for_each, "a map, a list of strings, or an expression"),
        ] {
            let Some(tree) = tree else { continue };
            let hint = if tree.node == Node::Null { "omit the field to manage one object" } else { "" };
            self.invalid(spec_path(&[field]), format!("expected {expected}, found {}", tree.describe()), hint);
        }
    }

    /// `count`, `forEach` and `enabled`. `None`: the Resource always has one object.
    fn repetition(&mut self, interner: &mut Interner) -> Option<Repetition> {
        self.check_repetition();
        let mut references = Vec::new();
        if self.free.count.is_some() && self.free.for_each.is_some() {
            let hint = "`count` numbers the objects, `forEach` names them: keep one of them";
            self.invalid(spec_path(&["forEach"]), "`count` and `forEach` are mutually exclusive", hint);
        }
        let enabled = self.free.enabled.take();
        let enabled = enabled.and_then(|tree| self.switch(tree, &spec_path(&["enabled"])));
        let mut parse = |problems: &mut Diagnostics, field: &str, tree: &Tree, interner: &mut Interner| {
            let at = Path(vec![name_segment("spec", interner), name_segment(field, interner)]);
            let (template, found, faults) = Template::parse(tree, &at, &[Variable::Inputs], interner);
            references.extend(found);
            problems.extend(faults);
            template
        };
        let problems = &mut self.problems;
        let repeat = match (&self.free.count, &self.free.for_each) {
            (Some(tree), _) => Some(Repeat::Count(parse(problems, "count", tree, interner))),
            (None, Some(tree)) => Some(Repeat::ForEach(parse(problems, "forEach", tree, interner))),
            (None, None) => None,
        };
        let enabled = match enabled {
            Some(Switch::Fixed(false)) => Some(Template::literal(Value::Bool(false))),
            Some(Switch::Expression(tree)) => Some(parse(problems, "enabled", tree, interner)),
            Some(Switch::Fixed(true)) | None => None,
        };
        let references = references.into();
        (repeat.is_some() || enabled.is_some()).then_some(Repetition { repeat, enabled, import: None, references })
    }

    /// `lifecycle.preventDestroy`: its value, or its expression.
    fn prevent_destroy(
        &mut self,
        references: &mut Vec<Reference>,
        interner: &mut Interner,
    ) -> (bool, Option<Template>) {
        let Some(tree) = self.free.prevent_destroy.take() else { return (false, None) };
        let at = spec_path(&["lifecycle", "preventDestroy"]);
        match self.switch(tree, &at) {
            Some(Switch::Fixed(prevented)) => (prevented, None),
            Some(Switch::Expression(tree)) => {
                let (template, found, faults) = Template::parse(tree, &at, self.variables(), interner);
                references.extend(found);
                self.problems.extend(faults);
                (false, Some(template))
            }
            // It may be meant to protect the object.
            None => (true, None),
        }
    }

    /// Reads a field that is true, false or an expression. `None`: it is neither, which is an error.
    fn switch<'t>(&mut self, tree: &'t Tree, at: &Path) -> Option<Switch<'t>> {
        let hint = match &tree.node {
            Node::Bool(value) => return Some(Switch::Fixed(*value)),
            Node::String(text) if text.contains("${") => return Some(Switch::Expression(tree)),
            Node::String(text) if matches!(text.as_ref(), "true" | "false") => format!("write `{text}` without quotes"),
            Node::String(_) => "write an expression as `${...}`".to_owned(),
            _ => String::new(),
        };
        self.invalid(at.clone(), format!("expected true, false or an expression, found {}", tree.describe()), &hint);
        None
    }

    fn refuse_undeclared(&mut self, inputs: &Inputs, template: &Template, at: &Path) {
        inputs::refuse_undeclared(inputs, template, at, &mut self.problems);
    }

    fn refuse_undeclared_in_repetition(&mut self, inputs: &Inputs, repetition: &Repetition) {
        let (count, for_each) = match &repetition.repeat {
            Some(Repeat::Count(template)) => (Some(template), None),
            Some(Repeat::ForEach(template)) => (None, Some(template)),
            None => (None, None),
        };
        let fields = [("count", count), ("forEach", for_each), ("enabled", repetition.enabled.as_ref())];
        for (field, template) in fields.into_iter().filter_map(|(field, template)| Some((field, template?))) {
            self.refuse_undeclared(inputs, template, &spec_path(&[field]));
        }
    }

    fn add_dependencies(&mut self, references: &mut Vec<Reference>, interner: &mut Interner) {
        let depends_on = &self.spec.depends_on;
        for (index, api::Dependency { name: target }) in depends_on.iter().enumerate() {
            let at = Path(vec![name_segment("spec", interner), name_segment("dependsOn", interner)]).index(index);
            let address = Address::single(interner.get(target));
            if !is_label(address.object_name()) {
                let what = format!("`{target}` is not a valid Resource name");
                self.invalid(at.name("name"), what, LABEL);
            } else if depends_on[..index].iter().any(|earlier| earlier.name == *target) {
                let what = format!("duplicate dependency `{target}`");
                self.invalid(at.name("name"), what, "list each dependency once");
            } else {
                references.push(Reference {
                    target: address,
                    at,
                    explicit: true,
                    selector: None,
                    segments: Arc::default(),
                });
            }
        }
    }

    /// An object cannot wait for itself. Its other references stay.
    fn refuse_self_references(&mut self, references: &mut Vec<Reference>) {
        let address = self.address.clone();
        for Reference { at, .. } in references.extract_if(.., |reference| reference.target.stem == address.stem) {
            let what = format!("`{address}` references itself");
            let after = Path::of(&["spec", "lifecycle", ConditionKind::Postcondition.field()]);
            let hint = match at.starts_with(&after) {
                true => "use `self` for the object in a postcondition",
                false => "an object can reference only other objects",
            };
            self.problem(Reason::SelfReference, at, what, hint);
        }
    }
}

/// Parses a `config` at `at`. Its error is reported if it is not a map.
fn config(
    tree: Option<&Tree>,
    at: &Path,
    variables: &'static [Variable],
    interner: &mut Interner,
) -> (Template, Vec<Reference>, Diagnostics) {
    match tree {
        Some(tree) if matches!(tree.node, Node::Map(_)) => Template::parse(tree, at, variables, interner),
        _ => (Template::literal(Value::map::<Arc<str>>([])), Vec::new(), Vec::new()),
    }
}

const LABEL: &str = "use at most 63 lowercase letters, digits and `-`, starting and ending with a letter or digit";

fn name_segment(text: &str, interner: &mut Interner) -> Segment {
    Segment::Name(interner.get(text))
}

fn invalid(at: Path, what: impl Into<String>, hint: &str) -> Diagnostic {
    let problem = Diagnostic::general(Reason::InvalidManifest, what).at(at);
    if hint.is_empty() { problem } else { problem.hint(hint) }
}

fn spec_path(names: &[&str]) -> Path {
    let mut path = Path::of(&["spec"]);
    path.0.extend(Path::of(names).0);
    path
}

fn is_type_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn object<K>(yaml: &str) -> api::RawObject<K> {
        serde_json::from_value(serde_saphyr::from_str(yaml).unwrap()).unwrap()
    }

    fn instance(yaml: &str) -> Instance {
        from_raw(&object(yaml), &"default".into(), &mut Interner::default())
    }

    #[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
    fn check(spec: &str, expected: Expect) {
        let yaml = format!("apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: web}}\nspec: {spec}");
        let problems = instance(&yaml).problems;
        let lines: Vec<String> = problems.iter().map(|problem| format!("{problem}\n")).collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn an_object_is_read_at_most_once_per_second() {
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: web}\n";
        let interval = |text: &str| {
            let drift = format!("{head}spec: {{type: t, drift: {{interval: {text}}}}}");
            instance(&drift).drift.interval
        };
        assert_eq!(interval("1ns"), Duration::from_secs(1));
        assert_eq!(interval("90s"), Duration::from_secs(90));
    }

    #[test]
    fn problems_belong_to_the_instance() {
        check("{type: terraform_data}", expect![""]);
        check("{type: t, ofANewerCRD: true}", expect![""]);
        check("{type: t, count: null, forEach: null}", expect![""]);
        check(
            "{type: T}",
            expect![[r#"
                web: spec.type: `T` is not a valid type (hint: a type consists of lowercase letters, digits, `_` and `-`, and starts with a letter)
            "#]],
        );
        check(
            "{type: t, dependsOn: [{name: web}, {name: a_b}, {name: c}, {name: c}]}",
            expect![[r#"
                web: spec.dependsOn[1].name: `a_b` is not a valid Resource name (hint: use at most 63 lowercase letters, digits and `-`, starting and ending with a letter or digit)
                web: spec.dependsOn[3].name: duplicate dependency `c` (hint: list each dependency once)
                web: spec.dependsOn[0]: `web` references itself (hint: an object can reference only other objects)
            "#]],
        );
        check(
            "{type: t, timeouts: {create: 0s, read: 1m}}",
            expect![[r#"
                web: spec.timeouts.create: `0s` is not a positive duration (hint: write it as `30m` or `1h30m`)
            "#]],
        );
        check(
            "{type: t, config: {a: ['${web.id}', '${']}}",
            expect![[r#"
                web: spec.config.a[1]: the expression at column 1 has no closing `}` (hint: write `$${` for a literal `${`)
                web: spec.config.a[0]: `web` references itself (hint: an object can reference only other objects)
            "#]],
        );
    }

    #[test]
    fn an_import_by_nothing_is_refused_and_no_import_is_none() {
        for nothing in ["{type: t, import: {}}", "{type: t, import: {id: null}}"] {
            check(
                nothing,
                expect![[r#"
                    web: spec.import.id: the id must not be empty (hint: omit `import` to create the object)
                "#]],
            );
        }
        check("{type: t, import: null}", expect![""]);
    }

    #[test]
    fn what_is_only_read_has_no_marks_and_is_asked_for_nothing_else() {
        let yaml = "apiVersion: purlin.dev/v1alpha1\nkind: DataSource\nmetadata:\n  name: zone\n  uid: u\n  \
                    finalizers: [purlin.dev/destroy]\n  annotations: {purlin.dev/record: u, purlin.dev/moved-from: old, \
                    purlin.dev/replace-requested-at: now, purlin.dev/reconcile-requested-at: now}\n\
                    spec: {type: t, config: {a: '${web.id}'}}";
        let zone = data_from_raw(&object(yaml), &"default".into(), &mut Interner::default());
        assert_eq!(zone.address, Address::data("zone"));
        assert!(!zone.has_finalizer && !zone.has_record_annotation() && zone.moved_from.is_empty());
        assert_eq!((&*zone.replace_requested, &*zone.reconcile_requested), ("", "now"));
        let lines: Vec<String> = zone.problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines.iter().all(|line| line.contains("does not apply to a DataSource (hint: remove it)")),
            "{lines:?}"
        );
        assert_eq!(zone.references[0].target, Address::single("web"));
    }

    #[test]
    fn a_resource_becomes_an_instance() {
        let web = instance(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
             metadata:\n  name: web\n  uid: u\n  generation: 4\n  finalizers: [purlin.dev/destroy]\n  \
             deletionTimestamp: 2026-01-01T00:00:00Z\n  annotations: {purlin.dev/record: u}\n\
             spec:\n  type: terraform_data\n  suspend: true\n  deletionPolicy: Orphan\n  import: {id: x}\n  timeouts: {delete: 1h30m}\n  \
             lifecycle: {createBeforeDestroy: false, preventDestroy: true}\n  dependsOn: [{name: zone}]\n  \
             config: {input: '${app_key.id}'}\n",
        );
        assert_eq!(web.problems, []);
        assert_eq!((web.uid.as_ref(), web.generation, web.service_account.as_ref()), ("u", 4, "default"));
        assert!(web.deleting && web.suspended && web.has_finalizer && web.prevent_destroy && !web.is_desired());
        assert_eq!((web.create_before_destroy, web.deletion_policy), (Some(false), DeletionPolicy::Orphan));
        assert_eq!(web.timeouts.delete, Duration::from_mins(90));
        let references: Vec<_> =
            web.references.iter().map(|r| format!("{} {} {}", r.target, r.at, r.explicit)).collect();
        assert_eq!(references, ["app-key spec.config.input false", "zone spec.dependsOn[0] true"]);
    }
}
