//! Sensitive and ephemeral values.

use super::call::Call;
use super::parameter::{Parameter, any};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Mark, Type, Value};

const VALUE: &[Parameter] = &[any("value").anything().marked()];

pub const FUNCTIONS: &[Function] = &[
    function("ephemeralasnull", ephemeralasnull).takes(VALUE).gives_type_of(same_type).or_null().says(
        "A value with null in place of its ephemeral parts.",
        "ephemeralasnull(\"a\")",
        "\"a\"",
    ),
    function("issensitive", issensitive).takes(VALUE).gives(Accepts::Bool).says(
        "Whether a value is sensitive.",
        "issensitive(sensitive(\"a\"))",
        "true",
    ),
    function("nonsensitive", nonsensitive).takes(VALUE).gives_type_of(same_type).or_null().says(
        "A value without its sensitivity, to be used where the value is known to be harmless.",
        "nonsensitive(sensitive(\"a\"))",
        "\"a\"",
    ),
    function("sensitive", sensitive).takes(VALUE).gives_type_of(same_type).or_null().says(
        "A value as a sensitive one, which is not shown.",
        "issensitive(sensitive(\"a\"))",
        "true",
    ),
];

fn same_type(call: &Call<'_>) -> Result<Type, Failure> {
    Ok(call.arguments[0].ty().clone())
}

fn ephemeralasnull(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.arguments[0].map_values(&mut |value| {
        let marks = value.marks().without(&Mark::Ephemeral);
        if !value.is_known() {
            Value::unknown(value.ty().clone()).with_marks(&marks)
        } else if value.has_mark(&Mark::Ephemeral) {
            Value::null(value.ty().clone()).with_marks(&marks)
        } else {
            value
        }
    }))
}

fn issensitive(call: &Call<'_>) -> Result<Value, Failure> {
    let value = &call.arguments[0];
    Ok(if value.is_known() { value.has_mark(&Mark::Sensitive).into() } else { Value::unknown(Type::Bool) })
}

fn nonsensitive(call: &Call<'_>) -> Result<Value, Failure> {
    let value = call.plain(0, &mut crate::cty::Marks::default());
    Ok(value.with_marks(&call.arguments[0].marks().without(&Mark::Sensitive)))
}

fn sensitive(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.arguments[0].clone().with_mark(Mark::Sensitive))
}
