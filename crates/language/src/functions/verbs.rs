//! The verbs of `format`: those of Go's `fmt` that make sense for values.

use super::graphemes;
use crate::cty::{Number, Type, Value, convert, json as encoding};
use crate::{Failure, Scope};

/// `%`, flags, width, precision, index of an argument, letter.
#[derive(Default)]
struct Verb {
    zero: bool,
    sharp: bool,
    minus: bool,
    plus: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// From 1.
    argument: usize,
    letter: char,
    source: String,
}

pub fn formatted(format: &str, arguments: &[Value], scope: &Scope<'_>) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = format;
    let (mut next, mut highest) = (1, 0);
    while let Some((text, after)) = rest.split_once('%') {
        out.push_str(text);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (verb, after) = parse(after, next)?;
        rest = after;
        highest = highest.max(verb.argument);
        next = verb.argument + 1;
        scope.budget.hold(verb.width.unwrap_or(0).saturating_add(verb.precision.unwrap_or(0)))?;
        let Some(argument) = verb.argument.checked_sub(1).and_then(|index| arguments.get(index)) else {
            let (needed, given) = (verb.argument, arguments.len());
            return Err(Failure::of(0, format!("{} needs argument {needed}, but there are {given}", verb.source)));
        };
        append(&verb, argument, &mut out)?;
    }
    out.push_str(rest);
    if highest < arguments.len() {
        return Err(Failure::of(highest + 1, format!("the format uses only {highest} arguments")));
    }
    Ok(out)
}

/// Reads a verb after its `%`.
fn parse(text: &str, next: usize) -> Result<(Verb, &str), Failure> {
    try_parse(text, next)
        .ok_or_else(|| Failure::of(0, format!("the verb that begins with \"%{}\" is invalid", first(text, 8))))
}

fn try_parse(text: &str, next: usize) -> Option<(Verb, &str)> {
    let mut verb = Verb { argument: next, ..Verb::default() };
    let mut rest = text;
    while let Some(flag) = rest.chars().next() {
        match flag {
            '0' => verb.zero = true,
            '#' => verb.sharp = true,
            '-' => verb.minus = true,
            '+' => verb.plus = true,
            ' ' => verb.space = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    verb.width = number(&mut rest, 1).ok()?;
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        verb.precision = Some(number(&mut rest, 0).ok()?.unwrap_or(0));
    }
    if let Some(after) = rest.strip_prefix('[') {
        rest = after;
        verb.argument = number(&mut rest, 1).ok()??;
        rest = rest.strip_prefix(']')?;
    }
    verb.letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    rest = &rest[1..];
    verb.source = format!("%{}", &text[..text.len() - rest.len()]);
    // What is padded on the right is never padded with zeros.
    Some((verb, rest))
}

fn first(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}

/// Digits, of which the first is at least `least`. An error if they are too large.
fn number(rest: &mut &str, least: u8) -> Result<Option<usize>, ()> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || rest.as_bytes()[0] < b'0' + least {
        return Ok(None);
    }
    let number = rest[..digits].parse().map_err(|_| ())?;
    *rest = &rest[digits..];
    Ok(Some(number))
}

fn append(verb: &Verb, argument: &Value, out: &mut String) -> Result<(), Failure> {
    if argument.is_null() && verb.letter != 'v' {
        return Err(Failure::of(verb.argument, format!("{} cannot format null", verb.source)));
    }
    match verb.letter {
        'v' => out.push_str(&padded(verb, &as_is(verb, argument)?)),
        't' => {
            let bool = converted(verb, argument, &Type::Bool)?;
            out.push_str(if bool.as_bool() == Some(true) { "true" } else { "false" });
        }
        'b' | 'd' | 'o' | 'x' | 'X' => {
            let number = converted(verb, argument, &Type::Number)?;
            out.push_str(&integer(verb, number.as_number().unwrap_or(&Number::ZERO))?);
        }
        'e' | 'E' | 'f' | 'g' | 'G' => {
            let number = converted(verb, argument, &Type::Number)?;
            out.push_str(&float(verb, number.as_number().unwrap_or(&Number::ZERO)));
        }
        's' | 'q' => {
            let text = converted(verb, argument, &Type::String)?;
            let text = text.as_str().unwrap_or_default();
            let text = match verb.precision {
                Some(precision) if precision > 0 => graphemes::part(text, 0, Some(precision)),
                _ => text,
            };
            if verb.letter == 's' {
                out.push_str(&padded(verb, text));
            } else {
                let mut quoted = String::new();
                encoding::write_string(text, &mut quoted);
                out.push_str(&padded(verb, &quoted));
            }
        }
        other => return Err(Failure::of(0, format!("there is no verb %{other}"))),
    }
    Ok(())
}

