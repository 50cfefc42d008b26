//! The proposed new state that a provider plans with: the configuration, completed with the computed values of the
//! prior state. The rules are OpenTofu's; without them every computed attribute would look like a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Type, Value};

use super::{Attribute, Block, NestedType, Nesting, Shape, entries, items};

/// Returns the proposed new state. `prior` (null for a new object) and `config` must have the type of the block.
pub fn proposed_state(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_null() && prior.is_null() {
        return Value::null(block.ty().clone());
    }
    if prior.is_null() {
        return merge_block(block, &block.empty(), config);
    }
    merge_block(block, prior, config)
}

/// Returns the planned value of a data source that cannot be read yet: the configuration, with unknown values for the
/// computed attributes.
pub fn unread_data_source(block: &Block, config: &Value) -> Value {
    merge_block(block, &Value::unknown(block.ty().clone()), config)
}

fn merge_block(block: &Block, prior: &Value, config: &Value) -> Value {
    if !config.is_known() {
        return config.clone();
    }
    if config.is_null() {
        return prior.clone();
    }
    let mut merged = merge_attributes(block.attributes(), block.ty(), prior, config);
    for (name, nested) in block.blocks() {
        let place =
            Place { level: Level::Block(&nested.block), nesting: nested.nesting, ty: declared(block.ty(), name) };
        merged.insert(name.clone(), place.merged(&prior.child(name), &config.child(name)));
    }
    Value::of_entries(block.ty(), merged.into())
}

fn declared<'a>(object: &'a Type, name: &str) -> &'a Type {
    object.entry(name).unwrap_or(&Type::Dynamic)
}

fn merge_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    object: &Type,
    prior: &Value,
    config: &Value,
) -> BTreeMap<Arc<str>, Value> {
    let merged = attributes.iter().map(|(name, attribute)| {
        let merged = merge_attribute(attribute, declared(object, name), prior.child(name), config.child(name));
        (name.clone(), merged)
    });
    merged.collect()
}

fn merge_attribute(attribute: &Attribute, ty: &Type, prior: Value, config: Value) -> Value {
    match &attribute.shape {
        _ if attribute.computed && config.is_null() => {
            if came_from_config(attribute, &prior) {
                config
            } else {
                prior
            }
        }
        Shape::Nested(nested) => {
            Place { level: Level::Object(nested), nesting: nested.nesting, ty }.merged(&prior, &config)
        }
        Shape::Plain(_) => config,
    }
}

/// Whether a prior value of an attribute must have been configured, at least in part, because it sets something that
/// the provider does not compute. If the configuration now leaves it out, it is removed.
fn came_from_config(attribute: &Attribute, prior: &Value) -> bool {
    let Shape::Nested(nested) = &attribute.shape else { return false };
    attribute.optional && objects_of(nested, prior).into_iter().any(|object| has_configured(nested, object))
}

fn has_configured(nested: &NestedType, object: &Value) -> bool {
    nested.attributes().iter().any(|(name, attribute)| {
        let value = object.child(name);
        // The attributes of an unknown object are unknown too.
        let known_object = object.is_known() && !value.is_null();
        let inside =
            |inner: &NestedType| objects_of(inner, &value).into_iter().any(|object| has_configured(inner, object));
        known_object && (!attribute.computed || matches!(&attribute.shape, Shape::Nested(inner) if inside(inner)))
    })
}

fn objects_of<'a>(nested: &NestedType, value: &'a Value) -> Vec<&'a Value> {
    match nested.nesting {
        Nesting::Single | Nesting::Group => vec![value],
        Nesting::List | Nesting::Set => items(value).iter().collect(),
        Nesting::Map => entries(value).values().collect(),
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
            Self::Object(_) if config.is_null() || !config.is_known() => config.clone(),
            Self::Object(nested) => {
                let merged = merge_attributes(nested.attributes(), nested.element(), prior, config);
                Value::of_entries(nested.element(), merged.into())
            }
        }
    }
}

/// A nested attribute, or the blocks of one name.
#[derive(Clone, Copy)]
struct Place<'a> {
    level: Level<'a>,
    nesting: Nesting,
    /// The declared type of the whole.
    ty: &'a Type,
}

