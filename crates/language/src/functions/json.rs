//! JSON.

use super::call::Call;
use super::parameter::{any, string};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Range, Type, Value, json as encoding};

pub const FUNCTIONS: &[Function] = &[
    function("jsondecode", jsondecode).takes(&[string("str")]).gives_type_of(jsondecode_type).or_null().says(
        "The value that a JSON text describes.",
        "jsondecode(\"{\\\"hello\\\": \\\"world\\\"}\")",
        "{hello = \"world\"}",
    ),
    function("jsonencode", jsonencode).takes(&[any("val").anything()]).gives(Accepts::String).says(
        "The JSON text of a value.",
        "jsonencode({hello = \"world\"})",
        "\"{\\\"hello\\\":\\\"world\\\"}\"",
    ),
];

fn decoded(text: &str) -> Result<Value, Failure> {
    encoding::read(text).map_err(|error| Failure::of(0, error.to_string()))
}

/// The beginning of an unknown text can say what it will be.
fn jsondecode_type(call: &Call<'_>) -> Result<Type, Failure> {
    if let Some(text) = call.arguments[0].as_str() {
        return Ok(decoded(text)?.ty().clone());
    }
    let prefix = call.arguments[0].range().prefix.unwrap_or_default();
    match prefix.trim().chars().next() {
        Some('"') => Ok(Type::String),
        Some('t' | 'f') => Ok(Type::Bool),
        Some('-' | '.' | '0'..='9') => Ok(Type::Number),
        None | Some('{' | '[' | 'n') => Ok(Type::Dynamic),
        Some(other) => Err(Failure::of(0, format!("a JSON text cannot begin with '{other}'"))),
    }
}

fn jsondecode(call: &Call<'_>) -> Result<Value, Failure> {
    decoded(call.text(0))
}

fn jsonencode(call: &Call<'_>) -> Result<Value, Failure> {
    let value = &call.arguments[0];
    if value.is_wholly_known() {
        let mut json = String::new();
        encoding::write(value, &mut json)?;
        return Ok(Value::string(&json));
    }
    let prefix = match value.ty() {
        _ if !value.is_definitely_not_null() => "",
        Type::String => "\"",
        Type::Object(_) | Type::Map(_) => "{",
        Type::Tuple(_) | Type::List(_) | Type::Set(_) => "[",
        _ => "",
    };
    Ok(Value::unknown_in(Type::String, Range::default().with_prefix(prefix)))
}
