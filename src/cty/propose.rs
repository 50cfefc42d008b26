//! The proposed value: what a provider is asked to plan.
//!
//! It is the configuration, completed by what the provider computed before. These are OpenTofu's rules; without them
//! every computed attribute would look like a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::{Attribute, Block, NestedType, Nesting, Shape};
use super::{Type, Value, nested};

/// The value to propose for an object that is `prior` (null: there is none) and shall be `config`, both of the type of
/// the block.
pub fn proposed(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_null() && prior.is_null() {
        return Value::Null;
    }
    if prior.is_null() {
        return merged_block(block, &block.empty(), config);
    }
    merged_block(block, prior, config)
}

/// What a data source that cannot be read yet will give: the configuration, and unknown where it computes.
pub fn unread(block: &Block, config: &Value) -> Value {
    merged_block(block, &Value::UNKNOWN, config)
}

fn merged_block(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_unknown() {
        return config.clone();
    }
    if config.is_null() {
        return prior.clone();
    }
    let mut merged = merged_attributes(block.attributes(), prior, config);
    for (name, nested) in block.blocks() {
        let (prior, config) = (prior.part(name), config.part(name));
        merged.insert(name.clone(), merged_nested(Level::Block(&nested.block), nested.nesting, prior, config));
    }
    Value::Object(Arc::new(merged))
}

fn merged_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    prior: &Value,
    config: &Value,
) -> BTreeMap<Arc<str>, Value> {
    let merged = attributes
        .iter()
        .map(|(name, attribute)| (name.clone(), merged_attribute(attribute, prior.part(name), config.part(name))));
    merged.collect()
}

fn merged_attribute(attribute: &Attribute, prior: &Value, config: &Value) -> Value {
    match &attribute.shape {
        _ if attribute.computed && config.is_null() => {
            if came_from_config(attribute, prior) {
                config.clone()
            } else {
                prior.clone()
            }
        }
        Shape::Nested(nested) => merged_nested(Level::Object(nested), nested.nesting, prior, config),
        Shape::Plain(_) => config.clone(),
    }
}

/// Whether a prior value of an attribute must have been configured, at least in part: it sets something that the
/// provider does not compute. Then leaving it out of the configuration now means to remove it.
fn came_from_config(attribute: &Attribute, prior: &Value) -> bool {
    let Shape::Nested(nested) = &attribute.shape else { return false };
    attribute.optional && objects_of(nested, prior).iter().any(|object| has_configured(nested, object))
}

fn has_configured(nested: &NestedType, object: &Value) -> bool {
    nested.attributes().iter().any(|(name, attribute)| {
        let value = object.part(name);
        // What is inside of an unknown object cannot be told.
        let known_object = !object.is_unknown() && !value.is_null();
        let inside = |inner: &NestedType| objects_of(inner, value).iter().any(|object| has_configured(inner, object));
        known_object && (!attribute.computed || matches!(&attribute.shape, Shape::Nested(inner) if inside(inner)))
    })
}

fn objects_of(nested: &NestedType, value: &Value) -> Vec<Value> {
    match nested.nesting {
        Nesting::Single | Nesting::Group => vec![value.clone()],
        Nesting::List | Nesting::Set => nested::items(value, nested.element()).into_owned(),
        Nesting::Map => nested::entries(value, nested.element()).values().cloned().collect(),
    }
}

/// What stands in a nesting: a block, or an object of an attribute.
#[derive(Clone, Copy)]
enum Level<'a> {
    Block(&'a Block),
    Object(&'a NestedType),
}

impl Level<'_> {
    fn element(&self) -> &Type {
        match self {
            Self::Block(block) => block.ty(),
            Self::Object(nested) => nested.element(),
        }
    }

    fn merged(&self, prior: &Value, config: &Value) -> Value {
        match self {
            Self::Block(block) => proposed(block, prior, config),
            Self::Object(_) if config.is_null() || config.is_unknown() => config.clone(),
            Self::Object(nested) => Value::Object(Arc::new(merged_attributes(nested.attributes(), prior, config))),
        }
    }
}

fn merged_nested(level: Level<'_>, nesting: Nesting, prior: &Value, config: &Value) -> Value {
    let single_without_config = nesting == Nesting::Single && config.is_null();
    if config.is_unknown() || single_without_config {
        return config.clone();
    }
    match nesting {
        Nesting::Single | Nesting::Group => level.merged(prior, config),
        Nesting::List => merged_list(level, prior, config),
        Nesting::Map => merged_map(level, prior, config),
        Nesting::Set => merged_set(level, prior, config),
    }
}

