//! The end of a history: all objects match the desired state, and the records match the objects.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Address, InstanceKey, ObjectStatus, Value};

use super::fake_driver::{FakeObject, UNMANAGED};
use super::history::History;
use super::plan_check;
use super::rules::{self, Facts};

impl History {
    pub(super) fn has_converged(&self) -> Result<(), String> {
        let forgotten = self.witness.forgotten();
        let mut things: BTreeMap<String, FakeObject> = BTreeMap::new();
        let is_ours = |thing: &FakeObject| thing.address != UNMANAGED && !forgotten.contains(&thing.id);
        for thing in self.driver.objects().into_iter().filter(is_ours) {
            if let Some(other) = things.insert(thing.address.clone(), thing) {
                return Err(format!("in the end {} exists beside another one", other.id));
            }
        }
        let wanted: BTreeSet<String> = self.desired_addresses().iter().map(ToString::to_string).collect();
        let existing: BTreeSet<String> = things.keys().cloned().collect();
        if wanted != existing {
            return Err(format!("in the end {existing:?} exist, but {wanted:?} are desired"));
        }
        for x in self.desired_addresses() {
            self.check_object(&x, &things[&x.to_string()], &things)?;
        }
        self.check_records(&things)
    }

    fn desired_addresses(&self) -> BTreeSet<Address> {
        self.desired.instances().into_iter().filter(|x| self.desired.desired(x).is_some()).collect()
    }

    fn check_object(
        &self,
        x: &Address,
        thing: &FakeObject,
        things: &BTreeMap<String, FakeObject>,
    ) -> Result<(), String> {
        let want = &self.desired.resources[&**x.name()];
        for target in self.desired.triggers(x) {
            let saw = self.witness.trigger_value(&thing.id, &target);
            let (target, _) = target.split_once(" by ").unwrap_or_default();
            if saw.as_ref().is_some_and(|saw| *saw != things[target].echo) {
                return Err(format!("in the end {} has not been replaced since {target} changed", thing.id));
            }
        }
        let list = |targets: &BTreeSet<String>, text: &dyn Fn(&FakeObject) -> String| {
            let text = |target: &Address| things.get(&target.to_string()).map(text);
            plan_check::expected_list(&self.desired, x, targets, &text).unwrap_or_default()
        };
        let wanted = [
            ("label", Value::from(want.label_of(&x.key).as_str())),
            ("shape", Value::from(format!("s{}", want.shape).as_str())),
            ("links", list(&want.links, &|thing| thing.id.clone())),
            ("anchors", list(&want.anchors, &|thing| thing.id.clone())),
            ("notes", list(&want.notes, &|thing| thing.echo.clone())),
        ];
        for (argument, value) in wanted {
            if !thing.arguments[argument].equals_unmarked(&value) {
                return Err(format!(
                    "in the end {}.{argument} is {:?}, not {value:?}",
                    thing.id, thing.arguments[argument]
                ));
            }
        }
        Ok(())
    }

    fn check_records(&self, things: &BTreeMap<String, FakeObject>) -> Result<(), String> {
        let mut facts = Facts::default();
        for x in self.desired_addresses() {
            let want = &self.desired.resources[&**x.name()];
            facts.references.insert(x.clone(), self.desired.references(&x));
            let of = |target: &Address| match target.key {
                InstanceKey::All => rules::all_desired(target.name()),
                _ => target.clone(),
            };
            facts.configured.insert(x.clone(), facts.references[&x].iter().map(of).collect());
            if want.create_first == Some(true) {
                facts.configured_create_first.insert(x.clone());
            }
            facts.desired.insert(x);
        }
        for name in self.desired.resources.keys() {
            facts.configured.insert(rules::all_desired(name), self.desired.members(name).into_iter().collect());
        }
        let first = rules::create_first(&facts);
        let records = self.records();
        if records.keys().collect::<Vec<_>>() != facts.desired.iter().collect::<Vec<_>>() {
            return Err(format!("in the end there are records of {:?}", records.keys().collect::<Vec<_>>()));
        }
        for (x, stored) in &records {
            let record = &stored.record;
            let want = &self.desired.resources[&**x.name()];
            let Some(current) = &record.current else { return Err(format!("{x}: no object is recorded in the end")) };
            let dependencies: BTreeSet<Address> = current.dependencies.iter().cloned().collect();
            let problem = if record.intent.is_some() {
                "an intent is open"
            } else if !record.deposed.is_empty() {
                "a deposed object is recorded"
            } else if current.hooks_pending {
                "hooks are recorded as pending"
            } else if record.replacement_pending {
                "a replacement is recorded as pending"
            } else if current.status != ObjectStatus::Ready {
                "the object is not ready"
            } else if current.id() != Some(&things[&x.to_string()].id) {
                "another object is recorded"
            } else if dependencies != facts.references[x] {
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
