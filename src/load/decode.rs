//! From a Resource to an [`Instance`]: the checks and defaults that hold wherever it was read.

mod inputs;
mod provider;
mod publish;
mod resource;

use std::sync::Arc;
use std::time::Duration;

use super::condition::{self, ConditionKind, ConditionSpec};
use super::hook;
use super::intern::{Interner, shared_slice};
use super::tree::{Node, Tree};
use super::{
    Condition, DeletionPolicy, Drift, DriftAction, Instance, Reference, Repeat, Repetition, Template, Timeouts,
    duration, expression, lifecycle,
};
use crate::api;
use crate::load::expression::Variable;
use crate::model::{Address, Diagnostic, Diagnostics, HookKind, ImportRequest, Path, Reason, Value};

pub(super) use inputs::{DraftInput, DraftKeyRef};
pub(super) use provider::{DraftProvider, DraftProviderConfig};
pub use provider::{provider_config_from_api, provider_from_api};
pub(super) use publish::DraftPublication;
pub use resource::{data_from_api, from_api};

/// A Resource in the form that both ways of reading share.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// It is a `DataSource`, which only some of the fields are for.
    pub(super) is_data: bool,
    pub(super) name: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) generation: i64,
    pub(super) type_name: Arc<str>,
    pub(super) provider_config: Option<Arc<str>>,
    pub(super) depends_on: Vec<Arc<str>>,
    pub(super) inputs: Vec<DraftInput>,
    pub(super) publish: Vec<DraftPublication>,
    pub(super) count: Option<Tree>,
    pub(super) for_each: Option<Tree>,
    pub(super) enabled: Option<bool>,
    pub(super) enabled_when: Option<Arc<str>>,
    pub(super) create_before_destroy: Option<bool>,
    pub(super) prevent_destroy: Option<bool>,
    pub(super) prevent_destroy_when: Option<Arc<str>>,
    pub(super) ignore_changes: Vec<Arc<str>>,
    pub(super) preconditions: Vec<ConditionSpec>,
    pub(super) postconditions: Vec<ConditionSpec>,
    pub(super) replace_triggered_by: Vec<Arc<str>>,
    pub(super) policies: Option<Vec<Arc<str>>>,
    pub(super) hooks: Vec<hook::HookSpec>,
    /// The kind of hooks that can be run where it was read.
    pub(super) runs: Option<HookKind>,
    pub(super) deletion_policy: DeletionPolicy,
    pub(super) drift_action: DriftAction,
    pub(super) drift_interval: Option<Arc<str>>,
    pub(super) import: Option<Arc<str>>,
    pub(super) import_identity: Option<Tree>,
    pub(super) service_account: Arc<str>,
    pub(super) suspended: bool,
    /// Create, update, delete, read.
    pub(super) timeouts: [Option<Arc<str>>; 4],
    pub(super) replace_requested: Arc<str>,
    pub(super) reconcile_requested: Arc<str>,
    pub(super) moved_from: Arc<str>,
    pub(super) record_annotation: Arc<str>,
    pub(super) has_finalizer: bool,
    pub(super) deleting: bool,
    pub(super) problems: Diagnostics,
}

