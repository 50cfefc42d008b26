//! A driver with objects in memory and random failures. It is independent of plans, and reports the effect of every
//! call to the witness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use purlin::driver::hook::{HookCall, HookOutcome, HookRunner};
use purlin::driver::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, FindCreated};
use purlin::model::{
    Attribute, AttributeType, Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, Path, PlanRequest,
    PlanResponse, Provider, RecordedObject, Schema, Value,
};
use testkit::scripted::Recovery;

use super::witness::Witness;
use crate::kit::{Crash, Dice};

/// The type of all objects.
pub(super) const TYPE: &str = "thing";

/// The address of objects that another client created.
pub(super) const UNMANAGED: &str = "";

/// The arguments. A change of `shape` or `anchors` forces a replacement.
const ARGUMENTS: [&str; 5] = ["label", "links", "notes", "shape", "anchors"];
const FIXED: [&str; 2] = ["shape", "anchors"];

#[derive(Clone, Debug)]
pub(super) struct FakeObject {
    pub id: String,
    pub address: String,
    pub arguments: BTreeMap<&'static str, Value>,
    /// Changes with every update.
    pub echo: String,
    /// The operation that created it.
    pub created_by: String,
}

impl FakeObject {
    /// Whether one of its arguments contains the ID of another object.
    pub(super) fn uses(&self, id: &str) -> bool {
        ["links", "anchors"].iter().any(|name| self.arguments.get(name).is_some_and(|value| holds(value, id)))
    }

    fn value(&self) -> Value {
        let arguments = self.arguments.iter().map(|(name, value)| (*name, value.clone()));
        Value::map(arguments.chain([("id", self.id.as_str().into()), ("echo", self.echo.as_str().into())]))
    }

    fn state(&self) -> ObjectState {
        ObjectState { value: self.value(), private: Arc::from([]), identity: None, health: None }
    }
}

/// Whether a value contains a string.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::List(items) => items.iter().any(|item| holds(item, text)),
        other => other.as_str() == Some(text),
    }
}

/// A call before its effect.
#[derive(Clone)]
struct Call {
    address: String,
    operation: String,
    prior: Option<String>,
    /// The prior value from the request.
    before: Value,
    planned: Option<Value>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, FakeObject>,
    in_flight: BTreeMap<u64, Call>,
    created_count: u64,
    failures: usize,
}

pub(super) struct FakeDriver {
    state: Mutex<State>,
    pub dice: Arc<Dice>,
    pub crash: Arc<Crash>,
    pub witness: Arc<Witness>,
    pub recovery: Recovery,
}

