//! Sets.

use super::call::Call;
use super::parameter::{Parameter, any, parameter};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Marks, Type, Value, convert, unify_unsafe};

const SET: Parameter = parameter("set", Accepts::SetOfAny).untyped();

pub const FUNCTIONS: &[Function] = &[
    function("setintersection", setintersection)
        .takes(&[parameter("first_set", Accepts::SetOfAny).untyped()])
        .and_any(SET)
        .gives_type_of(set_type)
        .says("The elements that all sets have.", "setintersection([\"a\", \"b\"], [\"b\", \"c\"])", "[\"b\"]"),
    function("setproduct", setproduct).and_any(any("sets").marked().unknown()).gives_type_of(setproduct_type).says(
        "All combinations of the elements of sets or lists.",
        "setproduct([\"a\", \"b\"], [1, 2])",
        "[[\"a\", 1], [\"a\", 2], [\"b\", 1], [\"b\", 2]]",
    ),
    function("setsubtract", setsubtract)
        .takes(&[parameter("a", Accepts::SetOfAny).untyped(), parameter("b", Accepts::SetOfAny).untyped()])
        .gives_type_of(set_type)
        .says("The elements of a set that another does not have.", "setsubtract([\"a\", \"b\"], [\"b\"])", "[\"a\"]"),
    function("setunion", setunion)
        .takes(&[parameter("first_set", Accepts::SetOfAny).untyped()])
        .and_any(SET)
        .gives_type_of(set_type)
        .says("The elements that any of the sets has.", "setunion([\"a\"], [\"b\"])", "[\"a\", \"b\"]"),
];

fn set_type(call: &Call<'_>) -> Result<Type, Failure> {
    let elements = call.arguments.iter().filter_map(|set| {
        let element = set.ty().element().cloned().unwrap_or(Type::Dynamic);
        let any = element == Type::Dynamic && set.as_items().is_some_and(<[Value]>::is_empty);
        (!any).then_some(element)
    });
    let elements: Vec<Type> = elements.collect();
    if elements.is_empty() {
        return Ok(Type::set(Type::Dynamic));
    }
    match unify_unsafe(&elements) {
        Some(common) => Ok(Type::set(common.ty)),
        None => Err(Failure::new("the elements of the sets have no common type")),
    }
}

/// The arguments as sets of the common type. `None` if they are unknown in a way that leaves the result open.
fn sets(call: &Call<'_>, allow_unknown: bool) -> Result<Option<Vec<Value>>, Failure> {
    let mut sets = Vec::new();
    for (index, set) in call.arguments.iter().enumerate() {
        let set = convert(set, call.ty).map_err(|error| Failure::of(index, error.to_string()))?;
        if !allow_unknown && !set.is_wholly_known() {
            return Ok(None);
        }
        sets.push(set);
    }
    Ok(Some(sets))
}

fn combined(
    call: &Call<'_>,
    allow_unknown: bool,
    combine: fn(&[Value], &[Value]) -> Vec<Value>,
) -> Result<Value, Failure> {
    let Some(sets) = sets(call, allow_unknown)? else { return Ok(Value::unknown(call.ty.clone())) };
    if sets.iter().any(|set| set.ty() != sets[0].ty()) {
        return Err(Failure::new("the elements of the sets have different types"));
    }
    let mut elements: Vec<Value> = sets[0].as_items().unwrap_or_default().to_vec();
    for set in &sets[1..] {
        let others = set.as_items().unwrap_or_default();
        call.scope.budget.step((elements.len() as u64).saturating_mul(others.len() as u64) / 16)?;
        elements = combine(&elements, others);
    }
    Ok(Value::set(call.ty.element().cloned().unwrap_or(Type::Dynamic), elements))
}

fn has(set: &[Value], element: &Value) -> bool {
    set.iter().any(|other| other.equals(element).as_bool() == Some(true))
}

