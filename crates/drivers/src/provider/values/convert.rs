//! Converts untyped model values to values of a type.
//!
//! The rules are cty's: numbers and booleans convert to strings, and such strings convert back; lists convert to sets
//! and tuples, and maps to objects. A value at a dynamic position gets the type that a literal would have in Terraform.

use std::sync::Arc;

use cty::{Entries, MAX_DEPTH, Number, Type, Value, normalize};

use super::DynamicTypes;
use model::suggest::closest;
use model::{Path, Segment};

/// A problem in a value. The path starts at the value that is converted.
#[derive(Debug)]
pub struct Problem {
    pub path: Path,
    pub what: String,
    pub hint: Option<String>,
}

/// The origin of a value.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A user's configuration: a missing or unsupported attribute is a problem.
    Config,
    /// A configuration that has been validated. At ignored paths it has the values of the object, including those that
    /// the provider computed.
    Validated,
    /// A record, possibly of an earlier schema: a missing attribute is null, and an unsupported one is dropped.
    Record(&'a DynamicTypes),
}

/// Converts values and collects all problems. A value with a problem becomes null.
pub struct Converter<'a> {
    from: Source<'a>,
    at: Vec<Segment>,
    pub problems: Vec<Problem>,
}

impl<'a> Converter<'a> {
    pub fn new(from: Source<'a>) -> Self {
        Self { from, at: Vec::new(), problems: Vec::new() }
    }

    pub fn is_validated(&self) -> bool {
        matches!(self.from, Source::Validated)
    }

    pub fn within<T>(&mut self, segment: Segment, convert: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(segment);
        let result = convert(self);
        self.at.pop();
        result
    }

    pub fn within_name<T>(&mut self, name: &Arc<str>, convert: impl FnOnce(&mut Self) -> T) -> T {
        self.within(Segment::Name(name.clone()), convert)
    }

    /// Reports a problem at the current path and returns null.
    pub fn problem(&mut self, what: impl Into<String>, hint: Option<String>) -> Value {
        self.problems.push(Problem { path: Path(self.at.clone()), what: what.into(), hint });
        Value::NULL
    }

    /// Reports an unsupported argument.
    pub fn unknown_name(&mut self, name: &Arc<str>, known: &[&Arc<str>]) {
        let hint = match closest(name, known.iter().map(AsRef::as_ref)) {
            Some(meant) => Some(format!("did you mean `{meant}`?")),
            None if known.is_empty() => None,
            None => {
                let names: Vec<String> = known.iter().take(12).map(|name| format!("`{name}`")).collect();
                Some(format!("supported arguments: {}", names.join(", ")))
            }
        };
        self.within_name(name, |converter| converter.problem("unsupported argument", hint));
    }

