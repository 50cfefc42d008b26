//! Strings.

use super::call::Call;
use super::parameter::{number, parameter, string};
use super::{Accepts, Function, function, graphemes};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("chomp", chomp).takes(&[string("str")]).gives(Accepts::String).says(
        "A string without line breaks at its end.",
        "chomp(\"hello\\n\")",
        "\"hello\"",
    ),
    function("indent", indent).takes(&[number("spaces"), string("str")]).gives(Accepts::String).says(
        "A string with spaces at the beginning of all lines but the first.",
        "indent(2, \"a\\nb\")",
        "\"a\\n  b\"",
    ),
    function("join", join)
        .takes(&[string("separator")])
        .and_any(parameter("lists", Accepts::ListOfStrings))
        .gives(Accepts::String)
        .says("The strings of lists, with a separator between them.", "join(\"-\", [\"a\", \"b\"])", "\"a-b\""),
    function("lower", lower).takes(&[string("str").untyped()]).gives(Accepts::String).says(
        "A string in lowercase.",
        "lower(\"HELLO\")",
        "\"hello\"",
    ),
    function("sort", sort)
        .takes(&[parameter("list", Accepts::ListOfStrings).unknown()])
        .gives(Accepts::ListOfStrings)
        .says("A list of strings, sorted by their Unicode characters.", "sort([\"b\", \"a\"])", "[\"a\", \"b\"]"),
    function("split", split).takes(&[string("separator"), string("str")]).gives(Accepts::ListOfStrings).says(
        "The parts of a string between separators.",
        "split(\",\", \"a,b\")",
        "[\"a\", \"b\"]",
    ),
    function("strrev", strrev).takes(&[string("str").untyped()]).gives(Accepts::String).says(
        "A string with its characters in reverse order.",
        "strrev(\"abc\")",
        "\"cba\"",
    ),
    function("substr", substr)
        .takes(&[string("str").untyped(), number("offset").untyped(), number("length").untyped()])
        .gives(Accepts::String)
        .says(
            "A part of a string by offset and length in characters. A negative offset counts from the end, and with a \
             negative length the part goes to the end.",
            "substr(\"hello world\", 1, 4)",
            "\"ello\"",
        ),
    function("title", title).takes(&[string("str")]).gives(Accepts::String).says(
        "A string with the first letter of each word in uppercase.",
        "title(\"hello world\")",
        "\"Hello World\"",
    ),
    function("trim", trim).takes(&[string("str"), string("cutset")]).gives(Accepts::String).says(
        "A string without the given characters at both ends.",
        "trim(\"?!hello?!\", \"!?\")",
        "\"hello\"",
    ),
    function("trimprefix", trimprefix).takes(&[string("str"), string("prefix")]).gives(Accepts::String).says(
        "A string without a prefix.",
        "trimprefix(\"helloworld\", \"hello\")",
        "\"world\"",
    ),
    function("trimspace", trimspace).takes(&[string("str")]).gives(Accepts::String).says(
        "A string without white space at both ends.",
        "trimspace(\"  hello\\n\")",
        "\"hello\"",
    ),
    function("trimsuffix", trimsuffix).takes(&[string("str"), string("suffix")]).gives(Accepts::String).says(
        "A string without a suffix.",
        "trimsuffix(\"helloworld\", \"world\")",
        "\"hello\"",
    ),
    function("upper", upper).takes(&[string("str").untyped()]).gives(Accepts::String).says(
        "A string in uppercase.",
        "upper(\"hello\")",
        "\"HELLO\"",
    ),
];

fn chomp(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).trim_end_matches(['\r', '\n']).into())
}

fn indent(call: &Call<'_>) -> Result<Value, Failure> {
    let spaces = usize::try_from(call.whole(0)?).map_err(|_| Failure::of(0, "must not be negative"))?;
    let breaks = call.text(1).bytes().filter(|byte| *byte == b'\n').count();
    call.scope.budget.hold(breaks.max(1).saturating_mul(spaces))?;
    Ok(Value::string(&call.text(1).replace('\n', &format!("\n{}", " ".repeat(spaces)))))
}

