//! Write-only attributes, which are sent to the provider and never recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use cty::{Error, Path, Step, Type, Value, msgpack};

use super::{Attribute, Block, NestedType, Nesting, Shape, entries, items};

/// Returns an error for each write-only attribute that is not null in a provider's response. A provider must never
/// return a write-only value.
pub fn write_only_errors(block: &Block, value: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    visit(block, value, &mut |path, _, _| {
        errors.push(Error::at(path, "is write-only, but the provider returned it"));
    });
    errors
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
    let mut values = Vec::new();
    visit(block, config, &mut |_, _, value| values.push(value.clone()));
    values
}

/// Returns a fingerprint of each write-only value that a configuration sets. A plan does not show a changed write-only
/// value, but its fingerprint does. `salt` gives the same secret in two objects different fingerprints. An unknown value
/// is hashed as unknown, so its fingerprint is final only when the value is known.
pub fn write_only_fingerprints(block: &Block, config: &Value, salt: &[u8]) -> BTreeMap<Path, [u8; 32]> {
    let mut fingerprints = BTreeMap::new();
    visit(block, config, &mut |path, attribute, value| {
        let mut hash = Sha256::new();
        let bytes = msgpack::encode(value, &attribute.ty()).unwrap_or_default();
        for part in [salt, path.to_string().as_bytes(), &bytes] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        fingerprints.insert(path, hash.finalize().into());
    });
    fingerprints
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
        for (at, element) in elements(nested.nesting, value, at.name(name.clone())) {
            visit_block(&nested.block, element, &at, show);
        }
    }
}

fn visit_attributes(attributes: &BTreeMap<Arc<str>, Attribute>, value: &Value, at: &Path, show: &mut Visit<'_>) {
    for (name, attribute) in attributes {
        let Some(value) = value.get(name).filter(|value| !value.is_null()) else { continue };
        match &attribute.shape {
            _ if attribute.write_only => show(at.name(name.clone()), attribute, value),
            Shape::Nested(nested) => {
                for (at, element) in elements(nested.nesting, value, at.name(name.clone())) {
                    visit_attributes(nested.attributes(), element, &at, show);
                }
            }
            Shape::Plain(_) => {}
        }
    }
}

/// The objects in a nesting, with their paths.
fn elements(nesting: Nesting, value: &Value, at: Path) -> Vec<(Path, &Value)> {
    match nesting {
        Nesting::Single | Nesting::Group => vec![(at, value)],
        Nesting::List | Nesting::Set => {
            items(value).iter().enumerate().map(|(place, item)| (at.join(Step::Index(place)), item)).collect()
        }
        Nesting::Map => entries(value).iter().map(|(key, item)| (at.name(key.clone()), item)).collect(),
    }
}

fn strip_block(block: &Block, value: &Value) -> Value {
    strip_parts(block.ty(), value, &|name, item| match (block.attributes().get(name), block.blocks().get(name)) {
        (Some(attribute), _) => strip_attribute(attribute, item),
        (None, Some(nested)) => {
            strip_nested(nested.nesting, &nested.ty(), item, &|item| strip_block(&nested.block, item))
        }
        (None, None) => item.clone(),
    })
}

fn strip_attribute(attribute: &Attribute, value: &Value) -> Value {
    match &attribute.shape {
        _ if attribute.write_only => Value::null(attribute.ty()),
        Shape::Nested(nested) => strip_nested(nested.nesting, &nested.ty(), value, &|item| strip_object(nested, item)),
        Shape::Plain(_) => value.clone(),
    }
}

fn strip_object(nested: &NestedType, value: &Value) -> Value {
    strip_parts(nested.element(), value, &|name, item| {
        nested.attributes().get(name).map_or_else(|| item.clone(), |inner| strip_attribute(inner, item))
    })
}

fn strip_parts(ty: &Type, value: &Value, strip: &dyn Fn(&Arc<str>, &Value) -> Value) -> Value {
    let Some(entries) = value.as_entries() else { return value.clone() };
    Value::of_entries(ty, entries.iter().map(|(name, item)| (name.clone(), strip(name, item))).collect())
}

/// Strips each object of a nesting of the declared type.
fn strip_nested(nesting: Nesting, ty: &Type, value: &Value, strip: &dyn Fn(&Value) -> Value) -> Value {
    match (nesting, value.as_items()) {
        (Nesting::Single | Nesting::Group, _) => strip(value),
        (Nesting::List | Nesting::Set, Some(items)) => Value::of_items(ty, items.iter().map(strip).collect()),
        (Nesting::List | Nesting::Set, None) => value.clone(),
        (Nesting::Map, _) => strip_parts(ty, value, &|_, item| strip(item)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::builders::{block, nested, optional};
    use super::*;

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

    fn value(secret: Option<&str>) -> Value {
        let secret = || secret.map_or_else(|| Value::null(Type::String), Value::from);
        let of = |name: &str| Value::object([(name, secret())]);
        let open = Value::object([("any", true.into()), ("secret", secret())]);
        Value::object([
            ("keys", Value::map(of("key").ty().clone(), [("k", of("key"))])),
            ("name", "x".into()),
            ("open", Value::tuple([open])),
            ("rule", Value::set(of("secret").ty().clone(), [of("secret")])),
            ("secret", secret()),
        ])
    }

    #[test]
    fn write_only_values_are_found_and_removed_at_every_level() {
        let found = write_only_errors(&schema(), &value(Some("s")));
        let paths: Vec<String> = found.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["keys.k.key", "secret", "open[0].secret", "rule[0].secret"]);
        let stripped = without_write_only(&schema(), &value(Some("s")));
        assert_eq!(stripped, value(None));
        assert!(write_only_errors(&schema(), &stripped).is_empty());
    }

    #[test]
    fn fingerprints_differ_by_secret_object_and_path() {
        let of = |secret: &str, salt: &[u8]| write_only_fingerprints(&schema(), &value(Some(secret)), salt);
        let prints = of("s", b"a");
        let paths: Vec<String> = prints.keys().map(ToString::to_string).collect();
        assert_eq!(paths, ["keys.k.key", "open[0].secret", "rule[0].secret", "secret"]);
        assert_eq!(prints.values().collect::<BTreeSet<_>>().len(), prints.len());
        assert_eq!(of("s", b"a"), prints);
        for others in [of("t", b"a"), of("s", b"b")] {
            assert!(others.iter().all(|(path, print)| prints[path] != *print));
        }
        assert!(write_only_fingerprints(&schema(), &value(None), b"a").is_empty());
    }
}
