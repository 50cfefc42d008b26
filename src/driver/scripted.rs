//! `scripted`: objects of a world in memory, with answers, delays, failures and crashes played from a script. For
//! tests and scenario files; no user sees it.
//!
//! The arguments: `value` (changed in place), `force` (a change replaces), `name` (a fixed identity), `secret`
//! (sensitive). Computed: `id`, and `computed`, which counts the changes of the object and is unknown before each.
//!
//! As a data source it gives the argument `value` back, with `found`: the `value` of the object whose `name` is given, and
//! `count`, of all objects of the world.
//!
//! The world outlives the driver, as the world outside outlives a controller: a test that simulates a restart makes
//! a new driver over the same world.

mod script;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::model::{
    AttributeType, Diagnostic, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, Path, PlanRequest,
    PlanResponse, Provider, Reason, RecordedObject, Schema, Severity, Value,
};

use super::hook::{HookCall, HookOutcome, HookRunner};
use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataSources, Driver, Expected, FindCreated, LastSeen,
    NotReady, TakeOver, arguments,
};

pub use script::{Answer, Line, Operation, Recovery, Script};
pub use world::{Cut, Effect, EffectKind, World};

/// The prefix of the types served: `scripted` itself and `scripted_...`.
pub const PREFIX: &str = "scripted";

/// The driver. Everything it knows is in its world.
pub struct Scripted {
    world: Arc<World>,
    schema: Arc<Schema>,
    data_schema: Arc<Schema>,
}

impl Scripted {
    /// A driver over a world.
    pub fn new(world: Arc<World>) -> Self {
        let secret = crate::model::Attribute {
            sensitive: true,
            ..arguments::argument(AttributeType::Any, false, "Any value, never shown.")
        };
        let any = |description| arguments::argument(AttributeType::Any, false, description);
        let data = BTreeMap::from([
            (Arc::from("count"), arguments::computed(AttributeType::Number, "How many objects there are.")),
            (Arc::from("found"), arguments::computed(AttributeType::Any, "The value of the object of that name.")),
            (Arc::from("name"), arguments::argument(AttributeType::String, false, "The id of an object to look up.")),
            (Arc::from("secret"), secret.clone()),
            (Arc::from("value"), any("Any value, given back.")),
        ]);
        let data_schema = Arc::new(Schema { version: 0, attributes: data });
        let attributes = BTreeMap::from([
            (Arc::from("computed"), arguments::computed(AttributeType::Number, "Counts the changes of the object.")),
            (Arc::from("force"), arguments::argument(AttributeType::Any, false, "A change of it replaces the object.")),
            (Arc::from("id"), arguments::computed(AttributeType::String, "The id of the object in the world.")),
            (
                Arc::from("name"),
                arguments::argument(AttributeType::String, false, "The id it is to have; a change replaces."),
            ),
            (Arc::from("secret"), secret),
            (Arc::from("value"), any("A change of it is made in place.")),
        ]);
        Self { world, schema: Arc::new(Schema { version: 0, attributes }), data_schema }
    }

    /// Plays the next line of the script: waits where it says so, and gives what is to be answered.
    async fn cue(&self, context: &CallContext, operation: Operation) -> Answer {
        loop {
            match self.world.next_answer(&context.address, operation) {
                Answer::Hold(gate) => self.world.pass(&gate, &context.address).await,
                Answer::Warn(message) => {
                    let warning = Diagnostic::general(Reason::ProviderWarning, message);
                    context.warnings.add(Diagnostic { severity: Severity::Warning, ..warning });
                    return Answer::Ok;
                }
                answer => return answer,
            }
        }
    }

    /// The cut of a crash: tells the world's watchers, and never goes on. Whoever simulates the crash drops the call.
    async fn crash(&self, context: &CallContext, operation: Operation) {
        self.world.cut(&context.address, operation);
        std::future::pending::<()>().await;
    }

    async fn effect(&self, context: &CallContext, request: &ApplyRequest) -> ApplyResponse {
        let operation = match (&request.prior, &request.planned) {
            (None, _) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (Some(_), None) => Operation::Destroy,
        };
        match self.cue(context, operation).await {
            Answer::Fail { kind, message } => failed(None, kind.into(), &message),
            Answer::FailPartly { kind, message } => {
                let done = self.perform(context, operation, request);
                let object = done.object;
                failed(object, kind.into(), &message)
            }
            Answer::LoseAnswer => {
                self.perform(context, operation, request);
                failed(None, ErrorKind::Transient, "the answer is lost")
            }
            Answer::CrashBefore => {
                self.crash(context, operation).await;
                ApplyResponse::default()
            }
            Answer::CrashAfter => {
                self.perform(context, operation, request);
                self.crash(context, operation).await;
                ApplyResponse::default()
            }
            Answer::Unready => {
                let done = self.perform(context, operation, request);
                let ready_by = done.object.as_ref().map(|_| context.deadline);
                ApplyResponse { ready_by, ..done }
            }
            _ => self.perform(context, operation, request),
        }
    }

