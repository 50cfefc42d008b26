//! Write-only attributes, which are sent to the provider and never recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::schema::{Attribute, Block, NestedType, Nesting, Shape};
use super::value::map_values;
use super::{Type, Value, ValueError, msgpack};
use model::{Path, Segment};

/// Returns an error for each write-only attribute that is not null in a provider's response. A provider must never
/// return a write-only value.
pub fn write_only_errors(block: &Block, value: &Value) -> Vec<ValueError> {
    let mut found = Vec::new();
    visit(block, value, &mut |path, _, _| {
        found.push(ValueError { path, what: "is write-only, but the provider returned it".to_owned() });
    });
    found
}

/// Sets every write-only attribute to null.
#[must_use]
pub fn without_write_only(block: &Block, value: &Value) -> Value {
    let mut any = false;
    visit(block, value, &mut |_, _, _| any = true);
    if any { strip_block(block, value) } else { value.clone() }
}

/// Returns the write-only values that a configuration sets.
pub fn write_only_values(block: &Block, config: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    visit(block, config, &mut |_, _, value| found.push(value.clone()));
    found
}

/// Returns a fingerprint of each write-only value that a configuration sets. A plan does not show a changed write-only
/// value, but its fingerprint does. `salt` gives the same secret in two objects different fingerprints. An unknown value
/// is hashed as unknown, so its fingerprint is final only when the value is known.
pub fn write_only_fingerprints(block: &Block, config: &Value, salt: &[u8]) -> BTreeMap<Path, [u8; 32]> {
    let mut found = BTreeMap::new();
    visit(block, config, &mut |path, attribute, value| {
        let mut hash = Sha256::new();
        let bytes = msgpack::encode(value, &attribute.ty()).unwrap_or_default();
        for part in [salt, path.to_string().as_bytes(), &bytes] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        found.insert(path, hash.finalize().into());
    });
    found
}

type Visit<'v> = dyn FnMut(Path, &Attribute, &Value) + 'v;

/// Calls `show` for each write-only attribute that is not null.
fn visit(block: &Block, value: &Value, show: &mut Visit<'_>) {
    visit_block(block, value, &Path::default(), show);
}

fn visit_block(block: &Block, value: &Value, at: &Path, show: &mut Visit<'_>) {
    visit_attributes(block.attributes(), value, at, show);
    for (name, nested) in block.blocks() {
        let Some(value) = value.get(name) else { continue };
        for (at, element) in elements(nested.nesting, value, nested.block.ty(), at.name(name.clone())) {
            visit_block(&nested.block, &element, &at, show);
        }
    }
}

fn visit_attributes(attributes: &BTreeMap<Arc<str>, Attribute>, value: &Value, at: &Path, show: &mut Visit<'_>) {
    for (name, attribute) in attributes {
        let Some(value) = value.get(name).filter(|value| !value.is_null()) else { continue };
        match &attribute.shape {
            _ if attribute.write_only => show(at.name(name.clone()), attribute, value),
            Shape::Nested(nested) => {
                for (at, element) in elements(nested.nesting, value, nested.element(), at.name(name.clone())) {
                    visit_attributes(nested.attributes(), &element, &at, show);
                }
            }
            Shape::Plain(_) => {}
        }
    }
}

/// The objects in a nesting, with their paths.
fn elements(nesting: Nesting, value: &Value, element: &Type, at: Path) -> Vec<(Path, Value)> {
    match nesting {
        Nesting::Single | Nesting::Group => vec![(at, value.clone())],
        Nesting::List | Nesting::Set => {
            let items = super::nested::items(value, element);
            items.iter().enumerate().map(|(place, item)| (at.join(Segment::Index(place)), item.clone())).collect()
        }
        Nesting::Map => {
            let entries = super::nested::entries(value, element);
            entries.iter().map(|(key, item)| (at.name(key.clone()), item.clone())).collect()
        }
    }
}

fn strip_block(block: &Block, value: &Value) -> Value {
    let Value::Object(entries) = value else { return value.clone() };
    let stripped = entries.iter().map(|(name, item)| {
        let item = match (block.attributes().get(name), block.blocks().get(name)) {
            (Some(attribute), _) => strip_attribute(attribute, item),
            (None, Some(nested)) => strip_nested(item, nested.block.ty(), &|item| strip_block(&nested.block, item)),
            (None, None) => item.clone(),
        };
        (name.clone(), item)
    });
    Value::object(stripped)
}

