//! Label selectors and field selectors.

use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Refusal;

#[derive(Clone, Debug, Default)]
pub struct Selectors {
    labels: Vec<Term>,
    /// Path, whether it must be equal, and the value.
    fields: Vec<(Vec<String>, bool, String)>,
}

#[derive(Clone, Debug)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selectors {
    pub fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let labels = split_terms(labels).into_iter().map(term).collect::<Option<_>>();
        let labels = labels.ok_or_else(|| Refusal::bad_request("unable to parse requirement"))?;
        let mut parsed = Vec::new();
        for field in fields.split(',').filter(|field| !field.is_empty()) {
            let (path, equal, value) = if let Some((path, value)) = field.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = field.split_once("==").or_else(|| field.split_once('=')) {
                (path, true, value)
            } else {
                return Err(Refusal::bad_request(format!("invalid field selector: {field}")));
            };
            if !has_field(kind, path) {
                let known = r#"only "metadata.name", "metadata.namespace""#;
                return Err(Refusal::bad_request(format!("\"{path}\" is not a known field selector: {known}")));
            }
            parsed.push((path.split('.').map(str::to_owned).collect(), equal, value.to_owned()));
        }
        Ok(Self { labels, fields: parsed })
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn fit(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let labels_fit = self.labels.iter().all(|term| match term {
            Term::In(key, values) => label(key).is_some_and(|value| values.iter().any(|other| other == value)),
            Term::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|other| other != value)),
            Term::Exists(key) => label(key).is_some(),
            Term::Absent(key) => label(key).is_none(),
        });
        labels_fit
            && self.fields.iter().all(|(path, equal, value)| {
                let found = path.iter().fold(object, |here, part| &here[part.as_str()]);
                (found.as_str().unwrap_or_default() == value) == *equal
            })
    }
}

fn has_field(kind: &Kind, field: &str) -> bool {
    let more: &[&str] = match (&*kind.group, &*kind.plural) {
        ("", "secrets") => &["type"],
        ("", "pods") => &["status.phase", "spec.nodeName", "spec.serviceAccountName", "spec.restartPolicy"],
        ("", "namespaces") => &["status.phase"],
        _ => &[],
    };
    field == "metadata.name" || (kind.namespaced && field == "metadata.namespace") || more.contains(&field)
}

/// Splits at commas outside parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.retain(|term| !term.trim().is_empty());
    terms
}

fn term(text: &str) -> Option<Term> {
    let text = text.trim();
    let key = |key: &str| key.trim().to_owned();
    if let Some((before, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let before = before.trim();
        return match before.strip_suffix(" notin") {
            Some(name) => Some(Term::NotIn(key(name), values)),
            None => before.strip_suffix(" in").map(|name| Term::In(key(name), values)),
        };
    }
    Some(if let Some((name, value)) = text.split_once("!=") {
        Term::NotIn(key(name), vec![key(value)])
    } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        Term::In(key(name), vec![key(value)])
    } else if let Some(name) = text.strip_prefix('!') {
        Term::Absent(key(name))
    } else {
        Term::Exists(key(text))
    })
}
