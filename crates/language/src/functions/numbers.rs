//! Numbers.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::call::Call;
use super::parameter::{any, number};
use super::{Accepts, Function, floats, function};
use crate::Failure;
use crate::cty::{Number, Type, Value, convert};

pub const FUNCTIONS: &[Function] = &[
    function("abs", abs).takes(&[number("num").untyped().marked()]).gives(Accepts::Number).says(
        "The absolute value of a number.",
        "abs(-12.4)",
        "12.4",
    ),
    function("ceil", ceil).takes(&[number("num")]).gives(Accepts::Number).says(
        "The smallest whole number that is not below a number.",
        "ceil(5.1)",
        "6",
    ),
    function("floor", floor).takes(&[number("num")]).gives(Accepts::Number).says(
        "The largest whole number that is not above a number.",
        "floor(5.9)",
        "5",
    ),
    function("log", log).takes(&[number("num"), number("base")]).gives(Accepts::Number).says(
        "The logarithm of a number to a base.",
        "log(16, 2)",
        "4",
    ),
    function("max", max).and_any(number("numbers").untyped()).gives(Accepts::Number).says(
        "The largest of some numbers.",
        "max(12, 54, 3)",
        "54",
    ),
    function("min", min).and_any(number("numbers").untyped()).gives(Accepts::Number).says(
        "The smallest of some numbers.",
        "min(12, 54, 3)",
        "3",
    ),
    function("parseint", parseint).takes(&[any("number"), number("base")]).gives_type_of(parseint_type).says(
        "The whole number that a string has in a base from 2 to 62.",
        "parseint(\"FF\", 16)",
        "255",
    ),
    function("pow", pow).takes(&[number("num"), number("power")]).gives(Accepts::Number).says(
        "A number raised to a power.",
        "pow(3, 2)",
        "9",
    ),
    function("range", range).and_any(number("params")).gives(Accepts::ListOfNumbers).says(
        "A list of numbers from a start, which is 0 if it is not given, up to and without a limit, in steps.",
        "range(1, 8, 2)",
        "[1, 3, 5, 7]",
    ),
    function("signum", signum).takes(&[number("num")]).gives(Accepts::Number).says(
        "-1, 0 or 1: the sign of a whole number.",
        "signum(-13)",
        "-1",
    ),
    function("sum", sum).takes(&[any("list")]).gives(Accepts::Number).says(
        "The sum of the numbers of a list or set.",
        "sum([10, 13, 6, 4.5])",
        "33.5",
    ),
];

/// More elements than this are refused, as upstream.
const MAX_RANGE: usize = 1024;

fn abs(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.arguments[0].absolute())
}

fn ceil(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::number(call.number(0).ceil()))
}

fn floor(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::number(call.number(0).floor()))
}

fn float(result: f64) -> Result<Value, Failure> {
    Number::from_f64(result).map(Value::number).ok_or_else(|| Failure::new("the result is not a number"))
}

/// The argument as a float, which must not be too large for one.
fn as_float(call: &Call<'_>, index: usize) -> Result<f64, Failure> {
    let float = call.number(index).to_f64();
    if float.is_infinite() && !call.number(index).is_infinite() {
        return Err(Failure::of(index, "the number is too large"));
    }
    Ok(float)
}

fn log(call: &Call<'_>) -> Result<Value, Failure> {
    float(floats::ln(as_float(call, 0)?) / floats::ln(as_float(call, 1)?))
}

fn pow(call: &Call<'_>) -> Result<Value, Failure> {
    float(floats::pow(as_float(call, 0)?, as_float(call, 1)?))
}

fn signum(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int(call.whole(0)?.signum()))
}

fn max(call: &Call<'_>) -> Result<Value, Failure> {
    outermost(call, Ordering::Greater)
}

fn min(call: &Call<'_>) -> Result<Value, Failure> {
    outermost(call, Ordering::Less)
}

