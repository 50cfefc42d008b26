//! Problems, told in one line each: what, where, why, and a hint where there is a next step.

use std::fmt;
use std::sync::Arc;

use super::{Address, Path, Reason};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is held back because of it.
    Warning,
    /// The object it names cannot proceed. Other objects do.
    Error,
}

/// Where a problem was given: a place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file as the user named it, `-` for standard input.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
}

/// One problem. `summary` says what, `detail` why; neither ever holds a sensitive value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The condition reason it becomes on an object.
    pub reason: Reason,
    /// The object it concerns; `None` for one that concerns no object, such as an unreadable file.
    pub address: Option<Address>,
    /// The field of the object, from `spec` on: `spec.config.input`.
    pub path: Option<Path>,
    /// Where it was given, when it came from a file.
    pub source: Option<Source>,
    /// What is wrong, in one sentence without a full stop.
    pub summary: String,
    /// Why, or the text of the driver. May be empty.
    pub detail: String,
    /// The next step for the user.
    pub hint: Option<String>,
}

/// Problems in the order in which they were found.
pub type Diagnostics = Vec<Diagnostic>;

impl Diagnostic {
    /// An error that concerns one object.
    pub fn error(address: &Address, reason: Reason, summary: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            reason,
            address: Some(address.clone()),
            path: None,
            source: None,
            summary: summary.into(),
            detail: String::new(),
            hint: None,
        }
    }

    /// A warning that concerns one object.
    pub fn warning(address: &Address, reason: Reason, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(address, reason, summary) }
    }

    /// An error that concerns no object.
    pub fn general(reason: Reason, summary: impl Into<String>) -> Self {
        Self { address: None, ..Self::error(&Address::single(""), reason, summary) }
    }

    /// The same with the field it concerns.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }

    /// The same with the place in a file.
    #[must_use]
    pub fn from_source(mut self, source: Option<Source>) -> Self {
        self.source = source;
        self
    }

    /// The same with the reason why.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The same with the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What is wrong and why, without where: the text of a condition on the object itself.
    pub fn message(&self) -> String {
        let mut text = String::new();
        if let Some(path) = &self.path {
            text.push_str(&format!("{path}: "));
        }
        text.push_str(&self.summary);
        if !self.detail.is_empty() {
            text.push_str(&format!(": {}", self.detail));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!(" (hint: {hint})"));
        }
        text
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        if let Some(address) = &self.address {
            write!(f, "{address}: ")?;
        }
        f.write_str(&self.message())
    }
}
