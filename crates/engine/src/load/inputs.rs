//! `spec.inputs`: values from ConfigMaps and Secrets that expressions read by name.
//!
//! [`Inputs::resolve`] does no I/O: its caller supplies the content of the objects. A missing input blocks planning the
//! object, but not destroying it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::intern::shared_slice;
use model::data::{StringData, string_from_bytes};
use model::suggest::closest;
use model::unicode::to_nfc;
use model::{Address, DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason, Value};

/// One entry of `spec.inputs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name in expressions: `inputs.NAME`.
    pub name: Arc<str>,
    pub object: DataRef,
    pub key: Arc<str>,
    /// A missing object or key gives null instead of an error.
    pub optional: bool,
    /// The position in `spec.inputs`.
    pub position: usize,
}

/// The content of a `ConfigMap` or Secret, or why it is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataLookup {
    Present(Arc<StringData>),
    Missing,
    /// It has not been read yet.
    Unread,
    Unreadable {
        /// `Forbidden` or `OperationFailed`.
        reason: Reason,
        why: String,
        hint: Option<String>,
    },
}

/// The inputs of an instance: their declarations and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    pub declared: Arc<[Input]>,
    /// The value of `inputs` in expressions: a map of the inputs that were found.
    pub(crate) values: Value,
    /// One problem for each input that was not found.
    pub problems: Diagnostics,
}

impl Inputs {
    /// Creates inputs without values.
    pub fn declared(declared: Vec<Input>) -> Self {
        Self { declared: shared_slice(declared), ..Self::default() }
    }

    /// The value of `inputs` in expressions: a map of the inputs that were found.
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// Returns the problem of an input, or the first problem of any input.
    pub fn problem(&self, name: Option<&str>) -> Option<&Diagnostic> {
        self.problems.iter().find(|problem| {
            self.declared
                .iter()
                .filter(|input| name.is_none_or(|name| *input.name == *name))
                .any(|input| problem.path == Some(input.at()))
        })
    }

    pub fn objects(&self) -> impl Iterator<Item = &DataRef> {
        self.declared.iter().map(|input| &input.object)
    }

    /// Whether the value of any input from `object` differs between `before` and `after`.
    pub fn differ(&self, object: &DataRef, before: &DataLookup, after: &DataLookup) -> bool {
        let read = self.declared.iter().filter(|input| input.object == *object);
        read.into_iter().any(|input| input.value(before) != input.value(after))
    }

    /// Returns the inputs with the values that `find` returns. `address`: the object that the problems are about; `None` for a
    /// `ProviderConfig`.
    #[must_use]
    pub fn resolve(&self, address: Option<&Address>, find: &dyn Fn(&DataRef) -> DataLookup) -> Self {
        let mut values = BTreeMap::new();
        let mut problems = Vec::new();
        for input in self.declared.iter() {
            match input.value(&find(&input.object)) {
                Ok(value) => drop(values.insert(input.name.clone(), value)),
                Err(problem) => problems.push(Diagnostic { address: address.cloned(), ..*problem }.at(input.at())),
            }
        }
        Self { declared: self.declared.clone(), values: Value::Map(values.into()), problems }
    }

    /// Returns the inputs for use without a cluster: an input that was not found is unknown.
    #[must_use]
    pub fn with_unknown_values(&self) -> Self {
        let values = self.declared.iter().map(|input| {
            let value = match (self.values.get(&input.name), input.object.kind) {
                (Some(value), _) => value.clone(),
                (None, DataKind::ConfigMap) => Value::Unknown,
                (None, DataKind::Secret) => Value::Unknown.into_sensitive(),
            };
            (input.name.clone(), value)
        });
        Self { declared: self.declared.clone(), values: Value::map(values), problems: Vec::new() }
    }
}

impl Input {
    fn at(&self) -> Path {
        Path::default().name("spec").name("inputs").index(self.position)
    }