fn outermost(call: &Call<'_>, wanted: Ordering) -> Result<Value, Failure> {
    let mut numbers = (0..call.arguments.len()).map(|index| call.number(index));
    let first = numbers.next().ok_or_else(|| Failure::new("at least one number is required"))?;
    let result = numbers.fold(first, |best, other| if other.compare(best) == wanted { other } else { best });
    Ok(Value::number(result.clone()))
}

fn parseint_type(call: &Call<'_>) -> Result<Type, Failure> {
    if *call.arguments[0].ty() != Type::String {
        return Err(Failure::of(0, format!("a string is required, but the value is {}", call.arguments[0].ty())));
    }
    Ok(Type::Number)
}

fn parseint(call: &Call<'_>) -> Result<Value, Failure> {
    let base = call.whole(1).ok().and_then(|base| u32::try_from(base).ok()).filter(|base| (2..=62).contains(base));
    let base = base.ok_or_else(|| Failure::of(1, "the base must be a whole number from 2 to 62"))?;
    let int = parse_digits(call.text(0), base)
        .ok_or_else(|| Failure::of(0, "the string is not a whole number of this base"))?;
    Ok(Value::number(Number::from_bigint(&int)))
}

/// Above base 36, lowercase letters come before uppercase ones.
fn parse_digits(text: &str, base: u32) -> Option<BigInt> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (Sign::Minus, &text[1..]),
        b'+' => (Sign::Plus, &text[1..]),
        _ => (Sign::Plus, text),
    };
    let digits = digits.bytes().map(|byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'z' => Some(byte - b'a' + 10),
        b'A'..=b'Z' if base <= 36 => Some(byte - b'A' + 10),
        b'A'..=b'Z' => Some(byte - b'A' + 36),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    if digits.is_empty() {
        return None;
    }
    BigInt::from_radix_be(sign, &digits, base)
}

fn range(call: &Call<'_>) -> Result<Value, Failure> {
    let (start, end, step) = match call.arguments.len() {
        1 => (Number::ZERO, call.number(0).clone(), implied_step(&Number::ZERO, call.number(0))),
        2 => (call.number(0).clone(), call.number(1).clone(), implied_step(call.number(0), call.number(1))),
        3 => (call.number(0).clone(), call.number(1).clone(), call.number(2).clone()),
        _ => return Err(Failure::new("range takes one, two or three arguments")),
    };
    let down = step.signum() < 0;
    if (down && end.compare(&start).is_gt()) || (!down && end.compare(&start).is_lt()) {
        return Err(Failure::of(1, "the limit is on the other side of the start than the step leads to"));
    }
    let mut items = Vec::new();
    let mut next = start;
    while if down { next.compare(&end).is_gt() } else { next.compare(&end).is_lt() } {
        if items.len() >= MAX_RANGE {
            return Err(Failure::new(format!("more than {MAX_RANGE} values; use a smaller range or a larger step")));
        }
        items.push(Value::number(next.clone()));
        next = next.add(&step).ok_or_else(|| Failure::new("the numbers are too large"))?;
    }
    Ok(Value::list(Type::Number, items))
}

fn implied_step(start: &Number, end: &Number) -> Number {
    Number::from(if end.compare(start).is_lt() { -1i64 } else { 1 })
}

fn sum(call: &Call<'_>) -> Result<Value, Failure> {
    let list = &call.arguments[0];
    let Some(items) = list.as_items() else {
        return Err(Failure::of(0, format!("a list or set of numbers is required, but the value is {}", list.ty())));
    };
    if items.is_empty() {
        return Err(Failure::of(0, "an empty list has no sum"));
    }
    if !list.is_wholly_known() {
        return Ok(Value::unknown(Type::Number));
    }
    let mut numbers = items.iter().map(|item| match convert(item, &Type::Number) {
        Ok(number) if !number.is_null() => Ok(number),
        _ => Err(Failure::of(0, "all elements must be numbers")),
    });
    let first = numbers.next().unwrap_or_else(|| Ok(Value::int(0)))?;
    numbers.try_fold(first, |sum, item| sum.add(&item?).ok_or_else(|| Failure::new("the sum is not a number")))
}
