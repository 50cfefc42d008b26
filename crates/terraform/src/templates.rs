//! The expressions of a configuration, as the engine evaluates them.

use std::sync::Arc;

use configuration::{BlockKeys, InstanceAddress, KeyKind, ModulePath, ProviderAddress, ResourceAddress};
use engine::load::expression::{Foreign, Variable};
use engine::load::{Scope, Template};
use model::{Address, Diagnostic, Diagnostics, Name, Path, Reason, Severity, Source, Stem, Value};

use crate::program::{Shared, State, Use};
use crate::{address, problem, providers, value};

/// The configuration of an object.
#[derive(Debug)]
pub struct Body {
    pub shared: Arc<Shared>,
    pub instance: InstanceAddress,
    pub uses: Arc<[Use]>,
    /// The place of the block.
    pub place: Option<Source>,
}

/// The postconditions of an object.
#[derive(Debug)]
pub struct Postconditions(pub Body);

/// The instances of a block or call.
#[derive(Debug)]
pub struct Keys {
    pub shared: Arc<Shared>,
    pub of: Repeated,
    pub kind: KeyKind,
    pub uses: Arc<[Use]>,
    /// The place of the expression.
    pub place: Option<Source>,
}

/// What is repeated.
#[derive(Clone, Debug)]
pub enum Repeated {
    Block(ResourceAddress),
    Call(ModulePath, Arc<str>),
}

/// The configuration of a provider.
#[derive(Debug)]
pub struct ProviderBody {
    pub shared: Arc<Shared>,
    pub provider: ProviderAddress,
    pub uses: Arc<[Use]>,
    /// The place of the block.
    pub place: Option<Source>,
}

impl Foreign for ProviderBody {
    fn source(&self) -> String {
        format!(
            "provider {} {}",
            providers::config_name(&self.shared.origin.name, &self.provider),
            self.shared.origin.generation
        )
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let state = self.shared.observe(&self.uses, scope);
        match state.evaluation.provider(&self.provider) {
            Ok(Some(config)) if !config.failed => Ok(value::to_config(&config.config)),
            _ => {
                let what = "its configuration has an error, which is reported at its place";
                let problem = Diagnostic::general(Reason::DependencyNotReady, what).from_source(self.place.clone());
                Err(vec![Diagnostic { severity: Severity::Warning, ..problem }])
            }
        }
    }
}

/// An attribute of an object, or a whole one.
#[derive(Debug)]
pub struct Attribute {
    pub of: Address,
    pub path: Path,
}

impl Body {
    fn own(&self) -> Address {
        address::address(&self.shared.origin.name, &self.instance)
    }

    /// Why the object has no configuration. `is_run`: while steps run, when problems of no object are not reported any more.
    fn failure(&self, state: &State, is_run: bool) -> Diagnostics {
        let address = self.own();
        let mut problems = state.evaluation.problems_of(&self.instance);
        if problems.errors.is_empty() && is_run {
            problems = state.evaluation.ephemeral_problems();
        }
        match problems.errors.is_empty() {
            true => vec![problem::consequence(&address, self.place.clone())],
            false => problem::of_resource(&problems, &self.shared, &address),
        }
    }
}

impl Foreign for Body {
    fn source(&self) -> String {
        format!("{} {}", self.own(), self.shared.origin.generation)
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let state = self.shared.observe(&self.uses, scope);
        let mut found = state.evaluation.configured(&self.instance);
        if scope.is_final() && found.as_ref().is_some_and(|object| !object.config.is_wholly_known()) {
            state.evaluation.act();
            found = state.evaluation.configured(&self.instance);
        }
        match found {
            Some(object) if !object.failed => Ok(value::to_config(&object.config)),
            _ => Err(self.failure(&state, scope.is_final())),
        }
    }
}

impl Foreign for Postconditions {
    fn source(&self) -> String {
        format!("postconditions of {}", self.0.source())
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let body = &self.0;
        let object = scope.variable(Variable::Itself).unwrap_or(Value::Unknown);
        let mut state = body.shared.observe(&body.uses, scope);
        let is_known = !object.has_unknown();
        state.see(&body.instance, &body.own(), object);
        let problems = state.evaluation.postconditions_of(&body.instance);
        if problems.errors.is_empty() {
            return Ok(if is_known { Value::Bool(true) } else { Value::Unknown });
        }
        Err(problem::of_resource(&problems, &body.shared, &body.own()))
    }
}

impl Foreign for Keys {
    fn source(&self) -> String {
        format!("instances of {} {}", self.of.stem(&self.shared.origin.name), self.shared.origin.generation)
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let state = self.shared.observe(&self.uses, scope);
        let keys = match &self.of {
            // What is to be imported must never be created instead.
            Repeated::Block(block) if state.imports_are_open(block) => Some(BlockKeys::Failed),
            Repeated::Block(block) => state.evaluation.keys_of(block),
            Repeated::Call(module, call) => state.evaluation.keys_of_call(module, call),
        };
        match keys {
            Some(BlockKeys::Known(keys)) => Ok(keys_value(self.kind, &keys)),
            Some(BlockKeys::Unknown) => Ok(Value::Unknown),
            Some(BlockKeys::Failed) | None => {
                Err(vec![problem::consequence(&self.of.stem(&self.shared.origin.name).single(), self.place.clone())])
            }
        }
    }
}

impl Repeated {
    /// `name` is that of the configuration.
    pub fn stem(&self, name: &Name) -> Stem {
        match self {
            Self::Block(block) => address::stem(name, block),
            Self::Call(module, call) => address::call(name, module, call),
        }
    }
}

/// The value of `count`, `for_each` or `enabled`, of which only the keys matter.
pub fn keys_value(kind: KeyKind, keys: &[Option<configuration::Key>]) -> Value {
    match kind {
        KeyKind::Once | KeyKind::Enabled => Value::Bool(!keys.is_empty()),
        KeyKind::Count => Value::from(i64::try_from(keys.len()).unwrap_or(i64::MAX)),
        KeyKind::ForEach => Value::map(keys.iter().filter_map(|key| match key {
            Some(configuration::Key::Text(text)) => Some((text.clone(), Value::Bool(true))),
            _ => None,
        })),
    }
}

impl Foreign for Attribute {
    fn source(&self) -> String {
        format!("{}.{}", self.of, self.path)
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let object = scope.object(&self.of.as_reference()).unwrap_or(Value::Unknown);
        Ok(object.at(&self.path).unwrap_or(Value::Null))
    }
}

/// A template of an expression.
pub fn template(expression: impl Foreign + 'static) -> Template {
    Template::foreign(Arc::new(expression))
}