    pub fn convert(&mut self, value: &model::Value, ty: &Type) -> Value {
        let value = value.unmarked();
        match (ty, value) {
            (Type::Dynamic, value) => self.dynamic(value),
            (_, model::Value::Null) => Value::null(ty.clone()),
            (_, model::Value::Unknown) => Value::unknown(ty.clone()),
            (Type::String, model::Value::String(string)) => Value::from(string),
            (Type::String, model::Value::Number(written)) => match number(written) {
                Some(number) => Value::string(&number.to_string()),
                None => self.type_mismatch(ty, value),
            },
            (Type::String, model::Value::Bool(bool)) => Value::string(if *bool { "true" } else { "false" }),
            (Type::Number, model::Value::Number(written)) => match number(written) {
                Some(number) => Value::number(number),
                None => self.type_mismatch(ty, value),
            },
            (Type::Number, model::Value::String(string)) => match Number::parse_finite(string) {
                Some(number) => Value::number(number),
                None => self.type_mismatch(ty, value),
            },
            (Type::Bool, model::Value::Bool(bool)) => Value::bool(*bool),
            (Type::Bool, model::Value::String(string)) => match string.as_ref() {
                "true" | "1" => Value::TRUE,
                "false" | "0" => Value::FALSE,
                other if ["true", "false"].contains(&other.to_lowercase().as_str()) => {
                    self.problem("must be a boolean, not a string", Some("write it in lowercase".to_owned()))
                }
                _ => self.type_mismatch(ty, value),
            },
            (Type::Tuple(elements), model::Value::List(items)) if items.len() != elements.len() => {
                let (wanted, found) = (elements.len(), items.len());
                self.problem(format!("must be a list of {wanted} elements, not {found}"), None)
            }
            (Type::List(_) | Type::Set(_) | Type::Tuple(_), model::Value::List(items)) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    let element = ty.item(index).unwrap_or(&Type::Dynamic);
                    self.within(Segment::Index(index), |converter| converter.convert(item, element))
                });
                let items = items.collect();
                Value::of_items(ty, items)
            }
            (Type::Map(element), model::Value::Map(entries)) => {
                let entries = entries.iter().map(|(key, item)| {
                    (normalized(key), self.within_name(key, |converter| converter.convert(item, element)))
                });
                let entries = entries.collect();
                Value::of_entries(ty, entries)
            }
            (Type::Object(object), model::Value::Map(entries)) => self.object(ty, entries, &object.attributes),
            (ty, value) => self.type_mismatch(ty, value),
        }
    }

    fn object(&mut self, ty: &Type, entries: &model::Map, attributes: &Entries<Type>) -> Value {
        let strict = matches!(self.from, Source::Config | Source::Validated);
        if strict {
            for name in entries.keys().filter(|name| !attributes.contains_key(name)) {
                self.unknown_name(name, &attributes.keys().collect::<Vec<_>>());
            }
        }
        let converted = attributes.iter().map(|(name, ty)| {
            let value = self.within_name(name, |converter| match entries.get(name) {
                Some(item) => converter.convert(item, ty),
                None if strict => {
                    converter.problem("is required, but not set", Some("set it to null to leave it unset".to_owned()))
                }
                None => Value::NULL,
            });
            (name.clone(), value)
        });
        let converted = converted.collect();
        Value::of_entries(ty, converted)
    }

    /// Converts with the type that was recorded for the value, or else with the type of a literal.
    fn dynamic(&mut self, value: &model::Value) -> Value {
        if let Source::Record(types) = self.from
            && let Some(ty) = types.at(&self.at)
        {
            let before = self.problems.len();
            let converted = self.convert(value, ty);
            if self.problems.len() == before {
                return converted;
            }
            // The recorded value has changed since, so it has another type.
            self.problems.truncate(before);
        }
        self.literal(value)
    }

    fn literal(&mut self, value: &model::Value) -> Value {
        if self.at.len() > MAX_DEPTH {
            return self.problem("is nested too deeply", None);
        }
        match value.unmarked() {
            model::Value::Unknown => Value::DYNAMIC,
            model::Value::Null | model::Value::Sensitive(_) => Value::NULL,
            model::Value::Bool(bool) => Value::bool(*bool),
            model::Value::String(string) => Value::from(string),
            model::Value::Number(written) => match number(written) {
                Some(number) => Value::number(number),
                None => self.type_mismatch(&Type::Number, value),
            },
            model::Value::List(items) => {
                let items = items.iter().enumerate();
                Value::tuple(items.map(|(index, item)| self.within(Segment::Index(index), |c| c.literal(item))))
            }
            model::Value::Map(entries) => Value::object(
                entries
                    .iter()
                    .map(|(key, item)| (key.clone(), self.within_name(key, |converter| converter.literal(item)))),
            ),
        }
    }

    fn type_mismatch(&mut self, ty: &Type, value: &model::Value) -> Value {
        let is_element = matches!(ty, Type::List(_) | Type::Set(_)) && !matches!(value, model::Value::List(_));
        let hint = is_element.then(|| "write it as a list with one element".to_owned());
        self.problem(format!("must be {}, not {}", type_kind(ty), kind_of(value)), hint)
    }
}

/// `None` if the number has too many digits.
fn number(number: &model::Number) -> Option<Number> {
    match number {
        model::Number::Int(int) => Some(Number::from(*int)),
        other => Number::parse_finite(&other.to_string()),
    }
}

/// Normalizes the string. ASCII strings, the usual case, are shared.
fn normalized(string: &Arc<str>) -> Arc<str> {
    if string.is_ascii() { string.clone() } else { normalize(string) }
}

/// The kind of a value for messages, which must not reveal the value itself.
pub fn kind_of(value: &model::Value) -> &'static str {
    match value {
        model::Value::Null => "null",
        model::Value::Unknown => "unknown",
        model::Value::Bool(_) => "a boolean",
        model::Value::Number(_) => "a number",
        model::Value::String(_) => "a string",
        model::Value::List(_) => "a list",
        model::Value::Map(_) => "an object",
        model::Value::Sensitive(inner) => kind_of(inner),
    }
}

fn type_kind(ty: &Type) -> &'static str {
    match ty {
        Type::String => "a string",
        Type::Number => "a number",
        Type::Bool => "a boolean",
        Type::Dynamic => "any value",
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => "a list",
        Type::Map(_) => "a map",
        Type::Object(_) => "an object",
    }
}
