//! Running the hooks of an object, one after another, and telling what became of them without telling secrets.

use std::sync::Arc;

use super::failure::Failure;
use crate::driver::CallContext;
use crate::driver::hook::{HookCall, HookOutcome};
use crate::execute::Engine;
use crate::model::{OnFailure, Reason, RecordedHook, RecordedObject, Secrets, Value};
use crate::plan::hooks::Evaluated;

/// How much of an output is told: what fits a condition's message beside the rest.
const TOLD: usize = 800;

/// What became of one hook, to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNote {
    /// Its name.
    pub hook: Arc<str>,
    /// It failed. When that stops the step, the failure of the step tells it, and there is no note.
    pub failed: bool,
    /// One line, without sensitive values.
    pub message: String,
}

/// For which object hooks are run.
pub(crate) struct Concerning<'a> {
    pub engine: &'a Engine,
    pub context: CallContext,
    pub uid: &'a Arc<str>,
    pub object: &'a RecordedObject,
    /// What the expressions of the object have read.
    pub read: Vec<&'a Value>,
}

/// Runs hooks until one fails that stops the step.
pub(crate) async fn run(of: &Concerning<'_>, hooks: Vec<Evaluated>, notes: &mut Vec<HookNote>) -> Result<(), Failure> {
    // What cannot be evaluated has failed; it is known before anything is run.
    let mut ready = Vec::with_capacity(hooks.len());
    for hook in hooks {
        match hook {
            Evaluated::Ready(hook) => ready.push(hook),
            Evaluated::Faulty(hook, problem) => conclude(&hook, problem.message(), notes)?,
        }
    }
    for hook in ready {
        let outcome = one(of, &hook).await;
        let told = line(&hook, of, &outcome);
        if outcome.failure.is_none() {
            notes.push(HookNote { hook: hook.name.clone(), failed: false, message: told });
        } else {
            conclude(&hook, told, notes)?;
        }
    }
    Ok(())
}

async fn one(of: &Concerning<'_>, hook: &RecordedHook) -> HookOutcome {
    let name = of.object.id().unwrap_or_default();
    let context = of.context.clone();
    let call = HookCall { context, uid: Arc::clone(of.uid), object: name.into(), hook: hook.clone() };
    of.engine.hooks.run(&call).await
}

/// A failed hook stops the step, or is told as a warning.
fn conclude(hook: &RecordedHook, message: String, notes: &mut Vec<HookNote>) -> Result<(), Failure> {
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

/// Why it failed and what it wrote last, on one line.
fn line(hook: &RecordedHook, of: &Concerning<'_>, outcome: &HookOutcome) -> String {
    let secrets = Secrets::of(of.read.iter().copied().chain([&hook.definition, &of.object.value]));
    let output = secrets.text(outcome.output.clone());
    let words: Vec<&str> = output.split_whitespace().collect();
    let output = words.join(" ");
    let start = output.char_indices().rev().nth(TOLD - 1).map_or(0, |(at, _)| at);
    let output = if start > 0 { format!("... {}", &output[start..]) } else { output };
    match (&outcome.failure, output.is_empty()) {
        (None, _) => output,
        (Some(why), true) => secrets.text(why.clone()),
        (Some(why), false) => format!("{}: {output}", secrets.text(why.clone())),
    }
}
