//! Ctrl-C and SIGTERM: the first asks to stop in order, the second to hurry, the third at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No further step starts, running ones are awaited.
    InOrder,
    /// Providers are asked to give up what runs, and awaited.
    Hurry,
    /// Nothing is awaited. What is not recorded yet is left to the recovery of the next run.
    AtOnce,
}

/// Signals that ask to stop. From here on they do not end the process by themselves.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    received: u32,
}

impl Signals {
    /// Listens.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            received: 0,
        })
    }

    /// Waits for a signal. Cancel safe.
    pub async fn received(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.received += 1;
        match self.received {
            1 => Stop::InOrder,
            2 => Stop::Hurry,
            _ => Stop::AtOnce,
        }
    }
}
