//! Provider processes: start, calls, hangs, crashes and exit, with real providers.

mod calls;
mod corner;
mod driver;
mod hostile;
mod log;
mod pool;
mod remote;
mod separation;
mod starting;
mod failures;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use purlin::plugin::{Client, DynamicValue, Launch};

use crate::providers;

/// Returns how tests start a provider of `tests/providers`.
pub(crate) fn launch(name: &str) -> Launch {
    of(name, providers::program(name))
}

/// Returns how tests start any program as a provider.
fn of(name: &str, program: impl Into<PathBuf>) -> Launch {
    let mut launch = Launch::new(name, program);
    launch.launcher = env!("CARGO_BIN_EXE_purlin").into();
    launch
}

/// The provider `corner` as its developer starts it in a debugger.
pub(crate) struct DebuggedProvider {
    pub(crate) child: Child,
    /// The value of `TF_REATTACH_PROVIDERS` that it prints.
    pub(crate) reattach: String,
    /// Kept open, so that the provider can write to it.
    _stdout: BufReader<ChildStdout>,
}

impl DebuggedProvider {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(providers::program("corner"))
            .arg("-debug")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = stdout.by_ref().lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("TF_REATTACH_PROVIDERS=")).unwrap();
        let reattach = line.trim().strip_prefix("TF_REATTACH_PROVIDERS='").unwrap().trim_end_matches('\'').to_owned();
        Self { child, reattach, _stdout: stdout }
    }
}

async fn started(name: &str) -> Client {
    Client::start(&launch(name)).await.unwrap()
}

/// The object without attributes.
fn nothing() -> DynamicValue {
    DynamicValue::encoded(vec![0x80])
}

/// Waits until all threads of a process are stopped after SIGSTOP. Before that, it may still respond.
async fn stopped(process: u32) {
    let runs = || {
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let stats = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default());
        stats.into_iter().any(|stat| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('T')))
    };
    while runs() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until a process has exited, also if its parent has not read its exit code yet.
async fn gone(process: u32) {
    until(|| !is_running(process)).await;
}

fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
