//! What is known of the providers that serve the Resources of a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inputs::config_keys;
use super::{Entry, Index};
use crate::api;
use crate::load::expression::Scope;
use crate::load::{
    BUILT_IN, Config, Expansion, Family, Instance, Made, Own, Provided, ProviderConfig, ProviderSpec, Unsettled,
    config_name,
};
use crate::model::{
    Address, Diagnostic, Diagnostics, InstanceKey, ProviderUse, Reading, Reason, Severity, Value, Version, of_name,
};

/// What was read of data sources.
pub type Readings = BTreeMap<Address, Arc<Reading>>;

/// All Providers of the cluster, by name.
pub type Providers = Arc<BTreeMap<Arc<str>, Arc<ProviderSpec>>>;

/// A `ProviderConfig` as watched.
#[derive(Clone, Debug)]
pub struct ObservedSettings {
    /// What it says.
    pub config: Arc<ProviderConfig>,
    /// What the API server knows of it.
    pub meta: Arc<SettingsMeta>,
}

/// What the API server knows of a `ProviderConfig`.
#[derive(Clone, Debug)]
pub struct SettingsMeta {
    /// Its UID.
    pub uid: Arc<str>,
    /// The version of it that this is.
    pub version: Version,
    /// The version of its spec.
    pub generation: i64,
    /// It is to be deleted.
    pub deleting: bool,
    /// All of its finalizers.
    pub finalizers: Vec<String>,
    /// What its status says.
    pub status: api::ProviderConfigStatus,
}

/// A `ProviderConfig`, and what is known about its use.
#[derive(Debug)]
pub struct SettingsView {
    /// Its name.
    pub name: Arc<str>,
    /// The name of its Provider.
    pub provider: Arc<str>,
    /// What the API server knows of it.
    pub meta: Arc<SettingsMeta>,
    /// The provider with these settings as they are now, or why they cannot be told: a reason and a line.
    pub settled: Result<Arc<ProviderUse>, (Reason, String)>,
    /// The names of the Resources that it serves, and of the records that were made under it.
    pub users: BTreeSet<Arc<str>>,
    /// The records among them that have no Resource, each with whether an operation of it is open.
    pub abandoned: BTreeMap<Address, bool>,
}

#[derive(Debug, Default)]
pub(super) struct KnownProviders {
    all: Providers,
    configs: BTreeMap<Arc<str>, ObservedSettings>,
    /// Something has happened that settings, or who uses them, may hang on.
    touched: bool,
    /// A greater number with every change.
    version: u64,
}

impl KnownProviders {
    /// Nothing is known. Versions are counted from this one on.
    pub(super) fn counting_from(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    /// The Providers are these from now on. Gives whether that is news.
    pub(super) fn providers(&mut self, all: Providers) -> bool {
        let news = !Arc::ptr_eq(&self.all, &all);
        self.all = all;
        if news {
            self.changed();
        }
        news
    }

    /// A `ProviderConfig` is gone.
    fn deleted(&mut self, name: &str) -> Option<Arc<ProviderConfig>> {
        self.changed();
        self.configs.remove(name).map(|known| known.config)
    }

    fn changed(&mut self) {
        self.version += 1;
    }

    /// Whether there is no `ProviderConfig`.
    pub(super) fn is_empty(&self) -> bool {
        self.configs.is_empty()
    }

    /// Something has happened in the namespace.
    pub(super) fn touch(&mut self) {
        self.touched |= !self.configs.is_empty();
    }

    /// A number that changes with everything that is known, for an object that providers have to do with.
    pub(super) fn version_for(&self, instance: &Instance) -> Option<u64> {
        is_served(instance).then_some(self.version)
    }

    /// The `ProviderConfig` of a Resource.
    pub(super) fn config_of(&self, instance: &Instance) -> Option<&Arc<ProviderConfig>> {
        is_served(instance).then(|| self.get(&config_name(instance)))?
    }

    /// Puts what is known into a configuration.
    pub(super) fn fill(&self, config: &mut Config, resolved: impl Fn(&Arc<ProviderConfig>) -> Arc<ProviderConfig>) {
        config.settings_version = self.version;
        config.providers = self.all.as_ref().clone();
        config.provider_configs =
            self.configs.iter().map(|(name, one)| (name.clone(), resolved(&one.config))).collect();
    }

    /// The `ProviderConfig` of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<ProviderConfig>> {
        self.configs.get(name).map(|known| &known.config)
    }
}

/// Whether a provider serves the Resource, or would if it were there.
fn is_served(instance: &Instance) -> bool {
    instance.provider_config.is_some() || !BUILT_IN.contains(&&*instance.type_name)
}

