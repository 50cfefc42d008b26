//! Providers and their settings as they were given, and which of them serves which Resource.
//!
//! A Resource is served by the `ProviderConfig` that `spec.providerConfigRef` names, else by the one named like the
//! prefix of its type, else by the `Provider` of that name without settings. What the settings refer to, every Resource
//! under them refers to as well: so a provider is configured after what its settings need, and what they need is
//! destroyed after the last object under them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::expression::{Scope, Variable};
use super::{Config, Inputs, Instance, Reference, Template};
use crate::model::{Address, Diagnostic, Diagnostics, Path, Provider, ProviderUse, Reason, Severity, Source, Value};

/// Types that Purlin itself serves: no prefix of theirs names a provider.
pub const BUILT_IN: [&str; 2] = ["terraform_data", "kubernetes_object"];

/// One `Provider`, as it was given.
#[derive(Clone, Debug)]
pub struct ProviderSpec {
    /// What it says.
    pub provider: Arc<Provider>,
    /// What is wrong with it. With an error nothing of it can be used.
    pub problems: Diagnostics,
    /// Where it was read from.
    pub source: Option<Source>,
}

/// One `ProviderConfig`, as it was given.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name.
    pub name: Arc<str>,
    /// The name of the `Provider`.
    pub provider: Arc<str>,
    /// `spec.config`.
    pub config: Template,
    /// `spec.inputs`.
    pub inputs: Inputs,
    /// As which service account they are read; empty in local mode.
    pub service_account: Arc<str>,
    /// What the settings refer to.
    pub references: Arc<[Reference]>,
    /// What is wrong with it.
    pub problems: Diagnostics,
    /// Where it was read from.
    pub source: Option<Source>,
}

/// What serves a Resource.
#[derive(Debug)]
pub struct Provided {
    config: Arc<ProviderConfig>,
    provider: Result<Arc<Provider>, Box<Diagnostic>>,
    /// Settings that refer to nothing are evaluated once.
    constant: OnceLock<Arc<ProviderUse>>,
}

/// The name of the `ProviderConfig` that a Resource has, if there is one of that name.
pub fn config_name(instance: &Instance) -> Arc<str> {
    instance.provider_config.clone().unwrap_or_else(|| prefix(&instance.type_name).into())
}

/// What a type begins with: the name of its provider.
fn prefix(type_name: &str) -> &str {
    type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix)
}

/// Why a provider cannot be configured now.
#[derive(Debug)]
pub enum Unsettled {
    /// Something is wrong with it.
    Broken(Diagnostics),
    /// Its settings hang on what is not known before a step has run.
    Unknown,
}

/// What the expressions of settings can read.
struct Settings<'a> {
    inputs: &'a Inputs,
    others: &'a dyn Scope,
}

impl Scope for Settings<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        self.others.object(address)
    }

    fn namespace(&self) -> Value {
        self.others.namespace()
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        (variable == Variable::Inputs).then(|| self.inputs.values.clone())
    }
}

impl ProviderConfig {
    /// A provider without settings.
    fn without_settings(name: &Arc<str>) -> Self {
        Self {
            name: name.clone(),
            provider: name.clone(),
            config: Template::literal(Value::map::<Arc<str>>([])),
            inputs: Inputs::default(),
            service_account: "".into(),
            references: Arc::default(),
            problems: Vec::new(),
            source: None,
        }
    }

    /// Where a place of its manifest is, told at a Resource.
    fn located(&self, mut problem: Diagnostic) -> Diagnostic {
        let mut at = Path::default().name("providerConfig").name(self.name.clone());
        at.0.extend(problem.path.take().unwrap_or_default().0);
        problem.path = Some(at);
        problem.source = problem.source.or_else(|| self.source.clone());
        problem
    }
}

impl Provided {
    /// What a `ProviderConfig` comes to when there are these Providers.
    pub fn new(config: Arc<ProviderConfig>, providers: &BTreeMap<Arc<str>, Arc<ProviderSpec>>) -> Self {
        let provider = match providers.get(&config.provider) {
            Some(spec) => match spec.problems.iter().find(|problem| problem.severity == Severity::Error) {
                None => Ok(spec.provider.clone()),
                Some(problem) => {
                    let what = format!("the Provider `{}` is not valid: {}", config.provider, problem.summary);
                    Err(Diagnostic::general(Reason::ProviderNotReady, what).from_source(spec.source.clone()))
                }
            },
            None => {
                let what = format!("there is no Provider `{}`", config.provider);
                let hint = "add a document of kind Provider with that name, or correct `spec.provider.name`";
                let at = Path::default().name("spec").name("provider").name("name");
                Err(config.located(Diagnostic::general(Reason::ProviderNotFound, what).at(at).hint(hint)))
            }
        };
        Self { config, provider: provider.map_err(Box::new), constant: OnceLock::new() }
    }

    /// The provider, as far as one can be named.
    pub fn provider(&self) -> Option<&Arc<Provider>> {
        self.provider.as_ref().ok()
    }

    /// The name of the `ProviderConfig`.
    pub fn name(&self) -> &Arc<str> {
        &self.config.name
    }

    /// What its settings refer to.
    pub fn references(&self) -> &[Reference] {
        &self.config.references
    }

    /// What is wrong with it, whatever its settings refer to.
    pub fn problem(&self) -> Option<Diagnostic> {
        let errors =
            |problems: &Diagnostics| problems.iter().find(|problem| problem.severity == Severity::Error).cloned();
        let own = errors(&self.config.problems).map(|problem| {
            let what = format!("the ProviderConfig `{}` is not valid: {}", self.config.name, problem.summary);
            Diagnostic { reason: Reason::ProviderNotReady, summary: what, ..self.config.located(problem) }
        });
        let provider = || self.provider.as_ref().err().map(|problem| problem.as_ref().clone());
        own.or_else(provider).or_else(|| Some(self.config.located(errors(&self.config.inputs.problems)?)))
    }

