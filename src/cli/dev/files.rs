//! What a folder asks for, as events for a reconciler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::ProviderConfigStatus;
use crate::cli::local::Wanted;
use crate::load::{Data, Instance, ProviderConfig};
use crate::model::data::Texts;
use crate::model::{Address, DataRef, Diagnostic, Diagnostics, Reason, Version};
use crate::reconcile::index::{Event, InputKey, Observed, ObservedSettings, Published, SettingsMeta};

/// The folder as it was read last.
#[derive(Default)]
pub struct Folder {
    resources: BTreeMap<Arc<str>, Arc<Instance>>,
    configs: BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    /// The Providers, as a text by which it is seen that they differ.
    providers: Option<String>,
    data: BTreeMap<DataRef, Arc<Texts>>,
    /// The ConfigMaps and Secrets that are read.
    followed: BTreeSet<InputKey>,
    /// What could not be read.
    unread: Diagnostics,
    /// Counts how often it was read.
    version: u64,
}

impl Folder {
    /// What is different from the last time, in the order in which it is to be observed.
    pub fn read(&mut self, wanted: Wanted) -> Vec<Event> {
        let Wanted { config, namespace, data, .. } = wanted;
        self.version += 1;
        self.data = data;
        self.unread.clone_from(&config.incomplete);
        let mut events = vec![Event::Namespace { value: namespace, terminating: None }];
        let providers = format!("{:?}", config.providers);
        if self.providers.as_ref() != Some(&providers) {
            events.push(Event::Providers(Arc::new(config.providers.clone())));
            self.providers = Some(providers);
        }
        let configs = config.provider_configs.clone();
        for (name, one) in &configs {
            let same = |known: &Arc<ProviderConfig>| format!("{known:?}") == format!("{one:?}");
            if !self.configs.get(name).is_some_and(same) {
                events.push(Event::ProviderConfigApplied(self.observed_config(one)));
            }
        }
        let gone = self.configs.keys().filter(|name| !configs.contains_key(*name));
        events.extend(gone.cloned().map(Event::ProviderConfigDeleted));
        self.configs = configs;
        events.extend(self.inputs());
        let resource = |name: &Arc<str>| config.resource(&Address::single(name.clone())).cloned();
        let all = config.names().filter_map(|name| Some((name.clone(), resource(name)?)));
        let resources: BTreeMap<Arc<str>, Arc<Instance>> = all.collect();
        // What is known in part only comes before anything that is missing.
        events.push(Event::Incomplete(self.incomplete(true)));
        events.extend(resources.values().map(|instance| Event::ResourceApplied(observed(instance))));
        let gone = self.resources.keys().filter(|name| !resources.contains_key(*name));
        events.extend(gone.cloned().map(Event::ResourceDeleted));
        self.resources = resources;
        events
    }

    /// A Resource of the folder.
    pub fn resource(&self, name: &str) -> Option<&Arc<Instance>> {
        self.resources.get(name)
    }

    /// Why what is wanted is known in part only.
    pub fn incomplete(&self, just_changed: bool) -> Diagnostics {
        let just_changed =
            just_changed.then(|| Diagnostic::general(Reason::SourceIncomplete, "the files have just changed"));
        self.unread.iter().cloned().chain(just_changed).collect()
    }

    /// Whether all of it could be read.
    pub fn is_readable(&self) -> bool {
        self.unread.is_empty()
    }

    /// What these ConfigMaps and Secrets hold, now and whenever the folder is read.
    pub fn follow(&mut self, wanted: BTreeSet<InputKey>) -> Vec<Event> {
        self.followed = wanted;
        self.inputs()
    }

    fn inputs(&self) -> Vec<Event> {
        let find = |object| self.data.get(object).map_or(Data::Missing, |texts| Data::Present(texts.clone()));
        self.followed.iter().map(|key| Event::Input(key.clone(), find(&key.object))).collect()
    }

    fn observed_config(&self, config: &Arc<ProviderConfig>) -> ObservedSettings {
        let meta = SettingsMeta {
            uid: "".into(),
            version: Version(self.version),
            generation: i64::try_from(self.version).unwrap_or(i64::MAX),
            deleting: false,
            finalizers: Vec::new(),
            status: ProviderConfigStatus::default(),
        };
        ObservedSettings { config: config.clone(), meta: Arc::new(meta) }
    }
}

fn observed(instance: &Arc<Instance>) -> Observed {
    Observed { instance: instance.clone(), published: Published::nothing(), version: Version(0), meta: Arc::default() }
}
