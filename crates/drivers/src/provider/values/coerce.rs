//! Converts configurations to values of a schema's type.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Entries, Type, Value};

use super::convert::{Converter, Source, kind_of};
use model::{Diagnostic, Diagnostics, Reason, Segment};
use tfprovider::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};

/// Converts a configuration to a value of the block's type and returns all problems: unsupported or missing arguments,
/// computed attributes that are set, wrong types, too few or too many blocks. Paths are relative to `spec.config`. The
/// value is meaningless if there are problems.
///
/// Omitted blocks are empty, omitted attributes are null. A block is configured as an object, or as a list or map of
/// objects, according to its nesting.
pub fn coerce_config(block: &Block, config: &model::Value) -> (Value, Diagnostics) {
    coerce(Converter::new(Source::Config), block, config)
}

/// Like [`coerce_config`], for a configuration that it has accepted before ignored attributes got the values of the
/// object. Computed attributes inside of them are kept.
pub fn coerce_validated(block: &Block, config: &model::Value) -> (Value, Diagnostics) {
    coerce(Converter::new(Source::Validated), block, config)
}

fn coerce(mut converter: Converter<'_>, block: &Block, config: &model::Value) -> (Value, Diagnostics) {
    let value = match config.unmarked() {
        model::Value::Null => convert_entries(&mut converter, block, &model::Map::default()),
        config => convert_block(&mut converter, block, config),
    };
    (value, diagnostics(converter))
}

/// Converts a value to the type and returns all problems.
pub fn convert(ty: &Type, value: &model::Value) -> (Value, Diagnostics) {
    let mut converter = Converter::new(Source::Config);
    let value = converter.convert(value, ty);
    (value, diagnostics(converter))
}

fn diagnostics(converter: Converter<'_>) -> Diagnostics {
    let diagnostics = converter.problems.into_iter().map(|problem| {
        let mut error = Diagnostic::general(Reason::InvalidConfig, problem.what);
        error.path = Some(problem.path).filter(|path| !path.0.is_empty());
        error.hint = problem.hint;
        error
    });
    diagnostics.collect()
}

fn convert_block(converter: &mut Converter<'_>, block: &Block, config: &model::Value) -> Value {
    match config.unmarked() {
        model::Value::Map(entries) => convert_entries(converter, block, entries),
        model::Value::Unknown => Value::unknown(block.ty().clone()),
        other => converter.problem(format!("must be an object, not {}", kind_of(other)), None),
    }
}

fn convert_entries(converter: &mut Converter<'_>, block: &Block, entries: &model::Map) -> Value {
    let (attributes, blocks) = (block.attributes(), block.blocks());
    for name in entries.keys().filter(|name| !attributes.contains_key(*name) && !blocks.contains_key(*name)) {
        let settable: Vec<_> = settable(attributes).chain(blocks.keys()).collect();
        converter.unknown_name(name, &settable);
    }
    let mut converted = convert_attributes(converter, attributes, entries);
    for (name, nested) in blocks {
        let config = entries.get(name).unwrap_or(&model::Value::Null);
        let value = converter.within_name(name, |converter| convert_nested_block(converter, nested, config));
        converted.insert(name.clone(), value);
    }
    Value::of_entries(block.ty(), converted.into())
}

/// The names of the attributes that can be configured.
fn settable(attributes: &BTreeMap<Arc<str>, Attribute>) -> impl Iterator<Item = &Arc<str>> {
    attributes.iter().filter(|(_, attribute)| attribute.is_settable()).map(|(name, _)| name)
}

fn convert_attributes(
    converter: &mut Converter<'_>,
    attributes: &BTreeMap<Arc<str>, Attribute>,
    entries: &model::Map,
) -> BTreeMap<Arc<str>, Value> {
    let converted = attributes.iter().map(|(name, attribute)| {
        let config = entries.get(name).map_or(&model::Value::Null, model::Value::unmarked);
        let value = converter.within_name(name, |converter| convert_attribute(converter, attribute, config));
        (name.clone(), value)
    });
    converted.collect()
}

fn convert_attribute(converter: &mut Converter<'_>, attribute: &Attribute, config: &model::Value) -> Value {
    if *config == model::Value::Null {
        return if attribute.required { converter.problem("is required, but not set", None) } else { Value::NULL };
    }
    if !attribute.is_settable() && !converter.is_validated() {
        let hint = "remove it; other Resources can reference it".to_owned();
        return converter.problem("is computed by the provider and cannot be set", Some(hint));
    }
    match &attribute.shape {
        Shape::Plain(ty) => converter.convert(config, ty),
        Shape::Nested(nested) => convert_nested_type(converter, nested, config),
    }
}