    /// The provider with its settings, when they refer to nothing.
    pub fn constant(&self) -> Option<Arc<ProviderUse>> {
        self.settle(&Nothing).ok()
    }

    /// The provider with its settings as `scope` knows them.
    ///
    /// # Errors
    /// When something is wrong with it, and when a setting is not known yet.
    pub fn settle(&self, scope: &dyn Scope) -> Result<Arc<ProviderUse>, Unsettled> {
        if let Some(constant) = self.constant.get() {
            return Ok(constant.clone());
        }
        if let Some(problem) = self.problem() {
            return Err(Unsettled::Broken(vec![problem]));
        }
        let provider = self.provider.clone().map_err(|problem| Unsettled::Broken(vec![*problem]))?;
        let scope = Settings { inputs: &self.config.inputs, others: scope };
        let settings = self.config.config.evaluate(&scope).map_err(|problems| {
            let below = |mut problem: Diagnostic| {
                let mut at = Path::default().name("spec").name("config");
                at.0.extend(problem.path.take().unwrap_or_default().0);
                self.config.located(problem.at(at))
            };
            Unsettled::Broken(problems.into_iter().map(below).collect())
        })?;
        if settings.has_unknown() {
            return Err(Unsettled::Unknown);
        }
        let used = Arc::new(ProviderUse::new(self.config.name.clone(), provider, settings));
        if self.config.references.is_empty() {
            return Ok(self.constant.get_or_init(|| used).clone());
        }
        Ok(used)
    }
}

impl Config {
    /// Says of each Resource what serves it. To be called when all providers are there.
    pub(super) fn provide(&mut self) {
        let asks = |instance: &Arc<Instance>| instance.provider_config.is_some();
        let none = self.providers.is_empty() && self.provider_configs.is_empty();
        if none && !self.instances.values().any(asks) && !self.families.values().any(|family| asks(&family.shared)) {
            return;
        }
        let mut service =
            Service { providers: &self.providers, configs: &self.provider_configs, known: BTreeMap::new() };
        for instance in self.instances.values_mut() {
            service.serve(instance);
        }
        for family in self.families.values_mut() {
            let mut shared = family.shared.clone();
            service.serve(&mut shared);
            if !Arc::ptr_eq(&shared, &family.shared) {
                Arc::make_mut(family).shared = shared;
            }
        }
    }

    /// The provider that serves a type when its Resource names none; `None` also when its settings are not known yet.
    pub fn provider_of(&self, type_name: &str) -> Option<Arc<ProviderUse>> {
        let name = prefix(type_name);
        self.constant_providers().find(|used| *used.name == *name && !BUILT_IN.contains(&type_name))
    }

    /// The settings that are known whatever is planned: by the name of their `ProviderConfig`.
    pub fn constant_providers(&self) -> impl Iterator<Item = Arc<ProviderUse>> + '_ {
        let configs = self.provider_configs.values().cloned();
        let named = |name: &&Arc<str>| !self.provider_configs.contains_key(*name);
        let bare = self.providers.keys().filter(named).map(|name| Arc::new(ProviderConfig::without_settings(name)));
        let constant = configs.chain(bare).filter(|config| config.references.is_empty());
        constant.filter_map(|config| Provided::new(config, &self.providers).constant())
    }
}

/// What settings can read that refer to nothing.
struct Nothing;

impl Scope for Nothing {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Unknown
    }
}

/// Who serves whom, each worked out once.
struct Service<'a> {
    providers: &'a BTreeMap<Arc<str>, Arc<ProviderSpec>>,
    configs: &'a BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    known: BTreeMap<Arc<str>, Option<Arc<Provided>>>,
}

impl Service<'_> {
    fn serve(&mut self, instance: &mut Arc<Instance>) {
        if instance.provider.is_some() {
            return;
        }
        if instance.provider_config.is_none() && BUILT_IN.contains(&&*instance.type_name) {
            return;
        }
        let name = config_name(instance);
        match self.provided(&name) {
            Some(provided) => {
                let own = Arc::make_mut(instance);
                if !provided.config.references.is_empty() {
                    let mut references = own.references.to_vec();
                    references.extend(provided.config.references.iter().cloned());
                    references.sort();
                    own.references = references.into();
                }
                own.provider = Some(provided);
            }
            None if instance.provider_config.is_some() => {
                let what = format!("there is no ProviderConfig `{name}`");
                let at = Path::default().name("spec").name("providerConfigRef").name("name");
                let hint = "create it, or correct the name; the object goes on by itself then";
                let problem = Diagnostic::error(&instance.address, Reason::ProviderNotFound, what).at(at).hint(hint);
                let problem = problem.from_source(instance.source.clone());
                let own = Arc::make_mut(instance);
                // Whoever asks again has the same answer.
                if !own.problems.iter().any(|known| known.reason == Reason::ProviderNotFound) {
                    own.problems.push(problem);
                }
            }
            None => {}
        }
    }

    fn provided(&mut self, name: &Arc<str>) -> Option<Arc<Provided>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let config = self.configs.get(name).cloned();
        let bare = || self.providers.contains_key(name).then(|| Arc::new(ProviderConfig::without_settings(name)));
        let provided = config.or_else(bare).map(|config| Arc::new(Provided::new(config, self.providers)));
        self.known.insert(name.clone(), provided.clone());
        provided
    }
}
