//! Describes the errors of CEL, each with what to write instead.

use cel::ExecutionError;

use super::{Problem, terraform};

/// The error by names and types, without values.
pub fn problem(error: &ExecutionError) -> Problem {
    let problem = Problem::new(describe(error));
    match hint(error) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// What to write instead of an operator that does not have these types.
fn hint(error: &ExecutionError) -> Option<String> {
    match error {
        ExecutionError::NoSuchOverload(call) => {
            let types: Vec<&str> = call.argument_types().iter().map(|name| &**name).collect();
            instead(operator(call.function())?, &types)
        }
        ExecutionError::UnsupportedBinaryOperator(operation, a, b) => {
            instead(sign(operation), &[&type_name(a), &type_name(b)])
        }
        ExecutionError::ValuesNotComparable(a, b) => instead("<", &[&type_name(a), &type_name(b)]),
        _ => None,
    }
}

fn instead(operator: &str, types: &[&str]) -> Option<String> {
    let &[a, b] = types else { return None };
    match operator {
        "+" if a == "map" && b == "map" => terraform::function("merge").map(str::to_owned),
        "+" if types.contains(&"string") && types.iter().any(|name| is_number(name)) => {
            Some("convert both to strings with `string(x)`, or to numbers with `int(x)`".to_owned())
        }
        "+" if types.contains(&"string") && types.contains(&"bool") => {
            Some("convert both to strings with `string(x)`".to_owned())
        }
        "+" if a == "list" || b == "list" => Some("write a list with one item as `[x]`".to_owned()),
        _ if a != b && is_number(a) && is_number(b) => {
            let common = if a == "double" || b == "double" { "double" } else { "int" };
            Some(format!("convert both to the same type: `{common}(x)`"))
        }
        _ => None,
    }
}

fn is_number(type_name: &str) -> bool {
    matches!(type_name, "int" | "uint" | "double")
}

fn sign(operation: &str) -> &str {
    match operation {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        other => other,
    }
}

fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchOverload(call) => {
            let types = call.argument_types().join(", ");
            match operator(call.function()) {
                Some(operator) => format!("`{operator}` cannot be applied to ({types})"),
                None => {
                    format!("the function `{}` cannot be applied to ({types})", call.function().trim_start_matches('@'))
                }
            }
        }
        ExecutionError::NoSuchKey(key) => format!("there is no key `{key}`"),
        ExecutionError::FunctionError { function, message } => {
            format!("`{}`: {message}", function.trim_start_matches('@'))
        }
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("expected {expected} arguments, found {actual}")
        }
        ExecutionError::UnexpectedType { got, want } if !got.contains('(') => {
            format!("expected {want}, found {got}")
        }
        ExecutionError::UnsupportedBinaryOperator(operation, a, b) => {
            format!("`{}` cannot be applied to ({}, {})", sign(operation), type_name(a), type_name(b))
        }
        ExecutionError::ValuesNotComparable(a, b) => {
            format!("{} and {} cannot be compared", type_name(a), type_name(b))
        }
        ExecutionError::UnsupportedKeyType(key) => format!("{} cannot be a map key", type_name(key)),
        ExecutionError::UnsupportedIndex(index, of) => {
            format!("{} cannot be an index of {}", type_name(index), type_name(of))
        }
        ExecutionError::IndexOutOfBounds(_) => "the list index is out of range".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(..) => "the result does not fit in 64 bits".to_owned(),
        ExecutionError::DuplicateKey(_) => "the map has a duplicate key".to_owned(),
        _ => "the expression cannot be evaluated".to_owned(),
    }
}

fn type_name(value: &cel::Value) -> String {
    match value {
        cel::Value::Float(_) => "double".to_owned(),
        cel::Value::Null => "null_type".to_owned(),
        other => other.type_of().to_string(),
    }
}

/// Returns the symbol of an operator: `+` for `_+_`.
fn operator(function: &str) -> Option<&str> {
    let sign = function.trim_matches('_');
    (sign.len() < function.len()).then_some(if sign == "[" || sign == "[_]" { "[]" } else { sign })
}
