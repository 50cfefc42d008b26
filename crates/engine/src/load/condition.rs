//! Preconditions and postconditions of a Resource.

use std::sync::Arc;

use super::expression::Variable;
use super::intern::{Interner, shared_slice};
use super::tree::Tree;
use super::{Reference, Template};
use model::{Diagnostic, Diagnostics, Path, Reason};

/// One condition with its error message.
#[derive(Clone, Debug)]
pub struct Condition {
    /// An expression whose value must be true or false.
    pub condition: Template,
    /// The message for the value false.
    pub message: Template,
    /// The path, such as `spec.lifecycle.preconditions[0]`.
    pub at: Path,
}

/// The variables of a precondition.
const BEFORE: &[Variable] = &[Variable::Each, Variable::Count, Variable::Inputs];

/// The variables of a postcondition.
const AFTER: &[Variable] = &[Variable::Itself, Variable::Each, Variable::Count, Variable::Inputs];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionKind {
    Precondition,
    Postcondition,
}

impl ConditionKind {
    /// The field of `spec.lifecycle`.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Precondition => "preconditions",
            Self::Postcondition => "postconditions",
        }
    }

    fn variables(self) -> &'static [Variable] {
        match self {
            Self::Precondition => BEFORE,
            Self::Postcondition => AFTER,
        }
    }
}

/// Parses the conditions of one list. The objects that they read become dependencies.
pub(crate) fn parse(
    written: &[api::Requirement],
    moment: ConditionKind,
    references: &mut Vec<Reference>,
    problems: &mut Diagnostics,
    interner: &mut Interner,
) -> Arc<[Condition]> {
    if written.is_empty() {
        return Arc::default();
    }
    let list = Path::of(&["spec", "lifecycle", moment.field()]);
    let mut conditions = Vec::with_capacity(written.len());
    for (index, api::Requirement { condition, error_message }) in written.iter().enumerate() {
        let at = list.index(index);
        let [condition, message] = [("condition", condition), ("errorMessage", error_message)].map(|(name, text)| {
            let place = at.name(name);
            if text.trim().is_empty() {
                let missing = Diagnostic::general(Reason::InvalidManifest, "required field is missing").at(place);
                problems.push(missing.hint("set both `condition` and `errorMessage`"));
                return Template::default();
            }
            let (template, found, faults) = Template::parse(&Tree::string(text), &place, moment.variables(), interner);
            if name == "condition" && faults.is_empty() && template.as_literal().is_some() {
                let what = "the condition is not an expression";
                problems
                    .push(Diagnostic::general(Reason::InvalidManifest, what).at(place).hint("write it as `${...}`"));
            }
            references.extend(found);
            problems.extend(faults);
            template
        });
        conditions.push(Condition { condition, message, at });
    }
    shared_slice(conditions)
}