    /// The change of the world, with no script in its way.
    fn perform(&self, context: &CallContext, operation: Operation, request: &ApplyRequest) -> ApplyResponse {
        let id = request.prior.as_ref().and_then(|prior| prior.id()).map(str::to_owned);
        let outcome = match (operation, id) {
            (Operation::Create, _) => self.world.create(context, &request.config, drawn(&request.private)).map(Some),
            (Operation::Destroy, Some(id)) => {
                self.world.destroy(context, &id);
                Ok(None)
            }
            (_, Some(id)) => self.world.update(context, &id, &request.config).map(Some),
            (_, None) => Err(refusal(ErrorKind::Terminal, "the record has no id")),
        };
        match outcome {
            Ok(value) => ApplyResponse { object: value.map(state), error: None, ..ApplyResponse::default() },
            Err(error) => ApplyResponse { object: None, error: Some(error), ..ApplyResponse::default() },
        }
    }
}

impl Driver for Scripted {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        is_served(type_name).then(|| Arc::clone(&self.schema))
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        Box::pin(async {
            match self.cue(context, Operation::Validate).await {
                Answer::Fail { kind: script::Kind::InvalidConfig, message } => {
                    Ok(vec![arguments::error(context, Path::default(), message)])
                }
                Answer::Fail { kind, message } => Err(refusal(kind.into(), &message)),
                _ => Ok(arguments::check(context, &self.schema, config)),
            }
        })
    }

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async {
            let id = object.id().unwrap_or_default();
            match self.cue(context, Operation::Read).await {
                Answer::Fail { kind, message } => return Err(refusal(kind.into(), &message)),
                Answer::Lose => self.world.lose(id),
                _ => {}
            }
            Ok(self.world.object(id).map(state))
        })
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        Box::pin(async move {
            match self.cue(context, Operation::Plan).await {
                Answer::Fail { kind, message } => Err(refusal(kind.into(), &message)),
                Answer::InvalidPlan => {
                    let response = plan(&request);
                    let planned = response.planned.with("value", "neither configured nor prior".into());
                    Ok(PlanResponse { planned, ..response })
                }
                _ => Ok(plan(&request)),
            }
        })
    }

    fn apply<'a>(&'a self, context: &'a CallContext, request: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        Box::pin(async move { self.effect(context, &request).await })
    }

    fn import<'a>(
        &'a self,
        context: &'a CallContext,
        request: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async move {
            let id = arguments::import_id(context, request)?;
            match self.cue(context, Operation::Import).await {
                Answer::Fail { kind, message } => Err(refusal(kind.into(), &message)),
                _ => Ok(self.world.object(id).map(state)),
            }
        })
    }

    fn wait_ready<'a>(
        &'a self,
        context: &'a CallContext,
        object: &'a RecordedObject,
        tell: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<ObjectState, NotReady>> {
        Box::pin(async move {
            tell("as the script says");
            let id = object.id().unwrap_or_default();
            match self.cue(context, Operation::Ready).await {
                Answer::Fail { kind, message } => return Err(refusal(kind.into(), &message).into()),
                Answer::FailPartly { kind, message } => {
                    let last = self.world.object(id).map_or(LastSeen::Gone, |value| LastSeen::Object(state(value)));
                    return Err(NotReady { error: refusal(kind.into(), &message), last });
                }
                Answer::Lose => self.world.lose(id),
                Answer::CrashBefore | Answer::CrashAfter => self.crash(context, Operation::Ready).await,
                _ => {}
            }
            let gone = || NotReady { error: refusal(ErrorKind::Transient, "it is gone"), last: LastSeen::Gone };
            self.world.ready(id).map(state).ok_or_else(gone)
        })
    }

    fn configuration<'a>(&'a self, _context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        Box::pin(async { Ok(self.world.configuration()) })
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        match self.world.recovery() {
            Recovery::Repeat => CreateRecovery::Repeat(self),
            Recovery::Find => CreateRecovery::Find(self),
            Recovery::Unknown => CreateRecovery::Unknown,
        }
    }

    fn data(&self) -> Option<&dyn DataSources> {
        Some(self)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        Some(self)
    }
}

impl FindCreated for Scripted {
    fn find_created<'a>(
        &'a self,
        context: &'a CallContext,
        _planned: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        Box::pin(async { Ok(self.world.made_by(&context.operation_id).map(state)) })
    }
}

impl TakeOver for Scripted {
    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>> {
        Box::pin(async move {
            match self.cue(context, Operation::Move).await {
                Answer::Fail { kind, message } => Err(refusal(kind.into(), &message)),
                _ if is_served(type_name) => Ok(state(object.value.clone())),
                _ => Err(arguments::no_way(context, type_name)),
            }
        })
    }
}

