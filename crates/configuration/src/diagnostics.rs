//! The problems of a configuration, and the files that they are in.

use hcl::{Body, Diagnostic, FileId, Parsed, Range, Source};

/// What is wrong, and what is only worth knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// With one of these, what it is about has no value.
    pub errors: Vec<Diagnostic>,
    /// These change nothing.
    pub warnings: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(crate) fn error(&mut self, summary: &str, detail: impl Into<String>, range: Range) {
        self.errors.push(Diagnostic::new(summary, detail, range));
    }

    pub(crate) fn hinted(&mut self, summary: &str, detail: impl Into<String>, hint: impl Into<String>, range: Range) {
        self.errors.push(Diagnostic::new(summary, detail, range).hint(hint));
    }

    pub(crate) fn warning(&mut self, summary: &str, detail: impl Into<String>, range: Range) {
        self.warnings.push(Diagnostic::new(summary, detail, range));
    }

    /// Puts them in the order of the files, each once.
    pub(crate) fn sort(&mut self) {
        for all in [&mut self.errors, &mut self.warnings] {
            all.sort_by(|a, b| (place(a), a.range).cmp(&(place(b), b.range)));
            all.dedup_by(|a, b| place(a) == place(b));
        }
    }

    /// Adds those of another part of the configuration.
    pub fn extend(&mut self, other: Diagnostics) {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }
}

/// What makes a problem another one. When nothing is left of the budget, every further expression says so.
fn place(diagnostic: &Diagnostic) -> (Range, &str, &str) {
    let is_over = diagnostic.summary == "Evaluation stopped";
    let range = if is_over { Range::default() } else { diagnostic.range };
    (range, &diagnostic.summary, &diagnostic.detail)
}

/// The texts of all files that were read, by the numbers that ranges have.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Parses a file, in JSON syntax if its name ends in `.json`, and keeps its text.
    pub(crate) fn parse(&mut self, name: String, bytes: Vec<u8>, diagnostics: &mut Diagnostics) -> Body {
        let is_json = crate::directory::is_json(&name);
        let source = Source::new(FileId(self.0.len() as u32), name, bytes);
        let parsed = if is_json { hcl::parse_json(source) } else { hcl::parse_body(source) };
        self.keep(parsed, diagnostics)
    }

    fn keep<T>(&mut self, parsed: Parsed<T>, diagnostics: &mut Diagnostics) -> T {
        diagnostics.errors.extend(parsed.diagnostics);
        self.0.push(parsed.source);
        parsed.value
    }

    /// The text of a file.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.0.get(file.0 as usize)
    }

    /// The texts of all files.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    /// Where a range begins, as `main.tf:3:12`.
    pub fn place(&self, range: Range) -> String {
        match self.get(range.file) {
            Some(source) => {
                let position = source.position(range.start);
                format!("{}:{}:{}", source.name(), position.line, position.column)
            }
            None => "?".to_owned(),
        }
    }

    /// A problem in one line, with its place and its hint.
    pub fn line(&self, diagnostic: &Diagnostic) -> String {
        let hint = diagnostic.hint.as_ref().map(|hint| format!(" hint: {hint}")).unwrap_or_default();
        let detail = diagnostic.detail.replace('\n', " ");
        format!("{}: {}: {detail}{hint}", self.place(diagnostic.range), diagnostic.summary)
    }
}
