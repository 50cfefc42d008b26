//! `scripted`: a driver for tests and scenario files that manages objects in memory and plays responses, delays,
//! failures and crashes from a script.
//!
//! Arguments: `value` (changed in place), `force` (a change replaces), `name` (a fixed identity) and `secret`
//! (sensitive). Computed: `id`, and `computed`, which counts the changes of the object and is unknown before each. As a
//! data source, it returns `value`, the `value` of the object `name` as `found`, and the number of objects as `count`.
//!
//! The world outlives the driver: a test simulates a restart with a new driver over the same world.

mod script;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use model::{
    AttributeType, Diagnostic, Diagnostics, DriverError, ErrorKind, Health, ImportRequest, ObjectState, Path,
    PlanRequest, PlanResponse, Provider, Reason, RecordedObject, Schema, Severity, Value,
};

use drivers::hook::{HookCall, HookOutcome, HookRunner};
use drivers::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver, FindCreated, HealthReport,
    Observation, ReadinessError, TakeOver, arguments,
};

pub use script::{Kind, Operation, Recovery, Script, ScriptLine, ScriptedOutcome};
pub use world::{Crash, Effect, EffectKind, World};

/// The prefix of the served types: `scripted` itself and `scripted_...`.
pub const PREFIX: &str = "scripted";

/// The driver. Its whole state is in the world.
pub struct Scripted {
    world: Arc<World>,
    schema: Arc<Schema>,
    data_schema: Arc<Schema>,
}

impl Scripted {
    pub fn new(world: Arc<World>) -> Self {
        let secret = model::Attribute {
            sensitive: true,
            ..arguments::argument(AttributeType::Any, false, "Any value; never shown.")
        };
        let data = BTreeMap::from([
            (Arc::from("count"), arguments::computed(AttributeType::Number, "The number of objects.")),
            (Arc::from("found"), arguments::computed(AttributeType::Any, "The value of the object `name`.")),
            (Arc::from("name"), arguments::argument(AttributeType::String, false, "The ID of an object to look up.")),
            (Arc::from("secret"), secret.clone()),
            (Arc::from("value"), arguments::argument(AttributeType::Any, false, "Any value; returned unchanged.")),
        ]);
        let data_schema = Arc::new(Schema { attributes: data, ..Schema::default() });
        let attributes = BTreeMap::from([
            (Arc::from("computed"), arguments::computed(AttributeType::Number, "Counts the changes of the object.")),
            (
                Arc::from("force"),
                arguments::argument(AttributeType::Any, false, "Any value; a change replaces the object."),
            ),
            (Arc::from("id"), arguments::computed(AttributeType::String, "The ID of the object.")),
            (
                Arc::from("name"),
                arguments::argument(AttributeType::String, false, "The ID of the object; a change replaces it."),
            ),
            (Arc::from("secret"), secret),
            (Arc::from("value"), arguments::argument(AttributeType::Any, false, "Any value; updated in place.")),
        ]);
        Self { world, schema: Arc::new(Schema { attributes, ..Schema::default() }), data_schema }
    }

    /// Plays the script up to the next outcome, and waits at its gates.
    async fn next_outcome(&self, context: &CallContext, operation: Operation) -> ScriptedOutcome {
        loop {
            match self.world.next_outcome(&context.address, operation) {
                ScriptedOutcome::Hold(gate) => self.world.wait_at_gate(&gate, &context.address).await,
                ScriptedOutcome::Warn(message) => {
                    let warning = Diagnostic::general(Reason::ProviderWarning, message);
                    context.warnings.add(Diagnostic { severity: Severity::Warning, ..warning });
                    return ScriptedOutcome::Ok;
                }
                answer => return answer,
            }
        }
    }

    /// Simulates a crash: notifies the waiters of the world and never returns. The test drops the call.
    async fn crash(&self, context: &CallContext, operation: Operation) {
        self.world.crash(&context.address, operation);
        std::future::pending::<()>().await;
    }

