//! Checks every write of a record and every effect of a call when it happens. It has a separate copy of the records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use purlin::model::{Intent, ObjectStatus, OnFailure, Operation, Record, RecordedObject};
use purlin::store::memory;

use super::fake_driver::{FakeObject, UNMANAGED, ids};

/// A permission to destroy an object, from the judgment of the plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Permit {
    /// Dependents that do not prevent the destroy, because they change after a destroy-before-create replacement.
    pub later_dependents: BTreeSet<String>,
}

#[derive(Default)]
struct WitnessState {
    objections: Vec<String>,
    records: BTreeMap<String, Record>,
    /// By ID of the object.
    permits: BTreeMap<String, Permit>,
    /// Addresses whose objects the current plan forgets.
    forgets: BTreeSet<String>,
    /// By address: the configured targets of its triggers.
    triggers: BTreeMap<String, BTreeSet<String>>,
    /// By ID of the object: the `echo` of the targets of its triggers when it was created.
    trigger_values: BTreeMap<String, BTreeMap<String, String>>,
    /// By address: whether the manifest has a required hook before the destroy. Without a manifest, the record decides.
    drains: BTreeMap<String, bool>,
    /// Hooks that ran, with the ID of their object.
    ran: BTreeSet<(String, String)>,
    /// IDs of forgotten objects, which Purlin no longer manages.
    forgotten: BTreeSet<String>,
    /// IDs of adopted objects, which another client created or which were forgotten.
    adopted: BTreeSet<String>,
}

#[derive(Default)]
pub(super) struct Witness(Mutex<WitnessState>);

