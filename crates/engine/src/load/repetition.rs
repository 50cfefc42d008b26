//! `count`, `forEach` and `enabled`: which instances a Resource has.
//!
//! The planner decides when an expression can be evaluated, because it may depend on the results of the plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::expression::{Scope, kind};
use super::{FamilyImport, Reference, Template};
use model::{Diagnostic, Diagnostics, InstanceKey, Number, Path, Reason, Value};

/// The limit protects a cluster from a mistyped number.
pub const MAX_INSTANCES: usize = 10_000;

/// The longest key of a `forEach`: as long as the longest name in Kubernetes.
const MAX_KEY_BYTES: usize = 253;

/// `count`, `forEach` and `enabled` of a Resource, and what its instances import.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// `None`: the Resource has one instance without a key.
    pub repeat: Option<Repeat>,
    /// `enabled`. `None`: the Resource is enabled.
    pub enabled: Option<Template>,
    /// `import`, if each instance imports its own object.
    pub import: Option<FamilyImport>,
    /// The references of all its expressions.
    pub references: Arc<[Reference]>,
}

#[derive(Clone, Debug)]
pub enum Repeat {
    /// The number of instances. Their keys are 0, 1, ...
    Count(Template),
    /// One instance for each key of a map, or for each string of a list.
    ForEach(Template),
}

/// The keys of the instances of a Resource.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum InstanceKeys {
    /// `enabled` is false.
    Disabled,
    /// One instance without a key.
    One,
    /// The number of instances, with keys from 0.
    Count(u64),
    /// The value of each key. It may contain unknown values.
    Keys(BTreeMap<Arc<str>, Value>),
}

/// The result of evaluating a [`Repetition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepetitionResult {
    Instances(InstanceKeys),
    /// The field whose value is known only after an apply.
    Unknown(Path),
}

impl InstanceKeys {
    /// Iterates over the keys in order.
    pub fn keys(&self) -> Box<dyn Iterator<Item = InstanceKey> + '_> {
        match self {
            Self::Disabled => Box::new(std::iter::empty()),
            Self::One => Box::new(std::iter::once(InstanceKey::None)),
            Self::Count(count) => Box::new((0..*count).map(InstanceKey::Index)),
            Self::Keys(keys) => Box::new(keys.keys().cloned().map(InstanceKey::Key)),
        }
    }
}

impl Repetition {
    /// Evaluates the repetition in the scope of the Resource ([`super::InstanceScope`]). An error names its field and
    /// has no address.
    ///
    /// # Errors
    /// An expression failed, or its value is not a valid count, key set or boolean.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<RepetitionResult, Diagnostics> {
        if let Some(enabled) = &self.enabled {
            let at = spec("enabled");
            let value = enabled.evaluate(scope).map_err(|problems| prefix_paths(problems, &at))?;
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(RepetitionResult::Instances(InstanceKeys::Disabled)),
                Value::Unknown => return Ok(RepetitionResult::Unknown(at)),
                Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                other => {
                    let what = format!("must be true or false, not {}", kind(&other));
                    return Err(vec![invalid(at, what, "use a comparison, such as `${a == b}`")]);
                }
            }
        }
        let (template, at) = match &self.repeat {
            None => return Ok(RepetitionResult::Instances(InstanceKeys::One)),
            Some(Repeat::Count(template)) => (template, spec("count")),
            Some(Repeat::ForEach(template)) => (template, spec("forEach")),
        };
        let value = template.evaluate(scope).map_err(|problems| prefix_paths(problems, &at))?;
        if matches!(value.unmarked(), Value::Unknown) {
            return Ok(RepetitionResult::Unknown(at));
        }
        match &self.repeat {
            Some(Repeat::Count(_)) => {
                count(&value, at).map(|count| RepetitionResult::Instances(InstanceKeys::Count(count)))
            }
            _ => keys(&value, at),
        }
    }

    /// Whether it contains no expressions.
    pub(crate) fn is_literal(&self) -> bool {
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
        let what = format!("must be a whole number, not {found}");
        let hint = match value {
            Value::String(_) => "write an expression as `${...}`",
            Value::Number(_) => "round it: `int(x)`",
            _ => "write 0 for no objects",
        };
        return Err(vec![invalid(at, what, hint)]);
    };
    let Ok(count) = u64::try_from(number) else {
        return Err(vec![invalid(at, format!("must not be negative, but is {number}"), "write 0 for no objects")]);
    };
    match usize::try_from(count) {
        Ok(count) if count <= MAX_INSTANCES => Ok(count as u64),
        _ => Err(vec![too_many(at, count)]),
    }
}

fn keys(value: &Value, at: Path) -> Result<RepetitionResult, Diagnostics> {
    let mut keys = BTreeMap::new();
    match value {
        Value::Map(map) => keys.extend(map.iter().map(|(key, value)| (key.clone(), value.clone()))),
        Value::List(items) => {
            for item in items.iter() {
                let key = match item {
                    Value::String(key) => key,
                    Value::Unknown => return Ok(RepetitionResult::Unknown(at)),
                    Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                    other => {
                        let what = format!("the list must contain only strings, but contains {}", kind(other));
                        return Err(vec![invalid(at, what, "convert the items to strings, or use a map")]);
                    }
                };
                if keys.insert(key.clone(), item.clone()).is_some() {
                    let what = format!("duplicate key `{key}` in the list");
                    return Err(vec![invalid(at, what, "`distinct()` removes duplicates")]);
                }
            }
        }
        Value::Sensitive(_) => return Err(vec![sensitive(at)]),
        other => {
            let what = format!("must be a map or a list of strings, not {}", kind(other));
            let hint = match other {
                Value::String(_) => "write an expression as `${...}`",
                _ => "write `{}` for no objects",
            };
            return Err(vec![invalid(at, what, hint)]);
        }
    }
    if keys.len() > MAX_INSTANCES {
        return Err(vec![too_many(at, keys.len() as u64)]);
    }
    let invalid_key =
        keys.keys().find(|key| key.is_empty() || key.len() > MAX_KEY_BYTES || key.chars().any(char::is_control));
    if let Some(key) = invalid_key {
        let hint = format!("a key has 1 to {MAX_KEY_BYTES} bytes and no control characters");
        return Err(vec![invalid(at, format!("{} is not a valid key", serde_json::Value::from(key.as_ref())), &hint)]);
    }
    Ok(RepetitionResult::Instances(InstanceKeys::Keys(keys)))
}

fn invalid(at: Path, what: impl Into<String>, hint: &str) -> Diagnostic {
    Diagnostic::general(Reason::InvalidRepetition, what).at(at).hint(hint)
}

fn sensitive(at: Path) -> Diagnostic {
    invalid(
        at,
        "a sensitive value cannot determine which objects exist",
        "the keys and the number of objects are shown unmasked",
    )
}

fn too_many(at: Path, count: u64) -> Diagnostic {
    invalid(
        at,
        format!("{count} objects exceed the limit of {MAX_INSTANCES} for one Resource"),
        "split them into several Resources",
    )
}

fn spec(field: &'static str) -> Path {
    Path::default().name("spec").name(field)
}

/// Prefixes the path of each problem with the field of the expression.
fn prefix_paths(problems: Diagnostics, at: &Path) -> Diagnostics {
    problems.into_iter().map(|problem| problem.below(at)).collect()
}
