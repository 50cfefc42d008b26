//! Expressions of another language, which that language evaluates.

use std::fmt;

use super::Scope;
use model::{Diagnostics, Value};

/// An expression of another language. Its references are those of the Resource that has it.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// A text that is the same only for the same expression.
    fn source(&self) -> String;

    /// Evaluates the expression in a scope.
    ///
    /// # Errors
    /// The problems of the expression, at their places in its file. A warning says that the reason is reported elsewhere.
    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics>;
}