impl Draft {
    /// Checks what was read, and makes the instance. Problems become part of it.
    pub(super) fn finish(mut self, config: Option<&Tree>, interner: &mut Interner) -> Instance {
        let address = self.address();
        let earlier = self.problems.len();
        let unread: Vec<Path> = self.problems.iter().filter_map(|problem| problem.path.clone()).collect();
        let timeouts = self.timeouts();
        let drift = self.drift();
        self.check();
        let (ignore_changes, faults) = lifecycle::ignore_changes(&self.ignore_changes);
        self.problems.extend(faults);
        let (policies, faults) = lifecycle::policies(self.policies.as_deref());
        self.problems.extend(faults);
        let moved_from = self.moved_from();
        let repetition = self.repetition(interner);
        let import = self.import(interner);
        let (template, mut references, faults) = self.template(config, interner);
        self.problems.extend(faults);
        let mut conditions = |written: &mut Vec<ConditionSpec>, moment| {
            condition::parse(std::mem::take(written), moment, &mut references, &mut self.problems, interner)
        };
        let preconditions = conditions(&mut self.preconditions, ConditionKind::Precondition);
        let postconditions = conditions(&mut self.postconditions, ConditionKind::Postcondition);
        let (triggers, faults) =
            lifecycle::replace_triggered_by(&self.replace_triggered_by, self.variables(), &mut references, interner);
        self.problems.extend(faults);
        let prevent_destroy_when = self.prevent_destroy_when(&mut references, interner);
        let (hooks, runs) = (std::mem::take(&mut self.hooks), self.runs.unwrap_or(HookKind::Exec));
        let hooks = hook::parse(hooks, runs, &mut references, &mut self.problems, interner);
        let inputs = self.inputs();
        self.refuse_undeclared(&inputs, &template, &spec(&["config"]));
        if let Some(template) = &prevent_destroy_when {
            self.refuse_undeclared(&inputs, template, &spec(&["lifecycle", "preventDestroyWhen"]));
        }
        for Condition { condition, message, at } in preconditions.iter().chain(postconditions.iter()) {
            self.refuse_undeclared(&inputs, condition, &at.name("condition"));
            self.refuse_undeclared(&inputs, message, &at.name("errorMessage"));
        }
        for hook in hooks.iter() {
            self.refuse_undeclared(&inputs, &hook.template, &hook.at);
        }
        if let Some(repetition) = &repetition {
            let (count, each) = match &repetition.repeat {
                Some(Repeat::Count(template)) => (Some(template), None),
                Some(Repeat::ForEach(template)) => (None, Some(template)),
                None => (None, None),
            };
            let fields = [("count", count), ("forEach", each), ("enabledWhen", repetition.enabled.as_ref())];
            for (field, template) in fields.into_iter().filter_map(|(field, template)| Some((field, template?))) {
                self.refuse_undeclared(&inputs, template, &spec(&[field]));
            }
        }
        let publish = self.publications(&inputs, &mut references, interner);
        references.extend(repetition.iter().flat_map(|repetition| repetition.references.iter().cloned()));
        self.refer_to_dependencies(&mut references, interner);
        self.refuse_self_references(&mut references);
        references.sort();
        let consequences = self.problems.split_off(earlier);
        self.problems.extend(consequences.into_iter().filter(|problem| !is_below(problem.path.as_ref(), &unread)));
        for problem in &mut self.problems {
            problem.address = Some(address.clone());
        }
        Instance {
            address,
            uid: self.uid,
            generation: self.generation,
            type_name: self.type_name,
            provider_config: self.provider_config,
            provider: None,
            config: template,
            inputs,
            publish: shared_slice(publish),
            repetition: repetition.map(Arc::new),
            each: None,
            references: shared_slice(references),
            create_before_destroy: self.create_before_destroy,
            prevent_destroy: self.prevent_destroy.unwrap_or_default(),
            prevent_destroy_when,
            ignore_changes,
            preconditions,
            postconditions,
            triggers,
            policies,
            hooks,
            deletion_policy: self.deletion_policy,
            drift,
            import,
            service_account: self.service_account,
            suspended: self.suspended,
            timeouts,
            replace_requested: self.replace_requested,
            reconcile_requested: self.reconcile_requested,
            moved_from,
            record_annotation: self.record_annotation,
            has_finalizer: self.has_finalizer,
            deleting: self.deleting,
            problems: self.problems,
            source: None,
        }
    }

    fn problem(&mut self, reason: Reason, at: Path, what: impl Into<String>, hint: &str) {
        let problem = Diagnostic::general(reason, what).at(at);
        self.problems.push(if hint.is_empty() { problem } else { problem.hint(hint) });
    }

    /// Marks of what is managed mean nothing to what is only read: the controller sets none, and those that ask for
    /// something are refused.
    fn only_read(&mut self) {
        (self.record_annotation, self.has_finalizer) = (Arc::from(""), false);
        let asked = [
            (api::MOVED_FROM, std::mem::take(&mut self.moved_from)),
            (api::REPLACE_REQUESTED_AT, std::mem::take(&mut self.replace_requested)),
        ];
        for (annotation, _) in asked.into_iter().filter(|(_, value)| !value.is_empty()) {
            let at = Path::of(&["metadata", "annotations", annotation]);
            self.problem(Reason::InvalidManifest, at, "this annotation does not apply to a DataSource", "remove it");
        }
    }

