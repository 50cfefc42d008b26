//! Problems of a file, as data and as text.

use std::fmt;

use crate::source::{MAX_LEN, Range, Source};

/// A problem: what, where, why, and what helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// What is wrong, in a few words.
    pub summary: String,
    /// Why it is wrong, in a sentence or two.
    pub detail: String,
    /// What to write instead, where that can be said.
    pub hint: Option<String>,
    /// The place of the problem.
    pub range: Range,
}

impl Diagnostic {
    /// A problem without a hint.
    pub fn new(summary: impl Into<String>, detail: impl Into<String>, range: Range) -> Self {
        Self { summary: summary.into(), detail: detail.into(), hint: None, range }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The problem with its place, the line of source, and a marker below it.
    ///
    /// ```
    /// let parsed = hcl::parse_body(hcl::Source::new(hcl::FileId(0), "main.tf", "a = [1 2]\n"));
    /// let text = parsed.diagnostics[0].display(&parsed.source).to_string();
    /// assert_eq!(text.lines().next(), Some("Error: Missing item separator"));
    /// assert!(text.contains(" --> main.tf:1:8\n"));
    /// assert!(text.contains("1 | a = [1 2]\n  |        ^\n"));
    /// ```
    pub fn display<'a>(&'a self, source: &'a Source) -> impl fmt::Display + 'a {
        Shown { diagnostic: self, source }
    }
}

/// The greatest number of problems of a file. More are read by no person, and would need more memory than the file.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// The problem of a file that was not read.
pub(crate) fn too_long(source: &Source) -> Option<Diagnostic> {
    let detail = format!("The file is longer than {} MiB.", MAX_LEN >> 20);
    let range = Range { file: source.id(), start: 0, end: 0 };
    source.is_too_long().then(|| Diagnostic::new("File too large", detail, range))
}

struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: &'a Source,
}

/// The longest line of source that is shown whole.
const MAX_SHOWN: usize = 200;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { summary, detail, hint, range } = self.diagnostic;
        let start = self.source.position(range.start);
        let end = self.source.position(range.end);
        let number = start.line.to_string();
        let margin = " ".repeat(number.len());
        let line: String = self.source.line(start.line).chars().take(MAX_SHOWN).collect();
        let line = line.replace(|c: char| c.is_control(), " ");
        writeln!(f, "Error: {summary}")?;
        writeln!(f, "{margin}--> {}:{}:{}", self.source.name(), start.line, start.column)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {line}")?;
        let last = if end.line == start.line { end.column } else { line.chars().count() as u32 + 1 };
        let before = (start.column as usize - 1).min(MAX_SHOWN);
        let width = (last.saturating_sub(start.column) as usize).clamp(1, MAX_SHOWN);
        writeln!(f, "{margin} | {}{}", " ".repeat(before), "^".repeat(width))?;
        write!(f, "{detail}")?;
        hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
