//! The world: the objects that exist, what was done to them, who waits at which gate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::driver::CallContext;
use crate::model::{DriverError, ErrorKind, Value};

use super::refusal;
use super::script::{Answer, Line, Operation, Queues, Recovery, Script};

/// Something that happened in the world, in the order in which it did. Calls without an effect (a destroy of what is
/// gone, a repeated create) leave no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What.
    pub kind: EffectKind,
    /// For which Resource instance.
    pub address: Arc<str>,
    /// To which object.
    pub id: String,
    /// Its value afterwards; of a destroyed object the last one.
    pub value: Value,
}

/// What can happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectKind {
    /// It came to be.
    Created,
    /// It changed.
    Updated,
    /// It was destroyed.
    Destroyed,
    /// Somebody else removed it.
    Lost,
}

/// A crash that the script asked for: the call of this object is under way and will never end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whose call.
    pub address: Arc<str>,
    /// Which call.
    pub operation: Operation,
}

/// The world. Shared by all drivers over it, before and after a simulated restart.
pub struct World {
    inside: Mutex<Inside>,
    /// Counts what happened; whoever waits for something looks again at each change.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inside {
    objects: BTreeMap<String, Object>,
    effects: Vec<Effect>,
    queues: Queues,
    recovery: Recovery,
    made: u64,
    open_gates: BTreeSet<String>,
    waiting: BTreeSet<(String, Arc<str>)>,
    cut: Option<Cut>,
    configuration: Arc<str>,
    calls: u64,
}

struct Object {
    address: Arc<str>,
    operation_id: Arc<str>,
    value: Value,
}

impl World {
    /// An empty world that behaves as the script says.
    pub fn new(script: Script) -> Arc<Self> {
        let mut inside = Inside { recovery: script.create_recovery, ..Inside::default() };
        script.lines.into_iter().for_each(|line| inside.queues.add(line));
        Arc::new(Self { inside: Mutex::new(inside), changes: watch::Sender::new(0) })
    }

    /// Adds answers to the script.
    pub fn script(&self, line: Line) {
        self.inside().queues.add(line);
    }

    /// Answers that nobody has asked for, as `address operation`.
    pub fn unused(&self) -> Vec<String> {
        self.inside().queues.unused()
    }

    /// Everything that happened.
    pub fn effects(&self) -> Vec<Effect> {
        self.inside().effects.clone()
    }

    /// How many calls drivers got, of any operation.
    pub fn calls(&self) -> u64 {
        self.inside().calls
    }

    /// What exists: the address for which it was made, and its value, by id.
    pub fn objects(&self) -> BTreeMap<String, (Arc<str>, Value)> {
        let inside = self.inside();
        inside
            .objects
            .iter()
            .map(|(id, object)| (id.clone(), (Arc::clone(&object.address), object.value.clone())))
            .collect()
    }

    /// The value of an object.
    pub fn object(&self, id: &str) -> Option<Value> {
        self.inside().objects.get(id).map(|object| object.value.clone())
    }

    /// The object that an operation has made.
    pub fn made_by(&self, operation_id: &str) -> Option<Value> {
        let inside = self.inside();
        let made = inside.objects.values().find(|object| object.operation_id.as_ref() == operation_id);
        made.map(|object| object.value.clone())
    }

    /// Somebody else puts an object there, as an import or a clash of names needs it: whole, as if it had been made
    /// by that configuration.
    pub fn put(&self, id: &str, config: &Value) {
        let value = value(config, id, 1);
        let object = Object { address: Arc::from(""), operation_id: Arc::from(""), value };
        self.inside().objects.insert(id.to_owned(), object);
    }

    /// Somebody else changes an attribute of an object.
    pub fn change(&self, id: &str, attribute: &str, value: Value) {
        if let Some(object) = self.inside().objects.get_mut(id) {
            object.value = object.value.with(attribute, value);
        }
    }

    /// Somebody else removes an object.
    pub fn lose(&self, id: &str) {
        let mut inside = self.inside();
        if let Some(object) = inside.objects.remove(id) {
            inside.effects.push(Effect {
                kind: EffectKind::Lost,
                address: object.address,
                id: id.to_owned(),
                value: object.value,
            });
        }
    }

    /// From now on the driver is configured otherwise.
    pub fn configure(&self, configuration: &str) {
        self.inside().configuration = configuration.into();
    }

    /// How the driver is configured.
    pub fn configuration(&self) -> Arc<str> {
        Arc::clone(&self.inside().configuration)
    }

