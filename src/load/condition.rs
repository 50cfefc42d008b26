//! Conditions: what must hold before an object is changed, and after.

use std::sync::Arc;

use super::expression::Variable;
use super::intern::{Interner, kept};
use super::tree::{Node, Tree};
use super::{Reference, Template};
use crate::model::{Diagnostic, Diagnostics, Path, Reason};

/// One condition with the author's message.
#[derive(Clone, Debug)]
pub struct Condition {
    /// An expression that gives true or false.
    pub condition: Template,
    /// What is told when it gives false.
    pub message: Template,
    /// Where it stands: `spec.lifecycle.preconditions[0]`.
    pub at: Path,
}

/// A condition as it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) condition: Option<Arc<str>>,
    pub(super) message: Option<Arc<str>>,
}

/// What a precondition can name besides objects.
const BEFORE: &[Variable] = &[Variable::Each, Variable::Count, Variable::Inputs];

/// What a postcondition can name besides objects.
const AFTER: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count, Variable::Inputs];

/// Which conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

impl Moment {
    /// The field of `spec.lifecycle` that holds them.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Before => "preconditions",
            Self::After => "postconditions",
        }
    }

    fn variables(self) -> &'static [Variable] {
        match self {
            Self::Before => BEFORE,
            Self::After => AFTER,
        }
    }
}

/// Parses the conditions of one list. Objects that they read are dependencies.
pub(super) fn parse(
    written: Vec<Written>,
    moment: Moment,
    references: &mut Vec<Reference>,
    problems: &mut Diagnostics,
    interner: &mut Interner,
) -> Arc<[Condition]> {
    if written.is_empty() {
        return Arc::default();
    }
    let list = Path::of(&["spec", "lifecycle", moment.field()]);
    let mut conditions = Vec::with_capacity(written.len());
    for (index, Written { condition, message }) in written.into_iter().enumerate() {
        let at = list.index(index);
        let mut text = |name: &str, text: Option<Arc<str>>| {
            let place = at.name(name);
            let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
                let missing = Diagnostic::general(Reason::InvalidManifest, "it is missing").at(place);
                problems.push(missing.hint("a condition has a `condition` and an `errorMessage`"));
                return Template::default();
            };
            let tree = Tree { line: 0, node: Node::String(text) };
            let (template, found, faults) = Template::parse(&tree, &place, moment.variables(), interner);
            if name == "condition" && faults.is_empty() && template.as_literal().is_some() {
                let what = "it is no expression, so it could never change";
                problems
                    .push(Diagnostic::general(Reason::InvalidManifest, what).at(place).hint("write it as `${...}`"));
            }
            references.extend(found);
            problems.extend(faults);
            template
        };
        let (condition, message) = (text("condition", condition), text("errorMessage", message));
        conditions.push(Condition { condition, message, at });
    }
    kept(conditions)
}
