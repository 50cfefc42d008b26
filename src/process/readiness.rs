//! Readiness: the process is ready when all its parts have reported that they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// A set of named gates. The process is ready when all gates are open.
#[derive(Clone, Debug)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<String, bool>>>,
    ready: Arc<watch::Sender<bool>>,
}

/// A part of the process that must be ready. An open gate stays open: a watch that is interrupted later still has the
/// last known state, and a Pod that is not ready would not help.
#[derive(Clone, Debug)]
pub struct Gate {
    name: String,
    readiness: Readiness,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { gates: Arc::default(), ready: Arc::new(watch::Sender::new(false)) }
    }
}

impl Readiness {
    /// Adds a closed gate.
    #[must_use = "readiness waits until the gate is opened"]
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        let name = name.into();
        self.with(|gates| gates.insert(name.clone(), false));
        Gate { name, readiness: self.clone() }
    }

    /// Whether all gates are open. It is false without gates.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Returns the names of the closed gates, sorted.
    pub fn closed_gates(&self) -> Vec<String> {
        self.with(|gates| gates.iter().filter(|(_, open)| !**open).map(|(name, _)| name.clone()).collect())
    }

    /// Waits until all gates are open.
    pub async fn wait(&self) {
        // The sender lives as long as `self`, so the wait cannot end with an error.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, bool>) -> T) -> T {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut gates);
        let ready = !gates.is_empty() && gates.values().all(|open| *open);
        self.ready.send_if_modified(|now| std::mem::replace(now, ready) != ready);
        result
    }
}

impl Gate {
    pub fn open(&self) {
        self.readiness.with(|gates| gates.insert(self.name.clone(), true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readiness_waits_for_all_gates() {
        let readiness = Readiness::default();
        assert!(!readiness.is_ready());
        let (a, b) = (readiness.gate("a"), readiness.gate("b"));
        a.open();
        assert_eq!(readiness.closed_gates(), ["b"]);
        assert!(!readiness.is_ready());
        b.open();
        readiness.wait().await;
        assert!(readiness.is_ready());
    }
}
