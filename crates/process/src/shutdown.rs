//! Graceful shutdown of the process, triggered by signals.

use std::sync::Arc;

use super::Observable;

/// The stage of the shutdown, which only advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Running,
    Draining,
    Aborted,
}

/// A shutdown token. All clones share their state.
///
/// The first trigger starts to drain: no new work starts, and the process waits for running work. The second trigger
/// aborts the running work.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    stage: Arc<Observable<Stage>>,
}

impl Shutdown {
    /// Starts to drain, or aborts if the process drains already.
    pub fn trigger(&self) {
        self.stage.modify(|stage| {
            *stage = if *stage == Stage::Running { Stage::Draining } else { Stage::Aborted };
            true
        });
    }

    pub fn is_triggered(&self) -> bool {
        self.stage.read(|stage| *stage >= Stage::Draining)
    }

    /// Waits for the first trigger.
    pub async fn triggered(&self) {
        self.wait_for(Stage::Draining).await;
    }

    /// Waits for the second trigger.
    pub async fn aborted(&self) {
        self.wait_for(Stage::Aborted).await;
    }

    async fn wait_for(&self, target: Stage) {
        self.stage.wait_for(|stage| *stage >= target).await;
    }

    /// Triggers on SIGTERM and SIGINT. The first signal drains, the second aborts.
    ///
    /// # Errors
    ///
    /// Returns an error if the signal handlers cannot be installed.
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
                tracing::warn!(signal = name, "shutting down immediately: running calls are left to recovery");
            } else {
                tracing::info!(signal = name, "shutting down: waiting for running calls, no new step starts");
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
        assert!(shutdown.stage.read(|stage| *stage == Stage::Draining));
        shutdown.trigger();
        shutdown.aborted().await;
    }
}
