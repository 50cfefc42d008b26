//! Watches every write of a record and every effect on the world as it happens, and objects to what must never be.
//! It keeps its own copy of what is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use purlin::model::{ObjectStatus, OnFailure, Operation, Record, RecordedObject};
use purlin::store::memory;

use super::world::{NOBODY, Thing, ids};

/// Why a thing may be destroyed, judged when the plan was made.
#[derive(Clone, Debug, Default)]
pub(super) struct Permit {
    /// Addresses of users whose use does not stand in the way: they follow after a delete-first replacement.
    pub follow_later: BTreeSet<String>,
}

#[derive(Default)]
struct Seen {
    objections: Vec<String>,
    records: BTreeMap<String, Record>,
    /// By id of the thing.
    permits: BTreeMap<String, Permit>,
    /// Addresses whose objects the present plan forgets.
    forgets: BTreeSet<String>,
    /// By address: the targets of its triggers, as they are wanted.
    triggers: BTreeMap<String, BTreeSet<String>>,
    /// By id of the thing: the `echo` of the targets of its triggers when it was made.
    saw: BTreeMap<String, BTreeMap<String, String>>,
    /// By address: whether the manifest has a hook before a destroy that must not fail. Without a manifest the record
    /// tells.
    drains: BTreeMap<String, bool>,
    /// Hooks that ran, with the id of the thing that they ran for.
    ran: BTreeSet<(String, String)>,
    /// Ids of things that were forgotten: nobody is responsible for them any more.
    forgotten: BTreeSet<String>,
    /// Ids of things that somebody else had made, or that were forgotten, and that were adopted.
    adopted: BTreeSet<String>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Witness(Mutex<Seen>);

impl Witness {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// Something happened that must never happen.
    pub(super) fn object(&self, what: String) {
        self.lock().objections.push(what);
    }

    pub(super) fn objections(&self) -> Vec<String> {
        self.lock().objections.clone()
    }

    pub(super) fn forgotten(&self) -> BTreeSet<String> {
        self.lock().forgotten.clone()
    }

    /// The record was edited by hand.
    pub(super) fn corrected(&self, record: &Record) {
        self.lock().records.insert(record.address.to_string(), record.clone());
    }

    /// A new plan is in force. What is being destroyed already keeps its permit, also when only its step has begun.
    pub(super) fn permits(
        &self,
        permits: BTreeMap<String, Permit>,
        forgets: BTreeSet<String>,
        running: &BTreeSet<String>,
    ) {
        let mut seen = self.lock();
        let begun = |record: &&Record| running.contains(&record.address.to_string());
        let begun = seen.records.values().filter(begun).flat_map(known_ids);
        let destroying: BTreeSet<String> = seen.records.values().filter_map(under_destruction).chain(begun).collect();
        seen.permits.retain(|id, _| destroying.contains(id));
        for (id, permit) in permits {
            seen.permits.entry(id).or_insert(permit);
        }
        seen.forgets.extend(forgets);
    }

    /// From now on these objects are triggered by these.
    pub(super) fn triggers(&self, triggers: BTreeMap<String, BTreeSet<String>>, things: &[Thing]) {
        let mut seen = self.lock();
        // What is not watched any more is seen for the first time when it is watched again.
        for (id, saw) in &mut seen.saw {
            let address = things.iter().find(|thing| thing.id == *id).map_or("", |thing| &thing.address);
            saw.retain(|target, _| triggers.get(address).is_some_and(|targets| targets.contains(target)));
        }
        seen.triggers = triggers;
    }

    /// The things that a write moves, and the address to which they belong from then on: that of the record, or, when a
    /// move is taken back, that of the record that was on its way there.
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

    /// The things that a write adopts: nobody was responsible for them before. They belong to the record from then on.
    pub(super) fn adopted_by(&self, record: &Record, things: &[Thing]) -> BTreeSet<String> {
        let mut seen = self.lock();
        let is_nobodys = |thing: &&Thing| thing.address == NOBODY || seen.forgotten.contains(&thing.id);
        let nobodys = ids(&things.iter().filter(is_nobodys).cloned().collect::<Vec<_>>());
        let adopted: BTreeSet<String> = known_ids(record).intersection(&nobodys).cloned().collect();
        // What somebody else destroys after the plan is adopted all the same.
        let lost = known_ids(record).into_iter().filter(|id| id.starts_with("stranger-"));
        seen.adopted.extend(lost);
        seen.forgotten.retain(|id| !adopted.contains(id));
        seen.adopted.extend(adopted.iter().cloned());
        adopted
    }

    /// From now on these manifests have, or have not, a hook before a destroy that must not fail.
    pub(super) fn drains(&self, drains: BTreeMap<String, bool>) {
        self.lock().drains = drains;
    }

