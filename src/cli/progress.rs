//! Reports the progress of a run as JSON lines, plain lines, or a live display.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use jiff::Timestamp;

use super::json::{self, DiagnosticEvent, StepEvent, SummaryEvent};
use super::live::LiveDisplay;
use super::messages::{elapsed, format_duration, subject, verbs};
use super::output::{Console, Paint};
use crate::execute::{HookNote, Progress, ProgressKind, Summary};
use crate::model::{Address, Diagnostic, Operation, Reason, Recorded, Step};
use crate::process::{Clock as _, SystemClock};

/// Reports and counts events.
pub struct Reporter {
    sink: Sink,
    paint: Paint,
    started: HashMap<Step, Timestamp>,
    summary: Summary,
    /// Warnings that were reported. Drivers repeat them with each call.
    warned: HashSet<(Option<Address>, String)>,
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
        Self::new(Sink::Json(BufWriter::new(io::stdout())), Paint(false))
    }

    /// Text; live on a terminal, unless `no_progress` is set.
    pub fn text(console: Console, no_progress: bool) -> Self {
        let sink = if console.live && !no_progress {
            Sink::Live(LiveDisplay::default())
        } else {
            Sink::Plain(BufWriter::new(io::stdout()))
        };
        Self::new(sink, console.paint)
    }

    fn new(sink: Sink, paint: Paint) -> Self {
        Self { sink, paint, started: HashMap::new(), summary: Summary::default(), warned: HashSet::new() }
    }

    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Resets the counts.
    pub fn reset(&mut self) {
        self.summary = Summary::default();
    }

    /// Whether `tick` must be called.
    pub fn is_live(&self) -> bool {
        matches!(self.sink, Sink::Live(_))
    }

    /// Whether to report a diagnostic: warnings of drivers and reasons for delays are reported only once.
    pub fn is_new(&mut self, diagnostic: &Diagnostic) -> bool {
        !matches!(diagnostic.reason, Reason::ProviderWarning | Reason::RecordNotWritten | Reason::TimeLimitExceeded)
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
        if let ProgressKind::Warning(diagnostic) | ProgressKind::Delayed(diagnostic) = &progress.kind
            && !self.is_new(diagnostic)
        {
            return;
        }
        if let Sink::Json(out) = &mut self.sink {
            match &progress.kind {
                ProgressKind::Hook(note) => {
                    let written = warning(&progress.step, note)
                        .map(|warning| json::write_line(out, &DiagnosticEvent::new(&warning)));
                    drop(written);
                }
                ProgressKind::Warning(diagnostic) | ProgressKind::Delayed(diagnostic) => {
                    drop(json::write_line(out, &DiagnosticEvent::new(diagnostic)));
                }
                _ => drop(json::write_line(out, &StepEvent::new(progress))),
            }
            return;
        }
        let took = self.took(progress);
        let line = self.line(progress, took, records);
        match &mut self.sink {
            Sink::Plain(out) => drop(writeln!(out, "{line}")),
            Sink::Live(live) => live.event(progress, line),
            Sink::Json(_) => {}
        }
    }

    /// Reports a text that is not about a step. Omitted in JSON.
    pub fn note(&mut self, text: &str) {
        match &mut self.sink {
            Sink::Json(_) => {}
            Sink::Plain(out) => drop(writeln!(out, "{text}")),
            Sink::Live(live) => live.note(text.to_owned()),
        }
    }

    /// Flushes the output. Called when no more events are pending.
    pub fn flush(&mut self) {
        match &mut self.sink {
            Sink::Json(out) | Sink::Plain(out) => drop(out.flush()),
            Sink::Live(_) => {}
        }
    }

    /// Redraws the live display.
    pub fn tick(&mut self) {
        if let Sink::Live(live) = &mut self.sink {
            live.draw(SystemClock.now());
        }
    }

    /// Ends the live display, and reports the summary.
    pub fn close(&mut self, verdict: &str) {
        match &mut self.sink {
            Sink::Json(out) => drop(json::write_line(out, &SummaryEvent::new(self.summary))),
            Sink::Plain(out) => drop(writeln!(out, "\n{verdict}")),
            Sink::Live(live) => {
                live.note(format!("\n{verdict}"));
                live.close();
            }
        }
        self.flush();
    }

    fn took(&mut self, progress: &Progress) -> Duration {
        match progress.kind {
            ProgressKind::Started => {
                self.started.insert(progress.step.clone(), progress.at);
                Duration::ZERO
            }
            ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) | ProgressKind::Superseded => {
                Duration::ZERO
            }
            _ => self.started.remove(&progress.step).map_or(Duration::ZERO, |since| elapsed(since, progress.at)),
        }
    }

    fn line(&self, progress: &Progress, took: Duration, records: &Recorded) -> String {
        let Progress { step, kind, .. } = progress;
        let name = self.paint.strong(&subject(step));
        let word = verbs(step.operation);
        let took = format_duration(took);
        match kind {
            ProgressKind::Started => format!("{name}: {}", self.paint.faint(word.in_progress)),
            ProgressKind::Hook(note) => {
                let state = if note.failed { self.paint.warning("failed") } else { "ran".to_owned() };
                let message = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
                format!("{name}: hook `{}` {state}{message}", note.hook)
            }
            // A long duration alone is not a warning.
            ProgressKind::Delayed(why) if why.reason == Reason::Progressing => format!("{name}: {}", why.message()),
            ProgressKind::Warning(warning) | ProgressKind::Delayed(warning) => {
                format!("{name}: {}: {}", self.paint.warning("warning"), warning.message())
            }
            ProgressKind::Finished => match created_id(step, records) {
                Some(id) => format!("{name}: {} after {took} {}", word.done, self.paint.faint(&format!("(id {id})"))),
                None => format!("{name}: {} after {took}", word.done),
            },
            ProgressKind::Failed { message, .. } => {
                format!("{name}: {} {} after {took}: {message}", step.operation.as_str(), self.paint.error("failed"))
            }
            ProgressKind::WaitInterrupted => format!("{name}: {}", json::NOT_READY),
            ProgressKind::Superseded => format!("{name}: {}", json::WITHDRAWN),
            ProgressKind::Skipped { because_of } => {
                let why = because_of.as_ref().map_or("stopped".to_owned(), |cause| format!("`{}` failed", cause.id()));
                format!("{name}: {} {} ({why})", step.operation.as_str(), self.paint.warning("skipped"))
            }
        }
    }
}

/// A warning for a failed hook whose step continues.
fn warning(step: &Step, note: &HookNote) -> Option<Diagnostic> {
    let what = format!("the hook `{}` failed", note.hook);
    let warning = || Diagnostic::warning(&step.address, Reason::HookFailed, what).because(note.message.clone());
    note.failed.then(warning)
}

fn created_id<'a>(step: &Step, records: &'a Recorded) -> Option<&'a str> {
    if step.operation.removes() {
        return None;
    }
    records.get(&step.address)?.record.current.as_ref()?.id()
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
