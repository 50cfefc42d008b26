//! `Provider` and `ProviderConfig` documents, and the provider configuration that results from both.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::expression::{Scope, Variable};
use super::{Inputs, Lines, Reference, Template};
use model::{Address, Diagnostic, Diagnostics, Path, PodRunner, Provider, ProviderUse, Reason, Source, Value, errors};

/// One `Provider` document.
#[derive(Clone, Debug)]
pub struct ProviderSpec {
    pub provider: Arc<Provider>,
    /// `spec.runner`.
    pub runner: Option<Runner>,
    /// Problems of the document. A provider with an error cannot be used.
    pub problems: Diagnostics,
    pub source: Option<Source>,
}

/// Where the processes of a provider run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    InProcess,
    Pod(Arc<PodRunner>),
}

/// One `ProviderConfig` document.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    pub name: Arc<str>,
    pub provider: Arc<str>,
    /// `spec.config`.
    pub config: Template,
    /// What of it is ephemeral, and never recorded.
    pub ephemeral: Arc<[Path]>,
    /// `spec.inputs`.
    pub inputs: Inputs,
    /// The ServiceAccount that reads the inputs and creates Pods; empty on files.
    pub service_account: Arc<str>,
    /// `spec.runner`.
    pub runner: Option<Runner>,
    /// The references in `spec.config`.
    pub references: Arc<[Reference]>,
    pub problems: Diagnostics,
    pub source: Option<Source>,
    /// The lines of the document, if it was read from a file.
    pub lines: Lines,
}

/// The provider and the provider configuration of a Resource.
#[derive(Debug)]
pub struct ProviderBinding {
    config: Arc<ProviderConfig>,
    provider: Result<Arc<Provider>, Box<Diagnostic>>,
    runner: Option<Arc<PodRunner>>,
    /// Where the Provider is written, or else the `ProviderConfig`.
    place: Option<Source>,
    /// A configuration without references is evaluated once.
    constant: OnceLock<Arc<ProviderUse>>,
}

#[derive(Debug)]
pub enum ConfigurationError {
    /// The provider or its configuration is invalid.
    Invalid(Diagnostics),
    /// The configuration depends on values that are known only after an apply.
    Unknown,
}

/// The scope of the expressions in `spec.config`.
struct ProviderConfigScope<'a> {
    inputs: &'a Inputs,
    others: &'a dyn Scope,
}

impl Scope for ProviderConfigScope<'_> {
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
    /// The configuration of a provider that has no `ProviderConfig`.
    pub(crate) fn without_configuration(name: &Arc<str>) -> Self {
        Self {
            name: name.clone(),
            provider: name.clone(),
            config: Template::literal(Value::map::<Arc<str>>([])),
            ephemeral: Arc::default(),
            inputs: Inputs::default(),
            service_account: "".into(),
            runner: None,
            references: Arc::default(),
            problems: Vec::new(),
            source: None,
            lines: Lines::default(),
        }
    }

    /// Turns a problem of the `ProviderConfig` into a problem that a Resource can report.
    fn at_provider_config(&self, mut problem: Diagnostic) -> Diagnostic {
        // A problem at a place of its own, in another language, needs no path.
        if problem.source.is_some() {
            return Diagnostic { path: None, ..problem };
        }
        let field = problem.path.take().unwrap_or_default();
        problem.source = problem.source.or_else(|| self.lines.source_of(&field, self.source.as_ref()));
        let mut at = Path::default().name("providerConfig").name(self.name.clone());
        at.0.extend(field.0);
        problem.path = Some(at);
        problem
    }
}

