//! The proposed new state that a provider plans with: the configuration, completed with the computed values of the
//! prior state. The rules are OpenTofu's; without them every computed attribute would look like a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::{Attribute, Block, NestedType, Nesting, Shape};
use super::{Type, Value, nested};

/// Returns the proposed new state. `prior` (null for a new object) and `config` must have the type of the block.
pub fn proposed_state(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_null() && prior.is_null() {
        return Value::Null;
    }
    if prior.is_null() {
        return merge_block(block, &block.empty(), config);
    }
    merge_block(block, prior, config)
}

/// Returns the planned value of a data source that cannot be read yet: the configuration, with unknown values for the
/// computed attributes.
pub fn unread_data_source(block: &Block, config: &Value) -> Value {
    merge_block(block, &Value::UNKNOWN, config)
}

fn merge_block(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_unknown() {
        return config.clone();
    }
    if config.is_null() {
        return prior.clone();
    }
    let mut merged = merge_attributes(block.attributes(), prior, config);
    for (name, nested) in block.blocks() {
        let (prior, config) = (prior.child(name), config.child(name));
        merged.insert(name.clone(), merge_nested(Level::Block(&nested.block), nested.nesting, prior, config));
    }
    Value::Object(Arc::new(merged))
}

fn merge_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    prior: &Value,
    config: &Value,
) -> BTreeMap<Arc<str>, Value> {
    let merged = attributes
        .iter()
        .map(|(name, attribute)| (name.clone(), merge_attribute(attribute, prior.child(name), config.child(name))));
    merged.collect()
}

fn merge_attribute(attribute: &Attribute, prior: &Value, config: &Value) -> Value {
    match &attribute.shape {
        _ if attribute.computed && config.is_null() => {
            if came_from_config(attribute, prior) {
                config.clone()
            } else {
                prior.clone()
            }
        }
        Shape::Nested(nested) => merge_nested(Level::Object(nested), nested.nesting, prior, config),
        Shape::Plain(_) => config.clone(),
    }
}

/// Whether a prior value of an attribute must have been configured, at least in part, because it sets something that
/// the provider does not compute. If the configuration now leaves it out, it is removed.
fn came_from_config(attribute: &Attribute, prior: &Value) -> bool {
    let Shape::Nested(nested) = &attribute.shape else { return false };
    attribute.optional && objects_of(nested, prior).iter().any(|object| has_configured(nested, object))
}

fn has_configured(nested: &NestedType, object: &Value) -> bool {
    nested.attributes().iter().any(|(name, attribute)| {
        let value = object.child(name);
        // The attributes of an unknown object are unknown too.
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

/// The content of a nesting: a block, or the objects of a nested attribute.
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
            Self::Block(block) => proposed_state(block, prior, config),
            Self::Object(_) if config.is_null() || config.is_unknown() => config.clone(),
            Self::Object(nested) => Value::Object(Arc::new(merge_attributes(nested.attributes(), prior, config))),
        }
    }
}

fn merge_nested(level: Level<'_>, nesting: Nesting, prior: &Value, config: &Value) -> Value {
    let single_without_config = nesting == Nesting::Single && config.is_null();
    if config.is_unknown() || single_without_config {
        return config.clone();
    }
    match nesting {
        Nesting::Single | Nesting::Group => level.merged(prior, config),
        Nesting::List => merge_list(level, prior, config),
        Nesting::Map => merge_map(level, prior, config),
        Nesting::Set => merge_set(level, prior, config),
    }
}

/// Matches elements by index.
fn merge_list(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let configured = nested::items(config, level.element());
    if configured.is_empty() {
        return config.clone();
    }
    let before = nested::items(prior, level.element());
    let merged = configured.iter().enumerate().map(|(index, configured)| match before.get(index) {
        Some(before) => level.merged(before, configured),
        None if prior.is_unknown() => level.merged(&Value::UNKNOWN, configured),
        None => configured.clone(),
    });
    match config {
        Value::List(_) => Value::list(merged),
        _ => nested::list(merged.collect(), level.element()),
    }
}

/// Matches elements by key.
fn merge_map(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let configured = nested::entries(config, level.element());
    if configured.is_empty() {
        return config.clone();
    }
    let before = nested::entries(prior, level.element());
    let merged = configured.iter().map(|(key, configured)| {
        let merged = before.get(key).map_or_else(|| configured.clone(), |before| level.merged(before, configured));
        (key.clone(), merged)
    });
    match config {
        Value::Map(_) => Value::Map(Arc::new(merged.collect())),
        _ => nested::map(merged.collect(), level.element()),
    }
}

/// Matches each configured element with the first unused prior element that it could have become.
fn merge_set(level: Level<'_>, prior: &Value, config: &Value) -> Value {
    let configured = nested::items(config, level.element());
    if configured.is_empty() {
        return config.clone();
    }
    let before = nested::items(prior, level.element());
    let mut used = vec![false; before.len()];
    let merged = configured.iter().map(|configured| {
        let mut candidates = before.iter().enumerate();
        let partner = candidates.find(|(index, before)| !used[*index] && could_become(level, configured, before));
        if let Some((index, _)) = partner {
            used[index] = true;
        }
        level.merged(partner.map_or(&Value::Null, |(_, before)| before), configured)
    });
    Value::set(merged.collect::<Vec<_>>())
}

/// Whether a configured element could have become `prior`: they differ only in computed attributes.
fn could_become(level: Level<'_>, config: &Value, prior: &Value) -> bool {
    if config == prior || prior.is_null() || prior.is_unknown() {
        return true;
    }
    let attributes = match level {
        Level::Block(block) => block.attributes(),
        Level::Object(nested) => nested.attributes(),
    };
    let attributes_fit = attributes.iter().all(|(name, attribute)| {
        let prior = prior.child(name);
        inside(config, name).is_some_and(|config| attribute_could_become(attribute, config, prior))
    });
    let Level::Block(block) = level else { return attributes_fit };
    attributes_fit
        && block.blocks().iter().all(|(name, nested)| {
            let prior = prior.child(name);
            let inner = Level::Block(&nested.block);
            inside(config, name).is_some_and(|config| nested_could_become(inner, nested.nesting, config, prior))
        })
}

/// The value of `name` in a configured object; `None` if the object is null.
fn inside<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    (!config.is_null()).then(|| config.child(name))
}

fn attribute_could_become(attribute: &Attribute, config: &Value, prior: &Value) -> bool {
    if config == prior {
        return true;
    }
    match &attribute.shape {
        Shape::Nested(nested) => nested_could_become(Level::Object(nested), nested.nesting, config, prior),
        // The elements of a set cannot be matched with each other.
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
            let (configured, before) = (nested::items(config, level.element()), nested::items(prior, level.element()));
            before.iter().enumerate().all(|(index, before)| match configured.get(index) {
                Some(configured) => could_become(level, configured, before),
                None => config.is_unknown() && could_become(level, &Value::UNKNOWN, before),
            })
        }
        Nesting::Map => {
            let (configured, before) =
                (nested::entries(config, level.element()), nested::entries(prior, level.element()));
            before.iter().all(|(key, before)| match configured.get(key) {
                Some(configured) => could_become(level, configured, before),
                None => config.is_unknown() && could_become(level, &Value::UNKNOWN, before),
            })
        }
        _ => could_become(level, config, prior),
    }
}
