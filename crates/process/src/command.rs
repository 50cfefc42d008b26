//! Runs a program of the user with a timeout and limited output, and kills all processes that it started.

use std::borrow::Cow;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command as Builder;

use super::supervisor;

/// The maximum number of bytes of output that are kept. The end is kept, because programs report errors there.
pub const OUTPUT_LIMIT: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Command {
    /// The program, which is searched in `PATH`.
    pub program: String,
    pub arguments: Vec<String>,
    /// Variables that are set, and those without a value are removed, besides those of this process.
    pub environment: Vec<(Cow<'static, str>, Option<String>)>,
    /// The working directory.
    pub directory: PathBuf,
    pub timeout: Duration,
    /// The program that runs [`super::supervisor::COMMAND`], usually this one. Without it, the program outlives a process
    /// that is killed.
    pub launcher: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Exited(ExitStatus),
    /// The program exceeded the timeout and was killed.
    TimedOut,
}

/// The result of a program.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub exit: Exit,
    /// Standard output and standard error in the order of writes; at most the last [`OUTPUT_LIMIT`] bytes.
    pub output: String,
}

/// Kills all processes of a group on drop: when the program exits, at its timeout, and when the future is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // This fails if the group has no processes.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs a program in its own process group and without standard input. Dropping the future kills the group.
///
/// # Errors
/// Returns an error if the program cannot be started.
pub async fn run(command: &Command) -> std::io::Result<Outcome> {
    let mut builder = match &command.launcher {
        Some(launcher) => {
            let mut builder = Builder::new(launcher);
            builder.args([supervisor::COMMAND, "--", &command.program]).stdin(Stdio::piped());
            builder
        }
        None => {
            let mut builder = Builder::new(&command.program);
            builder.stdin(Stdio::null());
            builder
        }
    };
    for (name, value) in &command.environment {
        match value {
            Some(value) => builder.env(&**name, value),
            None => builder.env_remove(&**name),
        };
    }
    let mut child = builder
        .args(&command.arguments)
        .current_dir(&command.directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(leader);
    // The launcher ends the program when this pipe is closed.
    let _pipe = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut tail = Tail::default();
    let ended = {
        let mut reading = std::pin::pin!(read_both(stdout, stderr, &mut tail));
        let mut read = false;
        let end = async {
            loop {
                tokio::select! {
                    () = &mut reading, if !read => read = true,
                    status = child.wait() => break status,
                }
            }
        };
        let ended = match tokio::time::timeout(command.timeout, end).await {
            Ok(status) => Exit::Exited(status?),
            Err(_) => Exit::TimedOut,
        };
        // Remaining processes of the group would keep the pipes open.
        drop(group);
        if !read {
            reading.await;
        }
        ended
    };
    if ended == Exit::TimedOut {
        // The program is killed already. This reaps it.
        let _ = child.wait().await;
    }
    Ok(Outcome { exit: ended, output: tail.text() })
}

async fn read_both(stdout: Option<impl AsyncRead + Unpin>, stderr: Option<impl AsyncRead + Unpin>, tail: &mut Tail) {
    let (mut stdout, mut stderr) = (stdout, stderr);
    let (mut first, mut second) = ([0; 4096], [0; 4096]);
    while stdout.is_some() || stderr.is_some() {
        tokio::select! {
            count = read(stdout.as_mut(), &mut first), if stdout.is_some() => match count {
                0 => stdout = None,
                count => tail.push(&first[..count]),
            },
            count = read(stderr.as_mut(), &mut second), if stderr.is_some() => match count {
                0 => stderr = None,
                count => tail.push(&second[..count]),
            },
        }
    }
}

/// Reads from a pipe. Returns 0 at the end or after an error.
async fn read(pipe: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

/// The last bytes of the output.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * OUTPUT_LIMIT {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        if self.bytes.len() > OUTPUT_LIMIT {
            self.bytes.drain(..self.bytes.len() - OUTPUT_LIMIT);
            self.cut = true;
        }
    }

    /// Returns the output as text. It omits a truncated line, because a part of a secret in it could not be redacted.
    fn text(mut self) -> String {
        self.shorten();
        if self.cut {
            let line = self.bytes.iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |at| at + 1);
            self.bytes.drain(..line);
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        Command {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: Vec::new(),
            directory: std::env::temp_dir(),
            timeout: Duration::from_mins(1),
            launcher: None,
        }
    }

    #[tokio::test]
    async fn the_outcome_has_both_outputs_and_the_status() {
        let outcome = run(&shell("echo one; echo two >&2; exit 3")).await.unwrap();
        let Exit::Exited(status) = outcome.exit else { panic!("{outcome:?}") };
        assert_eq!(status.code(), Some(3));
        assert!(outcome.output.contains("one") && outcome.output.contains("two"), "{outcome:?}");
    }

    #[tokio::test]
    async fn variables_are_set_and_removed() {
        let environment = vec![("TEST_VALUE".into(), Some("one".to_owned())), ("HOME".into(), None)];
        let command = Command { environment, ..shell("echo ${TEST_VALUE-none} ${HOME-none}") };
        assert_eq!(run(&command).await.unwrap().output, "one none\n");
    }

    #[tokio::test]
    async fn standard_input_is_empty() {
        let outcome = run(&shell("cat; echo end")).await.unwrap();
        assert_eq!(outcome.output, "end\n");
    }

    #[tokio::test]
    async fn a_long_output_is_truncated_to_its_last_complete_lines() {
        let outcome =
            run(&shell("i=0; while [ $i -lt 20000 ]; do echo line $i is it; i=$((i+1)); done")).await.unwrap();
        assert!(outcome.output.len() <= OUTPUT_LIMIT);
        assert!(outcome.output.starts_with("line ") && outcome.output.ends_with("line 19999 is it\n"));
    }

    #[tokio::test]
    async fn a_timeout_kills_the_processes_of_the_program() {
        // Both processes keep the pipe open, so the output ends only when both are killed.
        let command = Command { timeout: Duration::from_millis(50), ..shell("sleep 1000 & echo here; sleep 1000") };
        let outcome = run(&command).await.unwrap();
        assert_eq!(outcome.exit, Exit::TimedOut);
    }

    #[tokio::test]
    async fn remaining_processes_are_killed() {
        let outcome = run(&shell("sleep 1000 & echo done")).await.unwrap();
        assert_eq!(outcome.output, "done\n");
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let command = Command { program: "no-such-program-anywhere".into(), ..shell("") };
        assert_eq!(run(&command).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn dropping_the_future_kills_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let command =
            Command { directory: folder.path().to_owned(), ..shell("echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000") };
        let mut running = Box::pin(run(&command));
        let pid = loop {
            tokio::select! {
                _ = &mut running => panic!("it ended"),
                () = tokio::task::yield_now() => {}
            }
            if let Ok(pid) = std::fs::read_to_string(folder.path().join("pid")) {
                break Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            }
        };
        drop(running);
        // Signal 0 finds the process as a zombie until the runtime reaps it.
        while rustix::process::test_kill_process_group(pid).is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
