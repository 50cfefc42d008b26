//! The only place that prints. Standard output is for results, standard error for everything else.

use std::io::{self, BufWriter, IsTerminal, Write};

use super::args::ColorChoice;
use super::failure::Failure;
use crate::model::{Diagnostic, Severity};

/// Where and how a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Styles of standard output.
    pub paint: Paint,
    /// Styles of standard error.
    pub error_paint: Paint,
    /// Standard output is a terminal that can redraw lines.
    pub live: bool,
    /// A person can be asked: standard input and standard error are a terminal.
    pub can_ask: bool,
}

impl Console {
    /// Looks at the terminal once.
    pub fn new(choice: ColorChoice) -> Self {
        use anstream::{AutoStream, ColorChoice as Auto};
        let decide = |detected: Auto| match choice {
            ColorChoice::Auto => !matches!(detected, Auto::Never),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            paint: Paint(decide(AutoStream::choice(&io::stdout()))),
            error_paint: Paint(decide(AutoStream::choice(&io::stderr()))),
            live: io::stdout().is_terminal() && !dumb,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }

    /// Prints a result to standard output through one large buffer. A reader that went away is no error: `head` has
    /// seen enough.
    pub fn result(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Prints one line to standard error.
    pub fn notice(self, text: &str) {
        let mut err = io::stderr().lock();
        // Nobody is left to tell when standard error is gone.
        let _ = writeln!(err, "{text}");
    }

    /// Prints problems to standard error, a line each, with the next step below.
    pub fn diagnostics(self, diagnostics: &[Diagnostic]) {
        let mut err = BufWriter::new(io::stderr().lock());
        for diagnostic in diagnostics {
            let _ = self.write_diagnostic(&mut err, diagnostic);
        }
        let _ = err.flush();
    }

    fn write_diagnostic(self, err: &mut dyn Write, diagnostic: &Diagnostic) -> io::Result<()> {
        let label = match diagnostic.severity {
            Severity::Error => self.error_paint.error("error:"),
            Severity::Warning => self.error_paint.warning("warning:"),
        };
        let hint = diagnostic.hint.as_deref();
        let line = Diagnostic { hint: None, ..diagnostic.clone() }.to_string();
        writeln!(err, "{label} {}", one_line(&line))?;
        hint.map_or(Ok(()), |hint| writeln!(err, "{} {}", self.error_paint.faint("hint:"), one_line(hint)))
    }

    /// Prints why a command could not do its work.
    pub fn failure(self, error: &anyhow::Error) {
        let paint = self.error_paint;
        let text = one_line(&format!("{error:#}"));
        let given = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()?.hint.as_deref());
        let (line, hint) = match given {
            Some(hint) => (text.as_str(), Some(hint)),
            None => split_hint(&text),
        };
        self.notice(&format!("{} {line}", paint.error("error:")));
        if let Some(hint) = hint {
            self.notice(&format!("{} {}", paint.faint("hint:"), one_line(hint)));
        }
    }

    /// Asks a question on standard error and reads one line of an answer.
    pub fn ask(self, question: &str) -> anyhow::Result<String> {
        let mut err = io::stderr().lock();
        write!(err, "{question}")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }
}

/// Text of drivers and parsers may span lines; a problem is told in one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Errors of other modules carry their hint at the end, in brackets.
fn split_hint(text: &str) -> (&str, Option<&str>) {
    let split = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (hint: "));
    split.map_or((text, None), |(line, hint)| (line, Some(hint)))
}

/// Styles, or none of them. Colour never carries the meaning alone.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// For headings and names.
    pub fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// For what matters less.
    pub fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// For what went wrong.
    pub fn error(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// For what to look at.
    pub fn warning(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    /// For what went well.
    pub fn success(self, text: &str) -> String {
        self.wrap("1;32", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_one_line() {
        assert_eq!(one_line("a\n  b\n\nc"), "a; b; c");
    }

    #[test]
    fn hints_get_a_line_of_their_own() {
        assert_eq!(split_hint("no (hint: yes (or so))"), ("no", Some("yes (or so)")));
        assert_eq!(split_hint("no (at all)"), ("no (at all)", None));
    }
}
