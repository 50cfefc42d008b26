//! Checks that the result of an apply, or a second plan of the same change, matches the plan. The rules are OpenTofu's.
//! A violation is a bug in the provider; for providers with the legacy type system it is only logged as a warning.

use cty::{Error, Type, Value};

use super::checker::Checker;
use super::{Block, NestedBlock, Nesting, entries, items};

/// Returns an error for each position at which the actual value contradicts the planned one: a known value changed, or
/// a value does not match its refinement. Both values must have the type of the block.
pub fn result_errors(block: &Block, planned: &Value, actual: &Value) -> Vec<Error> {
    let mut check = Checker::default();
    check_block(&mut check, block, planned, actual);
    check.errors
}

fn check_block(check: &mut Checker, block: &Block, planned: &Value, actual: &Value) {
    match (planned.is_null(), actual.is_null()) {
        (true, false) => return check.report("was planned to be absent, but is present"),
        (false, true) => return check.report("was planned to be present, but is absent"),
        (true, true) => return,
        (false, false) => {}
    }
    for (name, attribute) in block.attributes() {
        let (planned, actual) = (planned.child(name), actual.child(name));
        check.at_name(name, |check| {
            if !attribute.sensitive {
                check_value(check, &planned, &actual);
            } else if !check.passes(|check| check_value(check, &planned, &actual)) {
                // A path inside of the sensitive value could reveal parts of it.
                check.report("does not match the planned value");
            }
        });
    }
    for (name, nested) in block.blocks() {
        let (planned, actual) = (planned.child(name), actual.child(name));
        check.at_name(name, |check| check_blocks(check, nested, &planned, &actual));
    }
}

fn check_blocks(check: &mut Checker, nested: &NestedBlock, planned: &Value, actual: &Value) {
    let block = &nested.block;
    if matches!(nested.nesting, Nesting::Single | Nesting::Group) {
        // An unknown block may turn out to be absent.
        if planned.is_known() || !actual.is_null() {
            check_block(check, block, planned, actual);
        }
        return;
    }
    if !planned.is_known() || !actual.is_known() || planned.is_null() || actual.is_null() {
        return;
    }
    match nested.nesting {
        Nesting::Map => {
            let [planned, actual] = [planned, actual].map(entries);
            check.keys(planned, actual);
            for (key, planned) in planned {
                let Some(actual) = actual.get(key) else { continue };
                check.at_name(key, |check| check_block(check, block, planned, actual));
            }
        }
        Nesting::Set => {
            let [planned, actual] = [planned, actual].map(items);
            check_sets(check, planned, actual, |check, planned, actual| check_block(check, block, planned, actual));
        }
        _ => {
            let [planned, actual] = [planned, actual].map(items);
            if planned.len() != actual.len() {
                return check.report(format!(
                    "{} blocks were planned, but the result has {}",
                    planned.len(),
                    actual.len()
                ));
            }
            for (place, (planned, actual)) in planned.iter().zip(actual.iter()).enumerate() {
                check.at_index(place, |check| check_block(check, block, planned, actual));
            }
        }
    }
}

fn check_value(check: &mut Checker, planned: &Value, actual: &Value) {
    let typed = *planned.ty() != Type::Dynamic && *actual.ty() != Type::Dynamic;
    if !planned.is_known() {
        if typed && !actual.ty().conforms_to(planned.ty()) {
            check.report(type_mismatch(planned, actual));
        } else if planned.range().excludes(planned.ty(), actual) {
            check.report("does not match the refinement of the planned unknown value");
        }
        return;
    }
    match (planned.is_null(), actual.is_null()) {
        (true, true) if typed && planned.ty() != actual.ty() => return check.report(type_mismatch(planned, actual)),
        (true, true) => return,
        (false, true) => return check.report("was planned, but is null"),
        (true, false) => return check.report("was planned to be null, but is not"),
        (false, false) => {}
    }
    if !actual.is_known() {
        return check.report("was known, but is now unknown");
    }
    // Nothing in them shows the type of their elements.
    if typed && is_empty(planned) && is_empty(actual) && !actual.ty().conforms_to(planned.ty()) {
        return check.report(type_mismatch(planned, actual));
    }
    match (planned.ty(), actual.ty()) {
        (Type::Set(_), Type::Set(_)) => check_sets(check, items(planned), items(actual), check_value),
        (Type::List(_), Type::List(_)) | (Type::Tuple(_), Type::Tuple(_)) => {
            let [planned, actual] = [planned, actual].map(items);
            if planned.len() != actual.len() {
                check.report(format!("{} elements were planned, but the result has {}", planned.len(), actual.len()));
            }
            for (place, (planned, actual)) in planned.iter().zip(actual.iter()).enumerate() {
                check.at_index(place, |check| check_value(check, planned, actual));
            }
        }
        (Type::Map(_), Type::Map(_)) | (Type::Object(_), Type::Object(_)) => {
            let [planned, actual] = [planned, actual].map(entries);
            check.keys(planned, actual);
            for (key, planned) in planned {
                let Some(actual) = actual.get(key) else { continue };
                check.at_name(key, |check| check_value(check, planned, actual));
            }
        }
        (planned_type, actual_type) if planned_type != actual_type => check.report(type_mismatch(planned, actual)),
        _ if planned != actual => check.report("does not match the planned value"),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_items().is_some_and(<[Value]>::is_empty)
        || value.as_entries().is_some_and(|entries| entries.iter().next().is_none())
}

fn type_mismatch(planned: &Value, actual: &Value) -> String {
    format!("was planned as {}, but is {}", planned.ty(), actual.ty())
}

/// Each element of either set must match an element of the other. Unknown elements may turn out to be equal, but no
/// elements may be added.
fn check_sets(
    check: &mut Checker,
    planned: &[Value],
    actual: &[Value],
    compare: impl Fn(&mut Checker, &Value, &Value) + Copy,
) {
    if planned == actual {
        return;
    }
    if actual.len() > planned.len() {
        check.report(format!("{} elements were planned, but the result has {}", planned.len(), actual.len()));
    }
    let mut alike = |planned: &Value, actual: &Value| check.passes(|check| compare(check, planned, actual));
    let vanished = planned.iter().filter(|planned| !actual.iter().any(|actual| alike(planned, actual))).count();
    let appeared = actual.iter().filter(|actual| !planned.iter().any(|planned| alike(planned, actual))).count();
    if vanished + appeared > 0 {
        check.report(format!("{vanished} planned elements are missing, and {appeared} elements were not planned"));
    }
}

#[cfg(test)]
mod tests;
