//! Checks that a provider's plan follows the configuration. The rules are OpenTofu's.
//!
//! A provider chooses the values of computed attributes that are not configured. Everywhere else it must plan the
//! configured value, or exactly the prior value if both mean the same. A violation is a bug in the provider; for
//! providers with the legacy type system it is only logged as a warning.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use cty::{Error, Type, Value};

use super::checker::Checker;
use super::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape, entries, items};

/// Returns an error for each position at which the planned value matches neither the configuration nor the prior value
/// and is not computed. All values must have the type of the block; `prior` is null for a new object.
pub fn plan_errors(block: &Block, prior: &Value, config: &Value, planned: &Value) -> Vec<Error> {
    let mut check = Checker::default();
    // What is promised of an unknown value does not make it another one.
    let [prior, config, planned] = [prior, config, planned].map(Value::unrefined);
    check_block(&mut check, block, &prior, &config, &planned);
    check.errors
}

/// Whether both values are present; reports an error if only one of them is.
fn same_existence(check: &mut Checker, config: &Value, planned: &Value) -> bool {
    match (config.is_null(), planned.is_null()) {
        (false, true) => check.report("is planned to be absent, but is configured"),
        (true, false) => check.report("is planned, but is not configured"),
        (config_is_null, _) => return !config_is_null,
    }
    false
}

fn check_block(check: &mut Checker, block: &Block, prior: &Value, config: &Value, planned: &Value) {
    if !same_existence(check, config, planned) {
        return;
    }
    check_attributes(check, block.attributes(), prior, config, planned);
    for (name, nested) in block.blocks() {
        let (prior, config, planned) = (prior.child(name), config.child(name), planned.child(name));
        check.at_name(name, |check| check_blocks(check, nested, &prior, &config, &planned));
    }
}

fn check_blocks(check: &mut Checker, nested: &NestedBlock, prior: &Value, config: &Value, planned: &Value) {
    if planned == config {
        return;
    }
    if !config.is_known() {
        return check.report("is planned, but the configured value is unknown");
    }
    if !planned.is_known() {
        return check.report("a block must not be unknown; only its attributes can be");
    }
    let block = &nested.block;
    match nested.nesting {
        Nesting::Single | Nesting::Group => check_block(check, block, prior, config, planned),
        _ if planned.is_null() => check.report("must be empty, not null, when no blocks are configured"),
        Nesting::List => {
            let [prior, config, planned] = [prior, config, planned].map(items);
            if config.len() != planned.len() {
                return check.report(format!(
                    "{} blocks are planned, but {} are configured",
                    planned.len(),
                    config.len()
                ));
            }
            for (index, (config, planned)) in config.iter().zip(planned.iter()).enumerate() {
                let prior = prior.get(index).unwrap_or(&Value::NULL);
                check.at_index(index, |check| check_element(check, block, prior, config, planned));
            }
        }
        Nesting::Map => {
            let [prior, config, planned] = [prior, config, planned].map(entries);
            if !nested.is_dynamic() && config.len() != planned.len() {
                return check.report(format!(
                    "{} blocks are planned, but {} are configured",
                    planned.len(),
                    config.len()
                ));
            }
            check.keys(config, planned);
            for (key, planned) in planned {
                let Some(config) = config.get(key) else { continue };
                let prior = prior.get(key).unwrap_or(&Value::NULL);
                check.at_name(key, |check| check_element(check, block, prior, config, planned));
            }
        }
        // The elements of a set cannot be matched with each other, so the provider is trusted.
        Nesting::Set => {
            for planned in items(planned) {
                known_element(check, planned);
            }
        }
    }
}

fn known_element(check: &mut Checker, planned: &Value) -> bool {
    if !planned.is_known() {
        check.report("a block must not be unknown; only its attributes can be");
    }
    planned.is_known()
}

fn check_element(check: &mut Checker, block: &Block, prior: &Value, config: &Value, planned: &Value) {
    if known_element(check, planned) {
        check_block(check, block, prior, config, planned);
    }
}

fn check_attributes(
    check: &mut Checker,
    attributes: &BTreeMap<Arc<str>, Attribute>,
    prior: &Value,
    config: &Value,
    planned: &Value,
) {
    for (name, attribute) in attributes {
        let (prior, config, planned) = (prior.child(name), config.child(name), planned.child(name));
        check.at_name(name, |check| check_attribute(check, attribute, &prior, &config, &planned));
    }
}

fn check_attribute(check: &mut Checker, attribute: &Attribute, prior: &Value, config: &Value, planned: &Value) {
    let as_before = planned == prior && !prior.is_null() && !config.is_null();
    let computed_only = attribute.computed && !attribute.optional;
    let left_to_provider = config.is_null() && attribute.computed;
    if planned == config || as_before || computed_only || left_to_provider {
        return;
    }
    if config.is_null() && !planned.is_null() {
        return check.report("is planned, but is neither configured nor computed");
    }
    if !config.is_null() && planned.is_null() && attribute.write_only {
        return;
    }
    match &attribute.shape {
        Shape::Nested(nested) => check_nested(check, nested, prior, config, planned),
        Shape::Plain(_) if prior.is_null() => check.report("the planned value does not match the configuration"),
        Shape::Plain(_) => check.report("the planned value matches neither the configuration nor the prior value"),
    }
}

fn check_nested(check: &mut Checker, nested: &NestedType, prior: &Value, config: &Value, planned: &Value) {
    if !same_existence(check, config, planned) {
        return;
    }
    if !planned.is_known() {
        return check.report("is planned as unknown, but is configured");
    }
    let attributes = nested.attributes();
    match nested.nesting {
        Nesting::Single | Nesting::Group => check_attributes(check, attributes, prior, config, planned),
        Nesting::List | Nesting::Map if !config.is_known() => {
            check.report("is planned, but the configured value is unknown");
        }
        Nesting::List => {
            let [prior, config, planned] = [prior, config, planned].map(items);
            if config.len() != planned.len() {
                return check.report(count_mismatch(planned.len(), config.len()));
            }
            for (index, (config, planned)) in config.iter().zip(planned.iter()).enumerate() {
                let prior = prior.get(index).unwrap_or(&Value::NULL);
                check.at_index(index, |check| check_attributes(check, attributes, prior, config, planned));
            }
        }
        Nesting::Map => {
            let [prior, config, planned] = [prior, config, planned].map(entries);
            if config.len() != planned.len() {
                return check.report(count_mismatch(planned.len(), config.len()));
            }
            check.keys(config, planned);
            for (key, planned) in planned {
                let Some(config) = config.get(key) else { continue };
                let prior = prior.get(key).unwrap_or(&Value::NULL);
                check.at_name(key, |check| check_attributes(check, attributes, prior, config, planned));
            }
        }
        Nesting::Set => {
            let (wanted, got) = (possible_lengths(config), possible_lengths(planned));
            if wanted.end() < got.start() || got.end() < wanted.start() {
                check.report(count_mismatch(*got.end(), *wanted.end()));
            }
        }
    }
}

fn count_mismatch(planned: usize, config: usize) -> String {
    format!("{planned} elements are planned, but {config} are configured")
}

/// How many elements a set may turn out to have: unknown elements may be equal to others.
fn possible_lengths(set: &Value) -> RangeInclusive<usize> {
    match set.as_items().filter(|_| matches!(set.ty(), Type::Set(_))) {
        Some(items) if items.len() > 1 && !set.is_wholly_known() => 1..=items.len(),
        Some(items) => items.len()..=items.len(),
        None => 0..=usize::MAX,
    }
}
