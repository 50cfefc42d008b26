//! Hooks that are programs on this machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{HookCall, HookOutcome, HookRunner};
use crate::model::{HookKind, Value};
use crate::process::Clock;
use crate::process::command::{self, Command, Ended};

/// Runs programs.
pub struct ExecHooks {
    /// Where they run.
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

impl ExecHooks {
    /// A runner whose programs start in a folder.
    pub fn new(folder: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { folder, clock }
    }

    async fn exec(&self, call: &HookCall) -> HookOutcome {
        if call.hook.kind != HookKind::Exec {
            return HookOutcome::failed("Jobs are run only in a cluster, by the controller");
        }
        let mut words = arguments(&call.hook.definition).into_iter();
        let Some(program) = words.next().filter(|program| !program.is_empty()) else {
            return HookOutcome::failed("the command is empty");
        };
        let left = Duration::try_from(call.context.deadline.duration_since(self.clock.now())).unwrap_or_default();
        let command = Command { program, arguments: words.collect(), folder: self.folder.clone(), timeout: left };
        match command::run(&command).await {
            Err(error) => HookOutcome::failed(format!("`{}` cannot be started: {error}", command.program)),
            Ok(outcome) => HookOutcome { failure: judge(outcome.ended, left), output: outcome.output },
        }
    }
}

impl HookRunner for ExecHooks {
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, HookOutcome> {
        Box::pin(self.exec(call))
    }
}

/// The words of a command. Evaluating has checked that each is a text, a number or a boolean.
fn arguments(definition: &Value) -> Vec<String> {
    let Value::List(items) = definition.unmarked() else { return Vec::new() };
    let text = |item: &Value| match item.unmarked() {
        Value::String(text) => text.to_string(),
        other => other.to_json_text(),
    };
    items.iter().map(text).collect()
}

fn judge(ended: Ended, limit: Duration) -> Option<String> {
    match ended {
        Ended::Exited(status) if status.success() => None,
        Ended::Exited(status) => Some(match status.code() {
            Some(code) => format!("exit status {code}"),
            None => status.to_string(),
        }),
        Ended::TimedOut => Some(format!("it did not end within {} s and was killed", limit.as_secs())),
    }
}
