//! Lists: their elements, and what is in them.

use super::call::Call;
use super::parameter::{any, number, parameter};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Marks, Type, Value, unify_unsafe};

pub const FUNCTIONS: &[Function] = &[
    function("alltrue", alltrue).takes(&[parameter("list", Accepts::ListOfBools)]).gives(Accepts::Bool).says(
        "Whether all elements are true; also if there are none.",
        "alltrue([true, false])",
        "false",
    ),
    function("anytrue", anytrue).takes(&[parameter("list", Accepts::ListOfBools)]).gives(Accepts::Bool).says(
        "Whether an element is true.",
        "anytrue([true, false])",
        "true",
    ),
    function("contains", contains).takes(&[any("list"), any("value")]).gives(Accepts::Bool).says(
        "Whether a list or set has an element that equals a value.",
        "contains([\"a\", \"b\"], \"a\")",
        "true",
    ),
    function("element", element)
        .takes(&[any("list").marked(), number("index")])
        .gives_type_of(element_type)
        .or_null()
        .says(
            "The element of a list at an index, which wraps around at both ends.",
            "element([\"a\", \"b\", \"c\"], 4)",
            "\"b\"",
        ),
    function("index", index).takes(&[any("list"), any("value")]).gives(Accepts::Number).says(
        "The index of the first element that equals a value.",
        "index([\"a\", \"b\", \"c\"], \"b\")",
        "1",
    ),
    function("length", length).takes(&[any("value").untyped().unknown().marked()]).gives_type_of(length_type).says(
        "The number of elements of a list, set, map, tuple or object, or of characters of a string.",
        "length([\"a\", \"b\"])",
        "2",
    ),
    function("list", list).and_any(any("vals").anything()).gives_type_of(|_| Err(Failure::new(NO_LIST))).says(
        "Not available: write `tolist([ ... ])`.",
        "",
        "",
    ),
    function("matchkeys", matchkeys)
        .takes(&[
            parameter("values", Accepts::ListOfAny),
            parameter("keys", Accepts::ListOfAny),
            parameter("searchset", Accepts::ListOfAny),
        ])
        .gives_type_of(matchkeys_type)
        .says(
            "The values whose keys, at the same position of another list, are in a third one.",
            "matchkeys([\"i-1\", \"i-2\"], [\"eu\", \"us\"], [\"us\"])",
            "[\"i-2\"]",
        ),
    function("one", one).takes(&[any("list")]).gives_type_of(one_type).or_null().says(
        "The only element of a list, set or tuple, or null if it is empty.",
        "one([\"a\"])",
        "\"a\"",
    ),
];

const NO_LIST: &str = "the function `list` is not available; write tolist([ ... ])";

fn alltrue(call: &Call<'_>) -> Result<Value, Failure> {
    // The first element that is unknown or not true decides.
    let decisive = call.items(0).iter().find(|item| item.as_bool() != Some(true));
    Ok(match decisive {
        None => Value::TRUE,
        Some(item) if !item.is_known() => Value::unknown(Type::Bool),
        Some(_) => Value::FALSE,
    })
}

fn anytrue(call: &Call<'_>) -> Result<Value, Failure> {
    let items = call.items(0);
    Ok(if items.iter().any(|item| item.as_bool() == Some(true)) {
        Value::TRUE
    } else if items.iter().all(Value::is_known) {
        Value::FALSE
    } else {
        Value::unknown(Type::Bool)
    })
}

fn contains(call: &Call<'_>) -> Result<Value, Failure> {
    let (list, wanted) = (&call.arguments[0], &call.arguments[1]);
    let Some(items) = list.as_items() else {
        return Err(Failure::of(0, format!("a list, tuple or set is required, but the value is {}", list.ty())));
    };
    call.scope.budget.step(items.len() as u64 / 16)?;
    let mut open = false;
    for item in items {
        match wanted.equals(item).as_bool() {
            Some(true) => return Ok(Value::TRUE),
            Some(false) => {}
            None => open = true,
        }
    }
    Ok(if open { Value::unknown(Type::Bool) } else { Value::FALSE })
}

/// The position that an index means in a list of this length.
fn wrapped(call: &Call<'_>, length: usize) -> Result<usize, Failure> {
    let index = call.whole(1)?;
    match i64::try_from(length) {
        Ok(length) if length > 0 => Ok(usize::try_from(index.rem_euclid(length)).unwrap_or_default()),
        _ => Err(Failure::of(0, "an empty list has no elements")),
    }
}