    fn address(&self) -> Address {
        if self.is_data { Address::data(&self.name) } else { Address::single(self.name.clone()) }
    }

    fn check(&mut self) {
        if !expression::is_label(&self.name) {
            let what = format!("`{}` is not a valid DNS label", self.name);
            self.problem(Reason::InvalidManifest, Path::of(&["metadata", "name"]), what, LABEL);
        }
        let type_name = self.type_name.clone();
        if type_name.is_empty() {
            let hint = "set it to a resource type, such as `terraform_data`";
            self.problem(Reason::InvalidManifest, spec(&["type"]), "the type is missing", hint);
        } else if !is_type_name(&type_name) {
            let hint = "a type consists of lowercase letters, digits, `_` and `-`, and starts with a letter";
            self.problem(Reason::InvalidManifest, spec(&["type"]), format!("`{type_name}` is not a valid type"), hint);
        }
        if self.import.as_deref() == Some("") {
            let hint = "omit `import` to create the object";
            self.problem(Reason::InvalidManifest, spec(&["import", "id"]), "the id must not be empty", hint);
        }
        if self.import.as_deref().is_some_and(|id| id.contains("${")) {
            let what = "the id must not be an expression";
            self.problem(Reason::InvalidManifest, spec(&["import", "id"]), what, "write the literal id");
        }
    }

    /// `import`: by an id or by an identity.
    fn import(&mut self, interner: &mut Interner) -> Option<ImportRequest> {
        let Some(tree) = self.import_identity.take() else { return self.import.take().map(ImportRequest::Id) };
        let at = spec(&["import", "identity"]);
        if self.import.is_some() {
            let hint = "keep one of them";
            self.problem(
                Reason::InvalidManifest,
                spec(&["import"]),
                "`id` and `identity` are mutually exclusive",
                hint,
            );
        }
        let (template, _, faults) = Template::parse(&tree, &at, &[], interner);
        self.problems.extend(faults);
        let identity = template.as_literal().filter(|identity| matches!(identity, Value::Map(map) if !map.is_empty()));
        if identity.is_none() {
            let hint = "write a map of the attributes that identify the object in the provider";
            self.problem(Reason::InvalidManifest, at, "must be a non-empty map without expressions", hint);
        }
        Some(ImportRequest::Identity(identity.cloned().unwrap_or_default()))
    }

    /// Rejects values that the API server accepts but that are no repetition. Recorded objects stay meanwhile.
    fn check_repetition(&mut self) {
        let wrong = |tree: &Tree, expected: &str| format!("expected {expected}, found {}", tree.describe());
        let count = self.count.take_if(|tree| !matches!(tree.node, Node::Number(_) | Node::String(_)));
        if let Some(tree) = count {
            self.problem(Reason::InvalidManifest, spec(&["count"]), wrong(&tree, COUNT), "");
        }
        let is_keys = |tree: &Tree| matches!(tree.node, Node::Map(_) | Node::List(_) | Node::String(_));
        if let Some(tree) = self.for_each.take_if(|tree| !is_keys(tree)) {
            self.problem(Reason::InvalidManifest, spec(&["forEach"]), wrong(&tree, KEYS), "");
        }
    }

    fn timeouts(&mut self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        let texts = std::mem::take(&mut self.timeouts);
        let fields: [(&str, &mut Duration); 4] = [
            ("create", &mut timeouts.create),
            ("update", &mut timeouts.update),
            ("delete", &mut timeouts.delete),
            ("read", &mut timeouts.read),
        ];
        for (text, (name, place)) in texts.into_iter().zip(fields) {
            if let Some(duration) = text.and_then(|text| self.duration(&text, &["timeouts", name])) {
                *place = duration;
            }
        }
        timeouts
    }

    fn drift(&mut self) -> Drift {
        let mut drift = Drift { action: self.drift_action, ..Drift::default() };
        let text = self.drift_interval.take();
        if let Some(interval) = text.and_then(|text| self.duration(&text, &["drift", "interval"])) {
            drift.interval = interval;
        }
        drift
    }

