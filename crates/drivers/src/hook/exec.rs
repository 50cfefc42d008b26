//! Runs hooks as local programs.

use std::borrow::Cow;
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
        let written = Written::of(&call.hook.definition);
        let mut words = written.words.into_iter();
        let Some(program) = words.next().filter(|program| !program.is_empty()) else {
            return HookOutcome::failed("the command is empty");
        };
        let left = Duration::try_from(call.context.deadline.duration_since(self.clock.now())).unwrap_or_default();
        let command = Command {
            program,
            arguments: words.collect(),
            environment: written.environment,
            directory: self.directory.join(written.directory),
            timeout: left,
            launcher: Some(self.launcher.clone()),
        };
        match command::run(&command).await {
            Err(error) => HookOutcome::failed(format!("`{}` cannot be started: {error}", command.program)),
            Ok(outcome) => {
                let output = if written.is_secret { NOT_SHOWN.to_owned() } else { outcome.output };
                HookOutcome { failure: failure(outcome.exit, left), output }
            }
        }
    }
}

#[async_trait]
impl HookRunner for ExecHooks {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        self.exec(call).await
    }
}

/// What a definition runs. It is a list of words, or the arguments of a provisioner `local-exec`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Written {
    words: Vec<String>,
    environment: Vec<(Cow<'static, str>, Option<String>)>,
    /// Relative to the directory of hooks.
    directory: PathBuf,
    /// Whether the command of a provisioner has sensitive values: its text is sensitive as a whole then, so what it prints of
    /// them cannot be masked.
    is_secret: bool,
}

/// The output of a command with sensitive values, as Terraform suppresses it.
const NOT_SHOWN: &str = "the output is not shown, because the command has sensitive values";

impl Written {
    fn of(definition: &Value) -> Self {
        let is_sensitive = matches!(definition, Value::Sensitive(_));
        let definition = definition.unmarked();
        if matches!(definition, Value::List(_)) {
            return Self { words: words(definition), ..Self::default() };
        }
        let Some(command) = argument(definition, "command") else { return Self::default() };
        let mut program = argument(definition, "interpreter").map(words).unwrap_or_default();
        if program.is_empty() {
            program = ["/bin/sh", "-c"].map(str::to_owned).into();
        }
        program.push(text(command));
        let environment = match argument(definition, "environment").map(Value::unmarked) {
            Some(Value::Map(entries)) => {
                let set = entries.iter().filter(|(_, value)| !matches!(value.unmarked(), Value::Null));
                set.map(|(name, value)| (Cow::Owned(name.to_string()), Some(text(value)))).collect()
            }
            _ => Vec::new(),
        };
        let directory = argument(definition, "working_dir").map(text).unwrap_or_default().into();
        let named = ["command", "interpreter"].into_iter().filter_map(|name| definition.get(name));
        let is_secret = is_sensitive || named.into_iter().any(Value::has_sensitive);
        Self { words: program, environment, directory, is_secret }
    }
}

fn argument<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    definition.get(name).filter(|value| !matches!(value.unmarked(), Value::Null))
}

/// The words of a list. Evaluation has checked that each is a string, a number or a boolean.
fn words(list: &Value) -> Vec<String> {
    let Value::List(items) = list.unmarked() else { return Vec::new() };
    items.iter().filter(|item| !matches!(item.unmarked(), Value::Null)).map(text).collect()
}

fn text(value: &Value) -> String {
    match value.unmarked() {
        Value::String(text) => text.to_string(),
        other => other.to_json_text(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provisioner_runs_in_a_shell_or_by_its_interpreter() {
        let plain = Written::of(&Value::map([("command", Value::from("echo a b"))]));
        assert_eq!(plain.words, ["/bin/sh", "-c", "echo a b"]);
        assert_eq!(plain.directory, PathBuf::new());
        let full = Written::of(&Value::map([
            ("command", Value::from("print 1").into_sensitive()),
            ("interpreter", Value::list([Value::from("perl"), Value::Null, Value::from("-e")])),
            ("environment", Value::map([("A", Value::from("1")), ("B", Value::Null)])),
            ("working_dir", Value::from("sub")),
        ]));
        assert_eq!(full.words, ["perl", "-e", "print 1"]);
        assert_eq!(full.environment, [(Cow::Borrowed("A"), Some("1".to_owned()))]);
        assert_eq!(full.directory, PathBuf::from("sub"));
        assert!(full.is_secret && !plain.is_secret);
        assert_eq!(Written::of(&Value::map([("quiet", Value::Bool(true))])), Written::default());
    }
}
