//! Prints results to standard output and everything else to standard error. No other module prints.

use std::io::{self, BufWriter, IsTerminal, Write};

use super::args::ColorChoice;
use super::failure::Failure;
use crate::model::{Diagnostic, Severity};

#[derive(Clone, Copy, Debug)]
pub struct Console {
    pub paint: Paint,
    pub error_paint: Paint,
    /// Whether standard output is a terminal that can redraw lines.
    pub live: bool,
    /// Whether standard input and standard error are terminals, so that the user can answer a prompt.
    pub can_ask: bool,
}

impl Console {
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

    /// Prints a result to standard output through one large buffer. A closed pipe is not an error, so that `| head`
    /// works.
    pub fn result(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub fn notice(self, text: &str) {
        let mut err = io::stderr().lock();
        // An error here means that standard error is closed.
        let _ = writeln!(err, "{text}");
    }

    /// Prints diagnostics to standard error, one line each, followed by their hints.
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

    /// Prints the error that ended a command.
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

    /// Prints a question to standard error and reads a line from standard input.
    pub fn ask(self, question: &str) -> anyhow::Result<String> {
        let mut err = io::stderr().lock();
        write!(err, "{question}")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }
}

/// Messages of drivers and parsers may have several lines; a diagnostic is printed on one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Errors of other modules contain their hint in parentheses at the end.
fn split_hint(text: &str) -> (&str, Option<&str>) {
    let split = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (hint: "));
    split.map_or((text, None), |(line, hint)| (line, Some(hint)))
}

/// Styles text if true. No information is shown by color alone.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub fn error(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub fn warning(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    pub fn success(self, text: &str) -> String {
        self.wrap("1;32", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_is_printed_on_one_line() {
        assert_eq!(one_line("a\n  b\n\nc"), "a; b; c");
    }

    #[test]
    fn hints_are_printed_on_a_separate_line() {
        assert_eq!(split_hint("no (hint: yes (or so))"), ("no", Some("yes (or so)")));
        assert_eq!(split_hint("no (at all)"), ("no (at all)", None));
    }
}
