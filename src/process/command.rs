//! Runs a program of the user: bounded in time and in output, and with nothing of it left behind.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command as Builder;

/// How much of the output is kept, from its end, which is where programs tell why they failed.
pub const OUTPUT_LIMIT: usize = 64 * 1024;

/// What to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program, found on the search path.
    pub program: String,
    /// Its arguments, passed as they are.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// It took too long and was killed.
    TimedOut,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output and standard error, in the order in which it came, or the end of that.
    pub output: String,
}

/// Kills every process of a group when it goes out of use: at the end of the program, at its timeout, and when
/// whoever waits for it gives up.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may be empty by now; there is nobody to tell anything else.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs a program to its end, in a process group of its own and without standard input. Dropping the future kills the
/// group.
///
/// # Errors
/// When it cannot be started.
pub async fn run(command: &Command) -> std::io::Result<Outcome> {
    let mut child = Builder::new(&command.program)
        .args(&command.arguments)
        .current_dir(&command.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(leader);
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
            Ok(status) => Ended::Exited(status?),
            Err(_) => Ended::TimedOut,
        };
        // What it left running would keep the pipes open.
        drop(group);
        if !read {
            reading.await;
        }
        ended
    };
    if ended == Ended::TimedOut {
        // It is killed by now; this takes it off the list of processes.
        let _ = child.wait().await;
    }
    Ok(Outcome { ended, output: tail.text() })
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

/// A pipe that breaks has ended.
async fn read(pipe: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

/// The end of what was written.
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

    /// As text. A line that was cut is left out: half of a secret could not be recognised.
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
            folder: std::env::temp_dir(),
            timeout: Duration::from_mins(1),
        }
    }

    #[tokio::test]
    async fn the_output_of_both_kinds_is_kept_with_the_status() {
        let outcome = run(&shell("echo one; echo two >&2; exit 3")).await.unwrap();
        let Ended::Exited(status) = outcome.ended else { panic!("{outcome:?}") };
        assert_eq!(status.code(), Some(3));
        assert!(outcome.output.contains("one") && outcome.output.contains("two"), "{outcome:?}");
    }

    #[tokio::test]
    async fn standard_input_is_empty() {
        let outcome = run(&shell("cat; echo end")).await.unwrap();
        assert_eq!(outcome.output, "end\n");
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_output_is_kept_and_no_half_line() {
        let outcome =
            run(&shell("i=0; while [ $i -lt 20000 ]; do echo line $i is it; i=$((i+1)); done")).await.unwrap();
        assert!(outcome.output.len() <= OUTPUT_LIMIT);
        assert!(outcome.output.starts_with("line ") && outcome.output.ends_with("line 19999 is it\n"));
    }

    #[tokio::test]
    async fn a_timeout_kills_what_the_program_started() {
        // Both keep the pipe open, so the output ends only when both are dead.
        let command = Command { timeout: Duration::from_millis(50), ..shell("sleep 1000 & echo here; sleep 1000") };
        let outcome = run(&command).await.unwrap();
        assert_eq!(outcome.ended, Ended::TimedOut);
    }

    #[tokio::test]
    async fn what_the_program_leaves_running_is_killed() {
        let outcome = run(&shell("sleep 1000 & echo done")).await.unwrap();
        assert_eq!(outcome.output, "done\n");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_an_error() {
        let command = Command { program: "no-such-program-anywhere".into(), ..shell("") };
        assert_eq!(run(&command).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn giving_up_kills_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let command =
            Command { folder: folder.path().to_owned(), ..shell("echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000") };
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
        // The runtime reaps it; until then it is a zombie, and the signal 0 finds it.
        while rustix::process::test_kill_process_group(pid).is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