fn converted(verb: &Verb, argument: &Value, ty: &Type) -> Result<Value, Failure> {
    convert(argument, ty).map_err(|error| Failure::of(verb.argument, format!("{}: {error}", verb.source)))
}

fn as_is(verb: &Verb, argument: &Value) -> Result<String, Failure> {
    match (argument.as_str(), argument.as_number()) {
        (Some(text), _) if !verb.sharp => Ok(text.to_owned()),
        (_, Some(number)) if !verb.sharp => Ok(number.to_general(None)),
        _ => {
            let mut json = String::new();
            encoding::write(argument, &mut json)?;
            Ok(json)
        }
    }
}

/// To a width in characters.
fn padded(verb: &Verb, text: &str) -> String {
    let missing = verb.width.unwrap_or(0).saturating_sub(graphemes::count(text));
    let padding = if verb.zero { "0" } else { " " }.repeat(missing);
    if verb.minus { format!("{text}{padding}") } else { format!("{padding}{text}") }
}

fn sign(verb: &Verb, negative: bool) -> &'static str {
    match negative {
        true => "-",
        false if verb.plus => "+",
        false if verb.space => " ",
        false => "",
    }
}

fn integer(verb: &Verb, number: &Number) -> Result<String, Failure> {
    let int = number.truncated().filter(|_| number.is_integer());
    let int = int.ok_or_else(|| Failure::of(verb.argument, format!("{} needs a whole number", verb.source)))?;
    let radix = match verb.letter {
        'b' => 2,
        'o' => 8,
        'd' => 10,
        _ => 16,
    };
    let digits = int.magnitude().to_str_radix(radix);
    let digits = if verb.letter == 'X' { digits.to_uppercase() } else { digits };
    let prefix = match verb.letter {
        'b' if verb.sharp => "0b",
        'o' if verb.sharp => "0",
        'x' if verb.sharp => "0x",
        'X' if verb.sharp => "0X",
        _ => "",
    };
    if verb.precision == Some(0) && digits == "0" {
        return Ok(String::new());
    }
    let sign = sign(verb, number.signum() < 0);
    let mut zeros = verb.precision.unwrap_or(0).saturating_sub(digits.len());
    let missing = verb.width.unwrap_or(0).saturating_sub(sign.len() + prefix.len() + zeros + digits.len());
    let (mut left, mut right) = (0, 0);
    if verb.minus {
        right = missing;
    } else if verb.zero && verb.precision.is_none() {
        zeros = missing;
    } else {
        left = missing;
    }
    let (left, right, zeros) = (" ".repeat(left), " ".repeat(right), "0".repeat(zeros));
    Ok(format!("{left}{sign}{prefix}{zeros}{digits}{right}"))
}

fn float(verb: &Verb, number: &Number) -> String {
    let text = match verb.letter {
        'f' => number.to_fixed(verb.precision.unwrap_or(6)),
        'e' | 'E' => number.to_scientific(Some(verb.precision.unwrap_or(6))),
        _ => number.to_general(verb.precision),
    };
    let text = if verb.letter.is_ascii_uppercase() { text.replace('e', "E") } else { text };
    let digits = text.trim_start_matches(['-', '+']);
    let sign = sign(verb, text.starts_with('-'));
    let missing = verb.width.unwrap_or(0).saturating_sub(sign.len() + digits.len());
    if verb.minus {
        format!("{sign}{digits}{}", " ".repeat(missing))
    } else if verb.zero && !number.is_infinite() {
        format!("{sign}{}{digits}", "0".repeat(missing))
    } else {
        format!("{}{sign}{digits}", " ".repeat(missing))
    }
}
