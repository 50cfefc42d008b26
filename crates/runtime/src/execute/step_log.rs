//! The log of a step: the fields that all its lines share, and one line at its end.

use std::time::Duration;

use tracing::Span;
use tracing::field::{self, Empty};

use super::step::{RecordEffect, StepEnd, StepInput};
use model::text;

/// The longest error in a line. The status and the event have the same text.
const MAX_ERROR: usize = 1024;

/// Provider calls, record writes and provider output belong to this span. `operation_id` is that of the intent, once the
/// step has one.
pub(super) fn span(input: &StepInput) -> Span {
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!(
        "step",
        namespace = &*input.namespace,
        component = &*input.component,
        object = %input.step.address,
        resource_type = &*input.type_name,
        operation = input.step.operation.as_str(),
        deposed = input.step.deposed.map(field::display),
        operation_id = Empty,
    )
}

/// Logs the end of a step in its span.
pub(super) fn ended(end: &StepEnd, took: Duration) {
    let seconds = took.as_secs_f64();
    match (&end.effect, &end.failure) {
        (RecordEffect::Superseded(_), _) => {
            tracing::info!(outcome = "superseded", seconds, "step ended");
        }
        (RecordEffect::WaitInterrupted(_), _) => {
            tracing::info!(outcome = "interrupted", seconds, "step ended");
        }
        (effect, None) => {
            let current = match effect {
                RecordEffect::Written(stored) => stored.record.current.as_ref(),
                _ => None,
            };
            let id = current.and_then(|object| object.visible_id());
            tracing::info!(outcome = "finished", seconds, id, "step ended");
        }
        (_, Some(failure)) => {
            let error = &*text::cut(&failure.message, MAX_ERROR);
            let (reason, retryable) = (failure.reason.as_str(), failure.retryable);
            tracing::info!(outcome = "failed", seconds, reason, retryable, error, "step ended");
        }
    }
}
