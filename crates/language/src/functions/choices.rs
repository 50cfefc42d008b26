//! The first of several values.

use super::call::Call;
use super::parameter::any;
use super::{Function, function};
use crate::Failure;
use crate::cty::{Type, Value, unify_unsafe};

pub const FUNCTIONS: &[Function] = &[
    function("coalesce", coalesce).and_any(any("vals").anything()).gives_type_of(coalesce_type).says(
        "The first argument that is neither null nor an empty string.",
        "coalesce(null, \"\", \"a\")",
        "\"a\"",
    ),
    function("coalescelist", coalescelist).and_any(any("vals").anything()).gives_type_of(coalescelist_type).says(
        "The first list that is not empty.",
        "coalescelist([], [\"a\"])",
        "[\"a\"]",
    ),
];

fn common_type(call: &Call<'_>) -> Result<crate::cty::Unified, Failure> {
    let types: Vec<Type> = call.arguments.iter().map(|value| value.ty().clone()).collect();
    unify_unsafe(&types).ok_or_else(|| Failure::new("the arguments must have one type"))
}

fn coalesce_type(call: &Call<'_>) -> Result<Type, Failure> {
    Ok(common_type(call)?.ty)
}

fn coalesce(call: &Call<'_>) -> Result<Value, Failure> {
    for value in call.arguments {
        let value = crate::cty::convert(value, call.ty)?;
        if !value.is_known() {
            return Ok(Value::unknown(call.ty.clone()));
        }
        if !value.is_null() && value.as_str() != Some("") {
            return Ok(value);
        }
    }
    Err(Failure::new("all arguments are null or empty strings"))
}

fn coalescelist_type(call: &Call<'_>) -> Result<Type, Failure> {
    let Some(first) = call.arguments.first() else { return Err(Failure::new("at least one argument is required")) };
    for (index, list) in call.arguments.iter().enumerate() {
        if !list.is_known() {
            return Ok(Type::Dynamic);
        }
        if !matches!(list.ty(), Type::List(_) | Type::Tuple(_)) {
            return Err(Failure::of(index, format!("a list or tuple is required, but the value is {}", list.ty())));
        }
    }
    let same = call.arguments.iter().all(|list| list.ty() == first.ty());
    Ok(if same { first.ty().clone() } else { Type::Dynamic })
}

fn coalescelist(call: &Call<'_>) -> Result<Value, Failure> {
    for list in call.arguments {
        if !list.is_known() {
            return Ok(Value::unknown(call.ty.clone()));
        }
        if list.as_items().is_some_and(|items| !items.is_empty()) {
            return Ok(list.clone());
        }
    }
    Err(Failure::new("all lists are null or empty"))
}