impl Index {
    pub(super) fn provider_config_applied(&mut self, observed: ObservedSettings) {
        let name = observed.config.name.clone();
        let known = self.providers.configs.get_mut(&name);
        if let Some(known) = known.filter(|known| known.meta.uid == observed.meta.uid) {
            // Our own writes are known before the watch tells of them.
            if observed.meta.version < known.meta.version {
                return;
            }
            let same = known.meta.generation == observed.meta.generation;
            known.meta = observed.meta.clone();
            if same {
                return;
            }
        }
        let config = observed.config.clone();
        let old = self.providers.configs.insert(name.clone(), observed);
        self.inputs.follow(&reader(&name), old.map(|old| config_keys(&old.config)), Some(config_keys(&config)));
        self.settings_changed(&name);
    }

    /// What settings say, or what they read, has changed.
    pub(super) fn settings_changed(&mut self, name: &Arc<str>) {
        self.providers.changed();
        self.served_by(name);
    }

    /// Whether settings, or who uses them, may have changed since the last call.
    pub fn take_settings_touched(&mut self) -> bool {
        std::mem::take(&mut self.providers.touched)
    }

    /// What was read of data sources has changed, which settings may read.
    pub fn touch_settings(&mut self) {
        self.providers.touch();
    }

    /// All `ProviderConfigs`, by what is recorded and what was read. Costs a look at every Resource and every record.
    pub fn settings(&self, readings: &Readings) -> Vec<SettingsView> {
        let mut users = self.users();
        let view = |(name, known): (&Arc<str>, &ObservedSettings)| {
            let users = users.remove(name).unwrap_or_default();
            SettingsView {
                name: name.clone(),
                provider: known.config.provider.clone(),
                meta: known.meta.clone(),
                settled: self.settled(&self.inputs.resolved_config(&known.config), readings),
                abandoned: self.abandoned(&users),
                users,
            }
        };
        self.providers.configs.iter().map(view).collect()
    }

    /// The records of these names that have no Resource.
    fn abandoned(&self, names: &BTreeSet<Arc<str>>) -> BTreeMap<Address, bool> {
        let lost = names.iter().filter(|name| !self.entries.contains_key(*name));
        let records = lost.flat_map(|name| of_name(&self.records, name));
        records.map(|(address, stored)| (address.clone(), stored.record.intent.is_some())).collect()
    }

    /// The names of those that each `ProviderConfig` serves or has served.
    fn users(&self) -> BTreeMap<Arc<str>, BTreeSet<Arc<str>>> {
        let mut users: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
        let mut add = |config: &str, user: &Arc<str>| {
            if let Some((name, _)) = self.providers.configs.get_key_value(config) {
                users.entry(name.clone()).or_default().insert(user.clone());
            }
        };
        for (name, entry) in self.entries.iter().filter(|(_, entry)| is_served(&entry.instance)) {
            add(&config_name(&entry.instance), name);
        }
        for (address, stored) in &self.records {
            let record = &stored.record;
            let objects = record.current.iter().chain(record.deposed.values()).map(Arc::as_ref);
            let planned = record.intent.iter().filter_map(|intent| Some(&intent.planned.as_ref()?.recorded));
            for object in objects.chain(planned.map(Box::as_ref)) {
                object.provider.iter().for_each(|used| add(&used.name, &address.name));
            }
        }
        users
    }

    /// Settings as they are now, by what is recorded of the objects that they refer to.
    fn settled(&self, config: &Arc<ProviderConfig>, readings: &Readings) -> Result<Arc<ProviderUse>, (Reason, String)> {
        let provided = Provided::new(config.clone(), &self.providers.all);
        let problem = error(&config.problems).or_else(|| error(&config.inputs.problems)).or_else(|| provided.problem());
        if let Some(problem) = problem {
            return Err(told(problem));
        }
        for reference in config.references.iter() {
            let target = &reference.target;
            if !self.knows(&target.name) {
                let what = format!("the settings refer to `{target}`, which does not exist");
                return Err((Reason::DependencyNotFound, what));
            }
        }
        provided.settle(&AsRecorded { index: self, readings, within: Vec::new() }).map_err(
            |unsettled| match unsettled {
                Unsettled::Broken(problems) => match error(&problems) {
                    Some(problem) => told(problem),
                    None => (Reason::InternalError, "the settings cannot be told".to_owned()),
                },
                Unsettled::Unknown => {
                    let names: BTreeSet<String> =
                        config.references.iter().map(|reference| format!("`{}`", reference.target)).collect();
                    let names = names.into_iter().collect::<Vec<_>>().join(", ");
                    (Reason::DependencyNotReady, format!("the settings hang on what is not there yet: {names}"))
                }
            },
        )
    }

