//! Reports the progress of a run as JSON lines, plain lines, or a live display.

mod failures;
mod line;
mod still_running;

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use jiff::Timestamp;

use self::failures::Failures;
use self::still_running::StillRunning;
use super::inputs::OtherSources;
use super::json::{self, DiagnosticEvent, StepEvent, SummaryEvent};
use super::live::LiveDisplay;
use super::output::Console;
use model::{Address, Change, Diagnostic, Operation, Reason, Recorded, Step, Text};
use runtime::execute::{HookNote, Progress, ProgressKind, Summary};

/// The redraw interval of the live display.
const REDRAW: Duration = Duration::from_millis(100);

/// How often plain output checks for steps that run for long.
const CHECK: Duration = Duration::from_secs(1);

/// Reports and counts events.
pub struct Reporter {
    sink: Sink,
    /// An empty text with or without colors.
    blank: Text,
    running: StillRunning,
    failures: Failures,
    /// The run ends, and the causes of failures are printed at its end. Otherwise, each failure is printed with its
    /// cause.
    ends: bool,
    summary: Summary,
    /// Warnings that were reported. Drivers repeat them with each call.
    warned: HashSet<(Option<Address>, String)>,
    /// The objects whose record-only steps are not reported unless they fail.
    silent: HashSet<Address>,
    /// The objects that are imported and not recorded yet.
    imported: HashSet<Address>,
}

/// Errors of standard output are ignored: a run continues when standard output is closed, because its results must
/// still be recorded.
enum Sink {
    Json(BufWriter<io::Stdout>),
    Plain(BufWriter<io::Stdout>),
    Live(LiveDisplay),
}

impl Reporter {
    /// One JSON object per line.
    pub fn json() -> Self {
        Self::new(Sink::Json(BufWriter::new(io::stdout())), Text::new(false))
    }

    /// Text; live on a terminal, unless `no_progress` is set.
    pub fn text(console: Console, no_progress: bool) -> Self {
        let sink = if console.live && !no_progress {
            Sink::Live(LiveDisplay::default())
        } else {
            Sink::Plain(BufWriter::new(io::stdout()))
        };
        Self::new(sink, console.text())
    }

    fn new(sink: Sink, blank: Text) -> Self {
        Self {
            sink,
            blank,
            running: StillRunning::default(),
            failures: Failures::default(),
            ends: false,
            summary: Summary::default(),
            warned: HashSet::new(),
            silent: HashSet::new(),
            imported: HashSet::new(),
        }
    }

