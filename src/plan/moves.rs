//! Moves: an object gets another address and stays what it is.
//!
//! Takes what is wanted and what is recorded; gives the records that belong to another address now, and the records as
//! they are after that. Writing it is `execute`'s. A move happens because a Resource says so (the annotation
//! `purlin.dev/moved-from`), or because it goes without saying: between an object without a key and `[0]`, or the only
//! key of a `forEach`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Held, Mode, PlanOptions};
use crate::load::{Config, Expansion, Family, Instance};
use crate::model::{Address, Diagnostic, Diagnostics, InstanceKey, Reason, Record, Recorded, RecordedObject, Stored};

/// One record that belongs to another address now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it was.
    pub from: Address,
    /// Where it belongs.
    pub to: Address,
    /// The UID of the Resource that it belongs to.
    pub uid: Arc<str>,
}

/// What is to be moved.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// In the order in which they are carried out.
    pub moves: Vec<Move>,
    /// Objects that wait for a move that is not possible yet: nothing may be created in their place.
    pub held: BTreeMap<Address, Held>,
    /// Moves that do not happen.
    pub diagnostics: Diagnostics,
}

/// Finds the moves. A plan towards nothing only finishes those that a crash cut.
pub fn find(config: &Config, recorded: &Recorded, options: &PlanOptions) -> Moves {
    let running = options.running.iter().map(|running| &running.step.address).collect();
    let mut search = Search { config, recorded, running, found: Moves::default(), taken: BTreeSet::new() };
    for (from, stored) in recorded {
        if let Some(to) = &stored.record.moving_to {
            let uid = config.resource(to).map_or_else(|| Arc::from(""), |resource| resource.uid.clone());
            search.take(Move { from: from.clone(), to: Address::clone(to), uid });
        }
    }
    if options.mode == Mode::Normal && !recorded.is_empty() {
        for (address, instance) in config.instances.iter().filter(|(_, instance)| instance.is_wanted()) {
            search.look_for(address, instance);
        }
        config.families.values().for_each(|family| search.hold_for(family));
    }
    search.found
}

struct Search<'a> {
    config: &'a Config,
    recorded: &'a Recorded,
    /// Objects with a step under way.
    running: BTreeSet<&'a Address>,
    found: Moves,
    taken: BTreeSet<Address>,
}