fn setintersection(call: &Call<'_>) -> Result<Value, Failure> {
    combined(call, false, |a, b| a.iter().filter(|element| has(b, element)).cloned().collect())
}

fn setsubtract(call: &Call<'_>) -> Result<Value, Failure> {
    combined(call, false, |a, b| a.iter().filter(|element| !has(b, element)).cloned().collect())
}

fn setunion(call: &Call<'_>) -> Result<Value, Failure> {
    combined(call, true, |a, b| a.iter().chain(b).cloned().collect())
}

fn setproduct_type(call: &Call<'_>) -> Result<Type, Failure> {
    if call.arguments.len() < 2 {
        return Err(Failure::new("at least two sets or lists are required"));
    }
    let mut elements = Vec::new();
    let mut ordered = true;
    for (index, set) in call.arguments.iter().enumerate() {
        elements.push(match set.ty() {
            Type::Set(element) => {
                ordered = false;
                (**element).clone()
            }
            Type::List(element) => (**element).clone(),
            Type::Tuple(types) if types.is_empty() => Type::Dynamic,
            Type::Tuple(types) => match unify_unsafe(types) {
                Some(common) => common.ty,
                None => return Err(Failure::of(index, "the elements must have one type")),
            },
            other => return Err(Failure::of(index, format!("a set or list is required, but the value is {other}"))),
        });
    }
    let element = Type::tuple(elements);
    Ok(if ordered { Type::list(element) } else { Type::set(element) })
}

fn setproduct(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let sets: Vec<Value> = call.arguments.iter().map(|set| set.unmarked(&mut marks)).collect();
    if sets.iter().any(|set| !set.is_known() || !set.length().is_known()) {
        return Ok(open_product(call, &sets).with_marks(&marks));
    }
    let (element, ordered) = match call.ty {
        Type::List(element) => ((**element).clone(), true),
        other => (other.element().cloned().unwrap_or(Type::Dynamic), false),
    };
    let Type::Tuple(types) = &element else { return Err(Failure::new("the product has no type")) };
    let mut columns = Vec::new();
    for (set, ty) in sets.iter().zip(types.iter()) {
        let column = set.as_items().unwrap_or_default().iter().map(|item| convert(item, ty));
        let column = column.collect::<Result<Vec<_>, _>>()?;
        // A null without a type beside a value keeps the type of the elements open.
        if column.iter().any(|item| item.ty() != column[0].ty()) {
            return Err(Failure::new("the elements have different types"));
        }
        columns.push(column);
    }
    let total = columns.iter().fold(1usize, |total, column| total.saturating_mul(column.len()));
    call.scope.budget.step(total as u64)?;
    call.scope.budget.hold(total.saturating_mul(columns.len() * size_of::<Value>()))?;
    let rows = (0..total).map(|row| {
        // The last column changes fastest.
        let mut rest = row;
        let mut cells: Vec<Value> = columns
            .iter()
            .rev()
            .map(|column| {
                let cell = column[rest % column.len()].clone();
                rest /= column.len();
                cell
            })
            .collect();
        cells.reverse();
        Value::tuple(cells)
    });
    let result = if ordered { Value::list(element.clone(), rows) } else { Value::set(element.clone(), rows) };
    Ok(result.with_marks(&marks))
}

/// What is known about a product with an unknown number of elements.
fn open_product(call: &Call<'_>, sets: &[Value]) -> Value {
    // Bounds above these say little; upstream drops them.
    const MOST_OF_ONE: usize = 1024;
    const MOST: usize = 2048;
    let unknown = Value::unknown(call.ty.clone());
    let mut most = 1;
    for set in sets {
        let length = match set.ty() {
            Type::Tuple(elements) => elements.len(),
            _ => match set.range().max_length {
                Some(length) => length,
                None => return unknown,
            },
        };
        if length > MOST_OF_ONE || most * length > MOST {
            return unknown;
        }
        most *= length;
    }
    unknown.refined(|range| range.with_lengths(most.min(1), Some(most)))
}
