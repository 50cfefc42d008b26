//! The Providers and the `ProviderConfigs` that the Resources of a namespace use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inputs::{Reader, config_keys};
use super::{Index, ListedKind};
use api::RawObject;
use engine::load::expression::Scope;
use engine::load::{
    BUILT_IN, Config, ConfigurationError, Expansion, Family, Instance, InstanceScope, ProviderBinding, ProviderConfig,
    ProviderSpec, RepetitionResult, provider_config_name,
};
use model::{
    Address, Diagnostic, InstanceKey, Name, ProviderUse, ReadResult, Reason, Stem, Uid, Value, Version, errors,
    in_family,
};

/// The results of data sources.
pub type Readings = BTreeMap<Address, Arc<ReadResult>>;

pub type Providers = Arc<BTreeMap<Arc<str>, Arc<ProviderSpec>>>;

/// A watched `ProviderConfig`.
#[derive(Clone, Debug)]
pub struct ObservedProviderConfig {
    pub config: Arc<ProviderConfig>,
    pub meta: Arc<ProviderConfigMeta>,
}

impl ObservedProviderConfig {
    /// `version` is the resource version of the object.
    pub fn of(config: ProviderConfig, object: &RawObject<api::ProviderConfig>, version: Version) -> Self {
        let metadata = &object.metadata;
        let meta = ProviderConfigMeta {
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version,
            generation: metadata.generation.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            status: object.status().unwrap_or_default(),
        };
        Self { config: Arc::new(config), meta: Arc::new(meta) }
    }
}

/// The metadata and the status of a `ProviderConfig`.
#[derive(Clone, Debug)]
pub struct ProviderConfigMeta {
    pub uid: Uid,
    /// The resource version.
    pub version: Version,
    pub generation: i64,
    pub deleting: bool,
    pub finalizers: Vec<String>,
    pub status: api::ProviderConfigStatus,
}

/// A `ProviderConfig` with its dependents.
#[derive(Debug)]
pub struct ProviderConfigView {
    pub name: Arc<str>,
    pub provider: Arc<str>,
    pub meta: Arc<ProviderConfigMeta>,
    /// The evaluated configuration, or why it cannot be evaluated: a reason and one line.
    pub configuration: Result<Arc<ProviderUse>, (Reason, String)>,
    /// The names of the Resources that use it, and of the records that were created with it.
    pub users: BTreeSet<Name>,
    /// The dependent records without a Resource, each with whether an operation is open.
    pub abandoned: BTreeMap<Address, bool>,
}

#[derive(Clone, Debug, Default)]
pub struct ProviderCache {
    providers: Providers,
    configs: BTreeMap<Arc<str>, ObservedProviderConfig>,
    /// A configuration or its dependents may have changed.
    touched: bool,
    /// Increases with every change.
    version: u64,
}

