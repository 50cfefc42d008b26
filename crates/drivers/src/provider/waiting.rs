//! Calls of providers by code that does not wait for futures, such as the evaluation of expressions.
//!
//! They run in a thread with provider processes of their own. The thread starts with the first call, so a configuration
//! without functions and ephemeral resources costs nothing.

use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use cty::Value;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::ephemeral::OpenedResource;
use super::{
    ConfigurationMode, EphemeralRequest, FunctionCall, FunctionProblem, ProviderOptions, Providers, diagnostics,
};
use model::DriverError;
use process::{Clock, lock};

/// Calls functions of providers, and opens ephemeral resources. These are closed, and its processes end, with it.
pub struct WaitingCalls {
    options: ProviderOptions,
    clock: Arc<dyn Clock>,
    worker: Mutex<Option<Worker>>,
}

struct Worker {
    requests: UnboundedSender<Request>,
    thread: JoinHandle<()>,
}

enum Request {
    Function(FunctionCall, mpsc::Sender<Result<Value, FunctionProblem>>),
    Open(EphemeralRequest, mpsc::Sender<Result<Option<Value>, DriverError>>),
}

impl Providers {
    /// Calls the same providers in a thread of their own.
    pub fn waiting_calls(&self) -> WaitingCalls {
        let (options, clock) = (self.sessions.options().clone(), Arc::clone(&self.clock));
        WaitingCalls { options, clock, worker: Mutex::default() }
    }
}

impl WaitingCalls {
    /// Calls a function, and waits for its result. The time limit of provider calls holds.
    ///
    /// # Errors
    /// If the function refuses its arguments, or the provider does not work.
    pub fn call(&self, call: FunctionCall) -> Result<Value, FunctionProblem> {
        self.ask(|answer| Request::Function(call, answer)).unwrap_or_else(|| {
            let message = "the provider's functions cannot be called: their thread has ended".to_owned();
            Err(FunctionProblem { argument: None, message, hint: None })
        })
    }

    /// Has an ephemeral resource checked, opens it, and waits for its value. It is kept open. `None`: providers are only asked
    /// to check configurations.
    ///
    /// # Errors
    /// If the provider refuses the configuration, or does not work.
    pub fn open(&self, request: EphemeralRequest) -> Result<Option<Value>, DriverError> {
        self.ask(|answer| Request::Open(request, answer)).unwrap_or_else(|| {
            Err(diagnostics::protocol_error("ephemeral resources cannot be opened: their thread has ended"))
        })
    }

    /// The answer of the thread. `None` if it has ended, or the system has none.
    fn ask<A>(&self, request: impl FnOnce(mpsc::Sender<A>) -> Request) -> Option<A> {
        let (answer, answered) = mpsc::channel();
        self.requests()?.send(request(answer)).ok()?;
        answered.recv().ok()
    }

    fn requests(&self) -> Option<UnboundedSender<Request>> {
        let mut worker = lock(&self.worker);
        if worker.is_none() {
            let (requests, received) = unbounded_channel();
            let (options, clock) = (self.options.clone(), Arc::clone(&self.clock));
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            let thread = std::thread::Builder::new().name("providers".to_owned());
            let thread = thread.spawn(move || runtime.block_on(serve(options, clock, received))).ok()?;
            *worker = Some(Worker { requests, thread });
        }
        worker.as_ref().map(|worker| worker.requests.clone())
    }
}

impl WaitingCalls {
    /// Closes what is open, and ends the processes. Later calls start others.
    pub fn close(&self) {
        if let Some(Worker { requests, thread }) = lock(&self.worker).take() {
            drop(requests);
            // A panic of the thread was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for WaitingCalls {
    fn drop(&mut self) {
        self.close();
    }
}

/// Answers requests, one after the other, and renews what is open, until no caller is left.
async fn serve(options: ProviderOptions, clock: Arc<dyn Clock>, mut requests: UnboundedReceiver<Request>) {
    let unconfigured = ProviderOptions { configuration: ConfigurationMode::Ignore, ..options.clone() };
    let functions = Providers::new(unconfigured, Arc::clone(&clock));
    let configured = Providers::new(options, Arc::clone(&clock));
    let mut opened: Vec<OpenedResource> = Vec::new();
    loop {
        let due_in = opened.iter().filter_map(|resource| resource.due_in(&*clock)).min();
        let request = tokio::select! {
            request = requests.recv() => request,
            () = tokio::time::sleep(due_in.unwrap_or_default()), if due_in.is_some() => {
                for resource in &mut opened {
                    resource.renew_if_due(&*clock).await;
                }
                continue;
            }
        };
        // The callers wait for their answers.
        match request {
            None => break,
            Some(Request::Function(call, answer)) => _ = answer.send(functions.call_function(&call).await),
            Some(Request::Open(request, answer)) => {
                let result = configured.open(&request).await.map(|found| {
                    found.map(|(value, resource)| {
                        opened.push(resource);
                        value
                    })
                });
                let _ = answer.send(result);
            }
        }
    }
    // The last one may have been opened with the others.
    while let Some(resource) = opened.pop() {
        resource.close().await;
    }
    tokio::join!(functions.close(), configured.close());
}