    fn value(&self, data: &DataLookup) -> Result<Value, Box<Diagnostic>> {
        let (object, key) = (&self.object, &self.key);
        let texts = match data {
            DataLookup::Present(texts) => texts,
            DataLookup::Missing if self.optional => return Ok(Value::Null),
            DataLookup::Missing => return Err(Box::new(not_found(format!("there is no {object}")))),
            DataLookup::Unread => {
                return Err(Box::new(Diagnostic::general(Reason::Waiting, format!("{object} is being read"))));
            }
            DataLookup::Unreadable { reason, why, hint } => {
                let problem = Diagnostic::general(*reason, format!("{object} cannot be read")).because(why.clone());
                return Err(Box::new(Diagnostic { hint: hint.clone(), ..problem }));
            }
        };
        match texts.get(key) {
            Some(text) if object.kind == DataKind::Secret => Ok(Value::String(to_nfc(text)).into_sensitive()),
            Some(text) => Ok(Value::String(to_nfc(text))),
            None if self.optional => Ok(Value::Null),
            None => Err(Box::new(self.no_such_key(texts))),
        }
    }

    fn no_such_key(&self, texts: &StringData) -> Diagnostic {
        let problem = not_found(format!("{} has no key `{}`", self.object, self.key));
        match closest(&self.key, texts.keys().map(AsRef::as_ref)) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem,
        }
    }
}

fn not_found(what: String) -> Diagnostic {
    let hint = "create it, or set `optional: true`; on files, its manifest must be in the files of -f";
    Diagnostic::general(Reason::InputNotFound, what).hint(hint)
}

pub fn config_map_data(object: &ConfigMap) -> StringData {
    let data = object.data.iter().flatten().map(|(key, text)| (key.as_str().into(), text.as_str().into()));
    let binary =
        object.binary_data.iter().flatten().map(|(key, bytes)| (key.as_str().into(), string_from_bytes(&bytes.0)));
    data.chain(binary).collect()
}

pub fn secret_data(object: &Secret) -> StringData {
    object.data.iter().flatten().map(|(key, bytes)| (key.as_str().into(), string_from_bytes(&bytes.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(kind: DataKind, key: &str, optional: bool) -> Input {
        let object = DataRef { kind, name: "site".into() };
        Input { name: "domain".into(), object, key: key.into(), optional, position: 0 }
    }

    fn value(input: &Input, data: &DataLookup) -> Result<Value, String> {
        input.value(data).map_err(|problem| problem.message())
    }

    fn present() -> DataLookup {
        DataLookup::Present(Arc::new(BTreeMap::from([("domain".into(), "example.com".into())])))
    }

    #[test]
    fn only_secret_values_are_sensitive() {
        let text = Value::from("example.com");
        assert_eq!(value(&input(DataKind::ConfigMap, "domain", false), &present()), Ok(text.clone()));
        assert_eq!(value(&input(DataKind::Secret, "domain", false), &present()), Ok(text.into_sensitive()));
    }

    #[test]
    fn a_missing_input_is_an_error_unless_it_is_optional() {
        let message = |key, data: &DataLookup| value(&input(DataKind::Secret, key, false), data).unwrap_err();
        let hint = "(hint: create it, or set `optional: true`; on files, its manifest must be in the files of -f)";
        assert_eq!(message("domain", &DataLookup::Missing), format!("there is no Secret `site` {hint}"));
        assert_eq!(message("domian", &present()), "Secret `site` has no key `domian` (hint: did you mean `domain`?)");
        assert_eq!(message("user", &present()), format!("Secret `site` has no key `user` {hint}"));
        for (key, data) in [("domain", DataLookup::Missing), ("user", present())] {
            assert_eq!(value(&input(DataKind::Secret, key, true), &data), Ok(Value::Null));
        }
        let unreadable = DataLookup::Unreadable { reason: Reason::Forbidden, why: "no".into(), hint: None };
        assert!(value(&input(DataKind::Secret, "domain", true), &unreadable).is_err(), "it may be there");
    }
}
