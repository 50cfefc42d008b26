//! Variables of the root module become inputs, whose values are in a ConfigMap and a Secret.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::configuration::Configuration;
use super::translate::scalar;

/// The name of the ConfigMap and of the Secret.
const NAME: &str = "variables";

/// The variables that are inputs, with their values as text.
#[derive(Debug, Default)]
pub struct Variables {
    plain: BTreeMap<String, String>,
    sensitive: BTreeMap<String, String>,
}

impl Variables {
    pub fn new(configuration: Option<&Configuration>) -> Self {
        let mut found = Self::default();
        let Some(configuration) = configuration.filter(|configuration| configuration.has_expressions()) else {
            return found;
        };
        for (name, variable) in &configuration.root().variables {
            let Some(value) = configuration.values.get(name).or(variable.default.as_ref()) else { continue };
            if value.is_null() || (!variable.sensitive && scalar(variable, value).is_none()) {
                continue;
            }
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let place = if variable.sensitive { &mut found.sensitive } else { &mut found.plain };
            place.insert(name.clone(), text);
        }
        found
    }

    /// The names, which no other input can have.
    pub fn names(&self) -> BTreeSet<&String> {
        self.plain.keys().chain(self.sensitive.keys()).collect()
    }

    /// The inputs that a document reads.
    pub fn inputs(&self, document: &str) -> Vec<Json> {
        let entries = |names: &BTreeMap<String, String>, kind: &str| -> Vec<Json> {
            let used = names.keys().filter(|name| reads(document, name));
            used.map(|name| json!({"name": name, kind: {"name": NAME, "key": name}})).collect()
        };
        [entries(&self.plain, "configMapKeyRef"), entries(&self.sensitive, "secretKeyRef")].concat()
    }

    /// The ConfigMap with the variables that documents read, if there are any.
    pub fn config_map(&self, documents: &str) -> Option<Json> {
        let data = used(&self.plain, documents);
        let document = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data});
        (!data.is_empty()).then_some(document)
    }

    /// The Secret with the sensitive ones.
    pub fn secret(&self, documents: &str) -> Option<Json> {
        let data = used(&self.sensitive, documents);
        (!data.is_empty()).then(|| secret_document(NAME, &data))
    }
}

fn used(names: &BTreeMap<String, String>, documents: &str) -> BTreeMap<String, String> {
    names.iter().filter(|(name, _)| reads(documents, name)).map(|(name, text)| (name.clone(), text.clone())).collect()
}

pub fn secret_document(name: &str, data: &BTreeMap<String, String>) -> Json {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// Whether an expression reads an input.
pub fn reads(document: &str, name: &str) -> bool {
    let whole = format!("inputs.{name}");
    let ends = |at: usize| {
        let next = document[at + whole.len()..].chars().next();
        !next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
    };
    document.match_indices(&whole).any(|(at, _)| ends(at))
}