impl FakeDriver {
    pub(super) fn new(dice: Arc<Dice>, crash: Arc<Crash>, witness: Arc<Witness>, recovery: Recovery) -> Self {
        Self { state: Mutex::default(), dice, crash, witness, recovery }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sets the percentage of failing calls.
    pub(super) fn set_failures(&self, percent: usize) {
        self.lock().failures = percent;
    }

    /// Returns all existing objects.
    pub(super) fn objects(&self) -> Vec<FakeObject> {
        self.lock().objects.values().cloned().collect()
    }

    pub(super) fn object(&self, id: &str) -> Option<FakeObject> {
        self.lock().objects.get(id).cloned()
    }

    /// Creates an unmanaged object, and returns its ID.
    pub(super) fn put(&self, label: usize, shape: usize) -> String {
        let mut state = self.lock();
        state.created_count += 1;
        let id = format!("stranger-{}", state.created_count);
        let text = |text: String| Value::from(text.as_str());
        let mut arguments =
            arguments(&Value::map([("label", text(format!("l{label}"))), ("shape", text(format!("s{shape}")))]));
        for list in ["links", "anchors", "notes"] {
            arguments.insert(list, Value::list([]));
        }
        let (address, made_by) = (UNMANAGED.to_owned(), UNMANAGED.to_owned());
        let thing = FakeObject { id: id.clone(), address, arguments, echo: format!("{id}#0"), created_by: made_by };
        state.objects.insert(id.clone(), thing);
        id
    }

    /// Destroys an object like another client.
    pub(super) fn lose(&self, id: &str) {
        self.lock().objects.remove(id);
    }

    /// Changes the address of objects.
    pub(super) fn relocate(&self, ids: &BTreeSet<String>, address: &str) {
        for thing in self.lock().objects.values_mut().filter(|thing| ids.contains(&thing.id)) {
            address.clone_into(&mut thing.address);
        }
    }

    /// Changes an argument of an object like another client.
    pub(super) fn change(&self, id: &str, argument: &'static str) {
        if let Some(thing) = self.lock().objects.get_mut(id) {
            thing.arguments.insert(argument, "drifted".into());
        }
    }

    /// After a crash, each call in flight takes effect or is dropped.
    pub(super) fn resolve_in_flight(&self) {
        let calls = std::mem::take(&mut self.lock().in_flight);
        for call in calls.into_values() {
            if self.dice.chance(40) {
                self.effect(&call);
            }
        }
    }

    /// Yields, so that steps interleave in every way.
    async fn pause(&self) {
        for _ in 0..self.dice.below(6) {
            tokio::task::yield_now().await;
        }
    }

    fn effect(&self, call: &Call) -> ApplyResponse {
        match (&call.prior, &call.planned) {
            (None, Some(planned)) => self.create(call, planned),
            (Some(prior), Some(planned)) => self.update(call, prior, planned),
            (Some(prior), None) => self.destroy(call, prior),
            (None, None) => failed("a call for nothing", ErrorKind::Terminal),
        }
    }

    fn create(&self, call: &Call, planned: &Value) -> ApplyResponse {
        let failure = self.failure();
        let existing = self.lock().objects.values().find(|thing| thing.created_by == call.operation).cloned();
        if let Some(thing) = existing {
            // A repeated call completes the first one.
            if self.recovery != Recovery::Repeat {
                self.witness.add_objection(format!("{}: the create {} was called twice", call.address, call.operation));
            }
            // The call can fail although the object exists.
            return match failure {
                Some(_) => failed("not now", ErrorKind::Transient),
                None => respond(Some(thing.state()), None),
            };
        }
        if failure == Some(false) {
            return failed("no room", self.error_kind());
        }
        self.witness.check_create(&call.address, &call.operation, &self.objects());
        let mut state = self.lock();
        state.created_count += 1;
        let id = format!("{}-{}", call.address, state.created_count);
        let echo = format!("{id}#0");
        let arguments = arguments(planned);
        let (address, made_by) = (call.address.clone(), call.operation.clone());
        let thing = FakeObject { id: id.clone(), address, arguments, echo, created_by: made_by };
        let object = Some(thing.state());
        state.objects.insert(id.clone(), thing);
        let things: Vec<FakeObject> = state.objects.values().cloned().collect();
        drop(state);
        self.witness.record_created(&call.address, &id, &things);
        respond(object, failure.map(|_| error("made half way", ErrorKind::Transient)))
    }

    fn update(&self, call: &Call, prior: &str, planned: &Value) -> ApplyResponse {
        self.witness.check_update(&call.address, &call.operation);
        let failure = self.failure();
        let mut state = self.lock();
        state.created_count += 1;
        let made = state.created_count;
        let Some(thing) = state.objects.get_mut(prior) else {
            return failed("there is no such thing", ErrorKind::Terminal);
        };
        if failure == Some(false) {
            return failed("not now", ErrorKind::Transient);
        }
        let mut wanted = arguments(planned);
        wanted.retain(|name, value| call.before.get(name) != Some(value));
        if FIXED.iter().any(|name| wanted.contains_key(name)) {
            self.witness.add_objection(format!("{}: an update changes what cannot be changed in place", call.address));
        }
        if failure == Some(true) {
            // A partial update.
            wanted.retain(|name, _| *name == "label");
        }
        thing.arguments.extend(wanted);
        thing.echo = format!("{}#{made}", thing.id);
        let object = Some(thing.state());
        respond(object, failure.map(|_| error("changed half way", ErrorKind::Transient)))
    }

    fn destroy(&self, call: &Call, prior: &str) -> ApplyResponse {
        if self.object(prior).is_none() {
            // Destroying a missing object is not an error.
            return ApplyResponse::default();
        }
        if self.failure().is_some() {
            return failed("cannot let go", ErrorKind::Transient);
        }
        self.witness.check_destroy(&call.address, &call.operation, prior, &self.objects());
        self.lock().objects.remove(prior);
        ApplyResponse::default()
    }

    /// Returns `None` for success, or whether the failing call has a partial effect.
    fn failure(&self) -> Option<bool> {
        let percent = self.lock().failures;
        self.dice.chance(percent).then(|| self.dice.chance(50))
    }

    fn error_kind(&self) -> ErrorKind {
        if self.dice.chance(50) { ErrorKind::Transient } else { ErrorKind::Terminal }
    }
}

fn arguments(value: &Value) -> BTreeMap<&'static str, Value> {
    ARGUMENTS.iter().map(|name| (*name, value.get(name).cloned().unwrap_or_default())).collect()
}