    async fn play_apply(&self, context: &CallContext, request: &ApplyRequest) -> ApplyResponse {
        let operation = match (&request.prior, &request.planned) {
            (None, _) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (Some(_), None) => Operation::Destroy,
        };
        match self.next_outcome(context, operation).await {
            ScriptedOutcome::Fail { kind, message } => failed(None, kind.into(), &message),
            ScriptedOutcome::FailPartly { kind, message } => {
                let done = self.perform(context, operation, request);
                let object = done.object;
                failed(object, kind.into(), &message)
            }
            ScriptedOutcome::LoseAnswer => {
                self.perform(context, operation, request);
                failed(None, ErrorKind::Transient, "the response is lost")
            }
            ScriptedOutcome::CrashBefore => {
                self.crash(context, operation).await;
                ApplyResponse::default()
            }
            ScriptedOutcome::CrashAfter => {
                self.perform(context, operation, request);
                self.crash(context, operation).await;
                ApplyResponse::default()
            }
            ScriptedOutcome::Unready => {
                let done = self.perform(context, operation, request);
                let ready_by = done.object.as_ref().map(|_| context.deadline);
                ApplyResponse { ready_by, ..done }
            }
            _ => self.perform(context, operation, request),
        }
    }

    /// Changes the world.
    fn perform(&self, context: &CallContext, operation: Operation, request: &ApplyRequest) -> ApplyResponse {
        let id = request.prior.as_ref().and_then(|prior| prior.id()).map(str::to_owned);
        let outcome = match (operation, id) {
            (Operation::Create, _) => {
                self.world.create(context, &request.config, generated_id(&request.private)).map(Some)
            }
            (Operation::Destroy, Some(id)) => {
                self.world.destroy(context, &id);
                Ok(None)
            }
            (_, Some(id)) => self.world.update(context, &id, &request.config).map(Some),
            (_, None) => Err(driver_error(ErrorKind::Terminal, "the record has no id")),
        };
        match outcome {
            Ok(value) => ApplyResponse { object: value.map(state), error: None, ..ApplyResponse::default() },
            Err(error) => ApplyResponse { object: None, error: Some(error), ..ApplyResponse::default() },
        }
    }
}

