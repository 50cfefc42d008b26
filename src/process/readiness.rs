//! Readiness: the process is ready when all its parts have reported that they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Observable;

/// A set of named gates. The process is ready when all gates are open.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    gates: Arc<Observable<Gates>>,
}

/// Whether each gate is open, by its name.
type Gates = BTreeMap<String, bool>;

/// A part of the process that must be ready. An open gate stays open: a watch that is interrupted later still has the
/// last known state, and a Pod that is not ready would not help.
#[derive(Clone, Debug)]
pub struct Gate {
    name: String,
    readiness: Readiness,
}

impl Readiness {
    /// Adds a closed gate.
    #[must_use = "readiness waits until the gate is opened"]
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        let name = name.into();
        self.set(&name, false);
        Gate { name, readiness: self.clone() }
    }

    /// Whether all gates are open. It is false without gates.
    pub fn is_ready(&self) -> bool {
        self.gates.read(all_open)
    }

    /// Returns the names of the closed gates, sorted.
    pub fn closed_gates(&self) -> Vec<String> {
        self.gates.read(|gates| gates.iter().filter(|(_, open)| !**open).map(|(name, _)| name.clone()).collect())
    }

    /// Waits until all gates are open.
    pub async fn wait(&self) {
        self.gates.wait_for(all_open).await;
    }

    fn set(&self, name: &str, open: bool) {
        self.gates.modify(|gates| gates.insert(name.to_owned(), open) != Some(open));
    }
}

fn all_open(gates: &Gates) -> bool {
    !gates.is_empty() && gates.values().all(|open| *open)
}

impl Gate {
    pub fn open(&self) {
        self.readiness.set(&self.name, true);
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