    /// Takes over which changes of a plan are silent, and which import an object.
    pub fn planned<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change> + 'a) {
        for change in changes {
            if change.imported {
                self.imported.insert(change.address.clone());
            }
            match change.silent {
                true => self.silent.insert(change.address.clone()),
                false => self.silent.remove(&change.address),
            };
        }
    }

    /// Sets the number of steps of a run that ends. The live display shows how many of them have ended. Returns how
    /// many are reported.
    pub fn expect_steps(&mut self, count: usize) -> usize {
        self.ends = true;
        let count = count - self.silent.len();
        if let Sink::Live(live) = &mut self.sink {
            live.expect_steps(count);
        }
        count
    }

    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Resets the counts.
    pub fn reset(&mut self) {
        self.summary = Summary::default();
    }

    /// How often `tick` must be called; `None` if it need not be.
    pub fn interval(&self) -> Option<Duration> {
        match self.sink {
            Sink::Json(_) => None,
            Sink::Plain(_) => Some(CHECK),
            Sink::Live(_) => Some(REDRAW),
        }
    }

    /// Whether to report a diagnostic: warnings of drivers and reasons for delays are reported only once.
    pub fn is_new(&mut self, diagnostic: &Diagnostic) -> bool {
        let of_driver = matches!(diagnostic.reason, Reason::ProviderWarning | Reason::FieldKept);
        !(of_driver || matches!(diagnostic.reason, Reason::RecordNotWritten | Reason::TimeLimitExceeded))
            || self.warned.insert((diagnostic.address.clone(), diagnostic.summary.clone()))
    }

    /// Reports diagnostics from before the run. Only for JSON; the text output prints them to standard error.
    pub fn diagnostics(&mut self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.is_new(diagnostic);
        }
        if let Sink::Json(out) = &mut self.sink {
            for diagnostic in diagnostics {
                let _ = json::write_line(out, &DiagnosticEvent::new(diagnostic));
            }
            let _ = out.flush();
        }
    }

    /// Reports one event. `records` must include its result.
    pub fn event(&mut self, progress: &Progress, records: &Recorded) {
        count(&mut self.summary, progress);
        if matches!(progress.kind, ProgressKind::Finished) && self.imported.remove(&progress.step.address) {
            self.summary.imported += 1;
        }
        if let ProgressKind::Warning(diagnostic) | ProgressKind::Delayed(diagnostic) = &progress.kind
            && !self.is_new(diagnostic)
        {
            return;
        }
        if let Sink::Json(out) = &mut self.sink {
            write_event(progress, out);
            return;
        }
        if self.is_silent(progress) {
            return;
        }
        let took = self.took(progress);
        self.failures.event(progress);
        if let Sink::Live(live) = &mut self.sink {
            live.event(progress);
        }
        // Skipped steps are counted at their cause, or in the summary.
        let is_consequence = matches!(progress.kind, ProgressKind::Skipped { .. });
        let is_shown_live = matches!((&self.sink, &progress.kind), (Sink::Live(_), ProgressKind::Started));
        if !is_consequence && !is_shown_live {
            let mut text = self.blank.clone();
            line::write(progress, took, records, !self.ends, &mut text);
            self.note(&text);
        }
    }

    /// Reports a line that is not about one event. Omitted in JSON.
    pub fn note(&mut self, text: &Text) {
        match &mut self.sink {
            Sink::Json(_) => {}
            Sink::Plain(out) => drop(writeln!(out, "{}", text.as_str())),
            Sink::Live(live) => live.note(text),
        }
    }

    /// An empty text for `note`.
    pub fn blank(&self) -> Text {
        self.blank.clone()
    }

    /// Flushes the output. Called when no more events are pending.
    pub fn flush(&mut self) {
        if !self.ends {
            let mut text = self.blank.clone();
            self.failures.write_skipped(&mut text);
            self.lines(&text);
        }
        match &mut self.sink {
            Sink::Json(out) | Sink::Plain(out) => drop(out.flush()),
            Sink::Live(_) => {}
        }
    }

    /// Redraws the live display, or reports the steps that have been running for long.
    pub fn tick(&mut self, now: Timestamp) {
        if let Sink::Live(live) = &mut self.sink {
            return live.draw(now);
        }
        for (step, took) in self.running.due(now) {
            let mut text = self.blank.clone();
            line::write_still_running(&step, took, &mut text);
            self.note(&text);
        }
        self.flush();
    }

    /// Ends the live display, and reports the summary.
    pub fn close(&mut self, verdict: &str, other_sources: OtherSources) {
        if let Sink::Json(out) = &mut self.sink {
            drop(json::write_line(out, &SummaryEvent::new(self.summary, other_sources)));
        }
        let mut text = self.blank.clone();
        text.end_line().put(verdict);
        self.note(&text);
        if let Sink::Live(live) = &mut self.sink {
            live.close();
        }
        self.flush();
    }

    /// Writes the failed steps of a run with their causes. Nothing for JSON, whose events contain them.
    pub fn write_failures(&self, text: &mut Text) {
        if !matches!(self.sink, Sink::Json(_)) {
            self.failures.write(text);
        }
    }

    /// Reports whole lines that are not about one event. Omitted in JSON.
    pub fn lines(&mut self, lines: &Text) {
        let Some(line) = lines.as_str().strip_suffix('\n') else { return };
        match &mut self.sink {
            Sink::Json(_) => {}
            Sink::Plain(out) => drop(writeln!(out, "{line}")),
            Sink::Live(live) => live.lines(line),
        }
    }

    fn is_silent(&self, progress: &Progress) -> bool {
        progress.step.operation == Operation::Record
            && matches!(progress.kind, ProgressKind::Started | ProgressKind::Finished)
            && self.silent.contains(&progress.step.address)
    }

    fn took(&mut self, progress: &Progress) -> Duration {
        match progress.kind {
            ProgressKind::Started => {
                self.running.started(&progress.step, progress.at);
                Duration::ZERO
            }
            ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) | ProgressKind::Superseded => {
                Duration::ZERO
            }
            _ => self.running.ended(&progress.step, progress.at),
        }
    }
}

fn write_event(progress: &Progress, out: &mut dyn Write) {
    let written = match &progress.kind {
        ProgressKind::Hook(note) => match warning(&progress.step, note) {
            Some(warning) => json::write_line(out, &DiagnosticEvent::new(&warning)),
            None => Ok(()),
        },
        ProgressKind::Warning(diagnostic) | ProgressKind::Delayed(diagnostic) => {
            json::write_line(out, &DiagnosticEvent::new(diagnostic))
        }
        _ => json::write_line(out, &StepEvent::new(progress)),
    };
    drop(written);
}

/// A warning for a failed hook whose step continues.
fn warning(step: &Step, note: &HookNote) -> Option<Diagnostic> {
    let what = format!("the hook `{}` failed", note.hook);
    note.failed.then(|| Diagnostic::warning(&step.address, Reason::HookFailed, what).because(note.message.clone()))
}

fn count(summary: &mut Summary, progress: &Progress) {
    match (&progress.kind, progress.step.operation) {
        (ProgressKind::Failed { .. }, _) => summary.failed += 1,
        (ProgressKind::Skipped { .. }, _) => summary.skipped += 1,
        (ProgressKind::Finished | ProgressKind::WaitInterrupted, Operation::Create) => summary.created += 1,
        (ProgressKind::Finished | ProgressKind::WaitInterrupted, Operation::Update) => summary.updated += 1,
        (ProgressKind::Finished, Operation::Destroy) => summary.destroyed += 1,
        (
            ProgressKind::Started
            | ProgressKind::Hook(_)
            | ProgressKind::Warning(_)
            | ProgressKind::Delayed(_)
            | ProgressKind::WaitInterrupted
            | ProgressKind::Superseded,
            _,
        )
        | (_, Operation::Record | Operation::Wait | Operation::Forget | Operation::Read) => {}
    }
}
