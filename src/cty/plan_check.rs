//! Whether a provider's plan keeps to the configuration: OpenTofu's rules for planned values.
//!
//! A provider may plan what it computes and what is not configured. Everywhere else it must plan what is configured, or
//! exactly what was there before, by which it says that the two mean the same. What it finds is a fault of the provider.
//! From providers with the legacy type system these are warnings for the log only.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::contract::Check;
use super::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};
use super::{Value, ValueError, nested};

/// Every place at which the planned value is neither as configured nor as before nor the provider's own choice. All
/// values are of the type of the block; `prior` is null for a new object.
pub fn plan_faults(block: &Block, prior: &Value, config: &Value, planned: &Value) -> Vec<ValueError> {
    let mut check = Check::default();
    check_block(&mut check, block, prior, config, planned);
    check.found
}

/// Whether both are there or both are not; a difference is told.
fn same_existence(check: &mut Check, config: &Value, planned: &Value) -> bool {
    match (config.is_null(), planned.is_null()) {
        (false, true) => check.report("is planned to be absent, but is configured"),
        (true, false) => check.report("is planned, but is not configured"),
        (config_is_null, _) => return !config_is_null,
    }
    false
}

fn check_block(check: &mut Check, block: &Block, prior: &Value, config: &Value, planned: &Value) {
    if !same_existence(check, config, planned) {
        return;
    }
    check_attributes(check, block.attributes(), prior, config, planned);
    for (name, nested) in block.blocks() {
        let (prior, config, planned) = (prior.part(name), config.part(name), planned.part(name));
        check.at_name(name, |check| check_blocks(check, nested, prior, config, planned));
    }
}

fn check_blocks(check: &mut Check, nested: &NestedBlock, prior: &Value, config: &Value, planned: &Value) {
    if planned == config {
        return;
    }
    if config.is_unknown() {
        return check.report("is planned, but whether it is configured is not known yet");
    }
    if planned.is_unknown() {
        return check.report("a block must not be unknown as a whole, only its attributes may");
    }
    let block = &nested.block;
    match nested.nesting {
        Nesting::Single | Nesting::Group => check_block(check, block, prior, config, planned),
        _ if planned.is_null() => check.report("without blocks it must be empty, not null"),
        Nesting::List => {
            let [prior, config, planned] = [prior, config, planned].map(|value| nested::items(value, block.ty()));
            if config.len() != planned.len() {
                return check.report(format!("{} blocks are planned, but {} configured", planned.len(), config.len()));
            }
            for (place, (config, planned)) in config.iter().zip(planned.iter()).enumerate() {
                let prior = prior.get(place).unwrap_or(&Value::Null);
                check.at_index(place, |check| check_element(check, block, prior, config, planned));
            }
        }
        Nesting::Map => {
            let [prior, config, planned] = [prior, config, planned].map(|value| nested::entries(value, block.ty()));
            if !nested.is_dynamic() && config.len() != planned.len() {
                return check.report(format!("{} blocks are planned, but {} configured", planned.len(), config.len()));
            }
            check.keys(&config, &planned);
            for (key, planned) in planned.iter() {
                let Some(config) = config.get(key) else { continue };
                let prior = prior.get(key).unwrap_or(&Value::Null);
                check.at_name(key, |check| check_element(check, block, prior, config, planned));
            }
        }
        // Which element became which cannot be told, so the provider is trusted.
        Nesting::Set => {
            for planned in nested::items(planned, block.ty()).iter() {
                known_element(check, planned);
            }
        }
    }
}

fn known_element(check: &mut Check, planned: &Value) -> bool {
    if planned.is_unknown() {
        check.report("a block must not be unknown as a whole, only its attributes may");
    }
    !planned.is_unknown()
}

fn check_element(check: &mut Check, block: &Block, prior: &Value, config: &Value, planned: &Value) {
    if known_element(check, planned) {
        check_block(check, block, prior, config, planned);
    }
}

fn check_attributes(
    check: &mut Check,
    attributes: &BTreeMap<Arc<str>, Attribute>,
    prior: &Value,
    config: &Value,
    planned: &Value,
) {
    for (name, attribute) in attributes {
        let (prior, config, planned) = (prior.part(name), config.part(name), planned.part(name));
        check.at_name(name, |check| check_attribute(check, attribute, prior, config, planned));
    }
}

fn check_attribute(check: &mut Check, attribute: &Attribute, prior: &Value, config: &Value, planned: &Value) {
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
        Shape::Plain(_) if prior.is_null() => check.report("is not planned as configured"),
        Shape::Plain(_) => check.report("is planned neither as configured nor as it was before"),
    }
}

fn check_nested(check: &mut Check, nested: &NestedType, prior: &Value, config: &Value, planned: &Value) {
    if !same_existence(check, config, planned) {
        return;
    }
    if planned.is_unknown() {
        return check.report("is planned to be unknown, but is configured");
    }
    let attributes = nested.attributes();
    let count = |planned: usize, config: usize| format!("{planned} elements are planned, but {config} configured");
    match nested.nesting {
        Nesting::Single | Nesting::Group => check_attributes(check, attributes, prior, config, planned),
        // How many are configured is not known yet.
        Nesting::List | Nesting::Map if config.is_unknown() => check.report("is planned, but not configured yet"),
        Nesting::List => {
            let [prior, config, planned] = [prior, config, planned].map(|value| nested::items(value, nested.element()));
            if config.len() != planned.len() {
                return check.report(count(planned.len(), config.len()));
            }
            for (place, (config, planned)) in config.iter().zip(planned.iter()).enumerate() {
                let prior = prior.get(place).unwrap_or(&Value::Null);
                check.at_index(place, |check| check_attributes(check, attributes, prior, config, planned));
            }
        }
        Nesting::Map => {
            let [prior, config, planned] =
                [prior, config, planned].map(|value| nested::entries(value, nested.element()));
            if config.len() != planned.len() {
                return check.report(count(planned.len(), config.len()));
            }
            check.keys(&config, &planned);
            for (key, planned) in planned.iter() {
                let Some(config) = config.get(key) else { continue };
                let prior = prior.get(key).unwrap_or(&Value::Null);
                check.at_name(key, |check| check_attributes(check, attributes, prior, config, planned));
            }
        }
        Nesting::Set => {
            let (wanted, got) = (possible_lengths(config), possible_lengths(planned));
            if wanted.end() < got.start() || got.end() < wanted.start() {
                check.report(count(*got.end(), *wanted.end()));
            }
        }
    }
}

/// How many elements a set may turn out to have: those that are not known yet may be equal to others.
fn possible_lengths(set: &Value) -> RangeInclusive<usize> {
    match set {
        Value::Set(items) if items.len() > 1 && set.has_unknown() => 1..=items.len(),
        Value::Set(items) => items.len()..=items.len(),
        _ => 0..=usize::MAX,
    }
}