fn join(call: &Call<'_>) -> Result<Value, Failure> {
    let lists = &call.arguments[1..];
    if lists.is_empty() {
        return Err(Failure::new("at least one list is required"));
    }
    if !lists.iter().all(Value::is_wholly_known) {
        return Ok(Value::unknown(Type::String));
    }
    let mut texts = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        for item in list.as_items().unwrap_or_default() {
            texts.push(item.as_str().ok_or_else(|| Failure::of(index + 1, "an element is null"))?);
        }
    }
    call.scope.budget.hold(call.text(0).len().saturating_mul(texts.len()))?;
    Ok(Value::string(&texts.join(call.text(0))))
}

fn sort(call: &Call<'_>) -> Result<Value, Failure> {
    let list = &call.arguments[0];
    if !list.is_wholly_known() {
        let range = list.range();
        return Ok(Value::unknown(Type::list(Type::String))
            .refined(|result| result.with_lengths(range.min_length, range.max_length)));
    }
    let items = call.items(0);
    if items.iter().any(Value::is_null) {
        return Err(Failure::of(0, "an element is null"));
    }
    let mut sorted = items.to_vec();
    sorted.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    Ok(Value::list(Type::String, sorted))
}

fn split(call: &Call<'_>) -> Result<Value, Failure> {
    let (separator, text) = (call.text(0), call.text(1));
    let parts: Vec<Value> = if separator.is_empty() {
        text.chars().map(|letter| Value::string(letter.encode_utf8(&mut [0; 4]))).collect()
    } else {
        text.split(separator).map(Value::string).collect()
    };
    Ok(Value::list(Type::String, parts))
}

fn strrev(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::string(&graphemes::reversed(call.text(0))))
}

fn substr(call: &Call<'_>) -> Result<Value, Failure> {
    let text = call.text(0);
    let (offset, length) = (call.whole(1)?, call.whole(2)?);
    let offset = if offset < 0 {
        offset + i64::try_from(graphemes::count(text)).unwrap_or(i64::MAX)
    } else if length == 0 {
        return Ok("".into());
    } else {
        offset
    };
    // An offset before the beginning is the beginning, and a length of 0 is then without a limit, as upstream.
    let skipped = usize::try_from(offset).unwrap_or(0);
    let length = usize::try_from(length).ok().filter(|length| *length > 0);
    Ok(Value::string(graphemes::part(text, skipped, length)))
}

/// Only letters with one counterpart change, as upstream: `ß` stays what it is.
fn upper(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::string(&call.text(0).chars().map(upper_letter).collect::<String>()))
}

fn upper_letter(letter: char) -> char {
    let mut letters = letter.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(upper), None) => upper,
        _ => letter,
    }
}

fn lower(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::string(&call.text(0).chars().map(lower_letter).collect::<String>()))
}

fn lower_letter(letter: char) -> char {
    // The only letter whose lowercase has two characters is the dotted İ, whose base is the i.
    letter.to_lowercase().next().unwrap_or(letter)
}

fn title(call: &Call<'_>) -> Result<Value, Failure> {
    let mut before = ' ';
    let letters = call.text(0).chars().map(|letter| {
        let result = if separates(before) { title_letter(letter) } else { letter };
        before = letter;
        result
    });
    Ok(Value::string(&letters.collect::<String>()))
}

fn title_letter(letter: char) -> char {
    match letter {
        'ǆ' | 'Ǆ' => 'ǅ',
        'ǉ' | 'Ǉ' => 'ǈ',
        'ǌ' | 'Ǌ' => 'ǋ',
        'ǳ' | 'Ǳ' => 'ǲ',
        other => upper_letter(other),
    }
}

/// Whether a word begins after the character.
fn separates(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_alphanumeric() && letter != '_';
    }
    !letter.is_alphanumeric() && letter.is_whitespace()
}

fn trim(call: &Call<'_>) -> Result<Value, Failure> {
    let cutset = call.text(1);
    Ok(call.text(0).trim_matches(|letter| cutset.contains(letter)).into())
}

fn trimprefix(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).strip_prefix(call.text(1)).unwrap_or(call.text(0)).into())
}

fn trimsuffix(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).strip_suffix(call.text(1)).unwrap_or(call.text(0)).into())
}

fn trimspace(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(call.text(0).trim().into())
}
