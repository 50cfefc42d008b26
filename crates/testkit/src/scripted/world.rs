//! The world of scripted objects: the existing objects, their history, and the calls that wait at gates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use drivers::CallContext;
use model::{DriverError, ErrorKind, Namespace, Value};

use super::driver_error;
use super::script::{Operation, Queues, Recovery, Script, ScriptLine, ScriptedOutcome};

/// A change in the world. Calls without an effect, such as a destroy of a missing object or a repeated create, are not
/// listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub kind: EffectKind,
    pub namespace: Namespace,
    pub address: Arc<str>,
    /// The ID of the object.
    pub id: String,
    /// The value after the change, or the last value of a destroyed object.
    pub value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectKind {
    Created,
    Updated,
    Destroyed,
    /// Removed by another client.
    Removed,
}

/// A scripted crash: the call is in flight and never returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    pub address: Arc<str>,
    pub operation: Operation,
}

/// The world. Shared by the drivers before and after a simulated restart.
pub struct World {
    state: Mutex<State>,
    /// Incremented by each change, which wakes the waiters.
    changes: Notify,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    effects: Vec<Effect>,
    queues: Queues,
    recovery: Recovery,
    created: u64,
    open_gates: BTreeSet<String>,
    waiting: BTreeSet<(String, Arc<str>)>,
    crash: Option<Crash>,
    configuration: Arc<str>,
    calls: u64,
}

struct Object {
    namespace: Namespace,
    address: Arc<str>,
    operation_id: Arc<str>,
    value: Value,
}

impl World {
    /// An empty world with a script.
    pub fn new(script: Script) -> Arc<Self> {
        let mut inside = State { recovery: script.create_recovery, ..State::default() };
        script.lines.into_iter().for_each(|line| inside.queues.add(line));
        Arc::new(Self { state: Mutex::new(inside), changes: Notify::new() })
    }

    pub fn script(&self, line: ScriptLine) {
        self.state().queues.add(line);
    }

    /// The unused outcomes, as `address operation`.
    pub fn unused(&self) -> Vec<String> {
        self.state().queues.unused()
    }

    /// All changes, in order.
    pub fn effects(&self) -> Vec<Effect> {
        self.state().effects.clone()
    }

    /// The number of calls of any operation.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The existing objects by ID: the address that created the object, and its value.
    pub fn objects(&self) -> BTreeMap<String, (Arc<str>, Value)> {
        let inside = self.state();
        inside
            .objects
            .iter()
            .map(|(id, object)| (id.clone(), (Arc::clone(&object.address), object.value.clone())))
            .collect()
    }

    /// The namespace of the call that created an object; empty if another client did.
    pub fn namespace_of(&self, id: &str) -> Option<Namespace> {
        self.state().objects.get(id).map(|object| object.namespace.clone())
    }

    pub fn object(&self, id: &str) -> Option<Value> {
        self.state().objects.get(id).map(|object| object.value.clone())
    }

    pub fn created_by(&self, operation_id: &str) -> Option<Value> {
        let inside = self.state();
        let object = inside.objects.values().find(|object| object.operation_id.as_ref() == operation_id);
        object.map(|object| object.value.clone())
    }

    /// Creates an object as another client, for imports and name conflicts.
    pub fn put(&self, id: &str, config: &Value) {
        let value = value(config, id, 1);
        let object = Object { namespace: "".into(), address: "".into(), operation_id: "".into(), value };
        self.state().objects.insert(id.to_owned(), object);
    }

    /// Changes an attribute of an object as another client.
    pub fn change(&self, id: &str, attribute: &str, value: Value) {
        if let Some(object) = self.state().objects.get_mut(id) {
            object.value = object.value.with(attribute, value);
        }
    }

    /// Removes an object as another client.
    pub fn remove(&self, id: &str) {
        let mut inside = self.state();
        if let Some(object) = inside.objects.remove(id) {
            inside.effects.push(Effect {
                kind: EffectKind::Removed,
                namespace: object.namespace,
                address: object.address,
                id: id.to_owned(),
                value: object.value,
            });
        }
    }

    /// Changes the configuration of the driver.
    pub fn configure(&self, configuration: &str) {
        self.state().configuration = configuration.into();
    }

    pub fn configuration(&self) -> Arc<str> {
        Arc::clone(&self.state().configuration)
    }

    /// Opens a gate permanently.
    pub fn release(&self, gate: &str) {
        self.state().open_gates.insert(gate.to_owned());
        self.changed();
    }

    /// Waits until a call of this object waits at the gate.
    pub async fn until_waiting(&self, gate: &str, address: &str) {
        self.until(|inside| inside.waiting.contains(&(gate.to_owned(), Arc::from(address)))).await;
    }