fn element_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::List(element) => Ok((**element).clone()),
        Type::Tuple(_) if !call.arguments[1].is_known() => Ok(Type::Dynamic),
        Type::Tuple(elements) => Ok(elements[wrapped(call, elements.len())?].clone()),
        other => Err(Failure::of(0, format!("a list is required, but the value is {other}"))),
    }
}

fn element(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let list = call.plain(0, &mut marks);
    let items = list.as_items().unwrap_or_default();
    Ok(items[wrapped(call, items.len())?].clone().with_marks(&marks))
}

fn index(call: &Call<'_>) -> Result<Value, Failure> {
    let (list, wanted) = (&call.arguments[0], &call.arguments[1]);
    let items = match list.ty() {
        Type::List(_) | Type::Tuple(_) => call.items(0),
        other => return Err(Failure::of(0, format!("a list or tuple is required, but the value is {other}"))),
    };
    if items.is_empty() {
        return Err(Failure::of(0, "the list is empty"));
    }
    for (position, item) in items.iter().enumerate() {
        match item.equals(wanted).as_bool() {
            Some(true) => return Ok(Value::number(position.into())),
            Some(false) => {}
            None => return Ok(Value::unknown(Type::Number)),
        }
    }
    Err(Failure::new("no element equals the value"))
}

fn length_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::Bool | Type::Number => {
            let ty = call.arguments[0].ty();
            Err(Failure::of(0, format!("a string, collection or structure is required, but the value is {ty}")))
        }
        _ => Ok(Type::Number),
    }
}

fn length(call: &Call<'_>) -> Result<Value, Failure> {
    let value = &call.arguments[0];
    let length = match value.ty() {
        Type::Dynamic => Value::unknown(Type::Number),
        Type::Object(object) => Value::number(object.attributes.len().into()),
        Type::String => string_length(value),
        _ => return Ok(value.length()),
    };
    Ok(length.with_marks(value.marks()))
}

fn string_length(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => Value::number(super::graphemes::count(text).into()),
        None => {
            let least = value.range().prefix.map_or(0, |prefix| super::graphemes::count(&prefix));
            Value::unknown_not_null(Type::Number).refined(|range| range.with_lower(least.into(), true))
        }
    }
}

fn list(_: &Call<'_>) -> Result<Value, Failure> {
    Err(Failure::new(NO_LIST))
}

fn common_key_type(call: &Call<'_>) -> Result<crate::cty::Unified, Failure> {
    unify_unsafe(&[call.arguments[1].ty().clone(), call.arguments[2].ty().clone()])
        .ok_or_else(|| Failure::of(2, "keys and searchset must have the same type"))
}

fn matchkeys_type(call: &Call<'_>) -> Result<Type, Failure> {
    common_key_type(call)?;
    Ok(call.arguments[0].ty().clone())
}

fn matchkeys(call: &Call<'_>) -> Result<Value, Failure> {
    if call.items(0).len() != call.items(1).len() {
        return Err(Failure::of(1, "there must be as many keys as values"));
    }
    let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
    let common = common_key_type(call)?;
    let (keys, wanted) = (common.convert(&call.arguments[1])?, common.convert(&call.arguments[2])?);
    let wanted = wanted.as_items().unwrap_or_default();
    if wanted.is_empty() {
        return Ok(Value::list(element, []));
    }
    if !call.arguments[0].is_wholly_known() || !keys.is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let keys = keys.as_items().unwrap_or_default();
    call.scope.budget.step((keys.len() as u64).saturating_mul(wanted.len() as u64) / 16)?;
    let mut found = Vec::new();
    for (key, value) in keys.iter().zip(call.items(0)) {
        for other in wanted {
            match key.equals(other).as_bool() {
                Some(true) => {
                    found.push(value.clone());
                    break;
                }
                Some(false) => {}
                // As upstream: nothing matches while it is unknown what is searched for.
                None => return Ok(Value::list(element, [])),
            }
        }
    }
    Ok(Value::list(element, found))
}

fn not_one() -> Failure {
    Failure::of(0, "a list, set or tuple with at most one element is required")
}

fn one_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::List(element) | Type::Set(element) => Ok((**element).clone()),
        Type::Tuple(elements) => match elements.as_ref() {
            [] => Ok(Type::Dynamic),
            [only] => Ok(only.clone()),
            _ => Err(not_one()),
        },
        _ => Err(not_one()),
    }
}

fn one(call: &Call<'_>) -> Result<Value, Failure> {
    let list = &call.arguments[0];
    if !list.length().is_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    match call.items(0) {
        [] => Ok(Value::null(call.ty.clone())),
        [only] => Ok(only.clone()),
        _ => Err(not_one()),
    }
}
