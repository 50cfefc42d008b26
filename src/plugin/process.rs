//! The process of a plugin: started, watched, drained and ended here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::crash::Crash;
use super::folder::PrivateFolder;
use super::launcher;
use super::output::Output;
use super::{Launch, StartError};

/// How long the pipes of a process that has ended are still read. They end with it, unless it left another process
/// behind that holds them.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running plugin. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Process {
    group: Pid,
    ended: watch::Receiver<Option<Crash>>,
    _folder: PrivateFolder,
    _watching: JoinSet<()>,
}

impl Process {
    /// Starts a program. The first line of its standard output comes through the receiver.
    pub(super) async fn start(
        launch: &Launch,
        environment: BTreeMap<OsString, OsString>,
        folder: PrivateFolder,
        output: Arc<Output>,
    ) -> Result<(Self, oneshot::Receiver<String>), StartError> {
        let working = launch.working_folder.clone().unwrap_or_else(|| folder.path().to_owned());
        let mut command = Command::new(&launch.launcher);
        command.arg(launcher::COMMAND).arg("--parent").arg(std::process::id().to_string());
        if let Some(files) = launch.limits.open_files {
            command.arg("--open-files").arg(files.to_string());
        }
        if let Some(bytes) = launch.limits.memory {
            // Twice what it is to use: who comes close is replaced, and only who runs away is stopped.
            command.arg("--memory").arg(bytes.saturating_mul(2).to_string());
        }
        if let Some(confine) = &launch.confine {
            confine.read.iter().for_each(|path| _ = command.arg("--read").arg(path));
            confine.write.iter().for_each(|path| _ = command.arg("--write").arg(path));
            command.arg("--write").arg(folder.path());
        }
        // It runs in another folder than we do.
        let program = std::path::absolute(&launch.program).unwrap_or_else(|_| launch.program.clone());
        command.arg("--").arg(program);
        command.env_clear().envs(environment).current_dir(working);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let execute = |program: &PathBuf, why: String| StartError::Execute { program: program.clone(), why };
        let child = spawn(command).await.map_err(|error| execute(&launch.launcher, error.to_string()))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = group.ok_or_else(|| execute(&launch.launcher, "it has no process id".to_owned()))?;
        let (ended_sender, ended) = watch::channel(None);
        let (first_sender, first) = oneshot::channel();
        let mut watching = JoinSet::new();
        watching.spawn(watch(child, group, output, first_sender, ended_sender));
        Ok((Self { group, ended, _folder: folder, _watching: watching }, first))
    }

    /// The process id, which is also that of the group.
    pub(super) fn id(&self) -> u32 {
        self.group.as_raw_pid().unsigned_abs()
    }

    /// Returns when the process has ended.
    pub(super) async fn ended(&self) -> Crash {
        let mut ended = self.ended.clone();
        // The sender is dropped without a value when the runtime goes: nobody is left to be told.
        ended
            .wait_for(Option::is_some)
            .await
            .map_or_else(|_| Crash::default(), |crash| crash.clone().unwrap_or_default())
    }

    /// How it ended; `None` while it runs.
    pub(super) fn crash(&self) -> Option<Crash> {
        self.ended.borrow().clone()
    }

    /// Kills it and everything it has started, at once.
    pub(super) fn kill(&self) {
        if self.ended.borrow().is_none() {
            // It may have ended since; then there is nothing to kill.
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sees a process to its end.
async fn watch(
    mut child: Child,
    group: Pid,
    output: Arc<Output>,
    first: oneshot::Sender<String>,
    ended: watch::Sender<Option<Crash>>,
) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let drain = async { tokio::join!(output.drain_after_first(stdout, first), output.drain(stderr)) };
    let mut drain = std::pin::pin!(drain);
    let mut drained = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.ok(),
            _ = &mut drain, if !drained => drained = true,
        }
    };
    // What it left running belongs to it. The group's number is not given to anybody else while it has members.
    let _ = kill_process_group(group, Signal::KILL);
    if !drained {
        let _ = tokio::time::timeout(LAST_WORDS, drain).await;
    }
    let _ = ended.send(Some(output.crash(status)));
}

/// A process to start, for a runtime.
struct Job {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<std::io::Result<Child>>,
}

/// Starts a process from a thread that lives as long as we do: the signal that a plugin gets when its parent dies comes
/// when the *thread* that started it ends, and threads of the runtime come and go.
async fn spawn(command: Command) -> std::io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || {
            for mut job in jobs {
                let _runtime = job.runtime.enter();
                // Who does not wait any more has dropped the receiver; the child is killed with the answer.
                let _ = job.answer.send(job.command.spawn());
            }
        });
        sender
    });
    let (answer, answered) = oneshot::channel();
    let job = Job { command, runtime: Handle::current(), answer };
    spawner.send(job).map_err(|_| std::io::Error::other("the thread that starts plugins is gone"))?;
    answered.await.map_err(|_| std::io::Error::other("the thread that starts plugins is gone"))?
}
