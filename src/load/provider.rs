//! Providers and their settings as they were given, and what a configuration of both comes to.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::expression::{Scope, Variable};
use super::{Inputs, Reference, Template};
use crate::model::{Address, Diagnostic, Diagnostics, Path, Provider, ProviderUse, Reason, Severity, Source, Value};

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
    pub(super) fn without_settings(name: &Arc<str>) -> Self {
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
