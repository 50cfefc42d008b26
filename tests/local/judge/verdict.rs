//! The end of a history: the world is as it is wanted, and the records tell the truth about it.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Address, InstanceKey, ObjectStatus, Value};

use super::history::History;
use super::rules::{self, Facts};
use super::view;
use super::world::{NOBODY, Thing};

impl History {
    pub(super) fn has_converged(&self) -> Result<(), String> {
        let forgotten = self.witness.forgotten();
        let mut things: BTreeMap<String, Thing> = BTreeMap::new();
        let is_ours = |thing: &Thing| thing.address != NOBODY && !forgotten.contains(&thing.id);
        for thing in self.world.things().into_iter().filter(is_ours) {
            if let Some(other) = things.insert(thing.address.clone(), thing) {
                return Err(format!("in the end {} exists beside another one", other.id));
            }
        }
        let wanted: BTreeSet<String> = self.wanted().iter().map(ToString::to_string).collect();
        let existing: BTreeSet<String> = things.keys().cloned().collect();
        if wanted != existing {
            return Err(format!("in the end {existing:?} exist, and {wanted:?} are wanted"));
        }
        for x in self.wanted() {
            self.is_as_wanted(&x, &things[&x.to_string()], &things)?;
        }
        self.records_are_true(&things)
    }

    fn wanted(&self) -> BTreeSet<Address> {
        self.wish.instances().into_iter().filter(|x| self.wish.wanted(x).is_some()).collect()
    }

    fn is_as_wanted(&self, x: &Address, thing: &Thing, things: &BTreeMap<String, Thing>) -> Result<(), String> {
        let want = &self.wish.wants[&*x.name];
        for target in self.wish.triggers(x) {
            let saw = self.witness.saw(&thing.id, &target);
            let (target, _) = target.split_once(" by ").unwrap_or_default();
            if saw.as_ref().is_some_and(|saw| *saw != things[target].echo) {
                return Err(format!("in the end {} has not been replaced since {target} changed", thing.id));
            }
        }
        let list = |targets: &BTreeSet<String>, text: &dyn Fn(&Thing) -> String| {
            let text = |target: &Address| things.get(&target.to_string()).map(text);
            view::seen(&self.wish, x, targets, &text).unwrap_or_default()
        };
        let wanted = [
            ("label", Value::from(want.label_of(&x.key).as_str())),
            ("shape", Value::from(format!("s{}", want.shape).as_str())),
            ("links", list(&want.links, &|thing| thing.id.clone())),
            ("anchors", list(&want.anchors, &|thing| thing.id.clone())),
            ("notes", list(&want.notes, &|thing| thing.echo.clone())),
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
        for x in self.wanted() {
            let want = &self.wish.wants[&*x.name];
            facts.refers.insert(x.clone(), self.wish.references(&x));
            let of = |target: &Address| match target.key {
                InstanceKey::All => rules::all_wanted(&target.name),
                _ => target.clone(),
            };
            facts.wants.insert(x.clone(), facts.refers[&x].iter().map(of).collect());
            if want.create_first == Some(true) {
                facts.asks.insert(x.clone());
            }
            facts.wanted.insert(x);
        }
        for name in self.wish.wants.keys() {
            facts.wants.insert(rules::all_wanted(name), self.wish.members(name).into_iter().collect());
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
            } else if current.hooks_pending {
                "hooks are said to be pending"
            } else if record.replacement_pending {
                "a replacement is said to be pending"
            } else if current.status != ObjectStatus::Ready {
                "the object is not ready"
            } else if current.id() != Some(&things[&x.to_string()].id) {
                "another object is recorded"
            } else if dependencies != facts.refers[x] {
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
