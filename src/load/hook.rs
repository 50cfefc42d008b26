//! Hooks as a Resource has them, with their expressions parsed.

use std::sync::Arc;

use super::expression::{Variable, is_label};
use super::intern::{Interner, kept};
use super::tree::{Node, Tree};
use super::{Reference, Template};
use crate::model::{Diagnostic, Diagnostics, HookKind, OnFailure, Path, Reason, RecordedHook, Value};

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After the object was created, before anything that depends on it goes on.
    AfterCreate,
    /// Before the object is destroyed, whichever object of the Resource it is.
    BeforeDestroy,
}

/// One hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// When it runs.
    pub when: When,
    /// What is recorded of it; the definition as it was written.
    pub written: RecordedHook,
    /// The definition, with its expressions parsed.
    pub template: Template,
    /// Where the definition stands: `spec.hooks[0].exec.command`.
    pub at: Path,
}

/// A hook as it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) name: Option<Arc<str>>,
    pub(super) when: Option<Arc<str>>,
    pub(super) on_failure: Option<Arc<str>>,
    /// `exec.command`.
    pub(super) exec: Option<Tree>,
    /// `job.template`.
    pub(super) job: Option<Tree>,
    /// Something is wrong with it that was told already.
    pub(super) faulty: bool,
}

/// What a hook after the create can name besides objects.
const AFTER_CREATE: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count, Variable::Inputs];

/// What a hook before the destroy can name: by then nothing else may be there.
const BEFORE_DESTROY: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count];

impl When {
    fn variables(self) -> &'static [Variable] {
        match self {
            Self::AfterCreate => AFTER_CREATE,
            Self::BeforeDestroy => BEFORE_DESTROY,
        }
    }
}

/// Parses a recorded definition, which stands at no place any more.
pub fn parse_recorded(hook: &RecordedHook) -> (Template, Diagnostics) {
    let at = Path::default().name("hooks").name(hook.name.clone());
    let (template, _, problems) = Template::parse_json(&hook.definition.to_json(), &at, BEFORE_DESTROY);
    (template, problems)
}

/// Parses the hooks of a Resource. `runs` is the kind that can be run where the Resource was read.
pub(super) fn parse(
    written: Vec<Written>,
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
        if written.faulty {
            continue;
        }
        if let Some(hook) = reader.hook(written, &at) {
            if hooks.iter().any(|other| other.written.name == hook.written.name) {
                let what = format!("`{}` is the name of another hook", hook.written.name);
                reader.problem(at.name("name"), what, "give each hook a name of its own");
            }
            hooks.push(hook);
        }
    }
    kept(hooks)
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

    fn hook(&mut self, written: Written, at: &Path) -> Option<Hook> {
        let name = written.name.unwrap_or_default();
        if !is_label(&name) {
            let what = if name.is_empty() { "it is missing".to_owned() } else { format!("`{name}` is no DNS label") };
            self.problem(at.name("name"), what, "name the hook, such as `warm-up`");
        }
        let when = match written.when.as_deref() {
            Some("AfterCreate") => When::AfterCreate,
            Some("BeforeDestroy") => When::BeforeDestroy,
            other => {
                let what = other.map_or("it is missing".to_owned(), |other| format!("`{other}` is no such moment"));
                self.problem(at.name("when"), what, "write `AfterCreate` or `BeforeDestroy`");
                return None;
            }
        };
        let on_failure = match written.on_failure.as_deref() {
            None | Some("Fail") => OnFailure::Fail,
            Some("Continue") => OnFailure::Continue,
            Some(other) => {
                let what = format!("`{other}` is neither `Fail` nor `Continue`");
                self.problem(at.name("onFailure"), what, "leave it out for `Fail`");
                OnFailure::Fail
            }
        };
        let (kind, tree) = match (written.exec, written.job) {
            (Some(command), None) => (HookKind::Exec, command),
            (None, Some(template)) => (HookKind::Job, template),
            (None, None) => {
                self.problem(at.clone(), "it runs nothing", "give it `exec` on files, or `job` in a cluster");
                return None;
            }
            (Some(_), Some(_)) => {
                self.problem(at.clone(), "it has both `exec` and `job`", "keep one of them");
                return None;
            }
        };
        let place = match kind {
            HookKind::Exec => at.name("exec").name("command"),
            HookKind::Job => at.name("job").name("template"),
        };
        if kind != self.runs {
            let (what, hint) = match kind {
                HookKind::Exec => ("programs are run only on files, by `purlin apply` and `dev`", "use `job`"),
                HookKind::Job => ("Jobs are run only in a cluster, by the controller", "use `exec`"),
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
                    ("it must be a list of texts", "write the program and its arguments: `[sh, -c, ...]`")
                }
                HookKind::Job => {
                    ("it must be the template of a Pod", "write `spec` with `containers` below `template`")
                }
            };
            self.problem(place, what, hint);
            return None;
        }
        let (template, found, faults) = Template::parse(&tree, &place, when.variables(), self.interner);
        self.problems.extend(faults);
        self.refer(when, found);
        let written = RecordedHook { name, kind, on_failure, definition: raw(&tree) };
        Some(Hook { when, written, template, at: place })
    }

    /// What a hook reads after the create is a dependency. Before the destroy other objects may be gone.
    fn refer(&mut self, when: When, found: Vec<Reference>) {
        if when == When::AfterCreate {
            self.references.extend(found);
            return;
        }
        for reference in found {
            let what = format!("`{}` may be gone before this object is destroyed", reference.target);
            let hint = "a `BeforeDestroy` hook can name only `self`, `count.index` and `each.key`";
            self.problem(reference.at, what, hint);
        }
    }
}

/// The tree as it was written, expressions included.
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