impl Witness {
    fn lock(&self) -> MutexGuard<'_, WitnessState> {
        self.0.lock().unwrap()
    }

    /// Records an objection.
    pub(super) fn add_objection(&self, what: String) {
        self.lock().objections.push(what);
    }

    pub(super) fn objections(&self) -> Vec<String> {
        self.lock().objections.clone()
    }

    pub(super) fn forgotten(&self) -> BTreeSet<String> {
        self.lock().forgotten.clone()
    }

    /// The record was edited by hand.
    pub(super) fn record_edited(&self, record: &Record) {
        self.lock().records.insert(record.address.to_string(), record.clone());
    }

    /// Sets the permits of a new plan. Objects whose destroy has started keep their permit.
    pub(super) fn permits(
        &self,
        permits: BTreeMap<String, Permit>,
        forgets: BTreeSet<String>,
        running: &BTreeSet<String>,
    ) {
        let mut seen = self.lock();
        let begun = |record: &&Record| running.contains(&record.address.to_string());
        let begun = seen.records.values().filter(begun).flat_map(known_ids);
        let destroying: BTreeSet<String> = seen.records.values().filter_map(destroyed_id).chain(begun).collect();
        seen.permits.retain(|id, _| destroying.contains(id));
        for (id, permit) in permits {
            seen.permits.entry(id).or_insert(permit);
        }
        seen.forgets.extend(forgets);
    }

    /// Sets the triggers by address.
    pub(super) fn triggers(&self, triggers: BTreeMap<String, BTreeSet<String>>, things: &[FakeObject]) {
        let mut seen = self.lock();
        // A removed trigger that is added again starts without a recorded value.
        for (id, saw) in &mut seen.trigger_values {
            let address = things.iter().find(|thing| thing.id == *id).map_or("", |thing| &thing.address);
            saw.retain(|target, _| triggers.get(address).is_some_and(|targets| targets.contains(target)));
        }
        seen.triggers = triggers;
    }

    /// Returns the objects that a write moves, and their new address: that of the record or, if a move is reverted,
    /// that of the record that was being moved.
    pub(super) fn moved_by(&self, operation: memory::Operation, record: &Record) -> (BTreeSet<String>, String) {
        let seen = self.lock();
        let here = known_ids(record);
        let leaves = |other: &&Record| other.moving_to.as_deref() == Some(&record.address);
        let leaving = seen.records.values().filter(leaves).find(|other| !known_ids(other).is_disjoint(&here));
        match (leaving, operation) {
            (None, _) => (BTreeSet::new(), String::new()),
            (Some(other), memory::Operation::Erase) => (known_ids(other), other.address.to_string()),
            (Some(other), _) => (known_ids(other), record.address.to_string()),
        }
    }

    /// Returns the unmanaged objects that a write adopts.
    pub(super) fn adopted_by(&self, record: &Record, things: &[FakeObject]) -> BTreeSet<String> {
        let mut seen = self.lock();
        let is_unmanaged = |thing: &&FakeObject| thing.address == UNMANAGED || seen.forgotten.contains(&thing.id);
        let unmanaged = ids(&things.iter().filter(is_unmanaged).cloned().collect::<Vec<_>>());
        let adopted: BTreeSet<String> = known_ids(record).intersection(&unmanaged).cloned().collect();
        // An object that another client destroyed after planning is still adopted.
        let lost = known_ids(record).into_iter().filter(|id| id.starts_with("stranger-"));
        seen.adopted.extend(lost);
        seen.forgotten.retain(|id| !adopted.contains(id));
        seen.adopted.extend(adopted.iter().cloned());
        adopted
    }

    /// Sets for each address whether the manifest has a required hook before the destroy.
    pub(super) fn drains(&self, drains: BTreeMap<String, bool>) {
        self.lock().drains = drains;
    }

    /// Records a successful hook.
    pub(super) fn record_hook(&self, hook: &str, id: &str) {
        self.lock().ran.insert((hook.to_owned(), id.to_owned()));
    }

    /// Records the values of the triggers of a created object.
    pub(super) fn record_created(&self, address: &str, id: &str, things: &[FakeObject]) {
        let mut seen = self.lock();
        let targets = seen.triggers.get(address).cloned().unwrap_or_default();
        let echo = |target: &String| {
            let (address, _) = target.split_once(" by ")?;
            let current = seen.records.get(address)?.current.as_ref()?.id()?.to_owned();
            let thing = things.iter().find(|thing| thing.id == current)?;
            Some((target.clone(), thing.echo.clone()))
        };
        let saw = targets.iter().filter_map(echo).collect();
        seen.trigger_values.insert(id.to_owned(), saw);
    }

    /// Returns the value of a trigger when the object was created.
    pub(super) fn trigger_value(&self, id: &str, target: &str) -> Option<String> {
        self.lock().trigger_values.get(id)?.get(target).cloned()
    }

    pub(super) fn check_create(&self, address: &str, operation: &str, things: &[FakeObject]) {
        let mut seen = self.lock();
        let known = seen.records.get(address).map(known_ids).unwrap_or_default();
        let strangers: Vec<String> = things
            .iter()
            .filter(|thing| thing.address == address && !known.contains(&thing.id))
            .filter(|thing| !seen.forgotten.contains(&thing.id))
            .map(|thing| thing.id.clone())
            .collect();
        if !strangers.is_empty() {
            seen.objections
                .push(format!("{address}: created again, although {strangers:?} exist and are not recorded"));
        }
        seen.require_intent(address, operation, Operation::Create);
    }

    pub(super) fn check_update(&self, address: &str, operation: &str) {
        self.lock().require_intent(address, operation, Operation::Update);
    }

    pub(super) fn check_destroy(&self, address: &str, operation: &str, id: &str, things: &[FakeObject]) {
        let mut seen = self.lock();
        seen.require_intent(address, operation, Operation::Destroy);
        if seen.records.get(address).and_then(destroyed_id).as_deref() != Some(id) {
            seen.objections.push(format!("{address}: {id} is destroyed without an intent for it"));
        }
        let by_record = seen.records.get(address).and_then(destroyed_object).is_some_and(|object| {
            object.hooks.iter().any(|hook| &*hook.name == "drain" && hook.on_failure == OnFailure::Fail)
        });
        let by_manifest = seen.drains.get(address).copied().unwrap_or(by_record);
        if by_record && by_manifest && !seen.ran.contains(&("drain".to_owned(), id.to_owned())) {
            seen.objections.push(format!("{address}: {id} is destroyed, but its hook has not run"));
        }
        let Some(permit) = seen.permits.get(id).cloned() else {
            seen.objections.push(format!("{address}: {id} is destroyed, but no current plan contains it"));
            return;
        };
        let users = things.iter().filter(|user| user.uses(id) && !seen.forgotten.contains(&user.id));
        let users = users.filter(|user| !permit.later_dependents.contains(&user.address));
        let users: Vec<String> = users.map(|user| user.id.clone()).collect();
        if !users.is_empty() {
            seen.objections.push(format!("{address}: {id} is destroyed while {users:?} depend on it"));
        }
    }

    /// Checks a completed write.
    pub(super) fn check_write(&self, operation: memory::Operation, record: &Record, things: &[FakeObject]) {
        let mut seen = self.lock();
        let address = record.address.to_string();
        let empty = || Record::empty(record.namespace.clone(), record.address.clone(), "".into(), "".into());
        let old = seen.records.get(&address).cloned().unwrap_or_else(empty);
        let new = if operation == memory::Operation::Erase { empty() } else { record.clone() };
        let exists = |id: &String| things.iter().any(|thing| thing.id == *id);

        let kept = known_ids(&new);
        let elsewhere = |seen: &WitnessState, id: &String| {
            seen.records.iter().any(|(other, record)| *other != address && known_ids(record).contains(id))
        };
        for id in known_ids(&old).difference(&kept).filter(|id| exists(id)) {
            if operation == memory::Operation::Erase && elsewhere(&seen, id) {
                // The move is complete, or was reverted.
            } else if seen.forgets.contains(&address) {
                seen.forgotten.insert(id.clone());
            } else {
                seen.objections.push(format!("{address}: its record drops {id}, which still exists"));
            }
        }
        let mut objections = Vec::new();
        for id in kept.difference(&known_ids(&old)) {
            let leaves = |other: &Record| other.moving_to.as_deref() == Some(&record.address);
            let mut others = seen.records.iter().filter(|(other, _)| **other != address);
            if let Some((other, _)) = others.find(|(_, other)| known_ids(other).contains(id) && !leaves(other)) {
                objections.push(format!("it records {id}, which belongs to {other}"));
            }
        }
        if new.current.as_ref().is_some_and(|object| object.status == ObjectStatus::Tainted)
            && is_adopted(&seen, new.current.as_ref())
        {
            objections.push("its adopted object is tainted".to_owned());
        }
        // A recovery takes the operation of a process that has ended over.
        let is_other = |(old, new): (&Intent, &Intent)| old.operation_id != new.operation_id;
        let intents = old.intent.as_deref().zip(new.intent.as_deref());
        if operation == memory::Operation::Intend && intents.is_some_and(is_other) {
            objections.push("an intent is written over an open one".to_owned());
        }
        match (&old.intent, &new.intent) {
            (Some(closed), None) if closed.operation == Operation::Create => {
                let made = things.iter().find(|thing| *thing.created_by == *closed.operation_id);
                match made {
                    Some(made) if !kept.contains(&made.id) => {
                        objections.push(format!("its create is resolved without {}, which it created", made.id));
                    }
                    Some(_) => {}
                    None => {
                        let old = closed.deposed.and_then(|key| old.deposed.get(&key)).and_then(|object| object.id());
                        let current = new.current.as_ref().and_then(|object| object.id());
                        if old.is_some()
                            && (current != old || new.deposed.keys().any(|key| Some(*key) == closed.deposed))
                        {
                            objections.push(format!("its create created nothing, but {old:?} is not current again"));
                        }
                    }
                }
            }
            (None, Some(opened)) if opened.operation == Operation::Create => match opened.deposed {
                None if new.current.is_some() => {
                    objections.push("a create is intended although an object is current".into());
                }
                // An adopted object can be replaced in the same plan.
                Some(key) if old.current.is_none() && is_adopted(&seen, new.deposed.get(&key)) => {}
                Some(key) if !is_same(new.deposed.get(&key), old.current.as_ref()) => {
                    objections.push("the deposed object is not its current object".into());
                }
                _ => {}
            },
            _ => {}
        }
        seen.objections.extend(objections.into_iter().map(|objection| format!("{address}: {objection}")));
        match operation {
            memory::Operation::Erase => drop(seen.records.remove(&address)),
            _ => drop(seen.records.insert(address, new)),
        }
    }

    /// Checks, while no step runs, that a record or an open intent covers every object, and that every recorded object
    /// exists unless another client destroyed it (`lost`).
    pub(super) fn check_inventory(&self, things: &[FakeObject], lost: &BTreeSet<String>) {
        let mut seen = self.lock();
        let mut objections = Vec::new();
        let is_ours = |thing: &&FakeObject| thing.address != UNMANAGED && !seen.forgotten.contains(&thing.id);
        for thing in things.iter().filter(is_ours) {
            let record = seen.records.get(&thing.address);
            let is_known = record.is_some_and(|record| {
                known_ids(record).contains(&thing.id)
                    || record.intent.as_ref().is_some_and(|intent| *intent.operation_id == *thing.created_by)
            });
            if !is_known {
                objections.push(format!("{}: {} exists, but is not recorded", thing.address, thing.id));
            }
        }
        let existing = ids(things);
        for record in seen.records.values() {
            let gone = known_ids(record).into_iter().filter(|id| !existing.contains(id) && !lost.contains(id));
            let gone: Vec<String> = gone.filter(|id| destroyed_id(record).as_ref() != Some(id)).collect();
            if !gone.is_empty() {
                objections.push(format!("{}: {gone:?} are recorded, but do not exist", record.address));
            }
        }
        seen.objections.extend(objections);
    }
}

