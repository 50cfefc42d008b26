//! Users who change the keys of a family and keep its objects with `spec.moved`, sometimes with a mistake.

use purlin::model::{Address, InstanceKey};
use serde_json::{Value, json};

use super::references::SAME_INDEX;
use super::{Kubectl, User, claim_of, is_family};
use crate::judge::Judge;

impl User {
    /// Renames a key of a family, or gives its objects keys instead of numbers or numbers instead of keys.
    pub(super) fn rekey(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let families: Vec<String> = kubectl.names().into_iter().filter(|name| is_family(name)).collect();
        if families.is_empty() {
            return self.change_one(kubectl, judge);
        }
        let name = self.random.pick(&families).clone();
        let Some(old) = kubectl.get(&name) else { return };
        let mut spec = old["spec"].clone();
        let before = keys(&spec);
        let after = self.other_keys(&before);
        let mut moved: Vec<Value> = Vec::new();
        for (from, to) in before.iter().zip(&after).filter(|(from, to)| from != to) {
            moved.push(json!({ "from": format!("{name}{from}"), "to": to.to_string() }));
        }
        if !moved.is_empty() && self.random.chance(200) {
            match self.random.below(3) {
                0 => moved[0]["to"] = json!("[\"nowhere\"]"),
                1 => moved[0]["from"] = json!(format!("{name}[9]")),
                _ => drop(moved[0].as_object_mut().expect("an entry").remove("to")),
            }
        }
        set_keys(&mut spec, &after);
        spec["moved"] = json!(moved);
        self.apply(kubectl, judge, &name, &spec, &claim_of(&old));
    }

    fn other_keys(&mut self, before: &[InstanceKey]) -> Vec<InstanceKey> {
        let has_names = matches!(before.first(), Some(InstanceKey::Key(_)));
        if has_names && self.random.chance(400) {
            return (0..before.len() as u64).map(InstanceKey::Index).collect();
        }
        self.count += 1;
        let fresh = |position: usize| InstanceKey::Key(format!("k{}-{position}", self.count).into());
        if !has_names {
            return (0..before.len()).map(fresh).collect();
        }
        let renamed = self.random.pick(before).clone();
        let other = |key: &InstanceKey| if *key == renamed { fresh(0) } else { key.clone() };
        before.iter().map(other).collect()
    }
}

/// The keys of the instances of a spec.
pub(super) fn keys(spec: &Value) -> Vec<InstanceKey> {
    let names = spec["forEach"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let numbers = 0..spec["count"].as_u64().unwrap_or(0);
    names.map(|name| InstanceKey::Key(name.into())).chain(numbers.map(InstanceKey::Index)).collect()
}

fn set_keys(spec: &mut Value, keys: &[InstanceKey]) {
    let names: Vec<&str> = keys
        .iter()
        .filter_map(|key| match key {
            InstanceKey::Key(name) => Some(&**name),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        spec["count"] = json!(keys.len());
        spec["forEach"] = Value::Null;
    } else {
        spec["forEach"] = json!(names);
        spec["count"] = Value::Null;
        // Only numbered instances have an index.
        if spec["config"]["value"].as_str().is_some_and(|value| value.contains(SAME_INDEX)) {
            spec["config"]["value"] = json!("v0");
        }
    }
}

/// Changes the number of instances.
pub(super) fn resize(spec: &mut Value, size: u64) {
    let before = keys(spec);
    let has_names = matches!(before.first(), Some(InstanceKey::Key(_)));
    let added = |number: u64| match has_names {
        true => InstanceKey::Key(format!("n{number}").into()),
        false => InstanceKey::Index(number),
    };
    let kept = before.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let all: Vec<InstanceKey> = (0..size).zip(kept).map(|(number, key)| key.unwrap_or_else(|| added(number))).collect();
    set_keys(spec, &all);
}

/// Removes the entries of `spec.moved` whose object has not come to where they say. Fulfilled ones may stay.
pub(super) fn forget_open_moves(kubectl: &dyn Kubectl, name: &str, spec: &mut Value) {
    let (records, desired) = (kubectl.records(name), keys(spec));
    let has_come = |entry: &Value| {
        let from = entry["from"].as_str().and_then(|from| from.parse::<Address>().ok());
        let to = entry["to"].as_str().and_then(|to| format!("{name}{to}").parse::<Address>().ok());
        from.is_some_and(|from| {
            let mut came = records.iter().filter(|record| record.moved_from.contains(&from));
            came.any(|record| match &to {
                Some(to) => record.address == *to || record.moved_from.contains(to),
                None => desired.contains(&record.address.key),
            })
        })
    };
    let entries = spec["moved"].as_array().cloned().unwrap_or_default();
    spec["moved"] = json!(entries.into_iter().filter(has_come).collect::<Vec<_>>());
}