impl ProviderCache {
    /// An empty cache that counts versions from `version`.
    pub fn counting_from(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    /// Sets the Providers. Returns whether they have changed.
    pub fn providers(&mut self, providers: Providers) -> bool {
        let changed = !Arc::ptr_eq(&self.providers, &providers);
        self.providers = providers;
        if changed {
            self.changed();
        }
        changed
    }

    fn deleted(&mut self, name: &str) -> Option<Arc<ProviderConfig>> {
        self.changed();
        self.configs.remove(name).map(|known| known.config)
    }

    fn changed(&mut self) {
        self.version += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.configs.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.configs.keys()
    }

    pub fn touch(&mut self) {
        self.touched |= !self.configs.is_empty();
    }

    /// A version for the fingerprints of Resources that a provider manages. `None` for built-in types.
    pub fn version_for(&self, instance: &Instance) -> Option<u64> {
        is_served(instance).then_some(self.version)
    }

    pub fn config_of(&self, instance: &Instance) -> Option<&Arc<ProviderConfig>> {
        is_served(instance).then(|| self.get(&provider_config_name(instance)))?
    }

    /// Adds the Providers and the `ProviderConfigs` to a configuration.
    pub fn fill(&self, config: &mut Config, resolved: impl Fn(&Arc<ProviderConfig>) -> Arc<ProviderConfig>) {
        config.provider_config_version = self.version;
        config.providers = self.providers.as_ref().clone();
        config.provider_configs =
            self.configs.iter().map(|(name, known)| (name.clone(), resolved(&known.config))).collect();
    }

    pub fn get(&self, name: &str) -> Option<&Arc<ProviderConfig>> {
        self.configs.get(name).map(|known| &known.config)
    }
}

/// Whether a provider manages the Resource, even if that provider does not exist.
fn is_served(instance: &Instance) -> bool {
    instance.provider_config.is_some() || !BUILT_IN.contains(&&*instance.type_name)
}

impl Index {
    pub fn provider_config_applied(&mut self, observed: ObservedProviderConfig) {
        let name = observed.config.name.clone();
        self.mark_listed(ListedKind::ProviderConfigs, &name);
        let known = self.providers.configs.get_mut(&name);
        if let Some(known) = known.filter(|known| known.meta.uid == observed.meta.uid) {
            // Own writes are recorded before the watch delivers them.
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
        let reader = Reader::ProviderConfig(name.clone());
        self.inputs.set_reader(&reader, old.map(|old| config_keys(&old.config)), Some(config_keys(&config)));
        self.provider_config_changed(&name);
    }

    pub fn provider_config_changed(&mut self, name: &Arc<str>) {
        self.providers.changed();
        self.relink_dependents(name);
    }

    /// Whether a configuration or its dependents may have changed since the last call.
    pub fn take_provider_configs_touched(&mut self) -> bool {
        std::mem::take(&mut self.providers.touched)
    }

    /// Results of data sources have changed, which configurations may reference.
    pub fn touch_provider_configs(&mut self) {
        self.providers.touch();
    }

    /// All `ProviderConfigs`, evaluated. Visits every Resource and every record.
    pub fn provider_configs(&self, readings: &Readings) -> Vec<ProviderConfigView> {
        let mut users = self.users();
        let views = self.providers.configs.iter().map(|(name, known)| {
            let users = users.remove(name).unwrap_or_default();
            ProviderConfigView {
                name: name.clone(),
                provider: known.config.provider.clone(),
                meta: known.meta.clone(),
                configuration: self.evaluate(&self.inputs.resolved_config(&known.config), readings),
                abandoned: self.abandoned(&users),
                users,
            }
        });
        views.collect()
    }

    fn abandoned(&self, names: &BTreeSet<Name>) -> BTreeMap<Address, bool> {
        let lost = names.iter().filter(|name| !self.entries.contains_key(*name));
        let records = lost.flat_map(|name| in_family(&self.records, name));
        records.map(|(address, stored)| (address.clone(), stored.record.intent.is_some())).collect()
    }

    /// The Resources that use a `ProviderConfig`.
    pub fn users_of(&self, name: &str) -> BTreeSet<Name> {
        self.users().remove(name).unwrap_or_default()
    }

    /// The dependents of each `ProviderConfig`.
    fn users(&self) -> BTreeMap<Arc<str>, BTreeSet<Name>> {
        let mut users: BTreeMap<Arc<str>, BTreeSet<Name>> = BTreeMap::new();
        let mut add = |config: &str, user: &Name| {
            if let Some((name, _)) = self.providers.configs.get_key_value(config) {
                users.entry(name.clone()).or_default().insert(user.clone());
            }
        };
        for (name, entry) in self.entries.iter().filter(|(_, entry)| is_served(&entry.instance)) {
            add(&provider_config_name(&entry.instance), name);
        }
        for (address, stored) in self.records.iter() {
            let record = &stored.record;
            let objects = record.current.iter().chain(record.deposed.values()).map(Arc::as_ref);
            let planned = record.intent.iter().filter_map(|intent| Some(&intent.planned.as_ref()?.recorded));
            for object in objects.chain(planned.map(Box::as_ref)) {
                object.provider.iter().for_each(|used| add(&used.name, address.name()));
            }
        }
        users
    }

    /// Evaluates a configuration with the recorded values of the objects that it references.
    fn evaluate(
        &self,
        config: &Arc<ProviderConfig>,
        readings: &Readings,
    ) -> Result<Arc<ProviderUse>, (Reason, String)> {
        let provided = ProviderBinding::new(config.clone(), &self.providers.providers);
        let problem = errors(&config.problems).chain(errors(&config.inputs.problems)).next().cloned();
        if let Some(problem) = problem.or_else(|| provided.problem()) {
            return Err(reason_and_message(problem));
        }
        for reference in config.references.iter() {
            let target = &reference.target;
            if !self.knows(target.name()) {
                let what = format!("the configuration references `{target}`, which does not exist");
                return Err((Reason::DependencyNotFound, what));
            }
        }
        provided.configure(&RecordScope { index: self, readings, expanding: Vec::new() }).map_err(|unconfigured| {
            match unconfigured {
                ConfigurationError::Invalid(problems) => match errors(&problems).next() {
                    Some(problem) => reason_and_message(problem.clone()),
                    None => (Reason::InternalError, "the configuration cannot be evaluated".to_owned()),
                },
                ConfigurationError::Unknown => {
                    let names: BTreeSet<String> =
                        config.references.iter().map(|reference| format!("`{}`", reference.target)).collect();
                    let names = names.into_iter().collect::<Vec<_>>().join(", ");
                    (
                        Reason::DependencyNotReady,
                        format!("the configuration depends on objects that do not exist yet: {names}"),
                    )
                }
            }
        })
    }

    pub fn provider_config_deleted(&mut self, name: &Arc<str>) {
        let Some(old) = self.providers.deleted(name) else { return };
        self.inputs.set_reader(&Reader::ProviderConfig(name.clone()), Some(config_keys(&old)), None);
        self.relink_dependents(name);
    }

    /// Plans and relinks the Resources of a `ProviderConfig`, which may reference other objects than before.
    fn relink_dependents(&mut self, name: &Arc<str>) {
        for served in self.wake_dependents(|instance| *provider_config_name(instance) == **name) {
            self.relink(&served);
        }
    }

    /// Plans the Resources of providers for which `which` returns `true`. Returns their names.
    pub fn wake_dependents(&mut self, which: impl Fn(&Instance) -> bool) -> Vec<Name> {
        let names: Vec<Name> = self
            .instances()
            .filter(|instance| self.providers.version_for(instance).is_some() && which(instance))
            .map(|instance| instance.address.name().clone())
            .collect();
        self.changes.names.extend(names.iter().cloned());
        names
    }
}

/// Evaluates references in configurations with recorded objects and results of data sources. A desired instance of a
/// family that does not exist yet is unknown, so that no configuration is evaluated with the other instances only.
struct RecordScope<'a> {
    index: &'a Index,
    readings: &'a Readings,
    /// The families that are being expanded. A family that depends on itself cannot be expanded.
    expanding: Vec<Name>,
}

impl RecordScope<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        match address.is_data() {
            true => Some(self.readings.get(address)?.value.clone()),
            false => Some(self.index.records.get(address)?.record.current.as_ref()?.value.clone()),
        }
    }

    fn value_or_unknown(&self, address: &Address) -> Value {
        self.value(address).unwrap_or(Value::Unknown)
    }

    /// The value of all desired instances of a Resource.
    fn family(&self, shared: Arc<Instance>) -> Value {
        let name = shared.address.name();
        let Some(repetition) = shared.repetition.as_ref().filter(|_| !self.expanding.contains(name)) else {
            return Value::Unknown;
        };
        let within = self.expanding.iter().chain([name]).cloned().collect();
        let others = Self { index: self.index, readings: self.readings, expanding: within };
        let Ok(RepetitionResult::Instances(members)) =
            repetition.evaluate(&InstanceScope { instance: &shared, others: &others })
        else {
            return Value::Unknown;
        };
        let instances = members.keys().map(|key| {
            let address = Stem::from(name.clone()).instance(key.clone());
            (key, Some(self.value_or_unknown(&address)))
        });
        let instances: Vec<_> = instances.collect();
        Family { shared, expansion: Expansion::Known(members) }.value(instances.into_iter())
    }

    fn members<'m>(&'m self, name: &'m Name) -> Vec<&'m Address> {
        self.index.addresses(name).chain(in_family(self.readings, name).map(|(address, _)| address)).collect()
    }
}

