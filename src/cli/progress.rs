//! What a run tells while it runs: JSON lines, plain lines, or a live picture.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use jiff::Timestamp;

use super::json::{self, DiagnosticEvent, StepEvent, SummaryEvent};
use super::live::Live;
use super::output::{Console, Paint};
use super::wording::{elapsed, seconds, subject, words};
use crate::execute::{HookNote, Progress, ProgressKind, Summary};
use crate::model::{Address, Diagnostic, Operation, Reason, Recorded, Step};
use crate::process::{Clock as _, SystemClock};

/// Tells what happens, and counts it.
pub struct Reporter {
    sink: Sink,
    paint: Paint,
    started: HashMap<Step, Timestamp>,
    summary: Summary,
    /// What drivers have warned of: they say it again whenever they are asked.
    warned: HashSet<(Option<Address>, String)>,
}

/// Where it is told. Errors of standard output are ignored: a run goes on when nobody reads any more, since its
/// results must still be recorded.
enum Sink {
    Json(BufWriter<io::Stdout>),
    Plain(BufWriter<io::Stdout>),
    Live(Live),
}

impl Reporter {
    /// One JSON object a line.
    pub fn json() -> Self {
        Self::new(Sink::Json(BufWriter::new(io::stdout())), Paint(false))
    }

    /// For people: live on a terminal unless they do not want that.
    pub fn text(console: Console, no_progress: bool) -> Self {
        let sink = if console.live && !no_progress {
            Sink::Live(Live::default())
        } else {
            Sink::Plain(BufWriter::new(io::stdout()))
        };
        Self::new(sink, console.paint)
    }

    fn new(sink: Sink, paint: Paint) -> Self {
        Self { sink, paint, started: HashMap::new(), summary: Summary::default(), warned: HashSet::new() }
    }

    /// What has been counted so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Starts to count anew.
    pub fn reset(&mut self) {
        self.summary = Summary::default();
    }

    /// Whether `tick` has something to do.
    pub fn is_live(&self) -> bool {
        matches!(self.sink, Sink::Live(_))
    }

    /// Whether something is to be told: what drivers warn of, and why a step lasts, only once.
    pub fn is_news(&mut self, diagnostic: &Diagnostic) -> bool {
        !matches!(diagnostic.reason, Reason::ProviderWarning | Reason::RecordNotWritten | Reason::TimeLimitExceeded)
            || self.warned.insert((diagnostic.address.clone(), diagnostic.summary.clone()))
    }

