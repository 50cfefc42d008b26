//! `count`, `forEach`, `enabled`: how many objects a Resource stands for.
//!
//! Takes what a Resource says and a scope; gives the keys of the instances. It does not decide when an expression can be
//! evaluated: that is the planner's, since it may hang on what a plan does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::expression::{Scope, kind};
use super::{Reference, Template};
use crate::model::{Diagnostic, Diagnostics, InstanceKey, Number, Path, Reason, Value};

/// The most instances of one Resource: far more than anybody has reviewed, and few enough that a mistyped number does
/// not fill a cluster.
pub const MOST_INSTANCES: usize = 10_000;

/// The longest key of a `forEach`, in bytes: as long as the longest name in Kubernetes.
const LONGEST_KEY: usize = 253;

/// How many objects a Resource stands for, as it is written.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// `count` or `forEach`; `None`: one object without a key.
    pub repeat: Option<Repeat>,
    /// `enabled` or `enabledWhen`; `None`: it is enabled.
    pub enabled: Option<Template>,
    /// What these refer to.
    pub references: Arc<[Reference]>,
}

/// `count` or `forEach`.
#[derive(Clone, Debug)]
pub enum Repeat {
    /// So many, with the keys 0, 1, ...
    Count(Template),
    /// One for each key of a map, or for each text of a list.
    ForEach(Template),
}

/// The instances of a Resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// None: `enabled` is false.
    Disabled,
    /// The one without a key.
    One,
    /// So many, numbered from 0.
    Count(u64),
    /// These keys, each with its value, which may hold unknown places.
    Keys(BTreeMap<Arc<str>, Value>),
}

/// What became of evaluating a [`Repetition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// The instances.
    Members(Members),
    /// Not known before something was applied: the field.
    Unknown(Path),
}

impl Members {
    /// The keys, in order.
    pub fn keys(&self) -> Box<dyn Iterator<Item = InstanceKey> + '_> {
        match self {
            Self::Disabled => Box::new(std::iter::empty()),
            Self::One => Box::new(std::iter::once(InstanceKey::None)),
            Self::Count(count) => Box::new((0..*count).map(InstanceKey::Index)),
            Self::Keys(keys) => Box::new(keys.keys().cloned().map(InstanceKey::Key)),
        }
    }

    /// Whether both have the same keys, whatever the values are.
    pub fn same_keys(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keys(a), Self::Keys(b)) => a.keys().eq(b.keys()),
            (a, b) => a == b,
        }
    }
}

impl Repetition {
    /// Which instances there are, in the scope of the Resource itself ([`super::Own`]). An error names its field and no
    /// address.
    ///
    /// # Errors
    /// An expression failed, or gave what says nothing about instances.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Made, Diagnostics> {
        if let Some(enabled) = &self.enabled {
            let field = if enabled.as_literal().is_some() { "enabled" } else { "enabledWhen" };
            let at = spec(field);
            let value = enabled.evaluate(scope).map_err(|problems| placed(problems, &at))?;
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(Made::Members(Members::Disabled)),
                Value::Unknown => return Ok(Made::Unknown(at)),
                Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                other => {
                    let what = format!("it is {}, and must be true or false", kind(&other));
                    return Err(vec![wrong(at, what, "compare it: `${a == b}`")]);
                }
            }
        }
        let (template, at) = match &self.repeat {
            None => return Ok(Made::Members(Members::One)),
            Some(Repeat::Count(template)) => (template, spec("count")),
            Some(Repeat::ForEach(template)) => (template, spec("forEach")),
        };
        let value = template.evaluate(scope).map_err(|problems| placed(problems, &at))?;
        if matches!(value.unmarked(), Value::Unknown) {
            return Ok(Made::Unknown(at));
        }
        match &self.repeat {
            Some(Repeat::Count(_)) => count(&value, at).map(|count| Made::Members(Members::Count(count))),
            _ => keys(&value, at),
        }
    }

    /// Whether nothing has to be evaluated.
    pub(super) fn is_literal(&self) -> bool {
        let repeat = self.repeat.as_ref().map(|(Repeat::Count(template) | Repeat::ForEach(template))| template);
        self.enabled.iter().chain(repeat).all(|template| template.as_literal().is_some())
    }
}

