//! Strategies for random values, and tests of implied types.

use cty::Number;

use super::builders::{block, nested, optional};
use super::*;

#[path = "../../../cty/src/tests.rs"]
pub mod strategies;

fn open() -> Block {
    block([("a", optional(Type::Dynamic))], [])
}

fn plain() -> Block {
    block([("a", optional(Type::String))], [])
}

#[test]
fn types_follow_from_nesting() {
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
    let json = cty::json::encode(&outer.empty(), outer.ty()).unwrap();
    assert_eq!(
        json,
        concat!(
            r#"{"attr":null,"group":{"a":null},"list":[],"map":{},"open_list":{"value":[],"type":["tuple",[]]},"#,
            r#""open_map":{"value":{},"type":["object",{}]},"set":[],"single":null}"#
        )
    );
}