impl ProviderBinding {
    /// Binds a `ProviderConfig` to its `Provider`.
    pub fn new(config: Arc<ProviderConfig>, providers: &BTreeMap<Arc<str>, Arc<ProviderSpec>>) -> Self {
        let provider = match providers.get(&config.provider) {
            Some(spec) => match errors(&spec.problems).next() {
                None => Ok(spec.provider.clone()),
                Some(problem) => {
                    let what = format!("the Provider `{}` is not valid: {}", config.provider, problem.summary);
                    let source = problem.source.clone().or_else(|| spec.source.clone());
                    Err(Diagnostic::general(Reason::ProviderNotReady, what).from_source(source))
                }
            },
            None => {
                let what = format!("there is no Provider `{}`", config.provider);
                let hint = "create a Provider with that name, or correct `spec.provider.name`";
                let at = Path::default().name("spec").name("provider").name("name");
                Err(config.at_provider_config(Diagnostic::general(Reason::ProviderNotFound, what).at(at).hint(hint)))
            }
        };
        let runner = config.runner.as_ref().or_else(|| providers.get(&config.provider)?.runner.as_ref());
        let runner = match runner {
            Some(Runner::Pod(runner)) => {
                let creator = config.service_account.clone();
                Some(Arc::new(PodRunner { creator, ..PodRunner::clone(runner) }))
            }
            Some(Runner::InProcess) | None => None,
        };
        let spec = providers.get(&config.provider);
        let place = spec.and_then(|spec| spec.source.clone()).or_else(|| config.source.clone());
        Self { config, provider: provider.map_err(Box::new), runner, place, constant: OnceLock::new() }
    }

    /// The place to name in an error of the provider.
    pub fn place(&self) -> Option<&Source> {
        self.place.as_ref()
    }

    /// Returns the provider. `None`: it does not exist or is invalid.
    pub fn provider(&self) -> Option<&Arc<Provider>> {
        self.provider.as_ref().ok()
    }

    pub fn name(&self) -> &Arc<str> {
        &self.config.name
    }

    /// Returns the references in the provider configuration.
    pub fn references(&self) -> &[Reference] {
        &self.config.references
    }

    /// Returns the first error that does not depend on the values of references.
    pub fn problem(&self) -> Option<Diagnostic> {
        if let Some(problem) = errors(&self.config.problems).next() {
            let summary = format!("the ProviderConfig `{}` is not valid: {}", self.config.name, problem.summary);
            let problem = self.config.at_provider_config(problem.clone());
            return Some(Diagnostic { reason: Reason::ProviderNotReady, summary, ..problem });
        }
        if let Err(problem) = &self.provider {
            return Some(problem.as_ref().clone());
        }
        let problem = errors(&self.config.inputs.problems).next()?;
        Some(self.config.at_provider_config(problem.clone()))
    }

    /// Returns the configured provider if its configuration has no references.
    pub fn constant(&self) -> Option<Arc<ProviderUse>> {
        self.configure(&EmptyScope).ok()
    }

    /// Evaluates the provider configuration in `scope`.
    ///
    /// # Errors
    /// The provider or its configuration is invalid, or a value is not known yet.
    pub fn configure(&self, scope: &dyn Scope) -> Result<Arc<ProviderUse>, ConfigurationError> {
        if let Some(constant) = self.constant.get() {
            return Ok(constant.clone());
        }
        if let Some(problem) = self.problem() {
            return Err(ConfigurationError::Invalid(vec![problem]));
        }
        let provider = self.provider.clone().map_err(|problem| ConfigurationError::Invalid(vec![*problem]))?;
        let scope = ProviderConfigScope { inputs: &self.config.inputs, others: scope };
        let configuration = self.config.config.evaluate(&scope).map_err(|problems| {
            let problems = problems.into_iter().map(|mut problem| {
                let mut at = Path::default().name("spec").name("config");
                at.0.extend(problem.path.take().unwrap_or_default().0);
                self.config.at_provider_config(problem.at(at))
            });
            ConfigurationError::Invalid(problems.collect())
        })?;
        if configuration.has_unknown() {
            return Err(ConfigurationError::Unknown);
        }
        let name = self.config.name.clone();
        let used = ProviderUse::with_ephemeral(name, provider, configuration, &self.config.ephemeral);
        let used = Arc::new(used.with_runner(self.runner.clone()));
        if self.config.references.is_empty() {
            return Ok(self.constant.get_or_init(|| used).clone());
        }
        Ok(used)
    }
}

/// The scope of expressions without references.
struct EmptyScope;

impl Scope for EmptyScope {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Unknown
    }
}