    fn duration(&mut self, text: &str, at: &[&str]) -> Option<Duration> {
        let duration = duration::parse(text);
        if duration.is_none() {
            let what = format!("`{text}` is not a positive duration");
            self.problem(Reason::InvalidManifest, spec(at), what, "write it as `30m` or `1h30m`");
        }
        duration
    }

    /// What expressions can read besides other objects.
    fn variables(&self) -> &'static [Variable] {
        match (&self.count, &self.for_each) {
            (Some(_), _) => &[Variable::Inputs, Variable::Count],
            (None, Some(_)) => &[Variable::Inputs, Variable::Each],
            (None, None) => &[Variable::Inputs],
        }
    }

    fn template(&self, config: Option<&Tree>, interner: &mut Interner) -> (Template, Vec<Reference>, Diagnostics) {
        let at = Path(vec![name("spec", interner), name("config", interner)]);
        let variables = self.variables();
        match config {
            Some(tree) if matches!(tree.node, Node::Map(_)) => Template::parse(tree, &at, variables, interner),
            _ => (Template::literal(crate::model::Value::map::<Arc<str>>([])), Vec::new(), Vec::new()),
        }
    }

    /// The addresses that the annotation names.
    fn moved_from(&mut self) -> Arc<[Address]> {
        let text = std::mem::take(&mut self.moved_from);
        let mut all = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name.parse::<Address>() {
                Ok(address) => all.push(address),
                Err(error) => {
                    let at = Path::of(&["metadata", "annotations", crate::api::MOVED_FROM]);
                    self.problem(Reason::InvalidManifest, at, format!("`{}` is not a valid address", error.0), ADDRESS);
                    // What it may have meant is to stay.
                    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len());
                    all.extend(name[..end].parse::<Address>());
                }
            }
        }
        shared_slice(all)
    }

    /// `count`, `forEach` and `enabled`. Nothing when the Resource stands for one object whatever happens.
    fn repetition(&mut self, interner: &mut Interner) -> Option<Repetition> {
        let mut references = Vec::new();
        if self.count.is_some() && self.for_each.is_some() {
            let hint = "`count` numbers the objects, `forEach` names them: keep one of them";
            self.problem(
                Reason::InvalidManifest,
                spec(&["forEach"]),
                "`count` and `forEach` are mutually exclusive",
                hint,
            );
        }
        if self.enabled.is_some() && self.enabled_when.is_some() {
            let hint = "keep one of them";
            self.problem(
                Reason::InvalidManifest,
                spec(&["enabledWhen"]),
                "`enabled` and `enabledWhen` are mutually exclusive",
                hint,
            );
        }
        let mut parse = |problems: &mut Diagnostics, field: &str, tree: &Tree, interner: &mut Interner| {
            let at = Path(vec![name("spec", interner), name(field, interner)]);
            let (template, found, faults) = Template::parse(tree, &at, &[Variable::Inputs], interner);
            references.extend(found);
            problems.extend(faults);
            template
        };
        let problems = &mut self.problems;
        let repeat = match (&self.count, &self.for_each) {
            (Some(tree), _) => Some(Repeat::Count(parse(problems, "count", tree, interner))),
            (None, Some(tree)) => Some(Repeat::ForEach(parse(problems, "forEach", tree, interner))),
            (None, None) => None,
        };
        if let Some(text) = self.enabled_when.as_ref().filter(|text| !text.contains("${")) {
            let what = format!("`{text}` is not an expression");
            let hint = "write it as `${...}`; for a fixed value use `enabled`";
            problems.push(Diagnostic::general(Reason::InvalidExpression, what).at(spec(&["enabledWhen"])).hint(hint));
        }
        let enabled = match (self.enabled, &self.enabled_when) {
            (Some(false), _) => Some(Template::literal(Value::Bool(false))),
            (_, Some(text)) => {
                let tree = Tree { line: 0, node: Node::String(text.clone()) };
                Some(parse(problems, "enabledWhen", &tree, interner))
            }
            _ => None,
        };
        if repeat.is_some() && (self.import.is_some() || self.import_identity.is_some()) {
            let hint = "omit `import`, or use a separate Resource for the imported object";
            let what = "a Resource with `count` or `forEach` cannot import one object";
            self.problem(Reason::InvalidManifest, spec(&["import"]), what, hint);
        }
        let references = references.into();
        (repeat.is_some() || enabled.is_some()).then_some(Repetition { repeat, enabled, references })
    }

    fn prevent_destroy_when(&mut self, references: &mut Vec<Reference>, interner: &mut Interner) -> Option<Template> {
        let text = self.prevent_destroy_when.take()?;
        let at = spec(&["lifecycle", "preventDestroyWhen"]);
        if self.prevent_destroy.is_some() {
            let hint = "keep one of them";
            self.problem(
                Reason::InvalidManifest,
                at.clone(),
                "`preventDestroy` and `preventDestroyWhen` are mutually exclusive",
                hint,
            );
        }
        let tree = Tree { line: 0, node: Node::String(text.clone()) };
        let (template, found, faults) = Template::parse(&tree, &at, self.variables(), interner);
        let is_text = faults.is_empty() && template.as_literal().is_some();
        if is_text {
            let hint = "write it as `${...}`; for a fixed value use `preventDestroy`";
            self.problem(Reason::InvalidExpression, at, format!("`{text}` is not an expression"), hint);
        }
        references.extend(found);
        self.problems.extend(faults);
        Some(template)
    }

    fn refer_to_dependencies(&mut self, references: &mut Vec<Reference>, interner: &mut Interner) {
        let depends_on = std::mem::take(&mut self.depends_on);
        for (index, target) in depends_on.iter().enumerate() {
            let at = Path(vec![name("spec", interner), name("dependsOn", interner)]).index(index);
            let address = Address::single(target.clone());
            if !expression::is_label(address.object_name()) {
                let what = format!("`{target}` is not a valid Resource name");
                self.problem(Reason::InvalidManifest, at.name("name"), what, LABEL);
            } else if depends_on[..index].contains(target) {
                let what = format!("duplicate dependency `{target}`");
                self.problem(Reason::InvalidManifest, at.name("name"), what, "list each dependency once");
            } else {
                references.push(Reference { target: address, at, explicit: true, selector: None });
            }
        }
    }

    /// An object cannot wait for itself. Its other references stay.
    fn refuse_self_references(&mut self, references: &mut Vec<Reference>) {
        let address = self.address();
        let own: Vec<Path> =
            references.extract_if(.., |reference| reference.target.name == address.name).map(|own| own.at).collect();
        for at in own {
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

const ADDRESS: &str =
    "write `name`, `name[0]` or `name[\"key\"]`; separate several addresses with commas, newest first";

/// What `count` may be, in words.
pub(super) const COUNT: &str = "a whole number, or an expression";

/// What `forEach` may be, in words.
pub(super) const KEYS: &str = "a map, a list of strings, or an expression";

const LABEL: &str = "use at most 63 lowercase letters, digits and `-`, starting and ending with a letter or digit";

fn name(text: &str, interner: &mut Interner) -> crate::model::Segment {
    crate::model::Segment::Name(interner.get(text))
}

/// Whether a problem is about a place that could not be read, or one below it: then it is a consequence of an earlier problem.
fn is_below(path: Option<&Path>, unread: &[Path]) -> bool {
    path.is_some_and(|path| unread.iter().any(|at| path.starts_with(at)))
}

fn spec(names: &[&str]) -> Path {
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

    fn instance(yaml: &str) -> Instance {
        from_api(&serde_saphyr::from_str(yaml).unwrap(), &"default".into(), &mut Interner::default())
    }

    #[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
    fn check(spec: &str, expected: Expect) {
        let yaml = format!("apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: web}}\nspec: {spec}");
        let problems = instance(&yaml).problems;
        let lines: Vec<String> = problems.iter().map(|problem| format!("{problem}\n")).collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn problems_belong_to_the_instance() {
        check("{type: terraform_data}", expect![""]);
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
        let zone = data_from_api(&serde_saphyr::from_str(yaml).unwrap(), &"default".into(), &mut Interner::default());
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
             deletionTimestamp: 2026-01-01T00:00:00Z\n  annotations: {purlin.dev/paused: 'true', purlin.dev/record: u}\n\
             spec:\n  type: terraform_data\n  deletionPolicy: Orphan\n  import: {id: x}\n  timeouts: {delete: 1h30m}\n  \
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
