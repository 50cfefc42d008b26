//! Normalizes the states of providers with the legacy type system.

use super::schema::{Block, NestedBlock, Nesting};
use super::{Value, nested};

/// Returns the value with blocks in canonical form. The legacy type system does not distinguish "no blocks" from null
/// and returns either. Blocks with dynamic parts are not changed: no provider with that type system has any.
#[must_use]
pub fn normalize(block: &Block, value: &Value) -> Value {
    let Value::Object(entries) = value else { return value.clone() };
    let mut entries = entries.as_ref().clone();
    for (name, nested) in block.blocks().iter().filter(|(_, nested)| !nested.is_dynamic()) {
        if let Some(value) = entries.get_mut(name) {
            *value = normalize_nested(nested, value);
        }
    }
    Value::Object(entries.into())
}

fn normalize_nested(nested: &NestedBlock, value: &Value) -> Value {
    let block = &nested.block;
    match (nested.nesting, value) {
        (Nesting::Single, Value::Null) | (Nesting::Map, Value::Unknown(_)) => value.clone(),
        (_, Value::Null) => nested.empty(),
        (Nesting::Single | Nesting::Group, Value::Unknown(_)) => unknown_block(block),
        (Nesting::List, Value::Unknown(_)) => Value::list([unknown_block(block)]),
        (Nesting::Set, Value::Unknown(_)) => Value::set([unknown_block(block)]),
        (Nesting::Single | Nesting::Group, value) => normalize(block, value),
        (Nesting::List, value) => {
            Value::list(nested::items(value, block.ty()).iter().map(|item| normalize(block, item)))
        }
        (Nesting::Set, value) => Value::set(nested::items(value, block.ty()).iter().map(|item| normalize(block, item))),
        (Nesting::Map, value) => {
            Value::map(nested::entries(value, block.ty()).iter().map(|(key, item)| (key, normalize(block, item))))
        }
    }
}

/// A block that exists and whose attributes are all unknown.
fn unknown_block(block: &Block) -> Value {
    let attributes = block.attributes().keys().map(|name| (name.clone(), Value::UNKNOWN));
    let blocks = block.blocks().iter().map(|(name, nested)| {
        let value = match nested.nesting {
            Nesting::Map => nested.empty(),
            _ if nested.is_dynamic() => Value::UNKNOWN,
            _ => normalize_nested(nested, &Value::UNKNOWN),
        };
        (name.clone(), value)
    });
    Value::object(attributes.chain(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cty::Type;
    use crate::cty::schema::tests::{block, nested, optional};

    #[test]
    fn blocks_are_never_null_or_unknown() {
        let rule = || block([("port", optional(Type::Number))], []);
        let outer = block(
            [("name", optional(Type::String))],
            [
                ("group", nested(Nesting::Group, rule())),
                ("list", nested(Nesting::List, rule())),
                ("set", nested(Nesting::Set, rule())),
                ("single", nested(Nesting::Single, rule())),
            ],
        );
        let all = |value: Value| {
            let names = ["group", "list", "name", "set", "single"];
            Value::object(names.map(|name| (name, value.clone())))
        };
        let empty = rule().empty();
        assert_eq!(
            normalize(&outer, &all(Value::Null)),
            Value::object([
                ("group", empty),
                ("list", Value::list([])),
                ("name", Value::Null),
                ("set", Value::set([])),
                ("single", Value::Null),
            ])
        );
        let unknown = Value::object([("port", Value::UNKNOWN)]);
        assert_eq!(
            normalize(&outer, &all(Value::UNKNOWN)),
            Value::object([
                ("group", unknown.clone()),
                ("list", Value::list([unknown.clone()])),
                ("name", Value::UNKNOWN),
                ("set", Value::set([unknown.clone()])),
                ("single", unknown),
            ])
        );
        assert_eq!(normalize(&outer, &Value::Null), Value::Null);
    }
}
