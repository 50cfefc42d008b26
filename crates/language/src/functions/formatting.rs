//! `format` and `formatlist`.

use super::call::Call;
use super::parameter::{any, string};
use super::verbs::formatted;
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Number, Range, Type, Value, known_prefix};

pub const FUNCTIONS: &[Function] = &[
    function("format", format).takes(&[string("format")]).and_any(any("args").anything()).gives(Accepts::String).says(
        "A string with values in the places of verbs: `%s` for a string, `%d` for a whole number, `%f`, `%e` and `%g` \
         for a number, `%t` for a bool, `%x`, `%o` and `%b` for other bases, `%q` for a quoted string, `%v` for any \
         value and `%#v` for its JSON.",
        "format(\"There are %d lights\", 4)",
        "\"There are 4 lights\"",
    ),
    function("formatlist", formatlist)
        .takes(&[string("format")])
        .and_any(any("args").anything())
        .gives(Accepts::ListOfStrings)
        .says(
            "A list of strings, formatted with the elements of lists at the same position. Values that are no lists are \
             used for each string.",
            "formatlist(\"Hello, %s!\", [\"Valentina\", \"Olli\"])",
            "[\"Hello, Valentina!\", \"Hello, Olli!\"]",
        ),
];

fn format(call: &Call<'_>) -> Result<Value, Failure> {
    if call.arguments[1..].iter().all(Value::is_wholly_known) {
        return Ok(Value::string(&formatted(call.text(0), &call.arguments[1..], call.scope)?));
    }
    // The text before the first verb is known already.
    let known = match call.text(0).split_once('%') {
        Some((prefix, _)) => known_prefix(prefix),
        None => "".into(),
    };
    Ok(Value::unknown_in(Type::String, Range::default().with_prefix(&known)))
}

fn formatlist(call: &Call<'_>) -> Result<Value, Failure> {
    let arguments = &call.arguments[1..];
    let mut length = None;
    let mut undecided = false;
    for (index, argument) in arguments.iter().enumerate() {
        match list_length(argument) {
            Length::NoList => {}
            Length::Open => undecided = true,
            Length::Of(own) => {
                if length.is_some_and(|length| length != own) {
                    return Err(Failure::of(index + 1, "the lists have different lengths"));
                }
                length = Some(own);
                undecided |= !argument.is_known();
            }
        }
    }
    if undecided {
        return Ok(Value::unknown(Type::list(Type::String)));
    }
    let items = (0..length.unwrap_or(1)).map(|position| {
        let row: Vec<Value> = arguments.iter().map(|argument| at(argument, position)).collect();
        if row.iter().all(Value::is_wholly_known) {
            call.scope.budget.step(1)?;
            Ok(Value::string(&formatted(call.text(0), &row, call.scope)?))
        } else {
            Ok(Value::unknown_not_null(Type::String))
        }
    });
    Ok(Value::list(Type::String, items.collect::<Result<Vec<_>, Failure>>()?))
}

enum Length {
    /// The same value for every string.
    NoList,
    /// Not known yet.
    Open,
    Of(usize),
}

fn list_length(argument: &Value) -> Length {
    match argument.ty() {
        Type::List(_) | Type::Set(_) | Type::Tuple(_) if argument.is_null() => Length::NoList,
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => match argument.length().as_number().and_then(Number::to_usize)
        {
            Some(length) if argument.is_known() || matches!(argument.ty(), Type::Tuple(_)) => Length::Of(length),
            _ => Length::Open,
        },
        Type::Dynamic if !argument.is_known() => Length::Open,
        _ => Length::NoList,
    }
}

fn at(argument: &Value, position: usize) -> Value {
    match argument.as_items() {
        Some(items) => items.get(position).cloned().unwrap_or(Value::DYNAMIC),
        None => argument.clone(),
    }
}