impl Place<'_> {
    fn merged(self, prior: &Value, config: &Value) -> Value {
        let single_without_config = self.nesting == Nesting::Single && config.is_null();
        if !config.is_known() || single_without_config {
            return config.clone();
        }
        match self.nesting {
            Nesting::Single | Nesting::Group => self.level.merged(prior, config),
            Nesting::List => self.merged_list(prior, config),
            Nesting::Map => self.merged_map(prior, config),
            Nesting::Set => self.merged_set(prior, config),
        }
    }

    /// Matches elements by index.
    fn merged_list(self, prior: &Value, config: &Value) -> Value {
        let (configured, before) = (items(config), items(prior));
        if configured.is_empty() {
            return config.clone();
        }
        let merged = configured.iter().enumerate().map(|(index, configured)| match before.get(index) {
            Some(before) => self.level.merged(before, configured),
            None if !prior.is_known() => self.level.merged(&self.unknown(), configured),
            None => configured.clone(),
        });
        Value::of_items(self.ty, merged.collect())
    }

    /// Matches elements by key.
    fn merged_map(self, prior: &Value, config: &Value) -> Value {
        let (configured, before) = (entries(config), entries(prior));
        if configured.is_empty() {
            return config.clone();
        }
        let merged = configured.iter().map(|(key, configured)| {
            let before = before.get(key);
            (key.clone(), before.map_or_else(|| configured.clone(), |before| self.level.merged(before, configured)))
        });
        Value::of_entries(self.ty, merged.collect())
    }

    /// Matches each configured element with the first unused prior element that it could have become.
    fn merged_set(self, prior: &Value, config: &Value) -> Value {
        let (configured, before) = (items(config), items(prior));
        if configured.is_empty() {
            return config.clone();
        }
        let mut used = vec![false; before.len()];
        let none = Value::null(self.level.element().clone());
        let merged = configured.iter().map(|configured| {
            let mut candidates = before.iter().enumerate();
            let partner =
                candidates.find(|(index, before)| !used[*index] && could_become(self.level, configured, before));
            if let Some((index, _)) = partner {
                used[index] = true;
            }
            self.level.merged(partner.map_or(&none, |(_, before)| before), configured)
        });
        Value::of_items(self.ty, merged.collect())
    }

    fn unknown(self) -> Value {
        Value::unknown(self.level.element().clone())
    }
}

/// Whether a configured element could have become `prior`: they differ only in computed attributes.
fn could_become(level: Level<'_>, config: &Value, prior: &Value) -> bool {
    if config == prior || prior.is_null() || !prior.is_known() {
        return true;
    }
    if config.is_null() {
        return has_no_parts(level);
    }
    let attributes = match level {
        Level::Block(block) => block.attributes(),
        Level::Object(nested) => nested.attributes(),
    };
    let attributes_fit = attributes
        .iter()
        .all(|(name, attribute)| attribute_could_become(attribute, &config.child(name), &prior.child(name)));
    let Level::Block(block) = level else { return attributes_fit };
    attributes_fit
        && block.blocks().iter().all(|(name, nested)| {
            let inner = Level::Block(&nested.block);
            nested_could_become(inner, nested.nesting, &config.child(name), &prior.child(name))
        })
}

/// Whether there is nothing in which an object could differ.
fn has_no_parts(level: Level<'_>) -> bool {
    match level {
        Level::Block(block) => block.attributes().is_empty() && block.blocks().is_empty(),
        Level::Object(nested) => nested.attributes().is_empty(),
    }
}

fn attribute_could_become(attribute: &Attribute, config: &Value, prior: &Value) -> bool {
    if config == prior {
        return true;
    }
    match &attribute.shape {
        Shape::Nested(nested) => nested_could_become(Level::Object(nested), nested.nesting, config, prior),
        // The elements of a set cannot be matched with each other.
        Shape::Plain(Type::Set(_)) => false,
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
    if prior.is_null() || !prior.is_known() {
        return true;
    }
    // An element that is not configured is unknown in an unknown configuration.
    let left_open =
        |before: &Value| !config.is_known() && could_become(level, &Value::unknown(level.element().clone()), before);
    match nesting {
        Nesting::List => {
            let configured = items(config);
            items(prior).iter().enumerate().all(|(index, before)| {
                configured.get(index).map_or_else(|| left_open(before), |found| could_become(level, found, before))
            })
        }
        Nesting::Map => {
            let configured = entries(config);
            entries(prior).iter().all(|(key, before)| {
                configured.get(key).map_or_else(|| left_open(before), |found| could_become(level, found, before))
            })
        }
        _ => could_become(level, config, prior),
    }
}
