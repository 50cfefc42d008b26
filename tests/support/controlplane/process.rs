//! Processes of the control plane, and programs that run until they exit.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::wait::poll;

/// How long a control plane may take to start on a slow and busy machine.
const START_LIMIT: Duration = Duration::from_mins(3);

/// A process that ends when its stdin is closed: when this value is dropped, or when the test process ends for any
/// reason.
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program whose stderr is appended to `log`.
    pub(super) fn start(program: &Path, args: &[&str], log: &Path) -> Process {
        Process { child: spawn(program, args, log, Stdio::null()) }
    }

    /// Starts a program and returns when it has printed a line that begins with `announcement`.
    ///
    /// # Panics
    /// If the program exits before that or takes too long, with the end of its log.
    pub(super) fn start_and_wait_for(program: &Path, args: &[&str], log: &Path, announcement: &str) -> Process {
        let mut child = spawn(program, args, log, Stdio::piped());
        let stdout = child.stdout.take().expect("stdout is piped");
        let process = Process { child };

        let (sender, receiver) = mpsc::channel();
        let announcement = announcement.to_owned();
        // The thread reads until the program exits, because a program is killed when it writes to a closed stdout.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.starts_with(&announcement) {
                    // The receiver may have timed out already.
                    let _ = sender.send(());
                }
            }
        });
        if let Err(error) = receiver.recv_timeout(START_LIMIT) {
            let (program, args, file, end) = (program.display(), args.join(" "), log.display(), end_of(log));
            panic!("{program} {args} did not become ready ({error}); {file} ends with:\n{end}");
        }
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends within milliseconds. It is killed only if it hangs, so that the tests do not.
        let ended = poll(Duration::from_secs(20), || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn spawn(program: &Path, args: &[&str], log: &Path, stdout: Stdio) -> Child {
    let file = File::options().create(true).append(true).open(log);
    let file = file.unwrap_or_else(|error| panic!("opening {}: {error}", log.display()));
    Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(file)
        .spawn()
        .unwrap_or_else(|error| panic!("starting {}: {error}", program.display()))
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Runs a program until it exits.
pub(super) fn output(mut command: Command, stdin: Option<&str>) -> Output {
    let program = PathBuf::from(command.get_program());
    let started = command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.unwrap_or_else(|error| panic!("starting {}: {error}", program.display()));
    thread::scope(|scope| {
        if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
            // Written in a separate thread, otherwise both sides could wait for each other with full pipes.
            scope.spawn(move || {
                // A program that fails before it has read everything reports the error on stderr.
                let _ = pipe.write_all(text.as_bytes());
            });
        }
        child.wait_with_output().unwrap_or_else(|error| panic!("running {}: {error}", program.display()))
    })
}

/// Returns the stdout of a program.
///
/// # Panics
/// If the program failed, with its stderr.
pub(super) fn stdout_of_success(what: &str, output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{stderr}{stdout}", output.status);
    stdout
}
