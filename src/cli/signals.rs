//! Ctrl-C and SIGTERM: the first asks to stop in order, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No further step starts, running ones are awaited.
    InOrder,
    /// Nothing is awaited. What is not recorded yet is left to the recovery of the next run.
    AtOnce,
}

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

    /// Waits for a signal. Cancel safe.
    pub async fn received(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        if std::mem::replace(&mut self.received, true) { Stop::AtOnce } else { Stop::InOrder }
    }
}
