//! Whether what became of an object is what was planned: OpenTofu's rules for results, and for a second plan of the same
//! change. What it finds is a fault of the provider. From providers with the legacy type system these are warnings for
//! the log only.

use super::contract::Check;
use super::schema::{Block, NestedBlock, Nesting};
use super::{Type, Value, ValueError, nested};

/// Every place at which the actual value breaks a promise of the planned one: what was known has changed, or what was
/// unknown is not what was told of it. Both are of the type of the block.
pub fn result_faults(block: &Block, planned: &Value, actual: &Value) -> Vec<ValueError> {
    let mut check = Check::default();
    check_block(&mut check, block, planned, actual);
    check.found
}

fn check_block(check: &mut Check, block: &Block, planned: &Value, actual: &Value) {
    match (planned.is_null(), actual.is_null()) {
        (true, false) => return check.report("was planned to be absent, but is there"),
        (false, true) => return check.report("was planned, but is absent"),
        (true, true) => return,
        (false, false) => {}
    }
    for (name, attribute) in block.attributes() {
        let (planned, actual) = (planned.part(name), actual.part(name));
        check.at_name(name, |check| {
            if !attribute.sensitive {
                check_value(check, planned, actual);
            } else if !check.passes(|check| check_value(check, planned, actual)) {
                // Which part of it differs would tell about it.
                check.report("is not as planned");
            }
        });
    }
    for (name, nested) in block.blocks() {
        let (planned, actual) = (planned.part(name), actual.part(name));
        check.at_name(name, |check| check_blocks(check, nested, planned, actual));
    }
}

fn check_blocks(check: &mut Check, nested: &NestedBlock, planned: &Value, actual: &Value) {
    let block = &nested.block;
    if matches!(nested.nesting, Nesting::Single | Nesting::Group) {
        // How many blocks there are was not known, so there may be none.
        if !(planned.is_unknown() && actual.is_null()) {
            check_block(check, block, planned, actual);
        }
        return;
    }
    if planned.is_unknown() || actual.is_unknown() || planned.is_null() || actual.is_null() {
        return;
    }
    match nested.nesting {
        Nesting::Map => {
            let [planned, actual] = [planned, actual].map(|value| nested::entries(value, block.ty()));
            check.keys(&planned, &actual);
            for (key, planned) in planned.iter() {
                let Some(actual) = actual.get(key) else { continue };
                check.at_name(key, |check| check_block(check, block, planned, actual));
            }
        }
        Nesting::Set => {
            let [planned, actual] = [planned, actual].map(|value| nested::items(value, block.ty()));
            check_sets(check, &planned, &actual, |check, planned, actual| check_block(check, block, planned, actual));
        }
        _ => {
            let [planned, actual] = [planned, actual].map(|value| nested::items(value, block.ty()));
            if planned.len() != actual.len() {
                return check.report(format!("{} blocks were planned, but there are {}", planned.len(), actual.len()));
            }
            for (place, (planned, actual)) in planned.iter().zip(actual.iter()).enumerate() {
                check.at_index(place, |check| check_block(check, block, planned, actual));
            }
        }
    }
}

fn check_value(check: &mut Check, planned: &Value, actual: &Value) {
    match (planned, actual) {
        (Value::Unknown(refinement), actual) if refinement.admits(actual.bare()) => {}
        (Value::Unknown(_), _) => check.report("is not what the plan told of the value, which was not known yet"),
        (Value::Dynamic(planned), Value::Dynamic(actual)) => {
            if !fits(&planned.ty, &actual.ty) {
                return check.report(format!("was planned as {}, but is {}", planned.ty, actual.ty));
            }
            check_value(check, &planned.value, &actual.value);
        }
        (Value::Null, Value::Null) => {}
        (planned, actual) if planned.is_null() != actual.is_null() => check.report(match actual.is_null() {
            true => "was planned, but is null",
            false => "was planned to be null, but is not",
        }),
        (_, Value::Unknown(_)) => check.report("was known, but is unknown now"),
        (Value::List(planned), Value::List(actual)) | (Value::Tuple(planned), Value::Tuple(actual)) => {
            if planned.len() != actual.len() {
                check.report(format!("{} elements were planned, but there are {}", planned.len(), actual.len()));
            }
            for (place, (planned, actual)) in planned.iter().zip(actual.iter()).enumerate() {
                check.at_index(place, |check| check_value(check, planned, actual));
            }
        }
        (Value::Map(planned), Value::Map(actual)) | (Value::Object(planned), Value::Object(actual)) => {
            check.keys(planned, actual);
            for (key, planned) in planned.iter() {
                let Some(actual) = actual.get(key) else { continue };
                check.at_name(key, |check| check_value(check, planned, actual));
            }
        }
        (Value::Set(planned), Value::Set(actual)) => check_sets(check, planned, actual, check_value),
        (planned, actual) if planned != actual => check.report("is not as planned"),
        _ => {}
    }
}

/// Each element of either side needs a partner. Elements may have turned out to be one, but none may have been added.
fn check_sets(
    check: &mut Check,
    planned: &[Value],
    actual: &[Value],
    compare: impl Fn(&mut Check, &Value, &Value) + Copy,
) {
    if planned == actual {
        return;
    }
    if actual.len() > planned.len() {
        check.report(format!("{} elements were planned, but there are {}", planned.len(), actual.len()));
    }
    let mut alike = |planned: &Value, actual: &Value| check.passes(|check| compare(check, planned, actual));
    let vanished = planned.iter().filter(|planned| !actual.iter().any(|actual| alike(planned, actual))).count();
    let appeared = actual.iter().filter(|actual| !planned.iter().any(|planned| alike(planned, actual))).count();
    if vanished + appeared > 0 {
        check.report(format!(
            "{vanished} of the planned elements are not there, and {appeared} are that were not planned"
        ));
    }
}

/// Whether a value of the type `actual` may stand where `planned` was promised, which may be open in parts.
fn fits(planned: &Type, actual: &Type) -> bool {
    match (planned, actual) {
        (Type::Dynamic, _) => true,
        (Type::List(planned), Type::List(actual))
        | (Type::Set(planned), Type::Set(actual))
        | (Type::Map(planned), Type::Map(actual)) => fits(planned, actual),
        (Type::Tuple(planned), Type::Tuple(actual)) => {
            planned.len() == actual.len()
                && planned.iter().zip(actual.iter()).all(|(planned, actual)| fits(planned, actual))
        }
        (Type::Object(planned), Type::Object(actual)) => {
            planned.len() == actual.len()
                && planned.iter().all(|(name, planned)| actual.get(name).is_some_and(|actual| fits(planned, actual)))
        }
        (planned, actual) => planned == actual,
    }
}

#[cfg(test)]
mod tests;