    pub(super) fn provider_config_deleted(&mut self, name: &Arc<str>) {
        let Some(old) = self.providers.deleted(name) else { return };
        self.inputs.follow(&reader(name), Some(config_keys(&old)), None);
        self.served_by(name);
    }

    /// What a `ProviderConfig` says has changed: all that it serves is looked at, and hangs on other objects than before.
    fn served_by(&mut self, name: &Arc<str>) {
        for served in self.wake_served(|instance| *config_name(instance) == **name) {
            self.relink(&served);
        }
    }

    /// Wakes those Resources that providers have to do with.
    pub(super) fn wake_served(&mut self, which: impl Fn(&Instance) -> bool) -> Vec<Arc<str>> {
        let served = |entry: &&Entry| self.providers.version_for(&entry.instance).is_some() && which(&entry.instance);
        let names: Vec<_> = self.entries.values().filter(served).map(|one| one.instance.address.name.clone()).collect();
        self.woken.extend(names.iter().cloned());
        names
    }
}

/// As which reader of inputs a `ProviderConfig` is known. No Resource has such a name.
fn reader(config: &str) -> Arc<str> {
    format!("{SETTINGS}{config}").into()
}

pub(super) const SETTINGS: &str = "ProviderConfig ";

/// Objects as they are recorded, and data sources as they were read, for settings that refer to them. An instance of a
/// family that is wanted and not there yet is unknown, so that no settings are made of the others alone.
struct AsRecorded<'a> {
    index: &'a Index,
    readings: &'a Readings,
    /// Whose instances are being made out: a family that hangs on itself has none that can be told.
    within: Vec<Arc<str>>,
}

impl AsRecorded<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        match address.is_data() {
            true => Some(self.readings.get(address)?.value.clone()),
            false => Some(self.index.records.get(address)?.record.current.as_ref()?.value.clone()),
        }
    }

    /// All instances that a Resource asks for.
    fn family(&self, shared: Arc<Instance>) -> Value {
        let name = &shared.address.name;
        let Some(repetition) = shared.repetition.as_ref().filter(|_| !self.within.contains(name)) else {
            return Value::Unknown;
        };
        let within = self.within.iter().chain([name]).cloned().collect();
        let others = Self { index: self.index, readings: self.readings, within };
        let Ok(Made::Members(members)) = repetition.evaluate(&Own { instance: &shared, others: &others }) else {
            return Value::Unknown;
        };
        let instance = |key: InstanceKey| {
            let address = Address { name: name.clone(), key: key.clone() };
            (key, Some(self.value(&address).unwrap_or(Value::Unknown)))
        };
        let instances: Vec<_> = members.keys().map(instance).collect();
        Family { shared, expansion: Expansion::Known(members) }.value(instances.into_iter())
    }

    fn members<'m>(&'m self, name: &'m Arc<str>) -> Vec<&'m Address> {
        self.index.addresses(name).chain(of_name(self.readings, name).map(|(address, _)| address)).collect()
    }
}

impl Scope for AsRecorded<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let shared = (!address.is_instance()).then(|| self.index.instance(&address.name)).flatten();
        if let Some(shared) = shared.filter(|shared| shared.repetition.is_some()) {
            return Some(self.family(shared));
        }
        let value = |address: &Address| self.value(address);
        if let Some(value) = value(address) {
            return Some(value);
        }
        let members = self.members(&address.name);
        if address.is_instance() {
            // `name.attribute` is asked for as an instance first; only of a family some may be made yet.
            return members.iter().any(|member| member.is_instance()).then_some(Value::Unknown);
        }
        if members.is_empty() {
            return Some(Value::Unknown);
        }
        let one = |address: &Address| value(address).unwrap_or(Value::Unknown);
        let named = members.iter().filter_map(|address| match &address.key {
            InstanceKey::Key(key) => Some((key.clone(), one(address))),
            _ => None,
        });
        let named: BTreeMap<Arc<str>, Value> = named.collect();
        Some(match named.is_empty() {
            true => Value::list(members.into_iter().map(one)),
            false => Value::map(named),
        })
    }

    fn namespace(&self) -> Value {
        self.index.value.clone()
    }
}

fn error(problems: &Diagnostics) -> Option<Diagnostic> {
    problems.iter().find(|problem| problem.severity == Severity::Error).cloned()
}

/// A problem as its own `ProviderConfig` tells it: the place is one of its manifest.
fn told(mut problem: Diagnostic) -> (Reason, String) {
    if let Some(path) = &mut problem.path
        && path.to_string().starts_with("providerConfig.")
    {
        path.0.drain(..2);
    }
    (problem.reason, problem.message())
}
