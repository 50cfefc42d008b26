//! From the engine's values, which have no types, to values of a type.
//!
//! These are cty's conversions: numbers and booleans become texts and back where the text says one, lists serve for sets
//! and tuples, maps for objects. What stands at a dynamic place gets the type that a literal of Terraform's language would
//! have there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Decimal, DynamicTypes, MAX_DEPTH, Type, Typed, Value, text};
use crate::model::suggest::closest;
use crate::model::{self, Path, Segment};

/// What is wrong with a value, below the place where reading began.
#[derive(Debug)]
pub(super) struct Problem {
    pub path: Path,
    pub what: String,
    pub hint: Option<String>,
}

/// Where values come from.
#[derive(Clone, Copy)]
pub(super) enum From<'a> {
    /// A person: what is missing or not known by the type is a mistake.
    Config,
    /// A record: it may be of an earlier schema, so what is missing is null and what is not known is left out.
    Record(&'a DynamicTypes),
}

/// Converts, and collects every problem it meets. Where there is one it goes on with null.
pub(super) struct Converter<'a> {
    from: From<'a>,
    at: Vec<Segment>,
    pub problems: Vec<Problem>,
}

impl<'a> Converter<'a> {
    pub fn new(from: From<'a>) -> Self {
        Self { from, at: Vec::new(), problems: Vec::new() }
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

    /// Reports a problem at the present place; gives null to go on with.
    pub fn problem(&mut self, what: impl Into<String>, hint: Option<String>) -> Value {
        self.problems.push(Problem { path: Path(self.at.clone()), what: what.into(), hint });
        Value::Null
    }

    /// Reports a name that stands for nothing here.
    pub fn unknown_name(&mut self, name: &Arc<str>, known: &[&Arc<str>]) {
        let hint = match closest(name, known.iter().map(AsRef::as_ref)) {
            Some(meant) => Some(format!("did you mean `{meant}`?")),
            None if known.is_empty() => None,
            None => {
                let names: Vec<String> = known.iter().take(12).map(|name| format!("`{name}`")).collect();
                Some(format!("there are {}", names.join(", ")))
            }
        };
        self.within_name(name, |converter| converter.problem("there is no such argument", hint));
    }

    /// The value as one of the type.
    pub fn convert(&mut self, value: &model::Value, ty: &Type) -> Value {
        let value = value.unmarked();
        match (ty, value) {
            (Type::Dynamic, value) => self.dynamic(value),
            (_, model::Value::Null) => Value::Null,
            (_, model::Value::Unknown) => Value::UNKNOWN,
            (Type::String, model::Value::String(string)) => Value::String(normalized(string)),
            (Type::String, model::Value::Number(number)) => match decimal(number) {
                Some(number) => Value::string(&number.to_string()),
                None => self.wrong(ty, value),
            },
            (Type::String, model::Value::Bool(bool)) => Value::string(if *bool { "true" } else { "false" }),
            (Type::Number, model::Value::Number(number)) => match decimal(number) {
                Some(number) => Value::Number(number),
                None => self.wrong(ty, value),
            },
            (Type::Number, model::Value::String(string)) => match Decimal::parse(string) {
                Some(number) => Value::Number(number),
                None => self.wrong(ty, value),
            },
            (Type::Bool, model::Value::Bool(bool)) => Value::Bool(*bool),
            (Type::Bool, model::Value::String(string)) => match string.as_ref() {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                other if ["true", "false"].contains(&other.to_lowercase().as_str()) => {
                    self.problem("must be a boolean, not a text", Some("write it in small letters".to_owned()))
                }
                _ => self.wrong(ty, value),
            },
            (Type::List(element), model::Value::List(items)) => Value::List(self.items(items, |_| element).into()),
            (Type::Set(element), model::Value::List(items)) => Value::set(self.items(items, |_| element)),
            (Type::Tuple(elements), model::Value::List(items)) => {
                if items.len() != elements.len() {
                    let (wanted, found) = (elements.len(), items.len());
                    return self.problem(format!("must be a list of {wanted} elements, not of {found}"), None);
                }
                Value::Tuple(self.items(items, |place| &elements[place]).into())
            }
            (Type::Map(element), model::Value::Map(entries)) => {
                let converted = entries.iter().map(|(key, item)| {
                    (normalized(key), self.within_name(key, |converter| converter.convert(item, element)))
                });
                Value::Map(Arc::new(converted.collect()))
            }
            (Type::Object(attributes), model::Value::Map(entries)) => self.object(entries, attributes),
            (ty, value) => self.wrong(ty, value),
        }
    }

    fn items<'t>(&mut self, items: &[model::Value], element: impl Fn(usize) -> &'t Type) -> Vec<Value> {
        let mut converted = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            converted.push(self.within(Segment::Index(place), |converter| converter.convert(item, element(place))));
        }
        converted
    }

    fn object(&mut self, entries: &model::Map, attributes: &BTreeMap<Arc<str>, Type>) -> Value {
        let strict = matches!(self.from, From::Config);
        if strict {
            for name in entries.keys().filter(|name| !attributes.contains_key(*name)) {
                self.unknown_name(name, &attributes.keys().collect::<Vec<_>>());
            }
        }
        let converted = attributes.iter().map(|(name, ty)| {
            let value = self.within_name(name, |converter| match entries.get(name) {
                Some(item) => converter.convert(item, ty),
                None if strict => {
                    converter.problem("is required, but not set", Some("set it to null to leave it open".to_owned()))
                }
                None => Value::Null,
            });
            (name.clone(), value)
        });
        Value::Object(Arc::new(converted.collect()))
    }

    /// The value with the type it had when it was recorded, or with the one of a literal.
    fn dynamic(&mut self, value: &model::Value) -> Value {
        if let From::Record(types) = self.from
            && let Some(ty) = types.at(&self.at)
        {
            let before = self.problems.len();
            let converted = self.convert(value, ty);
            if self.problems.len() == before {
                return Value::dynamic(ty.clone(), converted);
            }
            // The record has another value there by now, so it has another type.
            self.problems.truncate(before);
        }
        let typed = self.literal(value);
        Value::dynamic(typed.ty, typed.value)
    }

    fn literal(&mut self, value: &model::Value) -> Typed {
        if self.at.len() > MAX_DEPTH {
            return Typed { ty: Type::Dynamic, value: self.problem("nests too deep", None) };
        }
        match value.unmarked() {
            model::Value::Unknown => Typed { ty: Type::Dynamic, value: Value::UNKNOWN },
            model::Value::Bool(bool) => Typed { ty: Type::Bool, value: Value::Bool(*bool) },
            model::Value::String(string) => Typed { ty: Type::String, value: Value::String(normalized(string)) },
            model::Value::Number(number) => match decimal(number) {
                Some(number) => Typed { ty: Type::Number, value: Value::Number(number) },
                None => Typed { ty: Type::Dynamic, value: self.wrong(&Type::Number, value) },
            },
            model::Value::List(items) => {
                let typed = items.iter().enumerate();
                let typed = typed.map(|(place, item)| self.within(Segment::Index(place), |c| c.literal(item)));
                let (types, items): (Vec<_>, Vec<_>) = typed.map(|typed| (typed.ty, typed.value)).unzip();
                Typed { ty: Type::Tuple(types.into()), value: Value::Tuple(items.into()) }
            }
            model::Value::Map(entries) => {
                let typed = entries.iter().map(|(key, item)| {
                    let typed = self.within_name(key, |converter| converter.literal(item));
                    let key = normalized(key);
                    ((key.clone(), typed.ty), (key, typed.value))
                });
                let (types, entries): (Vec<_>, Vec<_>) = typed.unzip();
                Typed { ty: Type::object(types), value: Value::object(entries) }
            }
            model::Value::Null | model::Value::Sensitive(_) => Typed { ty: Type::Dynamic, value: Value::Null },
        }
    }

    /// Reports that a value is of another type.
    fn wrong(&mut self, ty: &Type, value: &model::Value) -> Value {
        let one = matches!(ty, Type::List(_) | Type::Set(_)) && !matches!(value, model::Value::List(_));
        let hint = one.then(|| "write it as a list with one element".to_owned());
        self.problem(format!("must be {}, not {}", type_word(ty), word(value)), hint)
    }
}

/// The number as the engine has it; `None` when it is too long.
fn decimal(number: &model::Number) -> Option<Decimal> {
    match number {
        model::Number::Int(int) => Some(Decimal::Int(*int)),
        other => Decimal::parse(&other.to_string()),
    }
}

/// The text in its normal form, which it nearly always has.
fn normalized(string: &Arc<str>) -> Arc<str> {
    if string.is_ascii() { string.clone() } else { text::normalized(string) }
}

/// What a value is, without telling it.
pub(super) fn word(value: &model::Value) -> &'static str {
    match value {
        model::Value::Null => "null",
        model::Value::Unknown => "unknown",
        model::Value::Bool(_) => "a boolean",
        model::Value::Number(_) => "a number",
        model::Value::String(_) => "a text",
        model::Value::List(_) => "a list",
        model::Value::Map(_) => "an object",
        model::Value::Sensitive(inner) => word(inner),
    }
}

fn type_word(ty: &Type) -> &'static str {
    match ty {
        Type::String => "a text",
        Type::Number => "a number",
        Type::Bool => "a boolean",
        Type::Dynamic => "anything",
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => "a list",
        Type::Map(_) => "a map",
        Type::Object(_) => "an object",
    }
}
