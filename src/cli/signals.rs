//! Handles Ctrl-C and SIGTERM: the first signal waits for running steps, the second interrupts providers, and the third
//! exits immediately.

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Start no new steps, and wait for running ones.
    Graceful,
    /// Ask providers to cancel running operations, and wait for them.
    Interrupt,
    /// Wait for nothing. The next run recovers results that are not recorded.
    Immediate,
}

/// Receives SIGINT and SIGTERM, which no longer end the process.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    received: u32,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            received: 0,
        })
    }

    /// Waits for a signal. Cancel safe.
    pub async fn received(&mut self) -> ShutdownMode {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.received += 1;
        match self.received {
            1 => ShutdownMode::Graceful,
            2 => ShutdownMode::Interrupt,
            _ => ShutdownMode::Immediate,
        }
    }
}