fn strip_attribute(attribute: &Attribute, value: &Value) -> Value {
    match &attribute.shape {
        _ if attribute.write_only => Value::Null,
        Shape::Nested(nested) => strip_nested(value, nested.element(), &|item| strip_object(nested, item)),
        Shape::Plain(_) => value.clone(),
    }
}

fn strip_object(nested: &NestedType, value: &Value) -> Value {
    let Value::Object(entries) = value else { return value.clone() };
    let stripped = entries.iter().map(|(name, item)| {
        let item = nested.attributes().get(name).map_or_else(|| item.clone(), |inner| strip_attribute(inner, item));
        (name.clone(), item)
    });
    Value::object(stripped)
}

/// Strips each object of a nesting. A dynamically typed value is converted to the schema's type and back.
fn strip_nested(value: &Value, element: &Type, strip: &dyn Fn(&Value) -> Value) -> Value {
    match value {
        Value::List(items) => Value::list(items.iter().map(strip)),
        Value::Set(items) => Value::set(items.iter().map(strip)),
        Value::Map(entries) => Value::Map(map_values(entries, strip)),
        Value::Dynamic(typed) => match &typed.value {
            Value::Tuple(_) => {
                super::nested::list(super::nested::items(value, element).iter().map(strip).collect(), element)
            }
            Value::Object(_) => {
                let entries = super::nested::entries(value, element);
                super::nested::map(map_values(&entries, strip).as_ref().clone(), element)
            }
            _ => value.clone(),
        },
        object => strip(object),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cty::schema::tests::{block, nested, optional};

    fn secret() -> Attribute {
        Attribute { write_only: true, ..optional(Type::String) }
    }

    fn schema() -> Block {
        let object = NestedType::new(Nesting::Map, BTreeMap::from([("key".into(), secret())]));
        let open = block([("any", optional(Type::Dynamic)), ("secret", secret())], []);
        block(
            [
                ("keys", Attribute { optional: true, ..Attribute::new(Shape::Nested(object)) }),
                ("name", optional(Type::String)),
                ("secret", secret()),
            ],
            [("open", nested(Nesting::List, open)), ("rule", nested(Nesting::Set, block([("secret", secret())], [])))],
        )
    }

    fn value(secret: &Value) -> Value {
        let of = |more: Option<(&str, Value)>| Value::object(more.into_iter().chain([("secret", secret.clone())]));
        let open = of(Some(("any", Value::dynamic(Type::Bool, true.into()))));
        Value::object([
            ("keys", Value::map([("k", Value::object([("key", secret.clone())]))])),
            ("name", "x".into()),
            ("open", super::super::nested::list(vec![open], schema().blocks()["open"].block.ty())),
            ("rule", Value::set([of(None)])),
            ("secret", secret.clone()),
        ])
    }

    #[test]
    fn write_only_values_are_found_and_removed_at_every_level() {
        let found = write_only_errors(&schema(), &value(&"s".into()));
        let paths: Vec<String> = found.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["keys.k.key", "secret", "open[0].secret", "rule[0].secret"]);
        let stripped = without_write_only(&schema(), &value(&"s".into()));
        assert_eq!(stripped, value(&Value::Null));
        assert!(write_only_errors(&schema(), &stripped).is_empty());
    }

    #[test]
    fn fingerprints_differ_by_secret_object_and_path() {
        let of = |secret: &str, salt: &[u8]| write_only_fingerprints(&schema(), &value(&secret.into()), salt);
        let prints = of("s", b"a");
        let paths: Vec<String> = prints.keys().map(ToString::to_string).collect();
        assert_eq!(paths, ["keys.k.key", "open[0].secret", "rule[0].secret", "secret"]);
        assert_eq!(prints.values().collect::<BTreeSet<_>>().len(), prints.len());
        assert_eq!(of("s", b"a"), prints);
        for others in [of("t", b"a"), of("s", b"b")] {
            assert!(others.iter().all(|(path, print)| prints[path] != *print));
        }
        assert!(write_only_fingerprints(&schema(), &value(&Value::Null), b"a").is_empty());
    }
}
