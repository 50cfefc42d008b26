//! New lists from lists.

use super::call::Call;
use super::parameter::{any, number, parameter};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Marks, Number, Type, Value, convert, unify_unsafe};

pub const FUNCTIONS: &[Function] = &[
    function("chunklist", chunklist)
        .takes(&[parameter("list", Accepts::ListOfAny).marked(), number("size").marked()])
        .gives_type_of(|call| Ok(Type::list(call.arguments[0].ty().clone())))
        .says("A list cut into lists of a size.", "chunklist([\"a\", \"b\", \"c\"], 2)", "[[\"a\", \"b\"], [\"c\"]]"),
    function("compact", compact)
        .takes(&[parameter("list", Accepts::ListOfStrings)])
        .gives(Accepts::ListOfStrings)
        .says(
            "A list of strings without null and empty ones.",
            "compact([\"a\", \"\", null, \"b\"])",
            "[\"a\", \"b\"]",
        ),
    function("concat", concat).and_any(any("seqs").marked()).gives_type_of(concat_type).says(
        "One list of the elements of several ones.",
        "concat([\"a\"], [\"b\", \"c\"])",
        "[\"a\", \"b\", \"c\"]",
    ),
    function("distinct", distinct)
        .takes(&[parameter("list", Accepts::ListOfAny)])
        .gives_type_of(|call| Ok(call.arguments[0].ty().clone()))
        .says(
            "A list without elements that equal an earlier one.",
            "distinct([\"a\", \"b\", \"a\"])",
            "[\"a\", \"b\"]",
        ),
    function("flatten", flatten).takes(&[any("list").marked()]).gives_type_of(flatten_type).says(
        "One list of the elements of a list and of all lists in it, at any depth.",
        "flatten([[\"a\"], [], [\"b\", [\"c\"]]])",
        "[\"a\", \"b\", \"c\"]",
    ),
    function("reverse", reverse).takes(&[any("list").marked()]).gives_type_of(reverse_type).says(
        "A list in reverse order.",
        "reverse([1, 2, 3])",
        "[3, 2, 1]",
    ),
    function("slice", slice)
        .takes(&[any("list").marked(), number("start_index"), number("end_index")])
        .gives_type_of(slice_type)
        .says(
            "The elements of a list from a start up to and without an end.",
            "slice([\"a\", \"b\", \"c\", \"d\"], 1, 3)",
            "[\"b\", \"c\"]",
        ),
];

fn chunklist(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let list = call.plain(0, &mut marks);
    let size = call.plain(1, &mut marks).as_number().and_then(Number::to_usize);
    let size = size.ok_or_else(|| Failure::of(1, "the size must be a whole number that is not negative"))?;
    let items = list.as_items().unwrap_or_default();
    let chunks: Vec<Value> = match size {
        0 if items.is_empty() => Vec::new(),
        0 => vec![list.clone()],
        size => items.chunks(size).map(|chunk| Value::list(Type::Dynamic, chunk.iter().cloned())).collect(),
    };
    Ok(Value::list(list.ty().clone(), chunks).with_marks(&marks))
}

fn compact(call: &Call<'_>) -> Result<Value, Failure> {
    if !call.arguments[0].is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let kept = call.items(0).iter().filter(|item| item.as_str().is_some_and(|text| !text.is_empty()));
    Ok(Value::list(Type::String, kept.cloned()))
}

fn concat_type(call: &Call<'_>) -> Result<Type, Failure> {
    let Some(first) = call.arguments.first() else { return Err(Failure::new("at least one list is required")) };
    if matches!(first.ty(), Type::List(_)) && call.arguments.iter().all(|list| matches!(list.ty(), Type::List(_))) {
        let types: Vec<Type> = call.arguments.iter().map(|list| list.ty().clone()).collect();
        if let Some(common) = unify_unsafe(&types) {
            return Ok(common.ty);
        }
    }
    let mut elements = Vec::new();
    for (index, list) in call.arguments.iter().enumerate() {
        match list.ty() {
            Type::Tuple(own) => elements.extend(own.iter().cloned()),
            Type::List(_) if !list.is_known() => return Ok(Type::Dynamic),
            Type::List(element) => {
                elements.extend(std::iter::repeat_n((**element).clone(), call.items(index).len()));
            }
            other => {
                return Err(Failure::of(index, format!("a list or tuple is required, but the value is {other}")));
            }
        }
    }
    Ok(Type::tuple(elements))
}

fn concat(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let mut items = Vec::new();
    for (index, list) in call.arguments.iter().enumerate() {
        let list = match call.ty {
            Type::List(_) => convert(list, call.ty).map_err(|error| Failure::of(index, error.to_string()))?,
            _ => list.clone(),
        };
        items.extend(list.unmarked(&mut marks).as_items().unwrap_or_default().iter().cloned());
    }
    let result = match call.ty {
        Type::List(element) => Value::list((**element).clone(), items),
        _ => Value::tuple(items),
    };
    Ok(result.with_marks(&marks))
}