    /// Waits for a crash and returns it once.
    pub async fn until_crash(&self) -> Crash {
        loop {
            self.until(|inside| inside.crash.is_some()).await;
            if let Some(cut) = self.state().crash.take() {
                return cut;
            }
        }
    }

    pub(crate) fn recovery(&self) -> Recovery {
        self.state().recovery
    }

    pub(crate) fn next_outcome(&self, address: &str, operation: Operation) -> ScriptedOutcome {
        let mut inside = self.state();
        inside.calls += 1;
        inside.queues.next(address, operation)
    }

    /// Waits at a gate until it is open, without a deadline.
    pub(crate) async fn wait_at_gate(&self, gate: &str, address: &Arc<str>) {
        let place = (gate.to_owned(), Arc::clone(address));
        self.state().waiting.insert(place.clone());
        self.changed();
        self.until(|inside| inside.open_gates.contains(gate)).await;
        self.state().waiting.remove(&place);
    }

    pub(crate) fn crash(&self, address: &Arc<str>, operation: Operation) {
        self.state().crash = Some(Crash { address: Arc::clone(address), operation });
        self.changed();
    }

    /// Creates an object. Its ID is its name, the generated ID if creates are repeatable, or else a number.
    pub(crate) fn create(&self, context: &CallContext, config: &Value, drawn: String) -> Result<Value, DriverError> {
        let mut inside = self.state();
        let name = config.get("name").and_then(Value::as_str).map(str::to_owned);
        inside.created += 1;
        let id = match (&name, inside.recovery) {
            (Some(name), _) => name.clone(),
            (None, Recovery::Repeat) => drawn,
            (None, _) => format!("obj-{}", inside.created),
        };
        if let Some(there) = inside.objects.get(&id) {
            let ours = inside.recovery == Recovery::Repeat && there.operation_id == context.operation_id;
            if ours {
                return Ok(there.value.clone());
            }
            return Err(driver_error(ErrorKind::AlreadyExists, &format!("object `{id}` already exists")));
        }
        let value = value(config, &id, 1);
        let CallContext { namespace, address, operation_id, .. } = context.clone();
        inside.objects.insert(id.clone(), Object { namespace, address, operation_id, value: value.clone() });
        inside.log(EffectKind::Created, context, id, value.clone());
        Ok(value)
    }

    pub(crate) fn update(&self, context: &CallContext, id: &str, config: &Value) -> Result<Value, DriverError> {
        let mut inside = self.state();
        let Some(object) = inside.objects.get_mut(id) else {
            return Err(driver_error(ErrorKind::Transient, &format!("object `{id}` no longer exists")));
        };
        object.value = value(config, id, change_count(&object.value) + 1);
        let value = object.value.clone();
        inside.log(EffectKind::Updated, context, id.to_owned(), value.clone());
        Ok(value)
    }

    /// Makes an object ready, which counts as a change.
    pub(crate) fn ready(&self, id: &str) -> Option<Value> {
        let mut inside = self.state();
        let object = inside.objects.get_mut(id)?;
        object.value = object.value.with("computed", (change_count(&object.value) + 1).into());
        Some(object.value.clone())
    }

    pub(crate) fn destroy(&self, context: &CallContext, id: &str) {
        let mut inside = self.state();
        if let Some(object) = inside.objects.remove(id) {
            inside.log(EffectKind::Destroyed, context, id.to_owned(), object.value);
        }
    }

    async fn until(&self, mut test: impl FnMut(&State) -> bool) {
        loop {
            // It includes the changes from here on.
            let changed = self.changes.notified();
            if test(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    fn changed(&self) {
        self.changes.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has failed already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log(&mut self, kind: EffectKind, context: &CallContext, id: String, value: Value) {
        let (namespace, address) = (context.namespace.clone(), Arc::clone(&context.address));
        self.effects.push(Effect { kind, namespace, address, id, value });
    }
}

/// The number of changes of an object.
fn change_count(value: &Value) -> i64 {
    match value.get("computed") {
        Some(Value::Number(model::Number::Int(count))) => *count,
        _ => 0,
    }
}

fn value(config: &Value, id: &str, count: i64) -> Value {
    let argument = |name: &str| config.get(name).cloned().unwrap_or_default();
    let secret = match argument("secret") {
        Value::Null => Value::Null,
        secret => secret.into_sensitive(),
    };
    Value::map([
        ("computed", count.into()),
        ("force", argument("force")),
        ("id", id.into()),
        ("name", argument("name")),
        ("secret", secret),
        ("value", argument("value")),
    ])
}
