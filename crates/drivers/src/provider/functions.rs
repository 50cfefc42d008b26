//! Functions of providers. Their processes are never configured: a function depends on its arguments alone.

use std::sync::Arc;

use cty::Value;

use super::{Providers, diagnostics};
use model::{DriverError, Provider, ProviderUse, Secrets};
use tfprovider::plugin::{DynamicValue, Function, FunctionError};

/// A call of a function.
pub struct FunctionCall {
    pub provider: Arc<Provider>,
    pub name: String,
    pub function: Function,
    /// Of the types of the parameters, and without marks.
    pub arguments: Vec<Value>,
    /// What no message may show.
    pub secrets: Secrets,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionProblem {
    /// The argument that is wrong, from 0, if it is one of them.
    pub argument: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl Providers {
    /// What a function of a provider that is prepared takes and returns. `None` if it has none of this name.
    ///
    /// # Errors
    /// If the provider cannot be used, or its schema is not valid.
    pub fn function(&self, provider: &Provider, name: &str) -> Result<Option<Function>, DriverError> {
        let served = self.cached_types(provider).transpose()?;
        served.map_or(Ok(None), |served| served.function(name))
    }

    /// Calls a function, whatever the provider is configured with.
    pub(super) async fn call_function(&self, call: &FunctionCall) -> Result<Value, FunctionProblem> {
        let served = self.served_types(&call.provider).await.map_err(|error| call.unusable(error))?;
        let used = ProviderUse::new("functions".into(), Arc::clone(&call.provider), model::Value::Null);
        let (lease, mask) =
            self.sessions.lease(&"".into(), &used, &served).await.map_err(|error| call.unusable(error))?;
        mask.add(call.secrets.clone());
        let arguments = call.encoded().map_err(|error| call.unusable(error))?;
        let response = lease
            .call_function(&call.name, arguments)
            .await
            .map_err(|error| call.unusable(diagnostics::call_error(&error)))?;
        match response.error {
            Some(error) => Err(call.problem(&error)),
            None => response
                .result
                .value(&call.function.result)
                .map_err(|error| call.unusable(diagnostics::decode_error("the result", &error))),
        }
    }
}

impl FunctionCall {
    fn encoded(&self) -> Result<Vec<DynamicValue>, DriverError> {
        let parameters = self.function.parameters.iter().chain(self.function.variadic.iter().cycle());
        let encoded =
            self.arguments.iter().zip(parameters).map(|(value, parameter)| DynamicValue::of(value, &parameter.ty));
        encoded.collect::<Result<_, _>>().map_err(|error| diagnostics::decode_error("an argument", &error))
    }

    /// The problem of a provider that does not work.
    fn unusable(&self, error: DriverError) -> FunctionProblem {
        FunctionProblem { argument: None, message: self.secrets.redact(error.message), hint: error.hint }
    }

    fn problem(&self, error: &FunctionError) -> FunctionProblem {
        let text = error.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = self.secrets.redact(text.trim_end_matches('.').to_owned());
        FunctionProblem { argument: error.argument.and_then(|at| usize::try_from(at).ok()), message, hint: None }
    }
}
