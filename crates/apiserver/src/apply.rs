//! Server-side apply: merges the fields that a manager applies, and removes those that it applied before and no longer
//! applies, unless another manager owns them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::{Fields, Manager, Owners, Shape, Step, compare, granular, item_step, shape};

/// Fields of other managers that would change: the display name of the manager, and the field.
pub type Conflicts = Vec<(String, String)>;

/// Returns the object and its owners after an apply.
pub fn apply(
    live: &Value,
    owners: &Arc<Owners>,
    wanted: &Value,
    manager: &Manager,
    force: bool,
) -> Result<(Value, Arc<Owners>), Conflicts> {
    let fields = Fields::all_of(wanted);
    let mut merged = live.clone();
    merge(&mut merged, wanted, Shape::Object, "");
    let mut others = Owners::clone(owners);
    let last = others.remove(manager).unwrap_or_default();
    let mut kept = fields.clone();
    others.values().for_each(|fields| kept.add(fields));
    take_out(&mut merged, &last, &kept, Shape::Object, "");

    let difference = compare(live, &merged);
    let mut conflicts = Vec::new();
    for (other, fields) in &others {
        let shared = difference.set.shared(fields);
        conflicts.extend(shared.into_iter().map(|field| (other.display_name(), field)));
    }
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    for fields in others.values_mut() {
        fields.take_out_exact(&difference.set);
        fields.take_out_exact(&difference.removed);
    }
    if !fields.is_empty() {
        others.insert(manager.clone(), fields);
    }
    others.retain(|_, fields| !fields.is_empty());
    let owners = if others == **owners { owners.clone() } else { Arc::new(others) };
    Ok((merged, owners))
}

fn merge(live: &mut Value, wanted: &Value, here: Shape, name: &str) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) if here != Shape::Atomic => {
            for (field, wanted) in granular(wanted, here) {
                match live.get_mut(field) {
                    Some(live) => merge(live, wanted, shape(here, name, field), field),
                    None => drop(live.insert(field.clone(), wanted.clone())),
                }
            }
        }
        (Value::Array(live), Value::Array(wanted)) if matches!(here, Shape::Keyed(_) | Shape::Set) => {
            for item in wanted {
                let step = item_step(here, item);
                match live.iter_mut().find(|other| item_step(here, other) == step) {
                    Some(live) => merge(live, item, Shape::Map, ""),
                    None => live.push(item.clone()),
                }
            }
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

/// Removes the paths of `last` that are not in `kept`, and the maps and lists that become empty.
fn take_out(value: &mut Value, last: &Fields, kept: &Fields, here: Shape, name: &str) {
    let nothing = Fields::default();
    match value {
        Value::Object(map) => {
            for (step, fields) in &last.below {
                let Step::Field(field) = step else { continue };
                let keep = kept.below.get(step).unwrap_or(&nothing);
                if fields.own && keep.is_empty() {
                    map.remove(&**field);
                } else if let Some(below) = map.get_mut(&**field) {
                    let was_empty = is_empty(below);
                    take_out(below, fields, keep, shape(here, name, field), field);
                    if is_empty(below) && !was_empty && !keep.own {
                        map.remove(&**field);
                    }
                }
            }
        }
        Value::Array(items) => items.retain_mut(|item| {
            let step = item_step(here, item);
            let Some(fields) = last.below.get(&step) else { return true };
            let keep = kept.below.get(&step).unwrap_or(&nothing);
            if fields.own && keep.is_empty() {
                return false;
            }
            take_out(item, fields, keep, Shape::Map, "");
            true
        }),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
