//! Schema builders for tests, and tests of implied types.

use super::*;

pub(in crate::cty) fn optional(ty: Type) -> Attribute {
    Attribute { optional: true, ..Attribute::new(Shape::Plain(ty)) }
}

/// An attribute that the configuration or the provider may set.
pub(in crate::cty) fn optional_computed(ty: Type) -> Attribute {
    Attribute { computed: true, ..optional(ty) }
}

/// An attribute that only the provider sets.
pub(in crate::cty) fn computed(ty: Type) -> Attribute {
    Attribute { computed: true, ..Attribute::new(Shape::Plain(ty)) }
}

pub(in crate::cty) fn required(ty: Type) -> Attribute {
    Attribute { required: true, ..Attribute::new(Shape::Plain(ty)) }
}

pub(in crate::cty) fn block<const A: usize, const B: usize>(
    attributes: [(&str, Attribute); A],
    blocks: [(&str, NestedBlock); B],
) -> Block {
    let attributes = attributes.into_iter().map(|(name, attribute)| (name.into(), attribute));
    let blocks = blocks.into_iter().map(|(name, nested)| (name.into(), nested));
    Block::new(attributes.collect(), blocks.collect())
}

/// A nested block without limits on the number of items.
pub(in crate::cty) fn nested(nesting: Nesting, block: Block) -> NestedBlock {
    NestedBlock { nesting, block, min_items: 0, max_items: 0 }
}

#[test]
fn types_follow_from_nesting() {
    let plain = || block([("a", optional(Type::String))], []);
    let open = || block([("a", optional(Type::Dynamic))], []);
    let object = NestedType::new(Nesting::Map, BTreeMap::from([("x".into(), optional(Type::Bool))]));
    let outer = block(
        [("attr", Attribute::new(Shape::Nested(object)))],
        [
            ("group", nested(Nesting::Group, open())),
            ("list", nested(Nesting::List, plain())),
            ("map", nested(Nesting::Map, plain())),
            ("open_list", nested(Nesting::List, open())),
            ("open_map", nested(Nesting::Map, open())),
            ("set", nested(Nesting::Set, plain())),
            ("single", nested(Nesting::Single, plain())),
        ],
    );
    assert_eq!(
        outer.ty().to_json(),
        concat!(
            r#"["object",{"attr":["map",["object",{"x":"bool"}]],"group":["object",{"a":"dynamic"}],"#,
            r#""list":["list",["object",{"a":"string"}]],"map":["map",["object",{"a":"string"}]],"#,
            r#""open_list":"dynamic","open_map":"dynamic","set":["set",["object",{"a":"string"}]],"#,
            r#""single":["object",{"a":"string"}]}]"#
        )
    );
    let json = crate::cty::json::encode(&outer.empty(), outer.ty()).unwrap();
    assert_eq!(
        json,
        concat!(
            r#"{"attr":null,"group":{"a":null},"list":[],"map":{},"open_list":{"value":[],"type":["tuple",[]]},"#,
            r#""open_map":{"value":{},"type":["object",{}]},"set":[],"single":null}"#
        )
    );
}
