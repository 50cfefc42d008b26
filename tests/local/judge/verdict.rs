//! The end of a history: the world is as it is wanted, and the records tell the truth about it.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Address, ObjectStatus, Value};

use super::history::History;
use super::rules::{self, Facts};
use super::world::Thing;

impl History {
    pub(super) fn has_converged(&self) -> Result<(), String> {
        let forgotten = self.witness.forgotten();
        let mut things: BTreeMap<String, Thing> = BTreeMap::new();
        for thing in self.world.things().into_iter().filter(|thing| !forgotten.contains(&thing.id)) {
            if let Some(other) = things.insert(thing.address.clone(), thing) {
                return Err(format!("in the end {} exists beside another one", other.id));
            }
        }
        let wanted: BTreeSet<&String> =
            self.wish.wants.keys().filter(|name| self.wish.wanted(name).is_some()).collect();
        let existing: BTreeSet<&String> = things.keys().collect();
        if wanted != existing {
            return Err(format!("in the end {existing:?} exist, and {wanted:?} are wanted"));
        }
        for (name, thing) in &things {
            self.is_as_wanted(name, thing, &things)?;
        }
        self.records_are_true(&things)
    }

    fn is_as_wanted(&self, name: &str, thing: &Thing, things: &BTreeMap<String, Thing>) -> Result<(), String> {
        let want = &self.wish.wants[name];
        for target in &want.triggers {
            let saw = self.witness.saw(&thing.id, target);
            if saw.as_ref().is_some_and(|saw| *saw != things[target].echo) {
                return Err(format!("in the end {} has not been replaced since {target} changed", thing.id));
            }
        }
        let ids = |targets: &BTreeSet<String>| {
            Value::list(targets.iter().map(|target| Value::from(things[target].id.as_str())))
        };
        let echoes = Value::list(want.notes.iter().map(|target| Value::from(things[target].echo.as_str())));
        let wanted = [
            ("label", Value::from(format!("l{}", want.label).as_str())),
            ("shape", Value::from(format!("s{}", want.shape).as_str())),
            ("links", ids(&want.links)),
            ("anchors", ids(&want.anchors)),
            ("notes", echoes),
        ];
        for (argument, value) in wanted {
            if !thing.arguments[argument].same(&value) {
                return Err(format!(
                    "in the end {}.{argument} is {:?}, not {value:?}",
                    thing.id, thing.arguments[argument]
                ));
            }
        }
        Ok(())
    }

    fn records_are_true(&self, things: &BTreeMap<String, Thing>) -> Result<(), String> {
        let mut facts = Facts::default();
        for name in things.keys() {
            let want = &self.wish.wants[name];
            let x = Address::single(name.as_str());
            facts.wants.insert(x.clone(), want.targets().into_iter().map(Address::single).collect());
            facts.used.insert(x.clone(), facts.wants[&x].clone());
            if want.create_first == Some(true) {
                facts.asks.insert(x.clone());
            }
            facts.wanted.insert(x);
        }
        let first = rules::create_first(&facts);
        let records = self.records();
        if records.keys().collect::<Vec<_>>() != facts.wanted.iter().collect::<Vec<_>>() {
            return Err(format!("in the end there are records of {:?}", records.keys().collect::<Vec<_>>()));
        }
        for (x, stored) in &records {
            let record = &stored.record;
            let want = &self.wish.wants[&*x.name];
            let Some(current) = &record.current else { return Err(format!("{x}: no object is recorded in the end")) };
            let dependencies: BTreeSet<Address> = current.dependencies.iter().cloned().collect();
            let problem = if record.intent.is_some() {
                "an intent is open"
            } else if !record.deposed.is_empty() {
                "a leftover is recorded"
            } else if record.replacement_pending {
                "a replacement is said to be pending"
            } else if current.status != ObjectStatus::Ready {
                "the object is not ready"
            } else if current.id() != Some(&things[&*x.name].id) {
                "another object is recorded"
            } else if dependencies != facts.wants[x] {
                "other dependencies are recorded"
            } else if current.create_before_destroy != first.contains(x) {
                "another flag is recorded"
            } else if current.prevent_destroy != want.prevent_destroy || current.skip_destroy != want.orphan {
                "another protection is recorded"
            } else {
                continue;
            };
            return Err(format!("{x}: in the end {problem}: {record:?}"));
        }
        Ok(())
    }
}
