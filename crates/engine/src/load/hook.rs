//! Hooks of a Resource, with parsed expressions.

use std::borrow::Cow;
use std::sync::Arc;

use super::expression::Variable;
use super::intern::{Interner, shared_slice};
use super::tree::{Node, Tree};
use super::{Reference, Template};
use model::kube_names::is_label;
use model::{Diagnostic, Diagnostics, HookKind, OnFailure, Path, Reason, RecordedHook, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPhase {
    /// After the object is created, before its dependents continue.
    AfterCreate,
    /// Before the object is destroyed. This includes deposed objects.
    BeforeDestroy,
}

#[derive(Clone, Debug)]
pub struct Hook {
    pub when: HookPhase,
    /// The recorded form, with the definition before parsing.
    pub recorded: RecordedHook,
    /// The definition with parsed expressions.
    pub template: Template,
    /// The path of the definition, such as `spec.hooks[0].exec.command`.
    pub at: Path,
    /// Whether it is recorded with the values of its object, because its language cannot be read without its configuration.
    pub records_values: bool,
}

/// The variables of an `AfterCreate` hook.
const AFTER_CREATE: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count, Variable::Inputs];

/// The variables of a `BeforeDestroy` hook. Other objects may already be destroyed when it runs.
const BEFORE_DESTROY: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count];

impl HookPhase {
    fn variables(self) -> &'static [Variable] {
        match self {
            Self::AfterCreate => AFTER_CREATE,
            Self::BeforeDestroy => BEFORE_DESTROY,
        }
    }
}

/// Parses a recorded definition. It has no path in a manifest.
pub fn parse_recorded(hook: &RecordedHook) -> (Template, Diagnostics) {
    let at = Path::default().name("hooks").name(hook.name.clone());
    let (template, _, problems) = Template::parse_json(&hook.definition.to_json(), &at, BEFORE_DESTROY);
    (template, problems)
}

/// Parses the hooks of a Resource with the `job.template` of each. `runs` is the supported kind: `Exec` on files,
/// `Job` in a cluster.
pub(crate) fn parse(
    written: &[api::Hook],
    jobs: &[Option<&Tree>],
    runs: HookKind,
    references: &mut Vec<Reference>,
    problems: &mut Diagnostics,
    interner: &mut Interner,
) -> Arc<[Hook]> {
    if written.is_empty() {
        return Arc::default();
    }
    let list = Path::of(&["spec", "hooks"]);
    let mut hooks: Vec<Hook> = Vec::with_capacity(written.len());
    let mut reader = Reader { runs, references, problems, interner };
    for (index, written) in written.iter().enumerate() {
        let at = list.index(index);
        let job = jobs.get(index).copied().flatten();
        if let Some(hook) = reader.hook(written, job, &at) {
            if hooks.iter().any(|other| other.recorded.name == hook.recorded.name) {
                let what = format!("duplicate hook `{}`", hook.recorded.name);
                reader.problem(at.name("name"), what, "give each hook a unique name");
            }
            hooks.push(hook);
        }
    }
    shared_slice(hooks)
}

struct Reader<'a> {
    runs: HookKind,
    references: &'a mut Vec<Reference>,
    problems: &'a mut Diagnostics,
    interner: &'a mut Interner,
}

impl Reader<'_> {
    fn problem(&mut self, at: Path, what: impl Into<String>, hint: &str) {
        self.problems.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
    }

    fn hook(&mut self, written: &api::Hook, job: Option<&Tree>, at: &Path) -> Option<Hook> {
        if !is_label(&written.name) {
            let what = if written.name.is_empty() {
                "required field is missing".to_owned()
            } else {
                format!("`{}` is not a valid DNS label", written.name)
            };
            self.problem(at.name("name"), what, "set a name, such as `warm-up`");
        }
        let (kind, tree) = match (&written.exec, &written.job) {
            (Some(exec), None) => (HookKind::Exec, Cow::Owned(Tree::list(&exec.command))),
            (None, Some(_)) => (HookKind::Job, job.map_or_else(|| Cow::Owned(Tree::list(&[])), Cow::Borrowed)),
            (None, None) => {
                self.problem(at.clone(), "the hook runs nothing", "set `exec` on files, or `job` in a cluster");
                return None;
            }
            (Some(_), Some(_)) => {
                self.problem(at.clone(), "`exec` and `job` are mutually exclusive", "keep one of them");
                return None;
            }
        };
        let place = match kind {
            HookKind::Exec => at.name("exec").name("command"),
            HookKind::Job => at.name("job").name("template"),
        };
        self.check_definition(kind, &tree, &place)?;
        let when = match written.when {
            api::HookPhase::AfterCreate => HookPhase::AfterCreate,
            api::HookPhase::BeforeDestroy => HookPhase::BeforeDestroy,
        };
        let on_failure = match written.on_failure.unwrap_or_default() {
            api::HookFailure::Fail => OnFailure::Fail,
            api::HookFailure::Continue => OnFailure::Continue,
        };
        let (template, found, faults) = Template::parse(&tree, &place, when.variables(), self.interner);
        self.problems.extend(faults);
        self.add_references(when, found);
        let name = written.name.as_str().into();
        let recorded = RecordedHook { name, kind, on_failure, definition: raw(&tree) };
        Some(Hook { when, recorded, template, at: place, records_values: false })
    }

    /// Reports a hook that cannot run here, or that runs nothing.
    fn check_definition(&mut self, kind: HookKind, tree: &Tree, place: &Path) -> Option<()> {
        let (what, hint) = match (kind, &tree.node) {
            (HookKind::Exec, _) if self.runs != kind => {
                ("`exec` hooks run only on files, with `purlin apply` and `purlin dev`", "use `job`")
            }
            (HookKind::Job, _) if self.runs != kind => ("`job` hooks run only in a cluster", "use `exec`"),
            (HookKind::Exec, Node::List(items)) if items.is_empty() => {
                ("must be a non-empty list of strings", "write the program and its arguments: `[sh, -c, ...]`")
            }
            (HookKind::Job, _) if tree.get("spec").is_none() => {
                ("must be a Pod template", "set `spec.containers` in the template")
            }
            _ => return Some(()),
        };
        self.problem(place.clone(), what, hint);
        None
    }

    /// The references of an `AfterCreate` hook are dependencies. A `BeforeDestroy` hook must not have references,
    /// because other objects may already be destroyed when it runs.
    fn add_references(&mut self, when: HookPhase, found: Vec<Reference>) {
        if when == HookPhase::AfterCreate {
            self.references.extend(found);
            return;
        }
        for reference in found {
            let what = format!("`{}` may be destroyed before this object", reference.target);
            let hint = "a `BeforeDestroy` hook can reference only `self`, `count.index` and `each.key`";
            self.problem(reference.at, what, hint);
        }
    }
}

/// Converts the tree to a value and leaves expressions unparsed.
fn raw(tree: &Tree) -> Value {
    match &tree.node {
        Node::Null => Value::Null,
        Node::Bool(bool) => Value::Bool(*bool),
        Node::Number(number) => Value::Number(number.clone()),
        Node::String(text) => Value::String(text.clone()),
        Node::List(items) => Value::list(items.iter().map(raw)),
        Node::Map(entries) => Value::map(entries.iter().map(|entry| (entry.key.clone(), raw(&entry.value)))),
    }
}
