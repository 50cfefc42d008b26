//! Diagnostics: errors and warnings in one line each, with the address, the field, the cause and a hint.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Address, Path, Reason, Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Does not block any object.
    Warning,
    /// Blocks the object of the diagnostic, but no other object.
    Error,
}

/// The position of a manifest in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The path as the user gave it, `-` for standard input.
    pub file: Arc<str>,
    /// The line, starting at 1.
    pub line: usize,
}

/// An error or a warning. It never contains sensitive values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The reason of the condition in the status of the object.
    pub reason: Reason,
    /// The affected object; `None` for a general problem such as an unreadable file.
    pub address: Option<Address>,
    /// The field of the object, such as `spec.config.input`.
    pub path: Option<Path>,
    /// The position of the manifest, if it was read from a file.
    pub source: Option<Source>,
    /// The problem, as a sentence without a full stop.
    pub summary: String,
    /// The cause or the driver's message. Can be empty.
    pub detail: String,
    /// The next step for the user.
    pub hint: Option<String>,
}

pub type Diagnostics = Vec<Diagnostic>;

/// The errors among diagnostics, without the warnings.
pub fn errors(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
}

pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    errors(diagnostics).next().is_some()
}

impl Diagnostic {
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

    pub fn warning(address: &Address, reason: Reason, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(address, reason, summary) }
    }

    /// Returns an error that belongs to no object.
    pub fn general(reason: Reason, summary: impl Into<String>) -> Self {
        Self { address: None, ..Self::error(&Address::single(""), reason, summary) }
    }

    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }

    /// The problem with its path below another one. One at a place of its own, in another language, needs no path.
    #[must_use]
    pub fn below(self, prefix: &Path) -> Self {
        if self.source.is_some() {
            return self;
        }
        let mut whole = prefix.clone();
        whole.0.extend(self.path.iter().flat_map(|path| path.0.iter().cloned()));
        self.at(whole)
    }

    #[must_use]
    pub fn from_source(mut self, source: Option<Source>) -> Self {
        self.source = source;
        self
    }

    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The cause, for what follows from it: the driver's message if there is one. What only waits for another object has its
    /// own text, which names that object.
    pub fn cause(&self) -> &str {
        let waits = self.reason == Reason::DependencyNotReady;
        if waits || self.detail.is_empty() { &self.summary } else { &self.detail }
    }

    /// Returns the text without the address, for a condition of the object. The source is that of a manifest, which has the
    /// condition itself; only a Module has files.
    pub fn message(&self) -> String {
        let is_of_module = self.address.as_ref().is_some_and(|address| address.kind() == "Module");
        match self.source.as_ref().filter(|_| is_of_module) {
            Some(source) => format!("{source}: {}", self.text()),
            None => self.text(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let words = self.address.as_ref().map_or(Words::Manifest, Words::of);
        let path = self.path.as_ref().and_then(|path| words.place(path));
        if let Some(path) = path.filter(|path| !path.0.is_empty()) {
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
        f.write_str(&self.text())
    }
}