fn convert_nested_type(converter: &mut Converter<'_>, nested: &NestedType, config: &model::Value) -> Value {
    if *config == model::Value::Unknown {
        return Value::DYNAMIC;
    }
    match nested.nesting {
        Nesting::Single | Nesting::Group => convert_object(converter, nested, config),
        Nesting::List | Nesting::Set => {
            let objects = objects(converter, config, |converter, item| convert_object(converter, nested, item));
            items(&nested.ty(), objects)
        }
        Nesting::Map => {
            let objects = keyed_objects(converter, config, |converter, item| convert_object(converter, nested, item));
            entries(&nested.ty(), objects)
        }
    }
}

fn convert_object(converter: &mut Converter<'_>, nested: &NestedType, config: &model::Value) -> Value {
    match config.unmarked() {
        model::Value::Null => Value::null(nested.element().clone()),
        model::Value::Unknown => Value::unknown(nested.element().clone()),
        model::Value::Map(entries) => {
            let attributes = nested.attributes();
            for name in entries.keys().filter(|name| !attributes.contains_key(*name)) {
                converter.unknown_name(name, &settable(attributes).collect::<Vec<_>>());
            }
            Value::of_entries(nested.element(), convert_attributes(converter, attributes, entries).into())
        }
        other => converter.problem(format!("must be an object, not {}", kind_of(other)), None),
    }
}

fn convert_nested_block(converter: &mut Converter<'_>, nested: &NestedBlock, config: &model::Value) -> Value {
    let block = &nested.block;
    let config = config.unmarked();
    let count = match config {
        model::Value::Unknown => return Value::DYNAMIC,
        model::Value::List(items) => Some(items.len() as u64),
        model::Value::Null => Some(0),
        _ => None,
    };
    let value = match (nested.nesting, config) {
        (Nesting::Single, model::Value::Null) if nested.min_items > 0 => {
            return converter.problem("is required, but not set", None);
        }
        (_, model::Value::Null) => nested.empty(),
        (Nesting::Single | Nesting::Group, config) => convert_block(converter, block, config),
        (Nesting::List | Nesting::Set, config) => {
            let blocks = objects(converter, config, |converter, item| convert_block(converter, block, item));
            items(&nested.ty(), blocks)
        }
        (Nesting::Map, config) => {
            let blocks = keyed_objects(converter, config, |converter, item| convert_block(converter, block, item));
            entries(&nested.ty(), blocks)
        }
    };
    let counted = matches!(nested.nesting, Nesting::List | Nesting::Set);
    match (nested.min_items, nested.max_items, count.filter(|_| counted)) {
        (least, _, Some(count)) if count < least => {
            converter.problem(format!("must have at least {}, not {count}", elements(least)), None)
        }
        (_, most @ 1.., Some(count)) if count > most => {
            converter.problem(format!("must have at most {}, not {count}", elements(most)), None)
        }
        _ => value,
    }
}

/// The value of the converted objects of a list or set; `None` after a problem.
fn items(ty: &Type, converted: Option<Vec<Value>>) -> Value {
    converted.map_or(Value::NULL, |items| Value::of_items(ty, items))
}

/// The value of the converted objects of a map; `None` after a problem.
fn entries(ty: &Type, converted: Option<Entries<Value>>) -> Value {
    converted.map_or(Value::NULL, |entries| Value::of_entries(ty, entries))
}

fn elements(count: u64) -> String {
    if count == 1 { "1 element".to_owned() } else { format!("{count} elements") }
}

/// Converts the objects of a list. Reports a problem and returns `None` if the value is not a list.
fn objects(
    converter: &mut Converter<'_>,
    config: &model::Value,
    convert: impl Fn(&mut Converter<'_>, &model::Value) -> Value,
) -> Option<Vec<Value>> {
    let model::Value::List(items) = config else {
        let is_element = matches!(config, model::Value::Map(_));
        let hint = is_element.then(|| "write it as a list with one element".to_owned());
        converter.problem(format!("must be a list of objects, not {}", kind_of(config)), hint);
        return None;
    };
    let items = items.iter().enumerate();
    Some(items.map(|(place, item)| converter.within(Segment::Index(place), |c| convert(c, item))).collect())
}

/// Converts the objects of a map. Reports a problem and returns `None` if the value is not a map.
fn keyed_objects(
    converter: &mut Converter<'_>,
    config: &model::Value,
    convert: impl Fn(&mut Converter<'_>, &model::Value) -> Value,
) -> Option<Entries<Value>> {
    let model::Value::Map(entries) = config else {
        converter.problem(format!("must be a map of objects, not {}", kind_of(config)), None);
        return None;
    };
    let entries = entries.iter();
    Some(entries.map(|(key, item)| (key.clone(), converter.within_name(key, |c| convert(c, item)))).collect())
}

#[cfg(test)]
mod tests;
