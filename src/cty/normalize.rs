//! States as the rest expects them, whoever wrote them.

use super::schema::{Block, NestedBlock, Nesting};
use super::{Value, nested};

/// The value with blocks in their proper form. The legacy type system cannot tell "no blocks" from null and answers
/// either. Blocks with dynamic places are left as they are: no provider of that type system has any.
#[must_use]
pub fn normalized(block: &Block, value: &Value) -> Value {
    let Value::Object(entries) = value else { return value.clone() };
    let mut entries = entries.as_ref().clone();
    for (name, nested) in block.blocks().iter().filter(|(_, nested)| !nested.is_dynamic()) {
        if let Some(value) = entries.get_mut(name) {
            *value = normalized_blocks(nested, value);
        }
    }
    Value::Object(entries.into())
}

fn normalized_blocks(nested: &NestedBlock, value: &Value) -> Value {
    let block = &nested.block;
    match (nested.nesting, value) {
        (Nesting::Single, Value::Null) | (Nesting::Map, Value::Unknown(_)) => value.clone(),
        (_, Value::Null) => nested.empty(),
        (Nesting::Single | Nesting::Group, Value::Unknown(_)) => unknown_block(block),
        (Nesting::List, Value::Unknown(_)) => Value::list([unknown_block(block)]),
        (Nesting::Set, Value::Unknown(_)) => Value::set([unknown_block(block)]),
        (Nesting::Single | Nesting::Group, value) => normalized(block, value),
        (Nesting::List, value) => {
            Value::list(nested::items(value, block.ty()).iter().map(|item| normalized(block, item)))
        }
        (Nesting::Set, value) => {
            Value::set(nested::items(value, block.ty()).iter().map(|item| normalized(block, item)))
        }
        (Nesting::Map, value) => {
            Value::map(nested::entries(value, block.ty()).iter().map(|(key, item)| (key, normalized(block, item))))
        }
    }
}

/// A block of which nothing is known but that it is there.
fn unknown_block(block: &Block) -> Value {
    let attributes = block.attributes().keys().map(|name| (name.clone(), Value::UNKNOWN));
    let blocks = block.blocks().iter().map(|(name, nested)| {
        let value = match nested.nesting {
            Nesting::Map => nested.empty(),
            _ if nested.is_dynamic() => Value::UNKNOWN,
            _ => normalized_blocks(nested, &Value::UNKNOWN),
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
            normalized(&outer, &all(Value::Null)),
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
            normalized(&outer, &all(Value::UNKNOWN)),
            Value::object([
                ("group", unknown.clone()),
                ("list", Value::list([unknown.clone()])),
                ("name", Value::UNKNOWN),
                ("set", Value::set([unknown.clone()])),
                ("single", unknown),
            ])
        );
        assert_eq!(normalized(&outer, &Value::Null), Value::Null);
    }
}
