//! The last steps before a plugin runs, in its own process: `purlin launch-plugin` does them and then becomes the
//! plugin. Between fork and exec they could only be done with `unsafe` code.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    path_beneath_rules,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};

/// The name of the sub-command.
pub const COMMAND: &str = "launch-plugin";

/// What to launch.
#[derive(Clone, Debug)]
pub struct Launching {
    /// The process that started us. If it is gone already, nobody would ever end the plugin.
    pub parent: i32,
    /// How many files the plugin may have open.
    pub open_files: Option<u64>,
    /// How many bytes of memory it may have for itself.
    pub memory: Option<u64>,
    /// When not empty, or `write` is not: what the plugin may read and execute, with everything below.
    pub read: Vec<PathBuf>,
    /// What the plugin may read and write, with everything below.
    pub write: Vec<PathBuf>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A program that was just written by another thread cannot be executed while some process has it open for writing,
/// and a process that is being started has open whatever its parent has. This is over in no time.
const BUSY: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// Becomes the plugin. It returns only when that fails.
pub fn launch(launching: &Launching) -> io::Error {
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

fn prepare(launching: &Launching) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_pid) != Some(launching.parent) {
        return Err(io::Error::other("the process that started this one is gone"));
    }
    // A core dump would hold whatever secrets the provider was configured with.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    if let Some(files) = launching.open_files {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let files = maximum.map_or(files, |maximum| files.min(maximum));
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(files) })?;
    }
    if let Some(bytes) = launching.memory {
        // What is reserved without being used does not count, as Go does with most of its address space.
        setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    }
    if launching.read.is_empty() && launching.write.is_empty() { Ok(()) } else { confine(launching) }
}

/// Whether plugins can be confined here: the kernel has Landlock, and it is switched on.
pub fn can_confine() -> bool {
    let all = AccessFs::from_all(ABI::V1);
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all);
    required.and_then(Ruleset::create).is_ok()
}

/// Takes away the file system but for what is named. A kernel without Landlock leaves everything as it is: there the
/// rights of the process are the only limit.
fn confine(launching: &Launching) -> io::Result<()> {
    // Of Linux 6.2, the first to guard truncation; older ones take what they know of it.
    let abi = ABI::V3;
    let confined = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(&launching.read, AccessFs::from_read(abi)))?
            .add_rules(path_beneath_rules([&launching.program], AccessFs::from_read(abi)))?
            .add_rules(path_beneath_rules(&launching.write, AccessFs::from_all(abi)))?
            .restrict_self()
    };
    confined().map(|_| ()).map_err(|error: landlock::RulesetError| io::Error::other(error))
}
