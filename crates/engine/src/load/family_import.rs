//! `spec.import` of a family: each instance imports its own object.

use super::Template;
use super::expression::{Scope, Variable, kind};
use model::{Address, Diagnostic, ImportRequest, Path, Reason, Value};

/// `import.id` or `import.identity` with the key of an instance.
#[derive(Clone, Debug)]
pub struct FamilyImport {
    pub template: Template,
    /// The template is an identity, and not an id.
    pub is_identity: bool,
}

impl FamilyImport {
    pub fn path(&self) -> Path {
        Path::of(&["spec", "import", if self.is_identity { "identity" } else { "id" }])
    }

    /// Returns what an instance with these values of `count` and `each` imports. `None`: the value is null, so its object
    /// is created.
    ///
    /// # Errors
    /// The value is not an id or an identity, or depends on more than the `forEach` entry of the instance.
    pub fn of(&self, count: Option<Value>, each: Option<Value>) -> Result<Option<ImportRequest>, Box<Diagnostic>> {
        let value = self.template.evaluate(&EntryScope { count, each }).map_err(|mut problems| {
            let found = problems.pop().map(|problem| problem.at(self.path()));
            found.map_or_else(|| self.problem("the expression has no value", ""), Box::new)
        })?;
        if value.has_unknown() {
            let what = "the object to import must be known before the plan, but depends on other objects";
            return Err(self.problem(what, "use `${each.key}`, `${count.index}`, or a literal `${each.value}`"));
        }
        if value.has_sensitive() {
            let what = "the object to import must not depend on a sensitive value, because plans show it";
            return Err(self.problem(what, ""));
        }
        match (value, self.is_identity) {
            (Value::Null, _) => Ok(None),
            (Value::String(id), false) if !id.is_empty() => Ok(Some(ImportRequest::Id(id))),
            (Value::Number(id), false) => Ok(Some(ImportRequest::Id(id.to_string().into()))),
            (Value::Map(identity), true) if !identity.is_empty() => {
                Ok(Some(ImportRequest::Identity(Value::Map(identity))))
            }
            (Value::String(_), false) => {
                Err(self.problem("the id must not be empty", "return null to create the object of an instance"))
            }
            (value, false) => Err(self.problem(format!("the id must be a string, not {}", kind(&value)), "")),
            (value, true) => Err(self.problem(format!("the identity must be a map, not {}", kind(&value)), "")),
        }
    }

    fn problem(&self, what: impl Into<String>, hint: &str) -> Box<Diagnostic> {
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.path());
        Box::new(if hint.is_empty() { problem } else { problem.hint(hint) })
    }
}

/// A scope with only the entry of an instance.
struct EntryScope {
    count: Option<Value>,
    each: Option<Value>,
}

impl Scope for EntryScope {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Unknown
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::Count => self.count.clone(),
            Variable::Each => self.each.clone(),
            _ => None,
        }
    }
}