impl WitnessState {
    fn require_intent(&mut self, address: &str, operation_id: &str, operation: Operation) {
        let intent = self.records.get(address).and_then(|record| record.intent.as_deref());
        if !intent.is_some_and(|intent| intent.operation == operation && *intent.operation_id == *operation_id) {
            self.objections.push(format!("{address}: {} without a durable intent", operation.as_str()));
        }
    }
}

fn is_adopted(seen: &WitnessState, object: Option<&Arc<RecordedObject>>) -> bool {
    object.and_then(|object| object.id()).is_some_and(|id| seen.adopted.contains(id))
}

/// Whether the deposed object is the former current one, ignoring changes of its value.
fn is_same(deposed: Option<&Arc<RecordedObject>>, current: Option<&Arc<RecordedObject>>) -> bool {
    let (Some(deposed), Some(current)) = (deposed, current) else { return false };
    deposed.id() == current.id() && deposed.status == current.status && deposed.dependencies == current.dependencies
}

/// Returns the IDs of all objects of a record.
pub(super) fn known_ids(record: &Record) -> BTreeSet<String> {
    let objects = record.current.iter().chain(record.deposed.values());
    objects.filter_map(|object| object.id()).map(str::to_owned).collect()
}

/// Returns the object that an open intent destroys.
fn destroyed_object(record: &Record) -> Option<&RecordedObject> {
    let intent = record.intent.as_deref().filter(|intent| intent.operation == Operation::Destroy)?;
    let object = match intent.deposed {
        Some(key) => record.deposed.get(&key)?,
        None => record.current.as_ref()?,
    };
    Some(object)
}

/// Returns the ID of the object that an open intent destroys.
fn destroyed_id(record: &Record) -> Option<String> {
    destroyed_object(record)?.id().map(str::to_owned)
}