impl DataSources for Scripted {
    fn data_schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        is_served(type_name).then(|| Arc::clone(&self.data_schema))
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        Box::pin(async {
            let found = arguments::check(context, &self.data_schema, config);
            Ok((found, read(config, Value::Unknown, Value::Unknown)))
        })
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        Box::pin(async {
            match self.cue(context, Operation::Read).await {
                Answer::Fail { kind, message } => return Err(refusal(kind.into(), &message)),
                Answer::CrashBefore | Answer::CrashAfter => self.crash(context, Operation::Read).await,
                _ => {}
            }
            let count = Value::from(i64::try_from(self.world.objects().len()).unwrap_or(i64::MAX));
            let Some(name) = config.get("name").and_then(Value::as_str) else {
                return Ok(read(config, Value::Null, count));
            };
            let found = self.world.object(name).and_then(|object| object.get("value").cloned());
            let missing = || refusal(ErrorKind::Transient, &format!("there is no object `{name}`"));
            Ok(read(config, found.ok_or_else(missing)?, count))
        })
    }
}

fn plan(request: &PlanRequest) -> PlanResponse {
    let argument = |name: &str| match &request.config {
        Value::Unknown => Value::Unknown,
        config => config.get(name).cloned().unwrap_or_default(),
    };
    let secret = match argument("secret") {
        Value::Null => Value::Null,
        secret => secret.into_sensitive(),
    };
    let arguments =
        [("value", argument("value")), ("force", argument("force")), ("name", argument("name")), ("secret", secret)];
    let prior = request.prior.as_ref().map(|prior| &prior.value);
    let differs = |name: &str, value: &Value| {
        prior.is_none_or(|prior| value.has_unknown() || !prior.get(name).is_some_and(|prior| prior.same(value)))
    };
    let changed = arguments.iter().any(|(name, value)| differs(name, value));
    let replaced: Vec<Path> = arguments
        .iter()
        .filter(|(name, value)| prior.is_some() && matches!(*name, "force" | "name") && differs(name, value))
        .map(|(name, _)| Path::default().name(*name))
        .collect();
    let kept = |name: &str, keep: bool| match prior {
        Some(prior) if keep => prior.get(name).cloned().unwrap_or_default(),
        _ => Value::Unknown,
    };
    let computed = [("computed", kept("computed", !changed)), ("id", kept("id", replaced.is_empty()))];
    let planned = Value::map(arguments.into_iter().chain(computed));
    let waits = request.prior.as_ref().is_some_and(|prior| prior.readiness.is_some());
    let until_ready = waits.then(|| planned.with("computed", Value::Unknown));
    let identity = argument("name").as_str().map(|name| Value::map([("name", Value::from(name))]));
    PlanResponse {
        planned,
        until_ready,
        requires_replace: replaced,
        private: Arc::from(request.entropy),
        identity,
        ..PlanResponse::default()
    }
}

fn is_served(type_name: &str) -> bool {
    type_name == PREFIX || type_name.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('_'))
}

/// What a data source gives.
fn read(config: &Value, found: Value, count: Value) -> Value {
    let given = ["name", "secret", "value"].map(|name| (name, config.get(name).cloned().unwrap_or_default()));
    Value::map(given.into_iter().chain([("found", found), ("count", count)]))
}

/// The id that was drawn with the plan, for objects without a name.
fn drawn(private: &[u8]) -> String {
    let number = private.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("obj-{number:012x}")
}

fn state(value: Value) -> ObjectState {
    let name = value.get("name").and_then(Value::as_str);
    let identity = name.map(|name| Value::map([("name", Value::from(name))]));
    ObjectState { value, private: Arc::from([]), identity }
}

/// Hooks of scripted objects print their command, and end as the script says.
impl HookRunner for Scripted {
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, HookOutcome> {
        Box::pin(async move {
            let words: Vec<&str> = match call.hook.definition.unmarked() {
                Value::List(items) => items.iter().map(|item| item.as_str().unwrap_or("...")).collect(),
                _ => Vec::new(),
            };
            let output = words.join(" ");
            match self.cue(&call.context, Operation::Hook).await {
                Answer::Fail { message, .. } => HookOutcome { failure: Some(message), output },
                Answer::CrashBefore | Answer::CrashAfter => {
                    self.crash(&call.context, Operation::Hook).await;
                    HookOutcome::default()
                }
                _ => HookOutcome { failure: None, output },
            }
        })
    }
}

fn failed(object: Option<ObjectState>, kind: ErrorKind, message: &str) -> ApplyResponse {
    ApplyResponse { object, error: Some(refusal(kind, message)), ..ApplyResponse::default() }
}

fn refusal(kind: ErrorKind, message: &str) -> DriverError {
    DriverError { kind, message: message.to_owned(), path: None, hint: None }
}

#[cfg(test)]
mod tests;
