//! A run: the steps of one namespace that are waiting and running. Owned and driven by one task.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::execute::{Engine, Progress};
use crate::graph::ActionGraph;
use crate::load::Config;
use crate::model::{Address, Recorded, Step};
use crate::plan::{Plan, RunningStep};

/// Walks graphs. Several may be under way, of components that do not touch each other.
pub struct Run {
    _engine: Arc<Engine>,
    records: Recorded,
}

impl Run {
    /// A run with nothing to do, over the records of one namespace.
    pub fn new(engine: Arc<Engine>, records: Recorded) -> Self {
        Self { _engine: engine, records }
    }

    /// The records as last read or written by us.
    pub fn records(&self) -> &Recorded {
        &self.records
    }

    /// The records, to bring in what others have written. Objects with a running step must be left alone.
    pub fn records_mut(&mut self) -> &mut Recorded {
        &mut self.records
    }

    /// Every object of a graph under way (steps waiting or running) that touches one of `scope`. A new plan must
    /// cover them all.
    pub fn touching(&self, _scope: &BTreeSet<Address>) -> BTreeSet<Address> {
        BTreeSet::new()
    }

    /// The running steps of the given objects, for planning around them.
    pub fn running(&self, _scope: &BTreeSet<Address>) -> Vec<RunningStep> {
        Vec::new()
    }

    /// Takes a new plan for the objects of `scope`: steps that have not started are replaced by it, running ones go
    /// on as the fixed nodes that the new graph has for them. `namespace` is the value of `ns` in expressions.
    pub fn adopt(
        &mut self,
        _scope: &BTreeSet<Address>,
        _config: &Arc<Config>,
        _plan: Plan,
        _graph: ActionGraph,
        _namespace: crate::model::Value,
    ) {
    }

    /// The next thing that happened; `None` once nothing runs and nothing can start. Cancel safe: a dropped call
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Progress> {
        None
    }

    /// What an object's next waiting step waits for.
    pub fn waiting_for(&self, _address: &Address) -> Vec<Step> {
        Vec::new()
    }

    /// No step starts from now on; those waiting are skipped. Running calls go on.
    pub fn stop(&mut self) {}
}
