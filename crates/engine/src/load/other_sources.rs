//! Objects whose manifests are in sources that are not given.
//!
//! The manifests that are given may reference them, and their records protect what they depend on. So the configuration
//! contains a Resource for each of them that is made from its records, and planning leaves their objects unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Config, Drift, DriftAction, Instance, Repeat, Repetition, Template};
use model::{Address, InstanceKey, Number, Record, Recorded, Stem, Value, in_stem};

impl Config {
    /// Returns the configuration with the Resources of other sources. `others` are the addresses of their records.
    ///
    /// A manifest that is given takes the object over from another source, or moves it, unless `destroys`: the objects
    /// of other sources are not destroyed, also if a given manifest has the same name. An object whose manifest is
    /// still in its source (`standing`) is not moved.
    #[must_use]
    pub fn with_other_sources(
        &self,
        recorded: &Recorded,
        others: &BTreeSet<Address>,
        standing: &BTreeSet<Stem>,
        destroys: bool,
    ) -> Self {
        let mut records: BTreeMap<&Stem, Vec<&Record>> = BTreeMap::new();
        for stored in others.iter().filter_map(|address| recorded.get(address)) {
            records.entry(&stored.record.address.stem).or_default().push(&stored.record);
        }
        let claimed = self.claimed_stems(recorded);
        let given: BTreeSet<&Stem> = self.stems().collect();
        let mut config = self.clone();
        for (name, records) in records {
            if given.contains(name) || (claimed.contains(name) && !standing.contains(name)) {
                if !destroys || records.iter().all(|record| record.source.is_none()) {
                    continue;
                }
                config.remove(name);
            }
            config.add(Arc::new(resource(name, &records)));
        }
        config.link();
        config
    }

    /// The names of the Resources from which objects are to be moved. After a move, the name is free for another object.
    pub(crate) fn claimed_stems<'a>(&'a self, recorded: &'a Recorded) -> BTreeSet<&'a Stem> {
        let mut names = BTreeSet::new();
        for resource in self.resources().filter(|resource| !resource.moved_from.is_empty()) {
            let records = in_stem(recorded, &resource.address.stem);
            let came = records.flat_map(|(_, stored)| &stored.record.moved_from).map(|from| &from.stem);
            let came: BTreeSet<&Stem> = came.collect();
            names.extend(resource.moved_from.iter().map(|moved| &moved.from.stem).filter(|name| !came.contains(name)));
        }
        names
    }

    /// Returns the records whose manifest is in another file than they say, with that file.
    pub fn new_sources(&self, recorded: &Recorded) -> BTreeMap<Address, Arc<str>> {
        let mut sources = BTreeMap::new();
        for (address, stored) in recorded {
            let resource = self.resource(address).or_else(|| self.resource(&Address::single(address.stem.clone())));
            let Some(resource) = resource.filter(|resource| !resource.only_recorded) else { continue };
            let Some(source) = &resource.source_file else { continue };
            if stored.record.source.as_ref() != Some(source) {
                sources.insert(address.clone(), Arc::clone(source));
            }
        }
        sources
    }
}

/// The Resource of records with the same name. Without references: the records alone say what it depends on.
fn resource(name: &Stem, records: &[&Record]) -> Instance {
    let mut current = records.iter().filter_map(|record| record.current.as_deref());
    Instance {
        repetition: repetition(records).map(Arc::new),
        // As recorded: no manifest that is given can switch it off.
        create_before_destroy: current.any(|object| object.create_before_destroy).then_some(true),
        drift: Drift { action: DriftAction::Ignore, ..Drift::default() },
        source_file: records.iter().find_map(|record| record.source.clone()),
        only_recorded: true,
        ..Instance::plain(Address::single(name.clone()), records[0].type_name.clone())
    }
}

/// The repetition with the recorded keys; `None` if no record has a key.
fn repetition(records: &[&Record]) -> Option<Repetition> {
    let mut names: BTreeSet<&Arc<str>> = BTreeSet::new();
    let mut last = None;
    for record in records {
        match &record.address.key {
            InstanceKey::Key(key) => _ = names.insert(key),
            InstanceKey::Index(index) => last = last.max(Some(*index)),
            InstanceKey::None | InstanceKey::All => {}
        }
    }
    let repeat = match last {
        _ if !names.is_empty() => {
            let entries = names.into_iter().map(|key| (key.clone(), Value::Null));
            Repeat::ForEach(Template::literal(Value::map(entries)))
        }
        Some(last) => {
            let count = i64::try_from(last.saturating_add(1)).unwrap_or(i64::MAX);
            Repeat::Count(Template::literal(Value::Number(Number::Int(count))))
        }
        None => return None,
    };
    Some(Repetition { repeat: Some(repeat), enabled: None, import: None, references: Arc::default() })
}