    /// Tells about problems found before anything ran (JSON only; text has them on standard error).
    pub fn diagnostics(&mut self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.is_news(diagnostic);
        }
        if let Sink::Json(out) = &mut self.sink {
            for diagnostic in diagnostics {
                let _ = json::line(out, &DiagnosticEvent::new(diagnostic));
            }
            let _ = out.flush();
        }
    }

    /// Tells about one event. The records are those after it.
    pub fn event(&mut self, progress: &Progress, records: &Recorded) {
        count(&mut self.summary, progress);
        if let ProgressKind::Warning(told) | ProgressKind::Delayed(told) = &progress.kind
            && !self.is_news(told)
        {
            return;
        }
        if let Sink::Json(out) = &mut self.sink {
            match &progress.kind {
                ProgressKind::Hook(note) => {
                    let told =
                        warning(&progress.step, note).map(|warning| json::line(out, &DiagnosticEvent::new(&warning)));
                    drop(told);
                }
                ProgressKind::Warning(told) | ProgressKind::Delayed(told) => {
                    drop(json::line(out, &DiagnosticEvent::new(told)));
                }
                _ => drop(json::line(out, &StepEvent::new(progress))),
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

    /// Tells something that concerns no step.
    pub fn note(&mut self, text: &str) {
        match &mut self.sink {
            Sink::Json(_) => {}
            Sink::Plain(out) => drop(writeln!(out, "{text}")),
            Sink::Live(live) => live.note(text.to_owned()),
        }
    }

    /// Lets everything told so far be seen. Called when nothing more is to be told at once.
    pub fn flush(&mut self) {
        match &mut self.sink {
            Sink::Json(out) | Sink::Plain(out) => drop(out.flush()),
            Sink::Live(_) => {}
        }
    }

    /// Redraws what is live.
    pub fn tick(&mut self) {
        if let Sink::Live(live) = &mut self.sink {
            live.draw(SystemClock.now());
        }
    }

    /// Ends the picture, and tells the summary.
    pub fn close(&mut self, verdict: &str) {
        match &mut self.sink {
            Sink::Json(out) => drop(json::line(out, &SummaryEvent::new(self.summary))),
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
            ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_) | ProgressKind::Withdrawn => {
                Duration::ZERO
            }
            _ => self.started.remove(&progress.step).map_or(Duration::ZERO, |since| elapsed(since, progress.at)),
        }
    }

    fn line(&self, progress: &Progress, took: Duration, records: &Recorded) -> String {
        let Progress { step, kind, .. } = progress;
        let name = self.paint.strong(&subject(step));
        let word = words(step.operation);
        let took = seconds(took);
        match kind {
            ProgressKind::Started => format!("{name}: {}", self.paint.faint(word.doing)),
            ProgressKind::Hook(note) => {
                let state = if note.failed { self.paint.warning("failed") } else { "ran".to_owned() };
                let told = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
                format!("{name}: hook `{}` {state}{told}", note.hook)
            }
            // What only takes its time is no trouble.
            ProgressKind::Delayed(why) if why.reason == Reason::Progressing => format!("{name}: {}", why.message()),
            ProgressKind::Warning(warning) | ProgressKind::Delayed(warning) => {
                format!("{name}: {}: {}", self.paint.warning("warning"), warning.message())
            }
            ProgressKind::Finished => match made_id(step, records) {
                Some(id) => format!("{name}: {} after {took} {}", word.done, self.paint.faint(&format!("(id {id})"))),
                None => format!("{name}: {} after {took}", word.done),
            },
            ProgressKind::Failed { message, .. } => {
                format!("{name}: {} {} after {took}: {message}", step.operation.as_str(), self.paint.error("failed"))
            }
            ProgressKind::LetGo => format!("{name}: {}", json::LET_GO),
            ProgressKind::Withdrawn => format!("{name}: {}", json::WITHDRAWN),
            ProgressKind::Skipped { because_of } => {
                let why = because_of.as_ref().map_or("stopped".to_owned(), |cause| format!("`{}` failed", cause.id()));
                format!("{name}: {} {} ({why})", step.operation.as_str(), self.paint.warning("skipped"))
            }
        }
    }
}

/// A hook that failed, and whose step goes on all the same.
fn warning(step: &Step, note: &HookNote) -> Option<Diagnostic> {
    let what = format!("the hook `{}` failed", note.hook);
    let warning = || Diagnostic::warning(&step.address, Reason::HookFailed, what).because(note.message.clone());
    note.failed.then(warning)
}

fn made_id<'a>(step: &Step, records: &'a Recorded) -> Option<&'a str> {
    if step.operation.removes() {
        return None;
    }
    records.get(&step.address)?.record.current.as_ref()?.id()
}

fn count(summary: &mut Summary, progress: &Progress) {
    match (&progress.kind, progress.step.operation) {
        (ProgressKind::Failed { .. }, _) => summary.failed += 1,
        (ProgressKind::Skipped { .. }, _) => summary.skipped += 1,
        (ProgressKind::Finished | ProgressKind::LetGo, Operation::Create) => summary.created += 1,
        (ProgressKind::Finished | ProgressKind::LetGo, Operation::Update) => summary.updated += 1,
        (ProgressKind::Finished, Operation::Destroy) => summary.destroyed += 1,
        (
            ProgressKind::Started
            | ProgressKind::Hook(_)
            | ProgressKind::Warning(_)
            | ProgressKind::Delayed(_)
            | ProgressKind::LetGo
            | ProgressKind::Withdrawn,
            _,
        )
        | (_, Operation::Record | Operation::Wait | Operation::Forget | Operation::Read) => {}
    }
}
