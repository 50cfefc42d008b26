//! Ctrl-C and SIGTERM: the first asks to stop in order, the second ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that was ended by a second signal, as shells count it for SIGINT.
const ABORTED: i32 = 130;

/// Signals that ask to stop. From here on they do not end the process by themselves.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    received: bool,
}

impl Signals {
    /// Listens.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            received: false,
        })
    }

    /// Waits for the first signal. A second one never comes back from here: every call's outcome that is not
    /// recorded yet is left to the recovery of the next run. Cancel safe.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        if self.received {
            std::process::exit(ABORTED);
        }
        self.received = true;
    }
}