/// Elements belong together by their place.
fn merged_list(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let wanted = nested::items(config, level.element());
    if wanted.is_empty() {
        return config.clone();
    }
    let before = nested::items(prior, level.element());
    let merged = wanted.iter().enumerate().map(|(place, wanted)| match before.get(place) {
        Some(before) => level.merged(before, wanted),
        None if prior.is_unknown() => level.merged(&Value::UNKNOWN, wanted),
        None => wanted.clone(),
    });
    match config {
        Value::List(_) => Value::list(merged),
        _ => nested::list(merged.collect(), level.element()),
    }
}

/// Elements belong together by their key.
fn merged_map(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let wanted = nested::entries(config, level.element());
    if wanted.is_empty() {
        return config.clone();
    }
    let before = nested::entries(prior, level.element());
    let merged = wanted.iter().map(|(key, wanted)| {
        let merged = before.get(key).map_or_else(|| wanted.clone(), |before| level.merged(before, wanted));
        (key.clone(), merged)
    });
    match config {
        Value::Map(_) => Value::Map(Arc::new(merged.collect())),
        _ => nested::map(merged.collect(), level.element()),
    }
}

/// An element belongs to the first one before that it could have become, each of those being used once.
fn merged_set(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let wanted = nested::items(config, level.element());
    if wanted.is_empty() {
        return config.clone();
    }
    let before = nested::items(prior, level.element());
    let mut used = vec![false; before.len()];
    let merged = wanted.iter().map(|wanted| {
        let mut candidates = before.iter().enumerate();
        let partner = candidates.find(|(place, before)| !used[*place] && could_become(level, wanted, before));
        if let Some((place, _)) = partner {
            used[place] = true;
        }
        level.merged(partner.map_or(&Value::Null, |(_, before)| before), wanted)
    });
    Value::set(merged.collect::<Vec<_>>())
}

/// Whether a configured element could have become `prior`: wherever they differ, the provider computes.
fn could_become(level: Level<'_>, config: &Value, prior: &Value) -> bool {
    if config == prior || prior.is_null() || prior.is_unknown() {
        return true;
    }
    let attributes = match level {
        Level::Block(block) => block.attributes(),
        Level::Object(nested) => nested.attributes(),
    };
    let attributes_fit = attributes.iter().all(|(name, attribute)| {
        let prior = prior.part(name);
        inside(config, name).is_some_and(|config| attribute_could_become(attribute, config, prior))
    });
    let Level::Block(block) = level else { return attributes_fit };
    attributes_fit
        && block.blocks().iter().all(|(name, nested)| {
            let prior = prior.part(name);
            let inner = Level::Block(&nested.block);
            inside(config, name).is_some_and(|config| nested_could_become(inner, nested.nesting, config, prior))
        })
}

/// What stands at `name` in a configured object; `None` in null, which has no inside.
fn inside<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    (!config.is_null()).then(|| config.part(name))
}

fn attribute_could_become(attribute: &Attribute, config: &Value, prior: &Value) -> bool {
    if config == prior {
        return true;
    }
    match &attribute.shape {
        Shape::Nested(nested) => nested_could_become(Level::Object(nested), nested.nesting, config, prior),
        // Inside of sets there is no way to tell which element became which.
        Shape::Plain(Type::Set(_)) => false,
        Shape::Plain(_) if matches!(config.bare(), Value::Set(_)) => false,
        Shape::Plain(_) => attribute.computed && config.is_null(),
    }
}

fn nested_could_become(level: Level<'_>, nesting: Nesting, config: &Value, prior: &Value) -> bool {
    if config == prior {
        return true;
    }
    if nesting == Nesting::Set {
        return false;
    }
    if prior.is_null() || prior.is_unknown() {
        return true;
    }
    match nesting {
        Nesting::List => {
            let (wanted, before) = (nested::items(config, level.element()), nested::items(prior, level.element()));
            before.iter().enumerate().all(|(place, before)| match wanted.get(place) {
                Some(wanted) => could_become(level, wanted, before),
                None => config.is_unknown() && could_become(level, &Value::UNKNOWN, before),
            })
        }
        Nesting::Map => {
            let (wanted, before) = (nested::entries(config, level.element()), nested::entries(prior, level.element()));
            before.iter().all(|(key, before)| match wanted.get(key) {
                Some(wanted) => could_become(level, wanted, before),
                None => config.is_unknown() && could_become(level, &Value::UNKNOWN, before),
            })
        }
        _ => could_become(level, config, prior),
    }
}
