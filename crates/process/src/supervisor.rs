//! The command `purlin launch-hook`, which runs a program of the user and kills it, with all processes of its group, when
//! Purlin ends for any reason, such as `kill -9`. Otherwise, the program would run beside its own retry.
//!
//! A parent-death signal would only reach the program itself, and not the processes that it has started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpgrp, kill_process_group};

pub const COMMAND: &str = "launch-hook";

/// Runs a program to its end, and returns its exit code: as in shells, 128 plus the signal that has ended it. This process
/// leads the process group, and its standard input is a pipe that ends with Purlin.
///
/// # Errors
/// If the program cannot be started.
pub fn run(program: &OsStr, arguments: &[OsString]) -> io::Result<u8> {
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn()?;
    std::thread::spawn(|| {
        // Nothing is ever written to the pipe.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    });
    let status = child.wait()?;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
