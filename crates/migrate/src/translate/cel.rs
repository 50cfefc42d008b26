//! Translated expressions. What is known of their structure is kept, so that constants become literals.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::Untranslated;
use crate::address::ModuleStep;
use crate::arguments::{ArgumentValue, escape};
use engine::load::{Scope, Template};
use model::{Address, Path, Value};

/// A translated expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Cel {
    Constant(Json),
    /// Parts that are joined to a string.
    Text(Vec<Cel>),
    List(Vec<Cel>),
    Map(Vec<(String, Cel)>),
    /// An expression. `true`: it can be an operand without parentheses.
    Code(String, bool),
    /// An instance of a module, whose attributes are its outputs.
    Module(Vec<ModuleStep>),
}

impl Cel {
    pub fn code(text: impl Into<String>) -> Self {
        Self::Code(text.into(), true)
    }

    /// An operation, which is in parentheses as an operand.
    pub fn operation(text: impl Into<String>) -> Self {
        Self::Code(text.into(), false)
    }

    pub fn string(text: impl Into<String>) -> Self {
        Self::Constant(Json::String(text.into()))
    }

    pub fn as_constant(&self) -> Option<&Json> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        self.as_constant()?.as_str()
    }

    /// Converts constants of constants to one constant.
    pub fn simplified(self) -> Self {
        match &self {
            Self::List(items) => {
                let all: Option<Vec<Json>> = items.iter().map(|item| item.as_constant().cloned()).collect();
                all.map_or(self, |items| Self::Constant(Json::Array(items)))
            }
            Self::Map(entries) => {
                let entry = |(key, item): &(String, Self)| Some((key.clone(), item.as_constant()?.clone()));
                let all: Option<Map<String, Json>> = entries.iter().map(entry).collect();
                all.map_or(self, |entries| Self::Constant(Json::Object(entries)))
            }
            Self::Text(parts) => {
                let mut joined = Vec::new();
                join(parts, &mut joined);
                match &joined[..] {
                    [] => Self::string(""),
                    [Self::Constant(text)] => Self::Constant(text.clone()),
                    _ => Self::Text(joined),
                }
            }
            _ => self,
        }
    }

    /// The elements of a list whose length is known.
    pub fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.clone()),
            Self::Constant(Json::Array(items)) => Some(items.iter().cloned().map(Self::Constant).collect()),
            _ => None,
        }
    }

    /// The entries of a map whose keys are known.
    pub fn entries(&self) -> Option<Vec<(String, Self)>> {
        match self {
            Self::Map(entries) => Some(entries.clone()),
            Self::Constant(Json::Object(entries)) => {
                Some(entries.iter().map(|(key, item)| (key.clone(), Self::Constant(item.clone()))).collect())
            }
            _ => None,
        }
    }

    /// Returns the expression in CEL.
    pub fn to_code(&self) -> Result<String, Untranslated> {
        Ok(match self {
            Self::Constant(value) => value.to_string(),
            Self::Text(parts) => {
                let part = |part: &Self| match part.as_constant().and_then(text_of) {
                    Some(text) => Ok(Json::from(text).to_string()),
                    None => Ok(format!("string({})", part.to_code()?)),
                };
                parts.iter().map(part).collect::<Result<Vec<_>, Untranslated>>()?.join(" + ")
            }
            Self::List(items) => {
                let items: Result<Vec<String>, Untranslated> = items.iter().map(Self::to_code).collect();
                format!("[{}]", items?.join(", "))
            }
            Self::Map(entries) => {
                let entry =
                    |(key, item): &(String, Self)| Ok(format!("{}: {}", Json::from(key.as_str()), item.to_code()?));
                let entries: Result<Vec<String>, Untranslated> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries?.join(", "))
            }
            Self::Code(text, _) => text.clone(),
            Self::Module(path) => {
                return Err(format!(
                    "the whole module `{}` has no counterpart",
                    path.last().map_or("", |(name, _)| name)
                ));
            }
        })
    }

    /// The same, as an operand of an operator or the target of a call.
    pub fn to_operand(&self) -> Result<String, Untranslated> {
        let text = self.to_code()?;
        let is_atom = match self {
            Self::Constant(Json::Number(_)) => !text.starts_with('-'),
            Self::Text(parts) => parts.len() == 1,
            Self::Code(_, atom) => *atom,
            _ => true,
        };
        Ok(if is_atom { text } else { format!("({text})") })
    }

    /// Returns the value for a manifest.
    pub fn to_argument(&self) -> Result<ArgumentValue, Untranslated> {
        Ok(match self {
            Self::Constant(value) => ArgumentValue::Literal(value.clone()),
            // An expression alone would keep its type.
            Self::Text(parts) if parts.len() == 1 => ArgumentValue::Template(format!("${{{}}}", self.to_code()?)),
            Self::Text(parts) => {
                let part = |part: &Self| match part.as_constant().and_then(text_of) {
                    Some(text) => Ok(escape(&text)),
                    None => Ok(format!("${{{}}}", part.to_code()?)),
                };
                ArgumentValue::Template(parts.iter().map(part).collect::<Result<Vec<_>, Untranslated>>()?.concat())
            }
            Self::List(items) => ArgumentValue::List(items.iter().map(Self::to_argument).collect::<Result<_, _>>()?),
            Self::Map(entries) => {
                let entry = |(key, item): &(String, Self)| Ok((Arc::from(key.as_str()), item.to_argument()?));
                ArgumentValue::Map(entries.iter().map(entry).collect::<Result<_, Untranslated>>()?)
            }
            Self::Code(..) | Self::Module(_) => ArgumentValue::Template(format!("${{{}}}", self.to_code()?)),
        })
    }

    /// Returns an attribute or an entry.
    pub fn member(&self, key: &str) -> Result<Self, Untranslated> {
        if let Some(entries) = self.entries() {
            let found = entries.into_iter().find(|(name, _)| name == key);
            return found.map(|(_, item)| item).ok_or_else(|| format!("there is no `{key}`"));
        }
        if self.as_constant() == Some(&Json::Null) {
            return Err(format!("null has no `{key}`"));
        }
        let quoted = || Json::from(key);
        let is_name = engine::load::expression::is_identifier(key);
        let target = self.to_operand()?;
        Ok(Self::code(if is_name { format!("{target}.{key}") } else { format!("{target}[{}]", quoted()) }))
    }

    /// Returns an element of a list, or an entry of a map.
    pub fn index(&self, key: &Self) -> Result<Self, Untranslated> {
        if let Some(text) = key.as_text() {
            // `a["x"]` and `a.x` are the same, but a number as text selects an element of a list.
            if let (Some(items), Ok(at)) = (self.items(), text.parse::<usize>()) {
                return items.get(at).cloned().ok_or_else(|| format!("there is no element {at}"));
            }
            if self.entries().is_some() {
                return self.member(text);
            }
        }
        if let (Some(items), Some(at)) = (self.items(), key.as_constant().and_then(Json::as_u64)) {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            return items.get(at).cloned().ok_or_else(|| format!("there is no element {at}"));
        }
        Ok(Self::code(format!("{}[{}]", self.to_operand()?, key.to_code()?)))
    }

    /// Evaluates an expression that reads nothing.
    pub fn evaluated(code: &str) -> Option<Self> {
        struct Nothing;
        impl Scope for Nothing {
            fn object(&self, _: &Address) -> Option<Value> {
                None
            }
            fn namespace(&self) -> Value {
                Value::Null
            }
        }
        let (template, references, problems) =
            Template::parse_json(&Json::from(format!("${{{code}}}")), &Path::default(), &[]);
        if !references.is_empty() || !problems.is_empty() {
            return None;
        }
        template.evaluate(&Nothing).ok().map(|value| Self::Constant(value.to_json()))
    }
}

/// Adds the parts of a string. Strings in strings, and constants that follow each other, become one part.
fn join(parts: &[Cel], joined: &mut Vec<Cel>) {
    for part in parts {
        match (part, part.as_constant().and_then(text_of)) {
            (Cel::Text(inner), _) => join(inner, joined),
            (_, None) => joined.push(part.clone()),
            (_, Some(text)) => {
                let before = joined.last().and_then(Cel::as_text).map(str::to_owned);
                if before.is_some() {
                    joined.pop();
                }
                let whole = before.unwrap_or_default() + &text;
                if !whole.is_empty() {
                    joined.push(Cel::string(whole));
                }
            }
        }
    }
}

/// A value as a part of a string. `None`: it has no such form.
fn text_of(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}
