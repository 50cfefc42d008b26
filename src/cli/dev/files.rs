//! Converts changes of the manifests in a directory to events for the reconciler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::module::modules;
use crate::cli::local::{DesiredState, uncovered_records};
use api::ProviderConfigStatus;
use engine::load::{Config, DataLookup, Instance, ProviderConfig};
use model::data::StringData;
use model::{Address, DataRef, Diagnostic, Diagnostics, Name, Reason, Version};
use runtime::reconcile::index::{
    Event, InputKey, ObservedProviderConfig, ObservedResource, ProviderConfigMeta, PublishedStatus,
};
use runtime::store::UnreadableRecord;

/// The manifests at the last read.
#[derive(Default)]
pub struct DirectoryState {
    config: Config,
    /// The names of its Resources and Modules.
    resources: BTreeSet<Name>,
    configs: BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    /// The debug format of the Providers, to detect changes.
    providers: Option<String>,
    data: BTreeMap<DataRef, Arc<StringData>>,
    /// The ConfigMaps and Secrets that the reconciler uses.
    watched_inputs: BTreeSet<InputKey>,
    /// The errors of manifests that could not be read.
    read_errors: Diagnostics,
    /// Records that cannot be read.
    unreadable: Vec<UnreadableRecord>,
    /// The errors of those that no manifest has: their objects may use what has no manifest any more.
    uncovered: Diagnostics,
    /// The names of manifests that cannot be planned, by their last plan.
    faulty: BTreeSet<Name>,
    version: u64,
}

impl DirectoryState {
    /// `unreadable`: the records that cannot be read.
    pub fn new(unreadable: Vec<UnreadableRecord>) -> Self {
        Self { unreadable, ..Self::default() }
    }

    /// Returns the events for all changes since the last read, in the order in which they must be observed.
    pub fn read(&mut self, desired: DesiredState) -> Vec<Event> {
        let DesiredState { config, namespace, data, .. } = desired;
        self.version += 1;
        self.data = data;
        self.read_errors.clone_from(&config.incomplete);
        self.uncovered = uncovered_records(&config, &self.unreadable);
        let mut events = vec![Event::Namespace { value: namespace, terminating: None }];
        let providers = format!("{:?}", config.providers);
        if self.providers.as_ref() != Some(&providers) {
            events.push(Event::Providers(Arc::new(config.providers.clone())));
            self.providers = Some(providers);
        }
        let configs = config.provider_configs.clone();
        for (name, provider_config) in &configs {
            let known = self.configs.get(name);
            if known.is_none_or(|known| format!("{known:?}") != format!("{provider_config:?}")) {
                events.push(Event::ProviderConfigApplied(self.observed_config(provider_config)));
            }
        }
        let removed = self.configs.keys().filter(|name| !configs.contains_key(*name));
        events.extend(removed.cloned().map(Event::ProviderConfigDeleted));
        self.configs = configs;
        events.extend(self.inputs());
        let mut config = config;
        if !self.read_errors.is_empty() {
            // A Terraform configuration with an error says nothing. What it said last stays in force.
            for module in self.config.modules.values() {
                if !config.modules.contains_key(module.address.name()) {
                    config.add(Arc::clone(module));
                }
            }
        }
        let resources = resources(&config, self.version);
        self.faulty.retain(|name| resources.contains_key(name));
        // Must precede the deletions, so that they are held.
        events.push(Event::Incomplete(self.incomplete(true)));
        events.extend(resources.values().map(|instance| Event::ResourceApplied(observed(instance))));
        let removed = self.resources.iter().filter(|name| !resources.contains_key(*name));
        events.extend(removed.cloned().map(Event::ResourceDeleted));
        self.resources = resources.into_keys().collect();
        self.config = config;
        events
    }

    /// What the files say of an object, or of its family.
    pub fn resource(&self, address: &Address) -> Option<&Arc<Instance>> {
        self.config.resource(address)
    }

    /// Returns the reasons why the desired state may be incomplete.
    pub fn incomplete(&self, just_changed: bool) -> Diagnostics {
        let just_changed =
            just_changed.then(|| Diagnostic::general(Reason::SourceIncomplete, "the files have just changed"));
        let faulty = self
            .faulty
            .iter()
            .map(|name| match name.is_empty() {
                true => "the Terraform configuration has an error".to_owned(),
                false => format!("`{name}` has an error"),
            })
            .map(|what| Diagnostic::general(Reason::SourceIncomplete, what));
        self.read_errors.iter().chain(&self.uncovered).cloned().chain(faulty).chain(just_changed).collect()
    }

    /// Takes the names of a plan, and which of its objects cannot be planned. Returns whether this has changed what is
    /// known.
    pub fn planned<'a>(&mut self, names: &BTreeSet<Name>, faulty: impl Iterator<Item = &'a Address> + 'a) -> bool {
        let before = self.faulty.clone();
        self.faulty.retain(|name| !names.contains(name));
        self.faulty.extend(faulty.map(|address| address.name().clone()));
        self.faulty != before
    }

    /// Whether all manifests could be read and planned.
    pub fn has_no_errors(&self) -> bool {
        self.read_errors.is_empty() && self.faulty.is_empty()
    }

    /// Sets the ConfigMaps and Secrets to send events for, and returns their current contents.
    pub fn watch_inputs(&mut self, inputs: BTreeSet<InputKey>) -> Vec<Event> {
        self.watched_inputs = inputs;
        self.inputs()
    }

    fn inputs(&self) -> Vec<Event> {
        let events = self.watched_inputs.iter().map(|key| {
            let texts = self.data.get(&key.object);
            Event::Input(key.clone(), texts.map_or(DataLookup::Missing, |texts| DataLookup::Present(texts.clone())))
        });
        events.collect()
    }

    fn observed_config(&self, config: &Arc<ProviderConfig>) -> ObservedProviderConfig {
        let meta = ProviderConfigMeta {
            uid: "".into(),
            version: Version(self.version),
            generation: i64::try_from(self.version).unwrap_or(i64::MAX),
            deleting: false,
            finalizers: Vec::new(),
            status: ProviderConfigStatus::default(),
        };
        ObservedProviderConfig { config: config.clone(), meta: Arc::new(meta) }
    }
}

/// The Resources and Modules by name, of this version of the files.
fn resources(config: &Config, version: u64) -> BTreeMap<Name, Arc<Instance>> {
    let written = config.stems().filter(|stem| stem.part.is_none());
    let written = written.filter_map(|stem| config.resource(&stem.clone().single()));
    let written = written.map(|instance| (instance.address.name().clone(), instance.clone()));
    written.chain(modules(config, version)).collect()
}

fn observed(instance: &Arc<Instance>) -> ObservedResource {
    ObservedResource {
        instance: instance.clone(),
        published: PublishedStatus::empty(),
        version: Version(0),
        meta: Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_cannot_be_planned_makes_the_directory_incomplete_until_its_next_plan() {
        let mut directory = DirectoryState::default();
        let names = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect::<BTreeSet<_>>();
        let incomplete = |directory: &DirectoryState| {
            directory.incomplete(false).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(directory.planned(&names(&["app", "database"]), [Address::single("app")].iter()));
        assert!(!directory.planned(&names(&["database"]), [].iter()));
        assert_eq!(incomplete(&directory), ["`app` has an error"]);
        assert!(!directory.has_no_errors());
        assert!(directory.planned(&names(&["app"]), [].iter()));
        assert!(incomplete(&directory).is_empty() && directory.has_no_errors());
    }
}