fn error(message: &str, kind: ErrorKind) -> DriverError {
    DriverError { kind, message: message.into(), path: None, hint: None }
}

fn respond(object: Option<ObjectState>, error: Option<DriverError>) -> ApplyResponse {
    ApplyResponse { object, error, ..ApplyResponse::default() }
}

fn failed(message: &str, kind: ErrorKind) -> ApplyResponse {
    respond(None, Some(error(message, kind)))
}

/// Hooks fail like calls.
#[async_trait]
impl HookRunner for FakeDriver {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        self.pause().await;
        self.crash.point().await;
        if self.failure().is_some() {
            return HookOutcome::failed("exit status 1");
        }
        self.witness.record_hook(&call.hook.name, &call.object);
        HookOutcome::default()
    }
}

#[async_trait]
impl Driver for FakeDriver {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        let attribute = |computed: bool| Attribute {
            kind: AttributeType::Any,
            required: false,
            optional: !computed,
            computed,
            sensitive: false,
            observed_in: None,
            description: String::new(),
        };
        let arguments = ARGUMENTS.iter().map(|name| (Arc::from(*name), attribute(false)));
        let results = ["id", "echo"].iter().map(|name| (Arc::from(*name), attribute(true)));
        (type_name == TYPE)
            .then(|| Arc::new(Schema { attributes: arguments.chain(results).collect(), ..Schema::default() }))
    }

    async fn validate(&self, _: &CallContext, _: &Value) -> Result<Diagnostics, DriverError> {
        Ok(Vec::new())
    }

    async fn read(&self, _: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        self.pause().await;
        let state = self.lock();
        Ok(object.id().and_then(|id| state.objects.get(id)).map(FakeObject::state))
    }

    async fn plan(&self, _: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        if self.dice.chance(30) {
            self.pause().await;
        }
        let wanted = arguments(&request.config);
        let prior = request.prior.as_ref().map(|prior| &prior.value);
        let differs = |name: &&str| {
            prior.is_none_or(|prior| wanted[*name].has_unknown() || prior.get(name) != Some(&wanted[*name]))
        };
        let changes = ARGUMENTS.iter().any(differs);
        let kept = |name: &str| prior.and_then(|prior| prior.get(name)).cloned().unwrap_or(Value::Unknown);
        let echo = if changes { Value::Unknown } else { kept("echo") };
        let planned = Value::map(wanted.iter().map(|(name, value)| (*name, value.clone())))
            .with("id", kept("id"))
            .with("echo", echo);
        let fixed = FIXED.iter().filter(|name| prior.is_some() && differs(name));
        let requires_replace = fixed.map(|name| Path::default().name(*name)).collect();
        Ok(PlanResponse { planned, requires_replace, ..PlanResponse::default() })
    }

    async fn apply(&self, context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        let call = Call {
            address: context.address.to_string(),
            operation: context.operation_id.to_string(),
            prior: request.prior.as_ref().map(|prior| prior.id().unwrap_or_default().to_owned()),
            before: request.prior.as_ref().map(|prior| prior.value.clone()).unwrap_or_default(),
            planned: request.planned,
        };
        let ticket = {
            let mut state = self.lock();
            state.created_count += 1;
            let ticket = state.created_count;
            state.in_flight.insert(ticket, call.clone());
            ticket
        };
        self.pause().await;
        self.crash.point().await;
        self.lock().in_flight.remove(&ticket);
        let response = self.effect(&call);
        self.crash.point().await;
        self.pause().await;
        response
    }

    async fn import(&self, _: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        Ok(self.lock().objects.get(&request.to_string()).map(FakeObject::state))
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        match self.recovery {
            Recovery::Repeat => CreateRecovery::Repeat(self),
            Recovery::Find => CreateRecovery::Find(self),
            Recovery::Unknown => CreateRecovery::Unknown,
        }
    }
}

#[async_trait]
impl FindCreated for FakeDriver {
    async fn find_created(&self, context: &CallContext, _: &Value) -> Result<Option<ObjectState>, DriverError> {
        let state = self.lock();
        Ok(state.objects.values().find(|thing| *thing.created_by == *context.operation_id).map(FakeObject::state))
    }
}

pub(super) fn ids(things: &[FakeObject]) -> BTreeSet<String> {
    things.iter().map(|thing| thing.id.clone()).collect()
}