fn distinct(call: &Call<'_>) -> Result<Value, Failure> {
    if !call.arguments[0].is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let items = call.items(0);
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        call.scope.budget.step(kept.len() as u64 / 16)?;
        if kept.iter().all(|other| other.equals(item).as_bool() != Some(true)) {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(call.ty.element().cloned().unwrap_or(Type::Dynamic), kept))
}

fn flatten_type(call: &Call<'_>) -> Result<Type, Failure> {
    let list = &call.arguments[0];
    if !list.is_wholly_known() {
        return Ok(Type::Dynamic);
    }
    if !is_sequence(list.ty()) {
        return Err(Failure::of(0, format!("a list, set or tuple is required, but the value is {}", list.ty())));
    }
    let mut items = Vec::new();
    flatten_into(list, &mut items, &mut Marks::default());
    Ok(Type::tuple(items.iter().map(|item| item.ty().clone())))
}

fn flatten(call: &Call<'_>) -> Result<Value, Failure> {
    let list = &call.arguments[0];
    let (mut items, mut marks) = (Vec::new(), Marks::NONE);
    let known = flatten_into(list, &mut items, &mut marks);
    let result = if known { Value::tuple(items) } else { Value::unknown(call.ty.clone()) };
    Ok(result.with_marks(&marks))
}

fn is_sequence(ty: &Type) -> bool {
    matches!(ty, Type::List(_) | Type::Set(_) | Type::Tuple(_))
}

/// Adds the elements, and gives whether their number is known.
fn flatten_into(list: &Value, items: &mut Vec<Value>, marks: &mut Marks) -> bool {
    let list = list.unmarked(marks);
    if !list.length().is_known() {
        return false;
    }
    let mut known = true;
    for item in list.children() {
        if !is_sequence(item.ty()) || item.is_null() {
            known &= *item.ty() != Type::Dynamic || item.is_known() || item.is_marked();
            items.push(item.clone());
        } else if item.is_known() {
            known &= flatten_into(item, items, marks);
        } else {
            marks.add(item.marks());
            known = false;
        }
    }
    known
}

fn reverse_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::Tuple(elements) => Ok(Type::tuple(elements.iter().rev().cloned())),
        Type::List(element) | Type::Set(element) => Ok(Type::list((**element).clone())),
        other => Err(Failure::of(0, format!("a list or tuple is required, but the value is {other}"))),
    }
}

fn reverse(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let list = call.plain(0, &mut marks);
    let items = list.as_items().unwrap_or_default().iter().rev().cloned();
    let result = match call.ty {
        Type::List(element) => Value::list((**element).clone(), items),
        _ => Value::tuple(items),
    };
    Ok(result.with_marks(&marks))
}

/// Start and end of a slice, as far as they are known.
fn slice_bounds(call: &Call<'_>) -> Result<(Option<usize>, Option<usize>), Failure> {
    let list = call.plain(0, &mut Marks::default());
    let length = list.length().as_number().and_then(Number::to_usize);
    let (start, end) = (slice_bound(call, 1, "start", length)?, slice_bound(call, 2, "end", length)?);
    if let (Some(start), Some(end)) = (start, end)
        && start > end
    {
        return Err(Failure::of(1, "the start index is greater than the end index"));
    }
    Ok((start, end))
}

fn slice_bound(call: &Call<'_>, index: usize, what: &str, length: Option<usize>) -> Result<Option<usize>, Failure> {
    if !call.arguments[index].is_known() {
        return Ok(None);
    }
    let bound = usize::try_from(call.whole(index)?)
        .map_err(|_| Failure::of(index, format!("the {what} index must not be negative")))?;
    if length.is_some_and(|length| bound > length) {
        return Err(Failure::of(index, format!("the {what} index is beyond the end of the list")));
    }
    Ok(Some(bound))
}

fn slice_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::Set(_) => Err(Failure::of(0, "a set has no indexes; convert it to a list if the order does not matter")),
        list @ Type::List(_) => {
            slice_bounds(call)?;
            Ok(list.clone())
        }
        Type::Tuple(elements) => match slice_bounds(call)? {
            (Some(start), Some(end)) => Ok(Type::tuple(elements[start..end].iter().cloned())),
            _ => Ok(Type::Dynamic),
        },
        other => Err(Failure::of(0, format!("a list or tuple is required, but the value is {other}"))),
    }
}

fn slice(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let list = call.plain(0, &mut marks);
    let (start, end) = slice_bounds(call)?;
    let items = list.as_items().unwrap_or_default();
    let items = items.get(start.unwrap_or(0)..end.unwrap_or(0)).unwrap_or_default().iter().cloned();
    let result = match call.ty {
        Type::List(element) => Value::list((**element).clone(), items),
        _ => Value::tuple(items),
    };
    Ok(result.with_marks(&marks))
}
