//! Searching in strings.

use super::call::Call;
use super::parameter::string;
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("endswith", endswith).takes(&[string("str"), string("suffix")]).gives(Accepts::Bool).says(
        "Whether a string ends with a suffix.",
        "endswith(\"hello world\", \"world\")",
        "true",
    ),
    function("startswith", startswith).takes(&[string("str").unknown(), string("prefix")]).gives(Accepts::Bool).says(
        "Whether a string begins with a prefix.",
        "startswith(\"hello world\", \"hello\")",
        "true",
    ),
    function("strcontains", strcontains).takes(&[string("str"), string("substr")]).gives(Accepts::Bool).or_null().says(
        "Whether a string contains another one.",
        "strcontains(\"hello world\", \"wor\")",
        "true",
    ),
];

fn endswith(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).ends_with(call.text(1)).into())
}

fn strcontains(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).contains(call.text(1)).into())
}

/// The known beginning of an unknown string may be enough.
fn startswith(call: &Call<'_>) -> Result<Value, Failure> {
    let prefix = call.text(1);
    if let Some(text) = call.arguments[0].as_str() {
        return Ok(text.starts_with(prefix).into());
    }
    if prefix.is_empty() {
        return Ok(Value::TRUE);
    }
    Ok(match call.arguments[0].range().prefix {
        Some(known) if known.starts_with(prefix) => Value::TRUE,
        Some(known) if known.len() >= prefix.len() => Value::FALSE,
        _ => Value::unknown(Type::Bool),
    })
}
