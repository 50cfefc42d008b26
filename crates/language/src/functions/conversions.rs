//! Conversions to a type.

use super::call::Call;
use super::parameter::{Parameter, any};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Mark, Type, Value, convert, is_convertible};

const VALUE: &[Parameter] = &[any("v").null().marked().untyped()];

pub const FUNCTIONS: &[Function] = &[
    function("tobool", |call| to(call, Accepts::Bool))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::Bool))
        .or_null()
        .says(
            "A value as a bool. Only `true`, `false` and the strings of them are allowed.",
            "tobool(\"true\")",
            "true",
        ),
    function("tolist", |call| to(call, Accepts::ListOfAny))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::ListOfAny))
        .or_null()
        .says("A value as a list, whose elements get one type.", "tolist([\"a\", 1])", "[\"a\", \"1\"]"),
    function("tomap", |call| to(call, Accepts::MapOfAny))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::MapOfAny))
        .or_null()
        .says("A value as a map, whose elements get one type.", "tomap({a = \"x\", b = 1})", "{a = \"x\", b = \"1\"}"),
    function("tonumber", |call| to(call, Accepts::Number))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::Number))
        .or_null()
        .says("A value as a number.", "tonumber(\"1.5\")", "1.5"),
    function("toset", |call| to(call, Accepts::SetOfAny))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::SetOfAny))
        .or_null()
        .says("A value as a set, whose elements get one type.", "toset([\"b\", \"a\", \"b\"])", "[\"a\", \"b\"]"),
    function("tostring", |call| to(call, Accepts::String))
        .takes(VALUE)
        .gives_type_of(|call| to_type(call, Accepts::String))
        .or_null()
        .says("A primitive value as a string.", "tostring(1.5)", "\"1.5\""),
];

fn to_type(call: &Call<'_>, wanted: Accepts) -> Result<Type, Failure> {
    let (given, wanted) = (call.arguments[0].ty(), wanted.ty());
    if is_convertible(given, &wanted) {
        return Ok(wanted);
    }
    Err(Failure::of(0, format!("cannot convert {given} to {wanted}")))
}

fn to(call: &Call<'_>, wanted: Accepts) -> Result<Value, Failure> {
    let value = &call.arguments[0];
    convert(value, &wanted.ty()).map_err(|error| {
        let kind = if value.contains_mark(&Mark::Ephemeral) {
            "this ephemeral "
        } else if value.contains_mark(&Mark::Sensitive) {
            "this sensitive "
        } else {
            ""
        };
        Failure::of(0, format!("cannot convert {kind}{} to {}: {error}", value.ty(), wanted.ty()))
    })
}
