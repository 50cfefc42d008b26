//! The sources of records while `purlin dev` runs: which objects belong to the watched files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::DevReporter;
use crate::cli::local::DesiredState;
use crate::model::{Address, Record, Recorded};
use crate::store::StateFile;

pub struct RecordedSources {
    state: Arc<StateFile>,
    /// The sources that were recorded after the reconciler received the records.
    changed: BTreeMap<Address, Arc<str>>,
}

impl RecordedSources {
    pub fn new(state: Arc<StateFile>) -> Self {
        Self { state, changed: BTreeMap::new() }
    }

    /// Records the sources of manifests that are in other files now, adds the objects of sources that are not watched to
    /// the desired state, which leaves them unchanged, and reports them and the problems of the files.
    pub fn complete(&mut self, desired: &mut DesiredState, recorded: &Recorded, reporter: &mut DevReporter) {
        let mut recorded = recorded.clone();
        for (address, source) in &self.changed {
            if let Some(stored) = recorded.get_mut(address) {
                stored.record = Arc::new(Record { source: Some(Arc::clone(source)), ..Record::clone(&stored.record) });
            }
        }
        let changed = desired.config.new_sources(&recorded);
        if let Err(error) = self.state.record_sources(&changed) {
            // The next change of the files, or the next apply, records them.
            tracing::warn!(%error, "the sources of manifests could not be recorded");
        } else {
            self.changed.extend(changed);
        }
        reporter.problems(&desired.coverage.problems(&desired.problems, &recorded, false));
        let others = desired.coverage.others(&recorded, false);
        if !others.is_empty() {
            desired.config = desired.config.with_other_sources(&recorded, &others, false);
        }
        let unchanged = desired.config.instances.keys();
        let is_other = |address: &&Address| desired.config.instances[*address].only_recorded;
        reporter.other_sources(unchanged.filter(is_other).filter(|address| recorded.contains_key(*address)).count());
    }
}
