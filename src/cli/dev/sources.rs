//! The sources of records while `purlin dev` runs: which objects belong to the watched files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::DevReporter;
use crate::cli::local::DesiredState;
use engine::load::Config;
use model::{Address, Recorded, Stored, Version};
use runtime::store::StateFile;

pub struct RecordedSources {
    state: Arc<StateFile>,
    /// The manifests in the watched files.
    config: Config,
    /// The sources that were recorded after the reconciler received the records, each with the version of its record.
    changed: BTreeMap<Address, (Version, Arc<str>)>,
}

impl RecordedSources {
    pub fn new(state: Arc<StateFile>) -> Self {
        Self { state, config: Config::default(), changed: BTreeMap::new() }
    }

    /// Records the sources of manifests that are in other files now, adds the objects of sources that are not watched to
    /// the desired state, which leaves them unchanged, and reports them and the problems of the files.
    pub fn complete(&mut self, desired: &mut DesiredState, recorded: &Recorded, reporter: &mut DevReporter) {
        self.config = desired.config.clone();
        let recorded = self.record(recorded);
        reporter.problems(&desired.coverage.problems(&desired.problems, &recorded, false));
        let others = desired.coverage.others(&recorded, false);
        if !others.is_empty() {
            desired.config = desired.coverage.complete(&desired.config, &recorded, &others, false);
        }
        let unchanged = desired.config.instances.iter().filter(|(_, instance)| instance.only_recorded);
        reporter.other_sources(unchanged.filter(|(address, _)| recorded.contains_key(*address)).count());
    }

    /// Records the sources of manifests that are in other files now, and returns the records with them. A step records
    /// the source with which it started, so this is also necessary after steps.
    pub fn record(&mut self, recorded: &Recorded) -> Recorded {
        let mut recorded = recorded.clone();
        for (address, (version, source)) in &self.changed {
            if let Some(stored) = recorded.get_mut(address).filter(|stored| stored.version == *version) {
                set_source(stored, source);
            }
        }
        let changed = self.config.new_sources(&recorded);
        if let Err(error) = self.state.record_sources(&changed) {
            // The next change of the files, the next step, or the next apply records them.
            tracing::warn!(%error, "the sources of manifests could not be recorded");
            return recorded;
        }
        for (address, source) in changed {
            if let Some(stored) = recorded.get_mut(&address) {
                set_source(stored, &source);
                self.changed.insert(address, (stored.version, source));
            }
        }
        recorded
    }
}

fn set_source(stored: &mut Stored, source: &Arc<str>) {
    Arc::make_mut(&mut stored.record).source = Some(Arc::clone(source));
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use engine::load::Instance;
    use model::{Holder, Record};

    fn manifest(address: &Address, source: &str) -> Config {
        let mut config = Config { namespace: "shop".into(), ..Config::default() };
        let plain = Instance::plain(address.clone(), "terraform_data");
        config.add(Arc::new(Instance { source_file: Some(source.into()), ..plain }));
        config
    }

    /// A file is renamed while a step, which started before, is running.
    #[tokio::test]
    async fn a_step_does_not_undo_the_source_of_a_renamed_file() {
        let directory = TempDir::new().unwrap();
        let holder = Holder { pod: "".into(), process: "p1".into() };
        let state = Arc::new(StateFile::open(&directory.path().join("purlin.db"), "shop", holder).unwrap());
        let address = Address::single("more");
        let mut record = Record::empty("shop".into(), address.clone(), "u".into(), "terraform_data".into());
        record.source = Some("app/sub/more.yaml".into());
        let mut sources = RecordedSources::new(Arc::clone(&state));
        sources.config = manifest(&address, "app/more.yaml");
        assert!(sources.record(&Recorded::default()).is_empty(), "the step has no record yet");
        let mut version = None;
        for _ in 0..2 {
            let written = state.write(&record, version).await.unwrap();
            let stored = Stored { record: Arc::new(record.clone()), version: written };
            let recorded = Recorded::from_iter([(address.clone(), stored)]);
            for _ in 0..2 {
                let known = sources.record(&recorded);
                assert_eq!(known[&address].record.source.as_deref(), Some("app/more.yaml"));
            }
            let loaded = state.load_all().unwrap();
            assert_eq!(loaded.records[&address].record.source.as_deref(), Some("app/more.yaml"));
            version = Some(written);
        }
    }
}