fn count(value: &Value, at: Path) -> Result<u64, Diagnostics> {
    if matches!(value, Value::Sensitive(_)) {
        return Err(vec![sensitive(at)]);
    }
    let number = match value {
        Value::Number(Number::Int(number)) => Some(*number),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        let found = match value {
            Value::Number(number) => number.to_string(),
            other => kind(other).to_owned(),
        };
        let what = format!("it is {found}, and must be a whole number");
        let hint = match value {
            Value::String(_) => "an expression is written as `${...}`",
            _ => "for no object at all write 0",
        };
        return Err(vec![wrong(at, what, hint)]);
    };
    let Ok(count) = u64::try_from(number) else {
        return Err(vec![wrong(at, format!("it is {number}, and cannot be negative"), "for no object at all write 0")]);
    };
    match usize::try_from(count) {
        Ok(count) if count <= MOST_INSTANCES => Ok(count as u64),
        _ => Err(vec![too_many(at, count)]),
    }
}

fn keys(value: &Value, at: Path) -> Result<Made, Diagnostics> {
    let mut keys = BTreeMap::new();
    match value {
        Value::Map(map) => keys.extend(map.iter().map(|(key, value)| (key.clone(), value.clone()))),
        Value::List(items) => {
            for item in items.iter() {
                let key = match item {
                    Value::String(key) => key,
                    Value::Unknown => return Ok(Made::Unknown(at)),
                    Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                    other => {
                        let what = format!("the list holds {}, and must hold texts", kind(other));
                        return Err(vec![wrong(at, what, "or give a map, whose values `each.value` tells")]);
                    }
                };
                if keys.insert(key.clone(), item.clone()).is_some() {
                    let what = format!("the key `{key}` is in the list twice");
                    return Err(vec![wrong(at, what, "`distinct()` leaves each once")]);
                }
            }
        }
        Value::Sensitive(_) => return Err(vec![sensitive(at)]),
        other => {
            let what = format!("it is {}, and must be a map or a list of texts", kind(other));
            let hint = match other {
                Value::String(_) => "an expression is written as `${...}`",
                _ => "for no object at all write `{}`",
            };
            return Err(vec![wrong(at, what, hint)]);
        }
    }
    if keys.len() > MOST_INSTANCES {
        return Err(vec![too_many(at, keys.len() as u64)]);
    }
    let unfit = |key: &&Arc<str>| key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control);
    if let Some(key) = keys.keys().find(unfit) {
        let hint = format!("keys have 1 to {LONGEST_KEY} bytes, none of them control characters");
        return Err(vec![wrong(at, format!("{} cannot be a key", serde_json::Value::from(key.as_ref())), &hint)]);
    }
    Ok(Made::Members(Members::Keys(keys)))
}

fn wrong(at: Path, what: impl Into<String>, hint: &str) -> Diagnostic {
    Diagnostic::general(Reason::InvalidRepetition, what).at(at).hint(hint)
}

fn sensitive(at: Path) -> Diagnostic {
    wrong(
        at,
        "a sensitive value cannot tell which objects there are",
        "keys and numbers of objects are shown everywhere",
    )
}

fn too_many(at: Path, count: u64) -> Diagnostic {
    wrong(
        at,
        format!("{count} objects are more than the {MOST_INSTANCES} that one Resource may stand for"),
        "use several Resources",
    )
}

fn spec(field: &'static str) -> Path {
    Path::default().name("spec").name(field)
}

/// Problems of an expression, with the field that it stands in.
fn placed(problems: Diagnostics, at: &Path) -> Diagnostics {
    let below = |problem: Diagnostic| {
        let mut path = at.clone();
        path.0.extend(problem.path.iter().flat_map(|path| path.0.iter().cloned()));
        problem.at(path)
    };
    problems.into_iter().map(below).collect()
}