impl Search<'_> {
    fn take(&mut self, found: Move) {
        self.taken.insert(found.from.clone());
        self.taken.insert(found.to.clone());
        self.found.moves.push(found);
    }

    fn record(&self, address: &Address) -> Option<&Arc<Record>> {
        let record = self.recorded.get(address).map(|stored| &stored.record)?;
        (record.has_objects() || record.intent.is_some()).then_some(record)
    }

    fn look_for(&mut self, address: &Address, instance: &Instance) {
        if self.taken.contains(address) {
            return;
        }
        let explicit = self.named(address, &instance.moved_from);
        let occupied = self.record(address).is_some();
        let told = explicit.iter().map(|from| (from, true));
        let implied = if occupied { Vec::new() } else { self.other_keys(&address.name, address) };
        for (from, explicit) in told.chain(implied.iter().map(|from| (from, false))) {
            let Some(record) = self.record(from).filter(|_| !self.taken.contains(from)) else { continue };
            let problem = |what: String, hint: &str| Diagnostic::warning(address, Reason::MoveBlocked, what).hint(hint);
            if occupied {
                let what = format!("`{from}` is not moved here, since there is an object already");
                self.found.diagnostics.push(problem(what, "remove the annotation `purlin.dev/moved-from`"));
                return;
            }
            if record.type_name != instance.type_name {
                if explicit {
                    let what = format!("`{from}` is not moved here, since it is of type `{}`", record.type_name);
                    self.found.diagnostics.push(problem(what, "remove the annotation `purlin.dev/moved-from`"));
                }
                continue;
            }
            if self.lives(from) {
                let message = format!("`{from}` still has a Resource that wants it, so it is not moved here yet");
                self.found.held.insert(address.clone(), Held { reason: Reason::MoveBlocked, message });
                return;
            }
            if let Some(open) = self.open_operation(from) {
                let message =
                    format!("`{from}` is moved to `{address}` once the open operation of `{open}` is settled");
                let held = Held { reason: Reason::OperationInProgress, message };
                self.found.held.insert(address.clone(), held.clone());
                self.found.held.insert(from.clone(), held);
                return;
            }
            let (from, to, uid) = (from.clone(), address.clone(), instance.uid.clone());
            return self.take(Move { from, to, uid });
        }
    }

    /// Whether the object is still wanted where it is, or nobody can tell.
    fn lives(&self, from: &Address) -> bool {
        let unclear =
            |family: &Arc<Family>| family.shared.is_wanted() && !matches!(family.expansion, Expansion::Known(_));
        self.config.instances.get(from).is_some_and(|instance| instance.is_wanted())
            || self.config.families.get(&from.name).is_some_and(unclear)
    }

    /// While it is not known which instances a family has, nobody can tell what of the objects that are to be moved
    /// to it is still wanted.
    fn hold_for(&mut self, family: &Family) {
        if !family.shared.is_wanted() || matches!(family.expansion, Expansion::Known(_)) {
            return;
        }
        let to = &family.shared.address;
        for from in family.shared.moved_from.iter() {
            let all = self.recorded.range(Address::single(from.name.clone())..);
            let of_name = all.map(|(address, _)| address).take_while(|address| address.name == from.name);
            for address in of_name.filter(|address| from.key == InstanceKey::None || *address == from) {
                let message =
                    format!("it is to be moved to `{to}`, of which it is not known which objects it stands for");
                let held = Held { reason: Reason::MoveBlocked, message };
                self.found.held.entry(address.clone()).or_insert(held);
            }
        }
    }

    /// The addresses that the annotation means, best first.
    fn named(&self, address: &Address, moved_from: &[Address]) -> Vec<Address> {
        let mut all = Vec::new();
        for from in moved_from {
            if from.key == InstanceKey::None {
                all.push(Address { name: from.name.clone(), key: address.key.clone() });
                all.extend(self.other_keys(&from.name, address));
            } else if address.key == InstanceKey::None || self.is_alone(address) {
                all.push(from.clone());
            }
        }
        all
    }

    /// Where the object of an instance may be recorded in `name` because the Resource got a key, or lost it.
    fn other_keys(&self, name: &Arc<str>, address: &Address) -> Vec<Address> {
        let at = |key| Address { name: name.clone(), key };
        match &address.key {
            InstanceKey::Index(0) => vec![at(InstanceKey::None)],
            InstanceKey::Key(_) if self.is_alone(address) => vec![at(InstanceKey::None)],
            InstanceKey::Index(_) | InstanceKey::Key(_) => Vec::new(),
            InstanceKey::None => {
                let first = at(InstanceKey::Index(0));
                let mut of_name = self.recorded.range(at(InstanceKey::None)..).map(|(address, _)| address);
                let mut keyed = of_name.by_ref().take_while(|a| a.name == *name).filter(|a| a.key != InstanceKey::None);
                match (keyed.next(), keyed.next()) {
                    (Some(only), None) => vec![only.clone()],
                    _ if self.recorded.contains_key(&first) => vec![first],
                    _ => Vec::new(),
                }
            }
        }
    }

    /// Whether it is the only instance that is wanted of its Resource.
    fn is_alone(&self, address: &Address) -> bool {
        self.config.family(&address.name).count() == 1
    }

    /// An operation that is open on the record, or on one that names it.
    fn open_operation(&self, from: &Address) -> Option<&Address> {
        let is_open = |address: &Address, record: &Record| record.intent.is_some() || self.running.contains(address);
        let mut open = self.recorded.iter().filter(|(address, stored)| is_open(address, &stored.record));
        let whole = Address::single(from.name.clone());
        let names = |record: &Record| objects(record).any(|o| o.dependencies.iter().any(|d| d == from || *d == whole));
        open.find(|(address, stored)| *address == from || names(&stored.record)).map(|(address, _)| address)
    }
}

fn objects(record: &Record) -> impl Iterator<Item = &Arc<RecordedObject>> {
    record.current.iter().chain(record.deposed.values())
}

