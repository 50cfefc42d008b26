//! Readiness: the process is ready when all its parts have reported that they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Observable;

/// A set of named gates, and of watches. The process is ready when all gates are open and any watch works.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    state: Arc<Observable<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether each gate is open, by its name.
    gates: BTreeMap<String, bool>,
    /// Why each watch does not work, by its name.
    watches: BTreeMap<String, Option<String>>,
}

/// A part of the process that must be ready. An open gate stays open: a watch that is interrupted later still has the
/// last known state.
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

    /// Why the process is not ready, in lines; `None`: it is ready. It is not without gates.
    pub fn problem(&self) -> Option<String> {
        self.state.read(|state| {
            let closed: Vec<&str> = state.gates.iter().filter(|(_, open)| !**open).map(|(name, _)| &**name).collect();
            let what = match (closed.is_empty(), state.reads_nothing()) {
                (false, _) => format!("waiting for the first response of: {}\n", closed.join(", ")),
                (true, true) => "nothing can be read from the API server\n".to_owned(),
                (true, false) if state.gates.is_empty() => "starting\n".to_owned(),
                (true, false) => return None,
            };
            let failing = state.watches.iter().filter_map(|(name, why)| Some(format!("{name}: {}\n", why.as_ref()?)));
            Some([what].into_iter().chain(failing).collect())
        })
    }

    /// Waits until all gates are open.
    pub async fn wait(&self) {
        self.state.wait_for(State::all_open).await;
    }

    /// Adds a watch, which may have begun before.
    pub fn add_watch(&self, name: &str) {
        self.state.modify(|state| {
            state.watches.entry(name.to_owned()).or_default();
            true
        });
    }

    /// Records why a watch does not work, or that it does.
    pub fn watch(&self, name: &str, problem: Option<String>) {
        self.state.modify(|state| state.watches.insert(name.to_owned(), problem.clone()) != Some(problem));
    }

    fn set(&self, name: &str, open: bool) {
        self.state.modify(|state| state.gates.insert(name.to_owned(), open) != Some(open));
    }
}

impl State {
    fn all_open(&self) -> bool {
        !self.gates.is_empty() && self.gates.values().all(|open| *open)
    }

    fn reads_nothing(&self) -> bool {
        !self.watches.is_empty() && self.watches.values().all(Option::is_some)
    }
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
        assert!(readiness.problem().is_some());
        let (a, b) = (readiness.gate("a"), readiness.gate("b"));
        a.open();
        assert_eq!(readiness.problem().as_deref(), Some("waiting for the first response of: b\n"));
        b.open();
        readiness.wait().await;
        assert_eq!(readiness.problem(), None);
    }

    #[test]
    fn a_process_that_can_read_nothing_is_not_ready_and_says_why() {
        let readiness = Readiness::default();
        let gate = readiness.gate("resources");
        readiness.watch("resources", Some("forbidden".to_owned()));
        let waits = "waiting for the first response of: resources\nresources: forbidden\n";
        assert_eq!(readiness.problem().as_deref(), Some(waits));
        readiness.watch("records", None);
        gate.open();
        assert_eq!(readiness.problem(), None, "the records can be read");
        readiness.watch("records", Some("expired".to_owned()));
        let problem = "nothing can be read from the API server\nrecords: expired\nresources: forbidden\n";
        assert_eq!(readiness.problem().as_deref(), Some(problem));
    }
}
