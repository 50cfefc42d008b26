//! The command `purlin launch-plugin`, which sets limits and the sandbox for its own process and then executes the
//! plugin. Without this process, these steps would need `unsafe` code between fork and exec.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, Scope, path_beneath_rules,
};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal, setrlimit,
    setsid,
};

pub const COMMAND: &str = "launch-plugin";

#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// The id of the expected parent process. If it has exited already, nothing would terminate the plugin.
    pub parent: i32,
    /// The maximum private memory in bytes.
    pub memory: Option<u64>,
    /// The file hierarchies that the plugin can read and execute. There is no sandbox if `read` and `write` are empty.
    pub read: Vec<PathBuf>,
    /// The file hierarchies that the plugin can read and write.
    pub write: Vec<PathBuf>,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// The delays between attempts to execute a busy program. A program file that another thread has just written cannot be
/// executed while a process has it open for writing, and a forked process briefly inherits the open files of its
/// parent.
const BUSY: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// Executes the plugin. Returns only on failure.
pub fn launch(launching: &LaunchOptions) -> io::Error {
    if let Err(error) = prepare(launching) {
        return error;
    }
    let mut command = Command::new(&launching.program);
    command.args(&launching.arguments);
    let mut error = command.exec();
    for wait in BUSY {
        if error.kind() != ErrorKind::ExecutableFileBusy {
            break;
        }
        std::thread::sleep(wait);
        error = command.exec();
    }
    error
}

fn prepare(launching: &LaunchOptions) -> io::Result<()> {
    // A session and a process group of its own: `super::orphans` recognizes what the plugin leaves behind.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_pid) != Some(launching.parent) {
        return Err(io::Error::other("the parent process has exited"));
    }
    // A core dump would contain the secrets of the provider configuration.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    if let Some(bytes) = launching.memory {
        // This limit does not count reserved address space, of which Go uses a lot.
        setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
        // If memory is short, the kernel ends a provider first and not its parent. Some systems do not allow this.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
    }
    if launching.read.is_empty() && launching.write.is_empty() {
        return Ok(());
    }
    apply_sandbox(launching).map_err(io::Error::other)
}

/// Whether the kernel supports Landlock and has it enabled.
pub fn sandbox_available() -> bool {
    let all = AccessFs::from_all(ABI::V1);
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all);
    required.and_then(Ruleset::create).is_ok()
}

/// Restricts access to the file system to the given paths, and to processes to those of this plugin. Has no effect on a
/// kernel without Landlock: there the permissions of the process are the only limit.
fn apply_sandbox(launching: &LaunchOptions) -> Result<(), RulesetError> {
    // The ABI of Linux 6.2, the first to restrict truncation. Older kernels apply the subset that they support.
    let abi = ABI::V3;
    // The first ABI with scopes, of Linux 6.12.
    let scopes = Scope::from_all(ABI::V6);
    Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .scope(scopes)?
        .create()?
        .add_rules(path_beneath_rules(&launching.read, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules([&launching.program], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(&launching.write, AccessFs::from_all(abi)))?
        .restrict_self()?;
    Ok(())
}