/// The record under its new address.
pub fn moved(record: &Record, to: &Move) -> Record {
    Record { address: to.to.clone(), uid: to.uid.clone(), moving_to: None, ..record.clone() }
}

/// The record with its dependencies under their new addresses; `None` when it names none of them.
pub fn redirected(record: &Record, moves: &[Move], recorded: &Recorded) -> Option<Record> {
    let new = |dependency: &Address| {
        let exact = moves.iter().find(|one| one.from == *dependency).map(|one| one.to.clone());
        exact.or_else(|| {
            // The whole of a family that goes to another name.
            let whole = dependency.key == InstanceKey::None && !recorded.contains_key(dependency);
            let one = moves.iter().find(|one| whole && one.from.name == dependency.name)?;
            (one.to.name != one.from.name).then(|| Address::single(one.to.name.clone()))
        })
    };
    if !objects(record).any(|object| object.dependencies.iter().any(|dependency| new(dependency).is_some())) {
        return None;
    }
    let mut record = record.clone();
    for object in record.current.iter_mut().chain(record.deposed.values_mut()) {
        let all = object.dependencies.iter().map(|dependency| new(dependency).unwrap_or_else(|| dependency.clone()));
        let all: BTreeSet<Address> = all.collect();
        Arc::make_mut(object).dependencies = all.into_iter().collect();
    }
    Some(record)
}

/// The records as they are after the moves. Their versions are those of before.
pub fn carried(recorded: &Recorded, moves: &[Move]) -> Recorded {
    let mut after = recorded.clone();
    for one in moves {
        let Some(old) = after.remove(&one.from) else { continue };
        // A crash may have come after the new record was written.
        if !after.get(&one.to).is_some_and(|stored| stored.record.has_objects()) {
            let record = Arc::new(moved(&old.record, one));
            after.insert(one.to.clone(), Stored { record, version: old.version });
        }
    }
    for stored in after.values_mut() {
        if let Some(record) = redirected(&stored.record, moves, recorded) {
            stored.record = Arc::new(record);
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Version;
    use crate::plan::tests::world::object;

    fn recorded(all: &[(&str, &[&str])]) -> Recorded {
        let record = |(address, uses): &(&str, &[&str])| {
            let address: Address = address.parse().unwrap();
            let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
            let dependencies = uses.iter().map(|name| name.parse().unwrap()).collect();
            record.current = Some(Arc::new(RecordedObject { dependencies, ..object("x", &[]) }));
            (address, Stored { record: Arc::new(record), version: Version(1) })
        };
        all.iter().map(record).collect()
    }

    fn one(from: &str, to: &str) -> Move {
        Move { from: from.parse().unwrap(), to: to.parse().unwrap(), uid: "".into() }
    }

    fn told(recorded: &Recorded) -> Vec<String> {
        let uses = |record: &Record| {
            objects(record).flat_map(|o| o.dependencies.iter().map(ToString::to_string)).collect::<Vec<_>>().join(" ")
        };
        recorded.iter().map(|(address, stored)| format!("{address}: {}", uses(&stored.record))).collect()
    }

    #[test]
    fn dependencies_follow_instance_by_instance_and_as_a_whole() {
        let before = recorded(&[("a[0]", &[]), ("b", &["a", "a[0]"]), ("s", &[]), ("u", &["s", "b"])]);
        let after = carried(&before, &[one("a[0]", "z[0]"), one("s", "s[0]")]);
        assert_eq!(told(&after), ["b: z z[0]", "s[0]: ", "u: b s[0]", "z[0]: "]);
    }

    #[test]
    fn a_move_that_a_crash_cut_is_finished_and_its_object_is_there_once() {
        let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a"])]);
        let cut = records.get_mut(&Address::single("a")).unwrap();
        Arc::make_mut(&mut cut.record).moving_to = Some(Box::new(Address::single("b")));
        let options = PlanOptions { mode: Mode::Destroy, ..PlanOptions::default() };
        let found = find(&Config::default(), &records, &options);
        assert_eq!(found.moves, [one("a", "b")]);
        assert_eq!(told(&carried(&records, &found.moves)), ["b: ", "c: b"]);
    }
}
