//! `spec.publish` as a Resource has it: where the copies of outputs are, and what is in them.

use std::sync::Arc;

use super::Template;
use super::expression::{Scope, Variable, kind};
use crate::model::data::Texts;
use crate::model::{Address, DataKind, DataRef, Diagnostic, Diagnostics, InstanceKey, Map, Path, Reason, Value};

/// What names of ConfigMaps and Secrets look like.
pub(super) const NAME_HINT: &str = "names consist of lower-case letters, digits, `-` and `.`";

/// One entry of `spec.publish`.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Where the copy is. On a Resource as it was read the name is as it is written.
    pub target: DataRef,
    /// What the name is made of, when each instance of a family has a copy of its own.
    pub name: Option<Template>,
    /// What is in it, by key.
    pub data: Template,
    /// The place of `data`: `spec.publish[0].data`.
    pub at: Path,
}

/// What one instance of a family publishes, each copy under the name that is made for it.
///
/// # Errors
/// A diagnostic, with its place and without address, for everything that cannot be a name, or is one twice.
pub(super) fn of_instance(shared: &Arc<[Publication]>, key: &InstanceKey) -> (Arc<[Publication]>, Diagnostics) {
    if shared.iter().all(|publication| publication.name.is_none()) {
        return (shared.clone(), Vec::new());
    }
    let mut made: Vec<Publication> = Vec::with_capacity(shared.len());
    let mut problems = Vec::new();
    for publication in shared.iter() {
        match publication.named_for(key) {
            Ok(publication) if made.iter().any(|other| other.target == publication.target) => {
                problems.push(published_twice(&publication.target, publication.place()));
            }
            Ok(publication) => made.push(publication),
            Err(problem) => problems.push(*problem),
        }
    }
    (made.into(), problems)
}

/// The error of a second entry for one target.
pub(super) fn published_twice(target: &DataRef, at: Path) -> Diagnostic {
    let problem = Diagnostic::general(Reason::InvalidManifest, format!("{target} is published twice")).at(at);
    problem.hint("put all keys into one entry")
}

impl Publication {
    /// Where the name of the target stands: `spec.publish[0].secretRef.name`.
    pub(super) fn place(&self) -> Path {
        let mut entry = self.at.clone();
        entry.0.pop();
        entry.name(reference_field(self.target.kind)).name("name")
    }

    /// The same with the name that the copy of one instance has.
    ///
    /// # Errors
    /// The expression gives no name, or one that hangs on more than the instance's key.
    pub(super) fn named_for(&self, key: &InstanceKey) -> Result<Self, Box<Diagnostic>> {
        let Some(template) = &self.name else { return Ok(self.clone()) };
        let problem = |what: String, hint: &str| {
            let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.place());
            Box::new(if hint.is_empty() { problem } else { problem.hint(hint) })
        };
        let value = template.evaluate(&OwnKey(key)).map_err(|mut problems| {
            let found = problems.pop().map(|problem| problem.at(self.place()));
            found.map_or_else(|| problem("it has no value".to_owned(), ""), Box::new)
        })?;
        let name = match &value {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string().into(),
            Value::Unknown => return Err(Box::new(self.hangs_on_more())),
            other => return Err(problem(format!("it is {}, and must be a text", kind(other)), "")),
        };
        let target = DataRef { kind: self.target.kind, name };
        if !is_subdomain(&target.name) {
            return Err(problem(no_name(&target), NAME_HINT));
        }
        Ok(Self { target, name: None, ..self.clone() })
    }

    /// The error of a name that the key alone does not tell; `None` when it does.
    pub(super) fn check_name(&self, is_counted: bool) -> Option<Diagnostic> {
        let sample = if is_counted { InstanceKey::Index(0) } else { InstanceKey::Key("a".into()) };
        let value = self.name.as_ref()?.evaluate(&OwnKey(&sample)).ok()?;
        value.has_unknown().then(|| self.hangs_on_more())
    }

    fn hangs_on_more(&self) -> Diagnostic {
        let what = "it hangs on more than the key of the instance";
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.place());
        problem.hint("use `${each.key}` or `${count.index}`")
    }

    /// The texts of the copy; `None` while one of them is not known.
    pub(super) fn texts(&self, entries: &Map) -> Result<Option<Texts>, Box<Diagnostic>> {
        let mut texts = Texts::new();
        let mut known = true;
        for (key, value) in entries.iter() {
            if value.has_sensitive() && self.target.kind == DataKind::ConfigMap {
                let what = "a sensitive value cannot stand in a ConfigMap, which everybody may read";
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
                // Numbers and booleans as they are, lists and maps as JSON.
                other => other.to_json_text().into(),
            };
            texts.insert(key.clone(), text);
        }
        Ok(known.then_some(texts))
    }
}

/// The field that names the target.
pub(super) fn reference_field(kind: DataKind) -> &'static str {
    match kind {
        DataKind::ConfigMap => "configMapRef",
        DataKind::Secret => "secretRef",
    }
}

pub(super) fn no_name(target: &DataRef) -> String {
    format!("`{}` cannot be the name of a {}", target.name, target.kind.as_str())
}

/// Whether it is a DNS subdomain, as the API server demands of these names.
pub(super) fn is_subdomain(name: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// A scope that knows the key of an instance, and nothing else: where a copy is has to be known without anything having
/// been made. `each.value` may hang on other objects.
struct OwnKey<'a>(&'a InstanceKey);

impl Scope for OwnKey<'_> {
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
