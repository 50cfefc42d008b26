//! Runs the hooks of an object one after another and reports their results without sensitive values.

use std::sync::Arc;

use super::failure::Failure;
use crate::execute::Engine;
use drivers::CallContext;
use drivers::hook::{HookCall, HookOutcome};
use engine::plan::hooks::EvaluatedHook;
use model::{OnFailure, Reason, RecordedHook, RecordedObject, Secrets, Uid};

/// The maximum length of reported output in characters, so that it fits into the message of a condition.
const MAX_OUTPUT: usize = 800;

/// The reported result of one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNote {
    pub hook: Arc<str>,
    /// The hook failed and the step continues. A failure that stops the step is reported as the failure of the step,
    /// without a note.
    pub failed: bool,
    /// One line, without sensitive values.
    pub message: String,
}

/// The object that hooks run for.
pub(crate) struct HookTarget<'a> {
    pub engine: &'a Engine,
    pub context: CallContext,
    pub uid: &'a Uid,
    pub object: &'a RecordedObject,
}

/// Runs hooks in order, until one fails with `onFailure: Fail`.
pub(crate) async fn run(
    of: &HookTarget<'_>,
    hooks: Vec<EvaluatedHook>,
    notes: &mut Vec<HookNote>,
) -> Result<(), Failure> {
    // A hook that cannot be evaluated counts as failed, before any hook runs.
    let mut ready = Vec::with_capacity(hooks.len());
    for hook in hooks {
        match hook {
            EvaluatedHook::Ready(hook) => ready.push(hook),
            EvaluatedHook::Faulty(hook, problem) => handle_failure(&hook, problem.message(), notes)?,
        }
    }
    for hook in ready {
        let outcome = run_one(of, &hook).await;
        let message = summary(&hook, of, &outcome);
        if outcome.failure.is_none() {
            notes.push(HookNote { hook: hook.name.clone(), failed: false, message });
        } else {
            handle_failure(&hook, message, notes)?;
        }
    }
    Ok(())
}

async fn run_one(of: &HookTarget<'_>, hook: &RecordedHook) -> HookOutcome {
    let name = of.object.id().unwrap_or_default();
    let context = of.context.clone();
    let call = HookCall { context, uid: of.uid.clone(), object: name.into(), hook: hook.clone() };
    of.engine.hooks.run(&call).await
}

/// Stops the step, or adds a warning, as `onFailure` says.
fn handle_failure(hook: &RecordedHook, message: String, notes: &mut Vec<HookNote>) -> Result<(), Failure> {
    match hook.on_failure {
        OnFailure::Continue => {
            notes.push(HookNote { hook: hook.name.clone(), failed: true, message });
            Ok(())
        }
        OnFailure::Fail => {
            let message = format!("the hook `{}` failed: {message}", hook.name);
            Err(Failure { reason: Reason::HookFailed, message, retryable: true })
        }
    }
}

/// The error and the end of the output, on one line.
fn summary(hook: &RecordedHook, of: &HookTarget<'_>, outcome: &HookOutcome) -> String {
    let secrets = Secrets::of(of.context.read.iter().chain([&hook.definition, &of.object.value]));
    let output = secrets.redact(outcome.output.clone());
    let words: Vec<&str> = output.split_whitespace().collect();
    let output = words.join(" ");
    let start = output.char_indices().rev().nth(MAX_OUTPUT - 1).map_or(0, |(at, _)| at);
    let output = if start > 0 { format!("... {}", &output[start..]) } else { output };
    match (&outcome.failure, output.is_empty()) {
        (None, _) => output,
        (Some(why), true) => secrets.redact(why.clone()),
        (Some(why), false) => format!("{}: {output}", secrets.redact(why.clone())),
    }
}
