//! Times.

use super::call::Call;
use super::parameter::string;
use super::timestamp::{Timestamp, parse, parse_duration};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("formatdate", formatdate).takes(&[string("format"), string("time")]).gives(Accepts::String).says(
        "A time in another format: `YYYY`, `MM`, `DD`, `hh`, `mm`, `ss` and so on stand for parts of the time, and text \
         in single quotes for itself.",
        "formatdate(\"DD MMM YYYY hh:mm ZZZ\", \"2018-01-02T23:12:01Z\")",
        "\"02 Jan 2018 23:12 UTC\"",
    ),
    function("plantimestamp", plantimestamp).gives(Accepts::String).or_null().says(
        "The time of the plan, which stays the same while the plan is applied.",
        "formatdate(\"YYYY\", plantimestamp())", "\"2026\""
    ),
    function("timeadd", timeadd).takes(&[string("timestamp"), string("duration")]).gives(Accepts::String).or_null().says(
        "A time plus a duration such as `1.5h` or `-10m`.",
        "timeadd(\"2017-11-22T00:00:00Z\", \"10m\")",
        "\"2017-11-22T00:10:00Z\"",
    ),
    function("timecmp", timecmp).takes(&[string("timestamp_a"), string("timestamp_b")]).gives(Accepts::Number).says(
        "-1, 0 or 1: whether a time is before, equal to or after another.",
        "timecmp(\"2017-11-22T00:00:00Z\", \"2017-11-22T01:00:00+01:00\")",
        "0",
    ),
    function("timestamp", timestamp).gives(Accepts::String).says("The time now; unknown while planning.", "formatdate(\"YYYY\", timestamp())", "\"2026\""),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

fn time(call: &Call<'_>, index: usize) -> Result<Timestamp, Failure> {
    let text = call.text(index);
    parse(text).ok_or_else(|| {
        Failure::of(index, format!("\"{text}\" is not a time in RFC 3339, such as 2018-01-02T23:12:01Z"))
    })
}

fn formatdate(call: &Call<'_>) -> Result<Value, Failure> {
    let time = time(call, 1)?;
    let mut out = String::new();
    let mut rest = call.text(0);
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            let (text, after) = quoted(rest).ok_or_else(|| Failure::of(0, "a single quote has no end"))?;
            out.push_str(&text);
            rest = after;
        } else if first.is_ascii_alphabetic() {
            let count = rest.chars().take_while(|letter| *letter == first).count();
            let part = part(time, first, count)
                .ok_or_else(|| Failure::of(0, format!("there is no date verb \"{}\"", &rest[..count])))?;
            out.push_str(&part);
            rest = &rest[count..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(Value::string(&out))
}

/// The text in quotes, where two quotes stand for one, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    if let Some(after) = text.strip_prefix("''") {
        return Some(("'".to_owned(), after));
    }
    let mut out = String::new();
    let mut rest = &text[1..];
    loop {
        let (before, after) = rest.split_once('\'')?;
        out.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some((out, after)),
        }
    }
}

fn part(time: Timestamp, verb: char, count: usize) -> Option<String> {
    let civil = time.civil();
    let morning = civil.hour < 12;
    match verb {
        'Y' if count == 2 => Some(format!("{:02}", civil.year % 100)),
        'Y' if count == 4 => Some(format!("{:04}", civil.year)),
        'M' => number(civil.month, count).or_else(|| word(MONTHS[civil.month as usize - 1], count)),
        'D' => number(civil.day, count),
        'E' => word(WEEKDAYS[civil.weekday], count),
        'h' => number(civil.hour, count),
        'H' => number((civil.hour + 11) % 12 + 1, count),
        'A' if count == 2 => Some(if morning { "AM" } else { "PM" }.to_owned()),
        'a' if count == 2 => Some(if morning { "am" } else { "pm" }.to_owned()),
        'm' => number(civil.minute, count),
        's' => number(civil.second, count),
        'Z' => match count {
            1 if time.is_utc() => Some("Z".to_owned()),
            3 if time.is_utc() => Some("UTC".to_owned()),
            3 | 4 => Some(time.offset("")),
            1 | 5 => Some(time.offset(":")),
            _ => None,
        },
        _ => None,
    }
}

fn number(number: u32, count: usize) -> Option<String> {
    match count {
        1 => Some(number.to_string()),
        2 => Some(format!("{number:02}")),
        _ => None,
    }
}

fn word(word: &str, count: usize) -> Option<String> {
    match count {
        3 => Some(word[..3].to_owned()),
        4 => Some(word.to_owned()),
        _ => None,
    }
}

fn plantimestamp(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.scope.plan_time.map_or_else(|| Value::unknown(Type::String), Value::string))
}

fn timeadd(call: &Call<'_>) -> Result<Value, Failure> {
    let time = time(call, 0)?;
    let duration = parse_duration(call.text(1))
        .ok_or_else(|| Failure::of(1, format!("\"{}\" is not a duration, such as 1h30m", call.text(1))))?;
    Ok(Value::string(&time.plus(duration).to_string()))
}

fn timecmp(call: &Call<'_>) -> Result<Value, Failure> {
    let order = time(call, 0)?.instant().cmp(&time(call, 1)?.instant());
    Ok(Value::int(order as i64))
}

fn timestamp(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(match call.scope.effects {
        Some(effects) => Value::string(&effects.now()),
        None => Value::unknown(Type::String),
    })
}
