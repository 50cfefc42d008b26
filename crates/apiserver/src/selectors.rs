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
        self.labels.iter().all(|term| term.fits(labels))
            && self.fields.iter().all(|(path, equal, value)| {
                let field = path.iter().fold(object, |here, part| &here[part.as_str()]);
                (field.as_str().unwrap_or_default() == value) == *equal
            })
    }
}

impl Term {
    fn fits(&self, labels: &Value) -> bool {
        let (Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::Absent(key)) = self;
        let label = labels.get(key).and_then(Value::as_str);
        match self {
            Self::In(_, values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            Self::NotIn(_, values) => label.is_none_or(|label| values.iter().all(|value| value != label)),
            Self::Exists(_) => label.is_some(),
            Self::Absent(_) => label.is_none(),
        }
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
    if let Some((before, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values = values.split(',').map(trimmed).collect();
        let before = before.trim();
        return match before.strip_suffix(" notin") {
            Some(key) => Some(Term::NotIn(trimmed(key), values)),
            None => before.strip_suffix(" in").map(|key| Term::In(trimmed(key), values)),
        };
    }
    Some(if let Some((key, value)) = text.split_once("!=") {
        Term::NotIn(trimmed(key), vec![trimmed(value)])
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        Term::In(trimmed(key), vec![trimmed(value)])
    } else if let Some(key) = text.strip_prefix('!') {
        Term::Absent(trimmed(key))
    } else {
        Term::Exists(text.to_owned())
    })
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}
