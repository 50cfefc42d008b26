//! Functions of providers, for code that does not wait, such as the evaluation of expressions.
//!
//! They run in a thread with provider processes of their own. These are never configured: a function depends on its
//! arguments alone. The thread starts with the first call, so a configuration without functions costs nothing.

use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use cty::Value;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{ConfigurationMode, ProviderOptions, Providers, diagnostics};
use model::{DriverError, Provider, ProviderUse, Secrets};
use process::{Clock, lock};
use tfprovider::plugin::{DynamicValue, Function, FunctionError};

/// Calls functions of providers. Its processes end with it.
pub struct ProviderFunctions {
    options: ProviderOptions,
    clock: Arc<dyn Clock>,
    worker: Mutex<Option<Worker>>,
}

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

type Answer = Result<Value, FunctionProblem>;

struct Worker {
    calls: UnboundedSender<(FunctionCall, mpsc::Sender<Answer>)>,
    thread: JoinHandle<()>,
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

    /// Calls functions of the same providers.
    pub fn functions(&self) -> ProviderFunctions {
        let options = ProviderOptions { configuration: ConfigurationMode::Ignore, ..self.sessions.options().clone() };
        ProviderFunctions { options, clock: Arc::clone(&self.clock), worker: Mutex::default() }
    }

    async fn call_function(&self, call: &FunctionCall) -> Answer {
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

impl ProviderFunctions {
    /// Calls a function, and waits for its result. The time limit of provider calls holds.
    ///
    /// # Errors
    /// If the function refuses its arguments, or the provider does not work.
    pub fn call(&self, call: FunctionCall) -> Result<Value, FunctionProblem> {
        let (answer, answered) = mpsc::channel();
        self.calls()
            .and_then(|calls| calls.send((call, answer)).ok())
            .and_then(|()| answered.recv().ok())
            .unwrap_or_else(|| {
                Err(FunctionProblem {
                    argument: None,
                    message: "the provider's functions cannot be called: their thread has ended".to_owned(),
                    hint: None,
                })
            })
    }

    /// Where calls are sent to. `None` if the system has no thread for them.
    fn calls(&self) -> Option<UnboundedSender<(FunctionCall, mpsc::Sender<Answer>)>> {
        let mut worker = lock(&self.worker);
        if worker.is_none() {
            let (calls, received) = unbounded_channel();
            let (options, clock) = (self.options.clone(), Arc::clone(&self.clock));
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            let thread = std::thread::Builder::new().name("functions".to_owned());
            let thread = thread.spawn(move || runtime.block_on(serve(options, clock, received))).ok()?;
            *worker = Some(Worker { calls, thread });
        }
        worker.as_ref().map(|worker| worker.calls.clone())
    }
}

impl Drop for ProviderFunctions {
    fn drop(&mut self) {
        if let Some(Worker { calls, thread }) = lock(&self.worker).take() {
            drop(calls);
            // A panic of the thread was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Answers calls, one after the other, until no caller is left.
async fn serve(
    options: ProviderOptions,
    clock: Arc<dyn Clock>,
    mut calls: UnboundedReceiver<(FunctionCall, mpsc::Sender<Answer>)>,
) {
    let providers = Providers::new(options, clock);
    while let Some((call, answer)) = calls.recv().await {
        // The caller waits for it.
        let _ = answer.send(providers.call_function(&call).await);
    }
    providers.close().await;
}
