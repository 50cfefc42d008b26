//! Regular expressions.

use regex::{Captures, Regex};

use super::call::Call;
use super::parameter::string;
use super::{Accepts, Function, function, re2};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("regex", regex).takes(&[string("pattern"), string("string")]).gives_type_of(regex_type).says(
        "The first match of a regular expression: a string, a list of its capture groups, or an object of its named \
         ones. No match is an error.",
        "regex(\"[a-z]+\", \"53453453.345345aaabbbccc23454\")",
        "\"aaabbbccc\"",
    ),
    function("regexall", regexall).takes(&[string("pattern"), string("string")]).gives_type_of(regexall_type).says(
        "All matches of a regular expression.",
        "regexall(\"[a-z]+\", \"1234abcd5678efgh9\")",
        "[\"abcd\", \"efgh\"]",
    ),
    function("replace", replace)
        .takes(&[string("str"), string("substr"), string("replace")])
        .gives(Accepts::String)
        .says(
            "A string with each occurrence of a substring replaced. A substring between slashes is a regular expression, \
             and the replacement may then refer to its capture groups.",
            "replace(\"hello world\", \"/w.*d/\", \"everybody\")",
            "\"hello everybody\"",
        ),
];

fn compiled(pattern: &str, argument: usize) -> Result<Regex, Failure> {
    re2::compile(pattern).map_err(|problem| Failure::of(argument, format!("invalid regular expression: {problem}")))
}

fn regex_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].as_str() {
        Some(pattern) => match_type(&compiled(pattern, 0)?),
        None => Ok(Type::Dynamic),
    }
}

fn regexall_type(call: &Call<'_>) -> Result<Type, Failure> {
    Ok(Type::list(regex_type(call)?))
}

fn match_type(regex: &Regex) -> Result<Type, Failure> {
    let names: Vec<Option<&str>> = regex.capture_names().skip(1).collect();
    let named = names.iter().flatten().count();
    if named == 0 && names.is_empty() {
        Ok(Type::String)
    } else if named == 0 {
        Ok(Type::tuple(names.iter().map(|_| Type::String)))
    } else if named == names.len() {
        Ok(Type::object(names.into_iter().flatten().map(|name| (name, Type::String))))
    } else {
        Err(Failure::of(0, "capture groups are either all named or all without names"))
    }
}

fn match_value(regex: &Regex, captures: &Captures<'_>) -> Value {
    let names: Vec<Option<&str>> = regex.capture_names().skip(1).collect();
    match names.first() {
        None => group(captures, 0),
        Some(None) => Value::tuple((1..=names.len()).map(|index| group(captures, index))),
        Some(Some(_)) => {
            let names = names.iter().enumerate();
            Value::object(names.filter_map(|(index, name)| Some(((*name)?, group(captures, index + 1)))))
        }
    }
}

fn group(captures: &Captures<'_>, index: usize) -> Value {
    captures.get(index).map_or(Value::null(Type::String), |group| group.as_str().into())
}

fn regex(call: &Call<'_>) -> Result<Value, Failure> {
    let regex = compiled(call.text(0), 0)?;
    call.scope.budget.step(call.text(1).len() as u64 / 64)?;
    match regex.captures(call.text(1)) {
        Some(captures) => Ok(match_value(&regex, &captures)),
        None => Err(Failure::new("the pattern does not match any part of the string")),
    }
}

fn regexall(call: &Call<'_>) -> Result<Value, Failure> {
    let regex = compiled(call.text(0), 0)?;
    let mut items = Vec::new();
    for captures in regex.captures_iter(call.text(1)) {
        call.scope.budget.step(1)?;
        items.push(match_value(&regex, &captures));
    }
    Ok(Value::list(match_type(&regex)?, items))
}

fn replace(call: &Call<'_>) -> Result<Value, Failure> {
    let (text, wanted, replacement) = (call.text(0), call.text(1), call.text(2));
    // Each character is replaced at most once, also by a match of nothing.
    call.scope.budget.hold(text.len().saturating_add(1).saturating_mul(replacement.len() / wanted.len().max(1)))?;
    match wanted.strip_prefix('/').and_then(|pattern| pattern.strip_suffix('/')) {
        Some(pattern) => Ok(Value::string(&compiled(pattern, 1)?.replace_all(text, replacement))),
        None => Ok(Value::string(&text.replace(wanted, replacement))),
    }
}
