//! `spec.inputs`: values from ConfigMaps and Secrets, by the names that expressions have for them.
//!
//! A declaration says where a value is; [`Inputs::resolve`] is told by its caller what stands there, and never reads
//! anything itself. What is missing is a problem of the inputs alone: it holds back a plan of the object, not its
//! destruction.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::intern::kept;
use super::suggest::closest;
use crate::model::data::{Texts, text_of};
use crate::model::unicode::normalized;
use crate::model::{Address, DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason, Value};

/// One entry of `spec.inputs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name: `inputs.NAME`.
    pub name: Arc<str>,
    /// Where it is.
    pub object: DataRef,
    /// Under which key.
    pub key: Arc<str>,
    /// It is null when it does not exist.
    pub optional: bool,
    /// Its position in the list.
    pub position: usize,
}

/// What is known of a `ConfigMap` or Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// It exists and holds this.
    Present(Arc<Texts>),
    /// It does not exist.
    Missing,
    /// It was not read yet.
    Unread,
    /// It cannot be read.
    Unreadable {
        /// `Forbidden`, or `OperationFailed`.
        reason: Reason,
        /// Why.
        why: String,
        /// The next step.
        hint: Option<String>,
    },
}

/// The inputs of an instance: which there are, and what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// What `spec.inputs` says.
    pub declared: Arc<[Input]>,
    /// `inputs` of expressions: a map of those that were found.
    pub(super) values: Value,
    /// Why the others are not there.
    pub problems: Diagnostics,
}

impl Inputs {
    /// The inputs of a declaration, none of them read yet.
    pub fn declared(declared: Vec<Input>) -> Self {
        Self { declared: kept(declared), ..Self::default() }
    }

    /// `inputs` of expressions: a map of those that were found.
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// The objects that are read.
    pub fn objects(&self) -> impl Iterator<Item = &DataRef> {
        self.declared.iter().map(|input| &input.object)
    }

    /// Whether any value that is read from the object differs between two forms of it.
    pub fn differ(&self, object: &DataRef, before: &Data, after: &Data) -> bool {
        let read = self.declared.iter().filter(|input| input.object == *object);
        read.into_iter().any(|input| input.value(before) != input.value(after))
    }

    /// The same inputs with their values, as `find` knows the objects.
    #[must_use]
    pub fn resolve(&self, address: &Address, find: &dyn Fn(&DataRef) -> Data) -> Self {
        let mut values = BTreeMap::new();
        let mut problems = Vec::new();
        for input in self.declared.iter() {
            match input.value(&find(&input.object)) {
                Ok(value) => drop(values.insert(input.name.clone(), value)),
                Err(problem) => problems.push(Diagnostic { address: Some(address.clone()), ..*problem }.at(input.at())),
            }
        }
        Self { declared: self.declared.clone(), values: Value::Map(values.into()), problems }
    }

    /// The same inputs as far as they can be told without a cluster: what was not found may be there, and is unknown.
    #[must_use]
    pub fn assumed(&self) -> Self {
        let unknown = |input: &Input| match input.object.kind {
            DataKind::ConfigMap => Value::Unknown,
            DataKind::Secret => Value::Unknown.into_sensitive(),
        };
        let value = |input: &Input| self.values.get(&input.name).cloned().unwrap_or_else(|| unknown(input));
        let values = Value::map(self.declared.iter().map(|input| (input.name.clone(), value(input))));
        Self { declared: self.declared.clone(), values, problems: Vec::new() }
    }
}

impl Input {
    fn at(&self) -> Path {
        Path::default().name("spec").name("inputs").index(self.position)
    }

    fn value(&self, data: &Data) -> Result<Value, Box<Diagnostic>> {
        let (object, key) = (&self.object, &self.key);
        let texts = match data {
            Data::Present(texts) => texts,
            Data::Missing if self.optional => return Ok(Value::Null),
            Data::Missing => return Err(Box::new(not_found(format!("there is no {object}")))),
            Data::Unread => {
                return Err(Box::new(Diagnostic::general(Reason::Waiting, format!("{object} is being read"))));
            }
            Data::Unreadable { reason, why, hint } => {
                let problem = Diagnostic::general(*reason, format!("{object} cannot be read")).because(why.clone());
                return Err(Box::new(Diagnostic { hint: hint.clone(), ..problem }));
            }
        };
        match texts.get(key) {
            Some(text) if object.kind == DataKind::Secret => Ok(Value::String(normalized(text)).into_sensitive()),
            Some(text) => Ok(Value::String(normalized(text))),
            None if self.optional => Ok(Value::Null),
            None => Err(Box::new(self.no_such_key(texts))),
        }
    }

    fn no_such_key(&self, texts: &Texts) -> Diagnostic {
        let problem = not_found(format!("{} has no key `{}`", self.object, self.key));
        match closest(&self.key, texts.keys().map(AsRef::as_ref)) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem,
        }
    }
}

fn not_found(what: String) -> Diagnostic {
    let hint = "create it, or set `optional: true`; the object goes on by itself then";
    Diagnostic::general(Reason::InputNotFound, what).hint(hint)
}

/// What a `ConfigMap` of a cluster holds.
pub fn texts_of_config_map(object: &ConfigMap) -> Texts {
    let data = object.data.iter().flatten().map(|(key, text)| (key.as_str().into(), text.as_str().into()));
    let binary = object.binary_data.iter().flatten().map(|(key, bytes)| (key.as_str().into(), text_of(&bytes.0)));
    data.chain(binary).collect()
}

/// What a Secret of a cluster holds.
pub fn texts_of_secret(object: &Secret) -> Texts {
    object.data.iter().flatten().map(|(key, bytes)| (key.as_str().into(), text_of(&bytes.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(kind: DataKind, key: &str, optional: bool) -> Input {
        let object = DataRef { kind, name: "site".into() };
        Input { name: "domain".into(), object, key: key.into(), optional, position: 0 }
    }

    fn value(input: &Input, data: &Data) -> Result<Value, String> {
        input.value(data).map_err(|problem| problem.message())
    }

    fn present() -> Data {
        Data::Present(Arc::new(BTreeMap::from([("domain".into(), "example.com".into())])))
    }

    #[test]
    fn the_value_of_a_secret_is_sensitive_and_that_of_a_config_map_is_not() {
        let text = Value::from("example.com");
        assert_eq!(value(&input(DataKind::ConfigMap, "domain", false), &present()), Ok(text.clone()));
        assert_eq!(value(&input(DataKind::Secret, "domain", false), &present()), Ok(text.into_sensitive()));
    }

    #[test]
    fn what_is_missing_is_named_unless_it_is_optional() {
        let told = |key, data: &Data| value(&input(DataKind::Secret, key, false), data).unwrap_err();
        let way = "(hint: create it, or set `optional: true`; the object goes on by itself then)";
        assert_eq!(told("domain", &Data::Missing), format!("there is no Secret `site` {way}"));
        assert_eq!(told("domian", &present()), "Secret `site` has no key `domian` (hint: did you mean `domain`?)");
        assert_eq!(told("user", &present()), format!("Secret `site` has no key `user` {way}"));
        for (key, data) in [("domain", Data::Missing), ("user", present())] {
            assert_eq!(value(&input(DataKind::Secret, key, true), &data), Ok(Value::Null));
        }
        let unreadable = Data::Unreadable { reason: Reason::Forbidden, why: "no".into(), hint: None };
        assert!(value(&input(DataKind::Secret, "domain", true), &unreadable).is_err(), "it may be there");
    }
}
