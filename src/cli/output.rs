//! Prints results to standard output and everything else to standard error. No other module prints.
//!
//! Text for people is written through [`Text`], which escapes control characters. Other formats are written as they are.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::AutoStream;
use rustix::termios::{self, LocalModes, OptionalActions};

use super::args::ColorChoice;
use super::failure::{self, Failure};
use super::table::Table;
use engine::plan::render::problems::{Problem, write_concerned};
use model::text::{one_line, split_hint};
use model::{Diagnostic, Severity, Text, Tone, with_namespace};

#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Whether standard output has colors.
    color: bool,
    /// Whether standard error has colors.
    error_color: bool,
    /// Whether standard output is a terminal that can redraw lines.
    pub live: bool,
    /// Whether standard input and standard error are terminals, so that the user can answer a prompt.
    pub can_ask: bool,
    /// The namespace that the user specified, for the commands in hints. Empty if there is none.
    namespace: &'static str,
    /// Whether texts go to standard error, because they are not the result of the command.
    aside: bool,
}

impl Console {
    /// `namespace` is the one that the user specified, or empty.
    pub fn new(choice: ColorChoice, namespace: &'static str) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            color: has_color(choice, AutoStream::choice(&io::stdout())),
            error_color: has_color(choice, AutoStream::choice(&io::stderr())),
            live: io::stdout().is_terminal() && !dumb,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            namespace,
            aside: false,
        }
    }

    /// The console for what a command does before its own work: its texts go to standard error.
    #[must_use]
    pub fn aside(self) -> Self {
        Self { color: self.error_color, aside: true, ..self }
    }

    /// An empty text for standard output.
    pub fn text(self) -> Text {
        Text::new(self.color)
    }

    /// An empty text for standard error.
    pub fn error_text(self) -> Text {
        Text::new(self.error_color)
    }

    /// Prints a text to standard output.
    pub fn print(self, text: &Text) -> anyhow::Result<()> {
        if self.aside {
            self.print_error(text);
            return Ok(());
        }
        self.result(|out| out.write_all(text.as_str().as_bytes()))
    }

    /// Prints lines without colors to standard output.
    pub fn lines(self, lines: impl Display) -> anyhow::Result<()> {
        let mut text = self.text();
        text.put(lines);
        self.print(&text)
    }

    pub fn table<const N: usize>(self, table: &Table<N>) -> anyhow::Result<()> {
        let mut text = self.text();
        table.write(&mut text);
        self.print(&text)
    }

    /// Writes a result to standard output through one large buffer, without escapes. A closed pipe is not an error, so
    /// that `| head` works.
    pub fn result(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(anyhow::Error::from(error).context("standard output cannot be written"))
            }
            _ => Ok(()),
        }
    }

    /// Prints a text to standard error.
    pub fn print_error(self, text: &Text) {
        // An error here means that standard error is closed.
        let _ = io::stderr().lock().write_all(text.as_str().as_bytes());
    }

    /// Prints a line to standard error.
    pub fn notice(self, line: &str) {
        let mut text = self.error_text();
        text.put(with_namespace(line, self.namespace)).end_line();
        self.print_error(&text);
    }

    /// Prints diagnostics to standard error, one line each, followed by their hints.
    pub fn diagnostics(self, diagnostics: &[Diagnostic]) {
        let mut text = self.error_text();
        diagnostics.iter().for_each(|diagnostic| write_diagnostic(diagnostic, &mut text));
        self.print_error(&text);
    }

    /// Prints the problems of a plan to standard error, each with the number of objects that wait for it.
    pub fn problems(self, problems: &[Problem<'_>]) {
        let mut text = self.error_text();
        for problem in problems {
            write_diagnostic(&problem.diagnostic, &mut text);
            write_concerned(problem, &mut text);
        }
        self.print_error(&text);
    }

    /// Prints the error that ended a command.
    pub fn failure(self, error: &anyhow::Error) {
        let line = failure::line(error);
        let line = one_line(&line);
        let given = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()?.hint.as_deref());
        let (line, hint) = match given {
            Some(hint) => (line.as_ref(), Some(hint)),
            None => split_hint(&line),
        };
        let mut text = self.error_text();
        let hint = hint.map(|hint| with_namespace(hint, self.namespace));
        write_problem(Severity::Error, line, hint.as_deref(), &mut text);
        self.print_error(&text);
    }

    /// Asks a question that only `yes` confirms. It ends with a space or a new line.
    pub fn confirms(self, question: &str) -> anyhow::Result<bool> {
        Ok(self.ask(&format!("{question}Only `yes` is accepted to confirm: "))? == "yes")
    }

    /// Prints a question to standard error and reads a line from standard input.
    fn ask(self, question: &str) -> anyhow::Result<String> {
        Ok(self.read_line(question)?.unwrap_or_default())
    }

    /// Prints a prompt to standard error and reads a line from standard input. `None` at its end.
    pub fn read_line(self, prompt: &str) -> anyhow::Result<Option<String>> {
        let mut text = self.error_text();
        text.put(prompt);
        self.print_error(&text);
        let mut line = String::new();
        let length = io::stdin().read_line(&mut line)?;
        Ok((length > 0).then(|| line.trim().to_owned()))
    }

    /// As `read_line`, and the terminal does not show what is typed.
    pub fn read_secret(self, prompt: &str) -> anyhow::Result<Option<String>> {
        let terminal = io::stdin();
        let before = termios::tcgetattr(&terminal)?;
        let mut hiding = before.clone();
        hiding.local_modes.remove(LocalModes::ECHO);
        // The end of the line is still shown.
        hiding.local_modes.insert(LocalModes::ECHONL);
        termios::tcsetattr(&terminal, OptionalActions::Now, &hiding)?;
        let answer = self.read_line(prompt);
        termios::tcsetattr(&terminal, OptionalActions::Now, &before)?;
        answer
    }
}

fn has_color(choice: ColorChoice, detected: anstream::ColorChoice) -> bool {
    match choice {
        ColorChoice::Auto => !matches!(detected, anstream::ColorChoice::Never),
        ColorChoice::Always => true,
        ColorChoice::Never => false,
    }
}

fn write_diagnostic(diagnostic: &Diagnostic, text: &mut Text) {
    let line = Diagnostic { hint: None, ..diagnostic.clone() }.to_string();
    write_problem(diagnostic.severity, &line, diagnostic.hint.as_deref(), text);
}

/// Writes a problem on one line, and its hint on another.
pub fn write_problem(severity: Severity, line: &str, hint: Option<&str>, text: &mut Text) {
    match severity {
        Severity::Error => text.tone(Tone::Error, "error:"),
        Severity::Warning => text.tone(Tone::Warning, "warning:"),
    };
    text.put(' ').put(one_line(line)).end_line();
    if let Some(hint) = hint {
        text.tone(Tone::Faint, "hint:").put(' ').put(one_line(hint)).end_line();
    }
}