#[async_trait]
impl Driver for Scripted {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        is_served(type_name).then(|| Arc::clone(&self.schema))
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        match self.next_outcome(context, Operation::Validate).await {
            ScriptedOutcome::Fail { kind: Kind::InvalidConfig, message } => {
                Ok(vec![arguments::error(context, Path::default(), message)])
            }
            ScriptedOutcome::Fail { kind, message } => Err(driver_error(kind.into(), &message)),
            _ => Ok(arguments::check(context, &self.schema, config)),
        }
    }

    async fn read(&self, context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        let id = object.id().unwrap_or_default();
        match self.next_outcome(context, Operation::Read).await {
            ScriptedOutcome::Fail { kind, message } => return Err(driver_error(kind.into(), &message)),
            ScriptedOutcome::Lose => self.world.remove(id),
            _ => {}
        }
        Ok(self.world.object(id).map(state))
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        match self.next_outcome(context, Operation::Plan).await {
            ScriptedOutcome::Fail { kind, message } => Err(driver_error(kind.into(), &message)),
            ScriptedOutcome::InvalidPlan => {
                let response = plan(&request);
                let planned = response.planned.with("value", "neither configured nor prior".into());
                Ok(PlanResponse { planned, ..response })
            }
            _ => Ok(plan(&request)),
        }
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        self.play_apply(context, &request).await
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        let id = arguments::import_id(context, request)?;
        match self.next_outcome(context, Operation::Import).await {
            ScriptedOutcome::Fail { kind, message } => Err(driver_error(kind.into(), &message)),
            _ => Ok(self.world.object(id).map(state)),
        }
    }

    async fn wait_ready(
        &self,
        context: &CallContext,
        object: &RecordedObject,
        report: &HealthReport<'_>,
    ) -> Result<ObjectState, ReadinessError> {
        report(&Health::InProgress("as the script says".to_owned()));
        let id = object.id().unwrap_or_default();
        match self.next_outcome(context, Operation::Ready).await {
            ScriptedOutcome::Fail { kind, message } => return Err(driver_error(kind.into(), &message).into()),
            ScriptedOutcome::FailPartly { kind, message } => {
                let last =
                    self.world.object(id).map_or(Observation::Missing, |value| Observation::Object(state(value)));
                return Err(ReadinessError { error: driver_error(kind.into(), &message), last });
            }
            ScriptedOutcome::Lose => self.world.remove(id),
            ScriptedOutcome::CrashBefore | ScriptedOutcome::CrashAfter => {
                self.crash(context, Operation::Ready).await;
            }
            _ => {}
        }
        self.world.ready(id).map(state).ok_or_else(|| ReadinessError {
            error: driver_error(ErrorKind::Transient, "the object no longer exists"),
            last: Observation::Missing,
        })
    }

    async fn configuration(&self, _context: &CallContext) -> Result<Arc<str>, DriverError> {
        Ok(self.world.configuration())
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

#[async_trait]
impl FindCreated for Scripted {
    async fn find_created(&self, context: &CallContext, _planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        Ok(self.world.created_by(&context.operation_id).map(state))
    }
}

#[async_trait]
impl TakeOver for Scripted {
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError> {
        match self.next_outcome(context, Operation::Move).await {
            ScriptedOutcome::Fail { kind, message } => Err(driver_error(kind.into(), &message)),
            _ if is_served(type_name) => Ok(state(object.value.clone())),
            _ => Err(arguments::unsupported_move(context, type_name)),
        }
    }
}

#[async_trait]
impl DataSources for Scripted {
    fn data_schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        is_served(type_name).then(|| Arc::clone(&self.data_schema))
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        let diagnostics = arguments::check(context, &self.data_schema, config);
        Ok((diagnostics, data_value(config, Value::Unknown, Value::Unknown)))
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        match self.next_outcome(context, Operation::Read).await {
            ScriptedOutcome::Fail { kind, message } => return Err(driver_error(kind.into(), &message)),
            ScriptedOutcome::CrashBefore | ScriptedOutcome::CrashAfter => {
                self.crash(context, Operation::Read).await;
            }
            _ => {}
        }
        let count = Value::from(i64::try_from(self.world.objects().len()).unwrap_or(i64::MAX));
        let Some(name) = config.get("name").and_then(Value::as_str) else {
            return Ok(data_value(config, Value::Null, count));
        };
        let value = self
            .world
            .object(name)
            .and_then(|object| object.get("value").cloned())
            .ok_or_else(|| driver_error(ErrorKind::Transient, &format!("object `{name}` does not exist")))?;
        Ok(data_value(config, value, count))
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
        prior.is_none_or(|prior| {
            value.has_unknown() || !prior.get(name).is_some_and(|prior| prior.equals_unmarked(value))
        })
    };
    let changed = arguments.iter().any(|(name, value)| differs(name, value));
    let replaced: Vec<Path> = arguments
        .iter()
        .filter(|(name, value)| prior.is_some() && matches!(*name, "force" | "name") && differs(name, value))
        .map(|(name, _)| Path::default().name(*name))
        .collect();
    let computed = [("computed", changed), ("id", !replaced.is_empty())].map(|(name, is_new)| match prior {
        Some(prior) if !is_new => (name, prior.get(name).cloned().unwrap_or_default()),
        _ => (name, Value::Unknown),
    });
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

fn data_value(config: &Value, object: Value, count: Value) -> Value {
    let given = ["name", "secret", "value"].map(|name| (name, config.get(name).cloned().unwrap_or_default()));
    Value::map(given.into_iter().chain([("found", object), ("count", count)]))
}

/// The generated ID from the plan, for objects without a name.
fn generated_id(private: &[u8]) -> String {
    let number = private.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("obj-{number:012x}")
}

fn state(value: Value) -> ObjectState {
    let name = value.get("name").and_then(Value::as_str);
    let identity = name.map(|name| Value::map([("name", Value::from(name))]));
    ObjectState { value, private: Arc::from([]), identity, health: None }
}

/// Hooks of scripted objects print their command and end as scripted.
#[async_trait]
impl HookRunner for Scripted {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        let words: Vec<&str> = match call.hook.definition.unmarked() {
            Value::List(items) => items.iter().map(|item| item.as_str().unwrap_or("...")).collect(),
            _ => Vec::new(),
        };
        let output = words.join(" ");
        match self.next_outcome(&call.context, Operation::Hook).await {
            ScriptedOutcome::Fail { message, .. } => HookOutcome { failure: Some(message), output },
            ScriptedOutcome::CrashBefore | ScriptedOutcome::CrashAfter => {
                self.crash(&call.context, Operation::Hook).await;
                HookOutcome::default()
            }
            _ => HookOutcome { failure: None, output },
        }
    }
}

fn failed(object: Option<ObjectState>, kind: ErrorKind, message: &str) -> ApplyResponse {
    ApplyResponse { object, error: Some(driver_error(kind, message)), ..ApplyResponse::default() }
}

fn driver_error(kind: ErrorKind, message: &str) -> DriverError {
    DriverError { kind, message: message.to_owned(), path: None, hint: None }
}

#[cfg(test)]
mod tests;