impl Scope for RecordScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let shared = (!address.is_instance()).then(|| self.index.instance(address.name())).flatten();
        if let Some(shared) = shared.filter(|shared| shared.repetition.is_some()) {
            return Some(self.family(shared));
        }
        if let Some(value) = self.value(address) {
            return Some(value);
        }
        let members = self.members(address.name());
        if address.is_instance() {
            // `name.attribute` is looked up as an instance first. Only some instances of a family may exist yet.
            return members.iter().any(|member| member.is_instance()).then_some(Value::Unknown);
        }
        if members.is_empty() {
            return Some(Value::Unknown);
        }
        let named = members.iter().filter_map(|address| match &address.key {
            InstanceKey::Key(key) => Some((key.clone(), self.value_or_unknown(address))),
            _ => None,
        });
        let named: BTreeMap<Arc<str>, Value> = named.collect();
        Some(match named.is_empty() {
            true => Value::list(members.into_iter().map(|address| self.value_or_unknown(address))),
            false => Value::map(named),
        })
    }

    fn namespace(&self) -> Value {
        self.index.value.clone()
    }
}

/// The reason and the message of a problem, with a path relative to its `ProviderConfig`.
fn reason_and_message(mut problem: Diagnostic) -> (Reason, String) {
    if let Some(path) = &mut problem.path
        && path.to_string().starts_with("providerConfig.")
    {
        path.0.drain(..2);
    }
    (problem.reason, problem.message())
}
