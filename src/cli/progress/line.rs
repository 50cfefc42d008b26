//! The line of a progress event.

use std::time::Duration;

use crate::cli::json;
use crate::cli::messages::{format_duration, subject, verbs};
use model::text::one_line;
use model::{Reason, Recorded, Step, Text, Tone};
use runtime::execute::{Progress, ProgressKind};

/// Writes an event on one line. A failure is written with its cause only if `with_cause` is set.
pub fn write(progress: &Progress, took: Duration, records: &Recorded, with_cause: bool, text: &mut Text) {
    let Progress { step, kind, .. } = progress;
    let word = verbs(step.operation);
    let took = format_duration(took);
    let operation = step.operation.as_str();
    text.tone(Tone::Strong, subject(step)).put(": ");
    match kind {
        ProgressKind::Started => text.tone(Tone::Faint, word.in_progress),
        ProgressKind::Hook(note) => {
            text.put(format_args!("hook `{}` ", note.hook));
            if note.failed {
                text.tone(Tone::Warning, "failed")
            } else {
                text.put("ran")
            };
            let separator = if note.message.is_empty() { "" } else { ": " };
            text.put(separator).put(one_line(&note.message))
        }
        // A long duration alone is not a warning.
        ProgressKind::Delayed(why) if why.reason == Reason::Progressing => text.put(one_line(&why.message())),
        ProgressKind::Warning(warning) | ProgressKind::Delayed(warning) => {
            text.tone(Tone::Warning, "warning").put(": ").put(one_line(&warning.message()))
        }
        ProgressKind::Finished => {
            text.put(word.done).put(format_args!(" after {took}"));
            match created_id(step, records) {
                Some(id) => text.put(' ').tone(Tone::Faint, format_args!("(id {})", one_line(id))),
                None => text,
            }
        }
        ProgressKind::Failed { message, .. } => {
            text.put(operation).put(' ').tone(Tone::Error, "failed").put(format_args!(" after {took}"));
            if with_cause { text.put(": ").put(one_line(message)) } else { text }
        }
        ProgressKind::WaitInterrupted => text.put(json::NOT_READY),
        ProgressKind::Superseded => text.put(json::WITHDRAWN),
        ProgressKind::Skipped { .. } => text.put(operation).put(" skipped"),
    };
}

/// Writes that a step is still running.
pub fn write_still_running(step: &Step, took: Duration, text: &mut Text) {
    let seconds = format_duration(Duration::from_secs(took.as_secs())).replace(".0s", "s");
    let word = verbs(step.operation).in_progress;
    text.tone(Tone::Strong, subject(step)).put(": ").tone(Tone::Faint, format_args!("still {word}, {seconds}"));
}

fn created_id<'a>(step: &Step, records: &'a Recorded) -> Option<&'a str> {
    if step.operation.removes() {
        return None;
    }
    records.get(&step.address)?.record.current.as_ref()?.id()
}
