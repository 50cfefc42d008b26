//! Starts the process of a plugin, reads its output and terminates it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::crash::Crash;
use super::launcher;
use super::orphans;
use super::output::Output;
use super::private_dir::PrivateDir;
use super::{Launch, StartError};

/// How long the pipes of an exited process are still read. They close when it exits, unless another process that it
/// left behind holds them open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// A running plugin. Dropping it kills its process group.
#[derive(Debug)]
pub struct Process {
    group: Pid,
    ended: watch::Receiver<Option<Crash>>,
    _folder: PrivateDir,
    _watching: JoinSet<()>,
}

impl Process {
    /// Starts a program. The receiver returns the first line of its standard output.
    pub async fn start(
        launch: &Launch,
        environment: BTreeMap<OsString, OsString>,
        dir: PrivateDir,
        output: Arc<Output>,
    ) -> Result<(Self, oneshot::Receiver<String>), StartError> {
        let working = launch.working_dir.clone().unwrap_or_else(|| dir.path().to_owned());
        let mut command = Command::new(&launch.launcher);
        command.arg(launcher::COMMAND).arg("--parent").arg(std::process::id().to_string());
        if let Some(bytes) = launch.limits.memory {
            // Twice the soft limit: a process near the soft limit is replaced; the hard limit only stops a runaway
            // process.
            command.arg("--memory").arg(bytes.saturating_mul(2).to_string());
        }
        if let Some(confine) = &launch.sandbox {
            confine.read.iter().for_each(|path| _ = command.arg("--read").arg(path));
            confine.write.iter().for_each(|path| _ = command.arg("--write").arg(path));
            command.arg("--write").arg(dir.path());
        }
        // The plugin runs in another working directory.
        let program = std::path::absolute(&launch.program).unwrap_or_else(|_| launch.program.clone());
        command.arg("--").arg(program);
        command.env_clear().envs(environment).current_dir(working);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        let child = spawn(command)
            .await
            .map_err(|error| StartError::Execute { program: launch.launcher.clone(), why: error.to_string() })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw).ok_or_else(|| {
            StartError::Execute { program: launch.launcher.clone(), why: "it has no process id".to_owned() }
        })?;
        let (ended_sender, ended) = watch::channel(None);
        let (first_sender, first) = oneshot::channel();
        let mut watcher = JoinSet::new();
        let folder = dir.path().to_owned();
        watcher.spawn(watch(child, group, folder, output, first_sender, ended_sender));
        Ok((Self { group, ended, _folder: dir, _watching: watcher }, first))
    }

    /// The process id, which is also the id of the process group.
    pub fn id(&self) -> u32 {
        self.group.as_raw_pid().unsigned_abs()
    }

    /// The resident memory in bytes, without the pages of the program and of other files. The kernel can drop these pages,
    /// and large providers have programs of several hundred megabytes.
    pub fn memory(&self) -> Option<u64> {
        // `status` has the same values, but the kernel takes ten times as long to write it.
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.id())).ok()?;
        let mut numbers = pages.split_whitespace().skip(1).map_while(|number| number.parse::<u64>().ok());
        let (resident, shared) = (numbers.next()?, numbers.next()?);
        Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
    }

    /// Waits until the process has exited.
    pub async fn ended(&self) -> Crash {
        Crash::reported(&self.ended).await
    }

    /// The receiver of the end of the process.
    pub fn end(&self) -> &watch::Receiver<Option<Crash>> {
        &self.ended
    }

    /// Kills the process group immediately.
    pub fn kill(&self) {
        if self.ended.borrow().is_none() {
            // Before the launcher has made it a group, there is only one process. It may also have exited.
            let _ = kill_process_group(self.group, Signal::KILL).or_else(|_| kill_process(self.group, Signal::KILL));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Drains the output until the process exits, then kills what it has left behind and publishes how it ended.
async fn watch(
    mut child: Child,
    group: Pid,
    folder: PathBuf,
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
    // Kill the remaining processes of the group. The group id is not reused while the group has members.
    let _ = kill_process_group(group, Signal::KILL);
    orphans::plugin_ended(group, &folder);
    if !drained {
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
    }
    let _ = ended.send(Some(output.crash(status)));
}

/// A request to start a process on behalf of a runtime.
struct SpawnRequest {
    command: Command,
    runtime: Handle,
    response: oneshot::Sender<std::io::Result<Child>>,
}

/// Starts a process from a thread that runs as long as this process: the parent death signal of a plugin is sent when
/// the *thread* that started it ends, and runtime threads are short-lived.
async fn spawn(command: Command) -> std::io::Result<Child> {
    static SPAWNER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = channel::<SpawnRequest>();
        std::thread::spawn(move || {
            for mut job in jobs {
                let _runtime = job.runtime.enter();
                // If the receiver has been dropped, dropping the child kills it.
                let _ = job.response.send(orphans::start(|| job.command.spawn()));
            }
        });
        sender
    });
    let (response, answered) = oneshot::channel();
    let job = SpawnRequest { command, runtime: Handle::current(), response };
    spawner.send(job).map_err(|_| std::io::Error::other("the thread that starts plugins has ended"))?;
    answered.await.map_err(|_| std::io::Error::other("the thread that starts plugins has ended"))?
}