    /// Opens a gate, for good.
    pub fn release(&self, gate: &str) {
        self.inside().open_gates.insert(gate.to_owned());
        self.changed();
    }

    /// Waits until a call of this object stands at the gate.
    pub async fn until_waiting(&self, gate: &str, address: &str) {
        self.until(|inside| inside.waiting.contains(&(gate.to_owned(), Arc::from(address)))).await;
    }

    /// Waits until a call crashes; gives it once.
    pub async fn until_cut(&self) -> Cut {
        loop {
            self.until(|inside| inside.cut.is_some()).await;
            if let Some(cut) = self.inside().cut.take() {
                return cut;
            }
        }
    }

    pub(super) fn recovery(&self) -> Recovery {
        self.inside().recovery
    }

    pub(super) fn next_answer(&self, address: &str, operation: Operation) -> Answer {
        let mut inside = self.inside();
        inside.calls += 1;
        inside.queues.next(address, operation)
    }

    /// Stands at a gate until it is open. Ends only then: a script's waits have no deadline.
    pub(super) async fn pass(&self, gate: &str, address: &Arc<str>) {
        let place = (gate.to_owned(), Arc::clone(address));
        self.inside().waiting.insert(place.clone());
        self.changed();
        self.until(|inside| inside.open_gates.contains(gate)).await;
        self.inside().waiting.remove(&place);
    }

    pub(super) fn cut(&self, address: &Arc<str>, operation: Operation) {
        self.inside().cut = Some(Cut { address: Arc::clone(address), operation });
        self.changed();
    }

    /// Makes an object: by its name, by the drawn id if creates may be repeated, else by a number.
    pub(super) fn create(&self, context: &CallContext, config: &Value, drawn: String) -> Result<Value, DriverError> {
        let mut inside = self.inside();
        let name = config.get("name").and_then(Value::as_str).map(str::to_owned);
        inside.made += 1;
        let id = match (&name, inside.recovery) {
            (Some(name), _) => name.clone(),
            (None, Recovery::Repeat) => drawn,
            (None, _) => format!("obj-{}", inside.made),
        };
        if let Some(there) = inside.objects.get(&id) {
            let ours = inside.recovery == Recovery::Repeat && there.operation_id == context.operation_id;
            if ours {
                return Ok(there.value.clone());
            }
            return Err(refusal(ErrorKind::AlreadyExists, &format!("object `{id}` exists already")));
        }
        let value = value(config, &id, 1);
        let (address, operation_id) = (Arc::clone(&context.address), Arc::clone(&context.operation_id));
        inside.objects.insert(id.clone(), Object { address, operation_id, value: value.clone() });
        inside.log(EffectKind::Created, context, id, value.clone());
        Ok(value)
    }

    pub(super) fn update(&self, context: &CallContext, id: &str, config: &Value) -> Result<Value, DriverError> {
        let mut inside = self.inside();
        let Some(object) = inside.objects.get_mut(id) else {
            return Err(refusal(ErrorKind::Transient, &format!("object `{id}` is gone")));
        };
        object.value = value(config, id, counted(&object.value) + 1);
        let value = object.value.clone();
        inside.log(EffectKind::Updated, context, id.to_owned(), value.clone());
        Ok(value)
    }

    /// An object gets ready, which counts as a change of its own.
    pub(super) fn ready(&self, id: &str) -> Option<Value> {
        let mut inside = self.inside();
        let object = inside.objects.get_mut(id)?;
        object.value = object.value.with("computed", (counted(&object.value) + 1).into());
        Some(object.value.clone())
    }

    pub(super) fn destroy(&self, context: &CallContext, id: &str) {
        let mut inside = self.inside();
        if let Some(object) = inside.objects.remove(id) {
            inside.log(EffectKind::Destroyed, context, id.to_owned(), object.value);
        }
    }

    async fn until(&self, mut test: impl FnMut(&Inside) -> bool) {
        let mut changes = self.changes.subscribe();
        while !test(&self.inside()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // A test that panicked while it held the lock has failed already.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn log(&mut self, kind: EffectKind, context: &CallContext, id: String, value: Value) {
        self.effects.push(Effect { kind, address: Arc::clone(&context.address), id, value });
    }
}

/// How often an object was changed.
fn counted(value: &Value) -> i64 {
    match value.get("computed") {
        Some(Value::Number(crate::model::Number::Int(count))) => *count,
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