    /// A hook ran to its end, and did not fail.
    pub(super) fn sees_hook(&self, hook: &str, id: &str) {
        self.lock().ran.insert((hook.to_owned(), id.to_owned()));
    }

    /// A thing was made: what triggers it is remembered as it is.
    pub(super) fn sees_made(&self, address: &str, id: &str, things: &[Thing]) {
        let mut seen = self.lock();
        let targets = seen.triggers.get(address).cloned().unwrap_or_default();
        let echo = |target: &String| {
            let (address, _) = target.split_once(" by ")?;
            let current = seen.records.get(address)?.current.as_ref()?.id()?.to_owned();
            let thing = things.iter().find(|thing| thing.id == current)?;
            Some((target.clone(), thing.echo.clone()))
        };
        let saw = targets.iter().filter_map(echo).collect();
        seen.saw.insert(id.to_owned(), saw);
    }

    /// What a thing saw of one that triggers it, when it was made.
    pub(super) fn saw(&self, id: &str, target: &str) -> Option<String> {
        self.lock().saw.get(id)?.get(target).cloned()
    }

    pub(super) fn sees_create(&self, address: &str, operation: &str, things: &[Thing]) {
        let mut seen = self.lock();
        let known = seen.records.get(address).map(known_ids).unwrap_or_default();
        let strangers: Vec<String> = things
            .iter()
            .filter(|thing| thing.address == address && !known.contains(&thing.id))
            .filter(|thing| !seen.forgotten.contains(&thing.id))
            .map(|thing| thing.id.clone())
            .collect();
        if !strangers.is_empty() {
            seen.objections.push(format!("{address}: created again, though {strangers:?} exist and are not recorded"));
        }
        seen.must_be_intended(address, operation, Operation::Create);
    }

    pub(super) fn sees_update(&self, address: &str, operation: &str) {
        self.lock().must_be_intended(address, operation, Operation::Update);
    }

    pub(super) fn sees_destroy(&self, address: &str, operation: &str, id: &str, things: &[Thing]) {
        let mut seen = self.lock();
        seen.must_be_intended(address, operation, Operation::Destroy);
        if seen.records.get(address).and_then(under_destruction).as_deref() != Some(id) {
            seen.objections.push(format!("{address}: {id} is destroyed, which is not what was intended"));
        }
        let by_record = seen.records.get(address).and_then(chosen).is_some_and(|object| {
            object.hooks.iter().any(|hook| &*hook.name == "drain" && hook.on_failure == OnFailure::Fail)
        });
        let by_manifest = seen.drains.get(address).copied().unwrap_or(by_record);
        if by_record && by_manifest && !seen.ran.contains(&("drain".to_owned(), id.to_owned())) {
            seen.objections.push(format!("{address}: {id} is destroyed, and its hook has not run"));
        }
        let Some(permit) = seen.permits.get(id).cloned() else {
            seen.objections.push(format!("{address}: {id} is destroyed, and no plan in force says so"));
            return;
        };
        let users = things.iter().filter(|user| user.uses(id) && !seen.forgotten.contains(&user.id));
        let users = users.filter(|user| !permit.follow_later.contains(&user.address));
        let users: Vec<String> = users.map(|user| user.id.clone()).collect();
        if !users.is_empty() {
            seen.objections.push(format!("{address}: {id} is destroyed while {users:?} use it"));
        }
    }

