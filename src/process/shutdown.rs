//! Shutdown: a token that every loop watches, and the signals that trigger it.

use std::sync::Arc;

use tokio::sync::watch;

/// How far the stop has gone. It only ever goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Draining,
    Aborted,
}

/// Tells every part of the process to stop. Cheap to clone; all clones are one token.
///
/// The first trigger asks for a drain: nothing new starts, what runs is awaited. The second gives up on the drain.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stage: Arc<watch::Sender<Stage>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { stage: Arc::new(watch::Sender::new(Stage::Running)) }
    }
}

impl Shutdown {
    /// Asks for a drain; when one is under way already, gives up on it.
    pub fn trigger(&self) {
        self.stage.send_modify(|stage| {
            *stage = if *stage == Stage::Running { Stage::Draining } else { Stage::Aborted };
        });
    }

    /// Whether a drain was asked for.
    pub fn is_triggered(&self) -> bool {
        *self.stage.borrow() >= Stage::Draining
    }

    /// Returns once a drain is asked for.
    pub async fn triggered(&self) {
        self.reached(Stage::Draining).await;
    }

    /// Returns once the drain is given up.
    pub async fn aborted(&self) {
        self.reached(Stage::Aborted).await;
    }

    async fn reached(&self, wanted: Stage) {
        // The sender lives as long as `self`, so the wait cannot end with an error.
        let _ = self.stage.subscribe().wait_for(|stage| *stage >= wanted).await;
    }

    /// Triggers on SIGTERM and SIGINT, for as long as the process lives. The first signal drains, the second aborts.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub async fn on_signals(self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if self.is_triggered() {
                tracing::warn!(signal = name, "stopping at once: calls under way are left to recovery");
            } else {
                tracing::info!(signal = name, "stopping: no new step starts, running calls are awaited");
            }
            self.trigger();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_trigger_drains_and_the_second_aborts() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.is_triggered());
        shutdown.clone().trigger();
        shutdown.triggered().await;
        assert!(*shutdown.stage.borrow() == Stage::Draining);
        shutdown.trigger();
        shutdown.aborted().await;
    }
}
