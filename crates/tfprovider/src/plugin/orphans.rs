//! Ends the processes that plugins leave behind.
//!
//! A plugin runs in a session of its own, and is the parent of all its descendants whose own parent has exited
//! ([`super::launcher`]). After its end, the kernel gives these to the next such process: the controller, which ends
//! them. No process can join the session of another one, so those that the controller has started itself are different.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use tokio::process::Child;
use tokio::sync::Notify;

use process::lock;

/// The plugins of this process that have not been waited for.
static PLUGINS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Notified after the end of a plugin.
static ENDED: Notify = Notify::const_new();

/// How often orphans are looked for: those that end by themselves remain as zombies until then.
const INTERVAL: Duration = Duration::from_secs(30);

/// The maximum number of passes: the end of one orphan can make others orphans.
const MAX_PASSES: usize = 100;

/// The pause between two passes, in which a killed process ends.
const PAUSE: Duration = Duration::from_millis(20);

/// The variable with the private directory of a plugin, which identifies the plugin.
pub const MARK: &str = "PLUGIN_UNIX_SOCKET_DIR";

/// Starts a plugin. No plugin is taken for an orphan before it is known.
pub fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut plugins = lock(&PLUGINS);
    let child = spawn()?;
    plugins.extend(child.id().and_then(|id| i32::try_from(id).ok()));
    Ok(child)
}

/// A plugin has ended. Kills the processes that have inherited its environment: those that do not want to hide.
pub fn plugin_ended(plugin: Pid, directory: &Path) {
    lock(&PLUGINS).remove(&plugin.as_raw_pid());
    let mark = [MARK.as_bytes(), b"=", directory.as_os_str().as_bytes()].concat();
    for process in processes() {
        let environment = fs::read(format!("/proc/{}/environ", process.as_raw_pid())).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
            // It may have ended in the meantime.
            let _ = kill_process(process, Signal::KILL);
        }
    }
    ENDED.notify_one();
}

/// Ends the orphans of plugins as long as it is polled, also those that hide.
///
/// # Errors
/// If the kernel refuses to give orphans to this process, or `/proc` does not show it.
pub async fn end_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let (_, session) = parent_and_session(getpid())
        .ok_or_else(|| io::Error::other("/proc does not show the session of the process"))?;
    loop {
        // A plugin that forks faster than this is limited by the number of processes of its container.
        for _ in 0..MAX_PASSES {
            if !end_children_of_other_sessions(session) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let _ = tokio::time::timeout(INTERVAL, ENDED.notified()).await;
    }
}

/// Kills the children of this process in other sessions, except plugins. Returns whether there were any.
fn end_children_of_other_sessions(session: i32) -> bool {
    let mut killed_any = false;
    let plugins = lock(&PLUGINS);
    for process in processes() {
        let Some((parent, its_session)) = parent_and_session(process) else { continue };
        let is_ours = parent == getpid().as_raw_pid() && its_session != session;
        if is_ours && !plugins.contains(&process.as_raw_pid()) {
            let _ = kill_process(process, Signal::KILL);
            // Without the wait, it would remain as a zombie.
            let _ = waitpid(Some(process), WaitOptions::NOHANG);
            killed_any = true;
        }
    }
    killed_any
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The parent and the session of a process; `None` if it has ended. The kernel reports 0 for a parent, and for a session
/// leader, outside of the PID namespace.
fn parent_and_session(process: Pid) -> Option<(i32, i32)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
    parse_stat(&stat)
}

/// The name of the program, in parentheses, can contain any character.
fn parse_stat(stat: &str) -> Option<(i32, i32)> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(1);
    let (parent, _group, session) = (fields.next()?, fields.next()?, fields.next()?);
    Some((parent.parse().ok()?, session.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_disguise_its_parent_with_its_name() {
        let stat = "42 (x) R 7 7 7 ) S 5 41 40 0 -1 4194304 1\n";
        assert_eq!(parse_stat(stat), Some((5, 40)));
    }

    #[test]
    fn a_process_may_have_its_parent_and_session_outside_of_the_pid_namespace() {
        assert_eq!(parse_stat("1 (purlin) S 0 0 0 0 -1 4194304 1\n"), Some((0, 0)));
    }
}
