//! `spec.publish` of a Resource: the targets and the data of its copies of outputs.

use std::sync::Arc;

use super::Template;
use super::expression::{Scope, Variable, kind};
use model::data::StringData;
use model::kube_names::is_subdomain;
use model::{Address, DataKind, DataRef, Diagnostic, Diagnostics, InstanceKey, Map, Path, Reason, Value};

/// The hint for an invalid ConfigMap or Secret name.
pub(crate) const NAME_HINT: &str = "names consist of lowercase letters, digits, `-` and `.`";

#[derive(Clone, Debug)]
pub struct Publication {
    /// The published object. In the Resource of a family, its name may still contain an expression.
    pub target: DataRef,
    /// The expression of the name, if each instance of a family has a separate copy.
    pub name: Option<Template>,
    /// The published values by key.
    pub data: Template,
    /// The path of `data`: `spec.publish[0].data`.
    pub at: Path,
}

/// Returns the publications of one instance of a family, with evaluated names.
///
/// # Errors
/// A diagnostic, with its path and without address, for each invalid or duplicate name.
pub(crate) fn for_instance(shared: &Arc<[Publication]>, key: &InstanceKey) -> (Arc<[Publication]>, Diagnostics) {
    if shared.iter().all(|publication| publication.name.is_none()) {
        return (shared.clone(), Vec::new());
    }
    let mut publications: Vec<Publication> = Vec::with_capacity(shared.len());
    let mut problems = Vec::new();
    for publication in shared.iter() {
        match publication.with_name_for(key) {
            Ok(publication) if publications.iter().any(|other| other.target == publication.target) => {
                problems.push(duplicate_target(&publication.target, publication.name_path()));
            }
            Ok(publication) => publications.push(publication),
            Err(problem) => problems.push(*problem),
        }
    }
    (publications.into(), problems)
}

/// The error of a second entry for the same target.
pub(crate) fn duplicate_target(target: &DataRef, at: Path) -> Diagnostic {
    let problem = Diagnostic::general(Reason::InvalidManifest, format!("{target} is published twice")).at(at);
    problem.hint("put all keys in one entry")
}

impl Publication {
    /// The path of the target's name: `spec.publish[0].secretRef.name`.
    pub(crate) fn name_path(&self) -> Path {
        let mut entry = self.at.clone();
        entry.0.pop();
        entry.name(reference_field(self.target.kind)).name("name")
    }

    /// Evaluates the name for one instance.
    ///
    /// # Errors
    /// The name is invalid, or depends on more than the key of the instance.
    pub(crate) fn with_name_for(&self, key: &InstanceKey) -> Result<Self, Box<Diagnostic>> {
        let Some(template) = &self.name else { return Ok(self.clone()) };
        let value = template.evaluate(&KeyScope(key)).map_err(|mut problems| {
            let found = problems.pop().map(|problem| problem.at(self.name_path()));
            found.map_or_else(|| self.name_problem("the name has no value", ""), Box::new)
        })?;
        let name = match &value {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string().into(),
            Value::Unknown => return Err(Box::new(self.name_not_constant())),
            other => return Err(self.name_problem(format!("the name must be a string, not {}", kind(other)), "")),
        };
        let target = DataRef { kind: self.target.kind, name };
        if !is_subdomain(&target.name) {
            return Err(self.name_problem(invalid_name(&target), NAME_HINT));
        }
        Ok(Self { target, name: None, ..self.clone() })
    }

    fn name_problem(&self, what: impl Into<String>, hint: &str) -> Box<Diagnostic> {
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.name_path());
        Box::new(if hint.is_empty() { problem } else { problem.hint(hint) })
    }

    /// Checks that the name depends only on the key of the instance.
    pub(crate) fn check_name(&self, is_counted: bool) -> Option<Diagnostic> {
        let sample = if is_counted { InstanceKey::Index(0) } else { InstanceKey::Key("a".into()) };
        let value = self.name.as_ref()?.evaluate(&KeyScope(&sample)).ok()?;
        value.has_unknown().then(|| self.name_not_constant())
    }

    fn name_not_constant(&self) -> Diagnostic {
        let what = "the name depends on more than the instance key";
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.name_path());
        problem.hint("use `${each.key}` or `${count.index}`")
    }

    /// Returns the data of the copy. `None`: a value is not known yet.
    pub(crate) fn texts(&self, entries: &Map) -> Result<Option<StringData>, Box<Diagnostic>> {
        let mut texts = StringData::new();
        let mut known = true;
        for (key, value) in entries.iter() {
            if value.has_sensitive() && self.target.kind == DataKind::ConfigMap {
                let what = "a sensitive value cannot be published in a ConfigMap";
                let problem = Diagnostic::general(Reason::InvalidConfig, what).at(self.at.name(key.clone()));
                return Err(Box::new(problem.hint("publish it with `secretRef`")));
            }
            if value.has_unknown() {
                known = false;
                continue;
            }
            let text = match value.unmarked() {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                // Lists and maps become JSON.
                other => other.to_json_text().into(),
            };
            texts.insert(key.clone(), text);
        }
        Ok(known.then_some(texts))
    }
}

pub(crate) fn reference_field(kind: DataKind) -> &'static str {
    match kind {
        DataKind::ConfigMap => "configMapRef",
        DataKind::Secret => "secretRef",
    }
}

pub(crate) fn invalid_name(target: &DataRef) -> String {
    format!("`{}` is not a valid {} name", target.name, target.kind.as_str())
}

/// A scope with only the key of an instance. The target of a copy must be known before any object is created, and
/// `each.value` may depend on other objects.
struct KeyScope<'a>(&'a InstanceKey);

impl Scope for KeyScope<'_> {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Unknown
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match (variable, self.0) {
            (Variable::Count, InstanceKey::Index(index)) => {
                Some(Value::map([("index", Value::from(i64::try_from(*index).ok()?))]))
            }
            (Variable::Each, InstanceKey::Key(key)) => {
                Some(Value::map([("key", Value::String(key.clone())), ("value", Value::Unknown)]))
            }
            _ => None,
        }
    }
}
