//! Why a function gives no value.

use std::fmt;

/// It never contains a value that is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The argument that is wrong, from 0, if it is one of them.
    pub argument: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { argument: None, message: message.into(), hint: None }
    }

    pub fn of(argument: usize, message: impl Into<String>) -> Self {
        Self { argument: Some(argument), ..Self::new(message) }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<crate::cty::Error> for Failure {
    fn from(error: crate::cty::Error) -> Self {
        Self::new(error.to_string())
    }
}
