//! YAML.

use std::collections::{BTreeMap, HashSet};

use granit_parser::{Event, Options, Parser, ScalarStyle, Tag};

use super::call::Call;
use super::parameter::{any, string};
use super::{Accepts, Function, function, timestamp, yaml_writer};
use crate::cty::{Number, Type, Value, convert};
use crate::{Failure, Scope};

pub const FUNCTIONS: &[Function] = &[
    function("yamldecode", yamldecode).takes(&[string("src")]).gives_anything().or_null().says(
        "The value that a YAML document describes.",
        "yamldecode(\"hello: world\")",
        "{hello = \"world\"}",
    ),
    function("yamlencode", yamlencode).takes(&[any("value").null().untyped()]).gives(Accepts::String).or_null().says(
        "The YAML document of a value.",
        "yamlencode({a = \"b\"})",
        "\"\\\"a\\\": \\\"b\\\"\\n\"",
    ),
];

/// Values deeper than this would exhaust the stack.
const MAX_DEPTH: usize = 200;

fn yamlencode(call: &Call<'_>) -> Result<Value, Failure> {
    if !call.arguments[0].is_wholly_known() {
        return Ok(Value::unknown(Type::String));
    }
    Ok(Value::string(&yaml_writer::document(&call.arguments[0])))
}

fn yamldecode(call: &Call<'_>) -> Result<Value, Failure> {
    let mut options = Options::default();
    options.block_nesting_limit = MAX_DEPTH;
    let mut reader = Reader {
        parser: Parser::new_from_str_with_options(call.text(0), options),
        anchors: BTreeMap::new(),
        open: HashSet::new(),
        scope: call.scope,
    };
    reader.document()
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: BTreeMap<usize, Value>,
    /// The anchors whose values are not complete.
    open: HashSet<usize>,
    scope: &'a Scope<'a>,
}

fn invalid(what: impl std::fmt::Display) -> Failure {
    Failure::of(0, format!("invalid YAML: {what}"))
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Failure> {
        self.scope.budget.step(1)?;
        match self.parser.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(invalid(error)),
            None => Ok(Event::StreamEnd),
        }
    }

    fn document(&mut self) -> Result<Value, Failure> {
        loop {
            match self.next()? {
                Event::StreamStart => {}
                Event::DocumentStart(..) => break,
                _ => return Err(invalid("there is no document")),
            }
        }
        let event = self.next()?;
        let value = self.value(event, 0)?;
        match (self.next()?, self.next()?) {
            (Event::DocumentEnd, Event::StreamEnd) => Ok(value),
            _ => Err(invalid("only a single document is allowed")),
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, Failure> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref())?.unwrap_or_else(|| Value::string(&text));
                self.anchors.insert(anchor, value.clone());
                Ok(value)
            }
            Event::Alias(anchor) if self.open.contains(&anchor) => {
                Err(invalid("an alias refers to an anchor from inside its own definition"))
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or_else(|| invalid("an alias has no anchor"))?;
                // Sharing makes copies free here, but not where the value is read.
                self.scope.budget.step(count(&value))?;
                Ok(value)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq")?;
                let value = self.within(anchor, |reader| reader.sequence(depth))?;
                Ok(value)
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map")?;
                let value = self.within(anchor, |reader| reader.mapping(depth))?;
                Ok(value)
            }
            _ => Err(invalid("a value is expected")),
        }
    }

    fn within(
        &mut self,
        anchor: usize,
        read: impl FnOnce(&mut Self) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        if anchor == 0 {
            return read(self);
        }
        self.open.insert(anchor);
        let value = read(self)?;
        self.open.remove(&anchor);
        self.anchors.insert(anchor, value.clone());
        Ok(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Failure> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::tuple(items)),
                event => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Failure> {
        let mut entries = BTreeMap::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::object(entries)),
                Event::Scalar(text, style, _, tag) => scalar(&text, style, tag.as_deref())?,
                _ => return Err(invalid("only strings are allowed as keys")),
            };
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            let Some(key) = key else {
                // `<<` merges another mapping into this one.
                let merged = value.as_entries().ok_or_else(|| invalid("only a mapping can be merged"))?;
                entries.extend(merged.iter().map(|(name, item)| (name.to_string(), item.clone())));
                continue;
            };
            let key = convert(&key, &Type::String).ok().and_then(|key| key.as_str().map(str::to_owned));
            entries.insert(key.ok_or_else(|| invalid("a key must not be null"))?, value);
        }
    }
}

fn count(value: &Value) -> u64 {
    1 + value.children().map(count).sum::<u64>()
}

fn check_tag(tag: Option<&Tag>, wanted: &str) -> Result<(), Failure> {
    match tag {
        Some(tag) if full(tag) != format!("{CORE}{wanted}") => Err(invalid(format!("unsupported tag {}", full(tag)))),
        _ => Ok(()),
    }
}

const CORE: &str = "tag:yaml.org,2002:";

fn full(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

/// The value of a scalar by YAML 1.1's words for bools and null. `None` for the merge key.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Option<Value>, Failure> {
    let tag = tag.map(full);
    let tag = tag.as_deref().map(|tag| tag.strip_prefix(CORE).unwrap_or(tag));
    match tag {
        Some("str") => return Ok(Some(Value::string(text))),
        Some("binary") if super::encodings::base64(text).is_some() => return Ok(Some(Value::string(text))),
        Some("binary") => return Err(invalid("a binary value is not valid base64")),
        None | Some("bool" | "int" | "float" | "null" | "timestamp") => {}
        Some(other) => return Err(invalid(format!("unsupported tag {other}"))),
    }
    // Quotes count only where the first character leaves open what the scalar is.
    let is_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    if text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit() || "+-.yYnNtTfFoO~".contains(first)) {
        if is_quoted {
            return Ok(Some(Value::string(text)));
        }
        if let Some(value) = resolved(text, tag)? {
            return Ok(Some(value));
        }
    }
    let value = match tag {
        None if text == "<<" => return Ok(None),
        None => Some(Value::string(text)),
        Some("null") => Some(Value::null(Type::Dynamic)),
        Some("int" | "float") => number(&text.replace('_', "")).map(Value::number),
        _ => None,
    };
    match value {
        Some(value) => Ok(Some(value)),
        None => Err(invalid(format!("\"{text}\" cannot be read as {}", tag.unwrap_or_default()))),
    }
}

/// What a plain scalar stands for, if it is no string.
fn resolved(text: &str, tag: Option<&str>) -> Result<Option<Value>, Failure> {
    Ok(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(Value::TRUE),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(Value::FALSE),
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::null(Type::Dynamic)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Value::number(Number::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Some(Value::number(Number::NEGATIVE_INFINITY)),
        ".nan" | ".NaN" | ".NAN" if tag.is_none() => return Err(invalid("NaN is not supported")),
        _ => match timestamp::parse_yaml(text) {
            Some(time) if matches!(tag, None | Some("timestamp")) => Some(Value::string(&time.to_string())),
            _ => number(text).map(Value::number),
        },
    })
}

/// Decimal, octal and hexadecimal whole numbers, and decimal fractions.
fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    if unsigned == "." { None } else { Number::parse(text) }
}
