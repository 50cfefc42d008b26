//! Normalizes the states of providers with the legacy type system.

use cty::Value;

use super::{Block, NestedBlock, Nesting, entries, items};

/// Returns the value with blocks in canonical form. The legacy type system does not distinguish "no blocks" from null
/// and returns either. Blocks with dynamic parts are not changed: no provider with that type system has any.
#[must_use]
pub fn normalize(block: &Block, value: &Value) -> Value {
    let Some(entries) = value.as_entries() else { return value.clone() };
    let mut entries = entries.to_tree();
    for (name, nested) in block.blocks().iter().filter(|(_, nested)| !nested.is_dynamic()) {
        if let Some(value) = entries.get_mut(name) {
            *value = normalize_nested(nested, value);
        }
    }
    Value::of_entries(block.ty(), entries.into())
}

fn normalize_nested(nested: &NestedBlock, value: &Value) -> Value {
    let block = &nested.block;
    match (nested.nesting, value.is_null(), value.is_known()) {
        (Nesting::Single, true, _) | (Nesting::Map, _, false) => value.clone(),
        (_, true, _) => nested.empty(),
        (Nesting::Single | Nesting::Group, _, false) => unknown_block(block),
        (Nesting::List | Nesting::Set, _, false) => Value::of_items(&nested.ty(), vec![unknown_block(block)]),
        (Nesting::Single | Nesting::Group, ..) => normalize(block, value),
        (Nesting::List | Nesting::Set, ..) => {
            Value::of_items(&nested.ty(), items(value).iter().map(|item| normalize(block, item)).collect())
        }
        (Nesting::Map, ..) => {
            let entries = entries(value).iter().map(|(key, item)| (key.clone(), normalize(block, item)));
            Value::of_entries(&nested.ty(), entries.collect())
        }
    }
}

/// A block that exists and whose attributes are all unknown.
fn unknown_block(block: &Block) -> Value {
    let attributes = block.attributes().keys().map(|name| (name.clone(), Value::DYNAMIC));
    let blocks = block.blocks().iter().map(|(name, nested)| {
        let value = match nested.nesting {
            Nesting::Map => nested.empty(),
            _ if nested.is_dynamic() => Value::DYNAMIC,
            _ => normalize_nested(nested, &Value::DYNAMIC),
        };
        (name.clone(), value)
    });
    Value::of_entries(block.ty(), attributes.chain(blocks).collect())
}

#[cfg(test)]
mod tests {
    use cty::Type;

    use super::super::builders::{block, nested, optional};
    use super::*;

    fn element() -> Type {
        rule().ty().clone()
    }

    fn unknown() -> Value {
        Value::object([("port", Value::unknown(Type::Number))])
    }

    fn rule() -> Block {
        block([("port", optional(Type::Number))], [])
    }

    #[test]
    fn blocks_are_never_null_or_unknown() {
        let outer = block(
            [("name", optional(Type::String))],
            [
                ("group", nested(Nesting::Group, rule())),
                ("list", nested(Nesting::List, rule())),
                ("set", nested(Nesting::Set, rule())),
                ("single", nested(Nesting::Single, rule())),
            ],
        );
        let of = |parts: [Value; 5]| {
            let names = ["group", "list", "name", "set", "single"];
            Value::of_entries(outer.ty(), names.into_iter().zip(parts).collect())
        };
        let all = |value: &Value| of([(); 5].map(|()| value.clone()));
        let none = [rule().empty(), Value::list(element(), []), Value::NULL, Value::set(element(), []), Value::NULL];
        assert_eq!(normalize(&outer, &all(&Value::NULL)), of(none));
        let [list, set] = [Value::list(element(), [unknown()]), Value::set(element(), [unknown()])];
        assert_eq!(normalize(&outer, &all(&Value::DYNAMIC)), of([unknown(), list, Value::DYNAMIC, set, unknown()]));
        assert_eq!(normalize(&outer, &Value::NULL), Value::NULL);
    }
}
