//! Hooks of a Resource, with parsed expressions.

use std::sync::Arc;

use super::expression::{Variable, is_label};
use super::intern::{Interner, shared_slice};
use super::tree::{Node, Tree};
use super::{Reference, Template};
use crate::model::{Diagnostic, Diagnostics, HookKind, OnFailure, Path, Reason, RecordedHook, Value};

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
}

/// A hook before its expressions are parsed.
#[derive(Clone, Debug, Default)]
pub(super) struct HookSpec {
    pub(super) name: Option<Arc<str>>,
    pub(super) when: Option<Arc<str>>,
    pub(super) on_failure: Option<Arc<str>>,
    /// `exec.command`.
    pub(super) exec: Option<Tree>,
    /// `job.template`.
    pub(super) job: Option<Tree>,
    /// An error was reported, so the hook is not parsed.
    pub(super) invalid: bool,
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

/// Parses the hooks of a Resource. `runs` is the supported kind: `Exec` in local mode, `Job` in a cluster.
pub(super) fn parse(
    written: Vec<HookSpec>,
    runs: HookKind,
    references: &mut Vec<Reference>,
    problems: &mut Diagnostics,
    interner: &mut Interner,
) -> Arc<[Hook]> {
    let list = Path::of(&["spec", "hooks"]);
    let mut hooks: Vec<Hook> = Vec::with_capacity(written.len());
    let mut reader = Reader { runs, references, problems, interner };
    for (index, written) in written.into_iter().enumerate() {
        let at = list.index(index);
        if written.invalid {
            continue;
        }
        if let Some(hook) = reader.hook(written, &at) {
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

    fn hook(&mut self, written: HookSpec, at: &Path) -> Option<Hook> {
        let name = written.name.unwrap_or_default();
        if !is_label(&name) {
            let what = if name.is_empty() {
                "required field is missing".to_owned()
            } else {
                format!("`{name}` is not a valid DNS label")
            };
            self.problem(at.name("name"), what, "set a name, such as `warm-up`");
        }
        let when = match written.when.as_deref() {
            Some("AfterCreate") => HookPhase::AfterCreate,
            Some("BeforeDestroy") => HookPhase::BeforeDestroy,
            other => {
                let what =
                    other.map_or("required field is missing".to_owned(), |other| format!("unknown value `{other}`"));
                self.problem(at.name("when"), what, "write `AfterCreate` or `BeforeDestroy`");
                return None;
            }
        };
        let on_failure = match written.on_failure.as_deref() {
            None | Some("Fail") => OnFailure::Fail,
            Some("Continue") => OnFailure::Continue,
            Some(other) => {
                let what = format!("must be `Fail` or `Continue`, not `{other}`");
                self.problem(at.name("onFailure"), what, "omit it for the default `Fail`");
                OnFailure::Fail
            }
        };
        let (kind, tree) = match (written.exec, written.job) {
            (Some(command), None) => (HookKind::Exec, command),
            (None, Some(template)) => (HookKind::Job, template),
            (None, None) => {
                self.problem(at.clone(), "the hook runs nothing", "set `exec` in local mode, or `job` in a cluster");
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
        if kind != self.runs {
            let (what, hint) = match kind {
                HookKind::Exec => {
                    ("`exec` hooks run only in local mode, with `purlin apply` and `purlin dev`", "use `job`")
                }
                HookKind::Job => ("`job` hooks run only in a cluster", "use `exec`"),
            };
            self.problem(place, what, hint);
            return None;
        }
        let shaped = match (&kind, &tree.node) {
            (HookKind::Exec, Node::List(items)) => {
                !items.is_empty() && items.iter().all(|item| matches!(item.node, Node::String(_)))
            }
            (HookKind::Job, Node::Map(_)) => tree.get("spec").is_some(),
            _ => false,
        };
        if !shaped {
            let (what, hint) = match kind {
                HookKind::Exec => {
                    ("must be a non-empty list of strings", "write the program and its arguments: `[sh, -c, ...]`")
                }
                HookKind::Job => ("must be a Pod template", "set `spec.containers` in the template"),
            };
            self.problem(place, what, hint);
            return None;
        }
        let (template, found, faults) = Template::parse(&tree, &place, when.variables(), self.interner);
        self.problems.extend(faults);
        self.add_references(when, found);
        let written = RecordedHook { name, kind, on_failure, definition: raw(&tree) };
        Some(Hook { when, recorded: written, template, at: place })
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