    /// A write has taken effect.
    pub(super) fn sees_write(&self, operation: memory::Operation, record: &Record, things: &[Thing]) {
        let mut seen = self.lock();
        let address = record.address.to_string();
        let empty = || Record::empty(record.namespace.clone(), record.address.clone(), "".into(), "".into());
        let old = seen.records.get(&address).cloned().unwrap_or_else(empty);
        let new = if operation == memory::Operation::Erase { empty() } else { record.clone() };
        let exists = |id: &String| things.iter().any(|thing| thing.id == *id);

        let kept = known_ids(&new);
        let elsewhere = |seen: &Seen, id: &String| {
            seen.records.iter().any(|(other, record)| *other != address && known_ids(record).contains(id))
        };
        for id in known_ids(&old).difference(&kept).filter(|id| exists(id)) {
            if operation == memory::Operation::Erase && elsewhere(&seen, id) {
                // It has arrived there, or has never left.
            } else if seen.forgets.contains(&address) {
                seen.forgotten.insert(id.clone());
            } else {
                seen.objections.push(format!("{address}: its record lets go of {id}, which still exists"));
            }
        }
        let mut objections = Vec::new();
        for id in kept.difference(&known_ids(&old)) {
            let leaves = |other: &Record| other.moving_to.as_deref() == Some(&record.address);
            let mut others = seen.records.iter().filter(|(other, _)| **other != address);
            if let Some((other, _)) = others.find(|(_, other)| known_ids(other).contains(id) && !leaves(other)) {
                objections.push(format!("it takes {id}, which is {other}'s"));
            }
        }
        if new.current.as_ref().is_some_and(|object| object.status == ObjectStatus::Tainted)
            && is_adopted(&seen, new.current.as_ref())
        {
            objections.push("what it has adopted is tainted".to_owned());
        }
        if operation == memory::Operation::Intend && new.intent.is_some() && old.intent.is_some() {
            objections.push("an intent is written over an open one".to_owned());
        }
        match (&old.intent, &new.intent) {
            (Some(closed), None) if closed.operation == Operation::Create => {
                let made = things.iter().find(|thing| *thing.made_by == *closed.operation_id);
                match made {
                    Some(made) if !kept.contains(&made.id) => {
                        objections.push(format!("its create is settled without {}, which it made", made.id));
                    }
                    Some(_) => {}
                    None => {
                        let old = closed.deposed.and_then(|key| old.deposed.get(&key)).and_then(|object| object.id());
                        let current = new.current.as_ref().and_then(|object| object.id());
                        if old.is_some()
                            && (current != old || new.deposed.keys().any(|key| Some(*key) == closed.deposed))
                        {
                            objections.push(format!("its create made nothing, and {old:?} is not current again"));
                        }
                    }
                }
            }
            (None, Some(opened)) if opened.operation == Operation::Create => match opened.deposed {
                None if new.current.is_some() => objections.push("a create is intended over an object".into()),
                // What is adopted may have to be replaced at once.
                Some(key) if old.current.is_none() && is_adopted(&seen, new.deposed.get(&key)) => {}
                Some(key) if !is_same(new.deposed.get(&key), old.current.as_ref()) => {
                    objections.push("what it deposes is not its current object".into());
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

    /// Nothing runs: every thing is in a record, or covered by an open intent; and the other way round, every
    /// recorded object exists unless `lost` says that somebody else destroyed it.
    pub(super) fn takes_stock(&self, things: &[Thing], lost: &BTreeSet<String>) {
        let mut seen = self.lock();
        let mut objections = Vec::new();
        let is_ours = |thing: &&Thing| thing.address != NOBODY && !seen.forgotten.contains(&thing.id);
        for thing in things.iter().filter(is_ours) {
            let record = seen.records.get(&thing.address);
            let is_known = record.is_some_and(|record| {
                known_ids(record).contains(&thing.id)
                    || record.intent.as_ref().is_some_and(|intent| *intent.operation_id == *thing.made_by)
            });
            if !is_known {
                objections.push(format!("{}: {} exists and nothing tells of it", thing.address, thing.id));
            }
        }
        let existing = ids(things);
        for record in seen.records.values() {
            let gone = known_ids(record).into_iter().filter(|id| !existing.contains(id) && !lost.contains(id));
            let gone: Vec<String> = gone.filter(|id| under_destruction(record).as_ref() != Some(id)).collect();
            if !gone.is_empty() {
                objections.push(format!("{}: {gone:?} are recorded and do not exist", record.address));
            }
        }
        seen.objections.extend(objections);
    }
}

impl Seen {
    fn must_be_intended(&mut self, address: &str, operation_id: &str, operation: Operation) {
        let intent = self.records.get(address).and_then(|record| record.intent.as_deref());
        if !intent.is_some_and(|intent| intent.operation == operation && *intent.operation_id == *operation_id) {
            self.objections.push(format!("{address}: {} without a durable intent", operation.as_str()));
        }
    }
}

fn is_adopted(seen: &Seen, object: Option<&Arc<RecordedObject>>) -> bool {
    object.and_then(|object| object.id()).is_some_and(|id| seen.adopted.contains(id))
}

/// Whether what is deposed is what was current, whatever was seen of it in between.
fn is_same(deposed: Option<&Arc<RecordedObject>>, current: Option<&Arc<RecordedObject>>) -> bool {
    let (Some(deposed), Some(current)) = (deposed, current) else { return false };
    deposed.id() == current.id() && deposed.status == current.status && deposed.dependencies == current.dependencies
}

/// The ids of all objects of a record.
pub(super) fn known_ids(record: &Record) -> BTreeSet<String> {
    let objects = record.current.iter().chain(record.deposed.values());
    objects.filter_map(|object| object.id()).map(str::to_owned).collect()
}

/// What an open intent is destroying.
fn chosen(record: &Record) -> Option<&RecordedObject> {
    let intent = record.intent.as_deref().filter(|intent| intent.operation == Operation::Destroy)?;
    let object = match intent.deposed {
        Some(key) => record.deposed.get(&key)?,
        None => record.current.as_ref()?,
    };
    Some(object)
}

/// The id of what an open intent is destroying.
fn under_destruction(record: &Record) -> Option<String> {
    chosen(record)?.id().map(str::to_owned)
}
