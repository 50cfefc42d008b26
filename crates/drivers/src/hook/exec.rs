//! Runs hooks as local programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{HookCall, HookOutcome, HookRunner};
use model::{HookKind, Value};
use process::Clock;
use process::command::{self, Command, Exit};

pub struct ExecHooks {
    directory: PathBuf,
    /// Runs the programs, so that none of them outlives this process.
    launcher: PathBuf,
    clock: Arc<dyn Clock>,
}

impl ExecHooks {
    pub fn new(directory: PathBuf, launcher: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { directory, launcher, clock }
    }

    async fn exec(&self, call: &HookCall) -> HookOutcome {
        if call.hook.kind != HookKind::Exec {
            return HookOutcome::failed("`job` hooks run only in a cluster");
        }
        let mut words = arguments(&call.hook.definition).into_iter();
        let Some(program) = words.next().filter(|program| !program.is_empty()) else {
            return HookOutcome::failed("the command is empty");
        };
        let left = Duration::try_from(call.context.deadline.duration_since(self.clock.now())).unwrap_or_default();
        let command = Command {
            program,
            arguments: words.collect(),
            environment: Vec::new(),
            directory: self.directory.clone(),
            timeout: left,
            launcher: Some(self.launcher.clone()),
        };
        match command::run(&command).await {
            Err(error) => HookOutcome::failed(format!("`{}` cannot be started: {error}", command.program)),
            Ok(outcome) => HookOutcome { failure: failure(outcome.exit, left), output: outcome.output },
        }
    }
}

#[async_trait]
impl HookRunner for ExecHooks {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        self.exec(call).await
    }
}

/// The words of a command. Evaluation has checked that each is a string, a number or a boolean.
fn arguments(definition: &Value) -> Vec<String> {
    let Value::List(items) = definition.unmarked() else { return Vec::new() };
    let text = |item: &Value| match item.unmarked() {
        Value::String(text) => text.to_string(),
        other => other.to_json_text(),
    };
    items.iter().map(text).collect()
}

fn failure(ended: Exit, limit: Duration) -> Option<String> {
    match ended {
        Exit::Exited(status) if status.success() => None,
        Exit::Exited(status) => Some(match status.code() {
            Some(code) => format!("exit status {code}"),
            None => status.to_string(),
        }),
        Exit::TimedOut => Some(format!("it did not finish within {:.1} s and was killed", limit.as_secs_f64())),
    }
}
