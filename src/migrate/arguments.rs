//! Arguments as a manifest has them: literals, references, and inputs for what must not be seen; and one set of them for
//! all instances of a family.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::model::{InstanceKey, Value};

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As it is.
    Literal(Json),
    /// A text with expressions, ready to be written.
    Template(String),
    /// An input; `true`: it holds JSON, not the text itself.
    Input(String, bool),
    /// A list.
    List(Vec<Piece>),
    /// A map.
    Map(BTreeMap<Arc<str>, Piece>),
}

/// A text in which nothing is an expression.
pub fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// A value in which no text is an expression.
pub fn escaped(value: &Json) -> Json {
    match value {
        Json::String(text) => Json::String(escape(text)),
        Json::Array(items) => items.iter().map(escaped).collect(),
        Json::Object(entries) => Json::Object(entries.iter().map(|(key, item)| (key.clone(), escaped(item))).collect()),
        other => other.clone(),
    }
}

impl Piece {
    /// As a manifest has it.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Literal(value) => escaped(value),
            Self::Template(text) => Json::String(text.clone()),
            Self::Input(..) => Json::String(format!("${{{}}}", self.to_expression().unwrap_or_default())),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => {
                Json::Object(entries.iter().map(|(key, item)| (key.to_string(), item.to_json())).collect())
            }
        }
    }

    /// As an expression; `None` when it holds a template.
    fn to_expression(&self) -> Option<String> {
        match self {
            Self::Literal(value) => Some(value.to_string()),
            Self::Template(_) => None,
            Self::Input(name, false) => Some(format!("inputs.{name}")),
            Self::Input(name, true) => Some(format!("json.unmarshal(inputs.{name})")),
            Self::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(Self::to_expression).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Self::Map(entries) => {
                let one = |(key, item): (&Arc<str>, &Self)| {
                    Some(format!("{}: {}", Json::from(key.as_ref()), item.to_expression()?))
                };
                let entries: Option<Vec<String>> = entries.iter().map(one).collect();
                Some(format!("{{{}}}", entries?.join(", ")))
            }
        }
    }

    /// Whether it is a literal through and through.
    fn is_literal(&self) -> bool {
        match self {
            Self::Literal(_) => true,
            Self::Template(_) | Self::Input(..) => false,
            Self::List(items) => items.iter().all(Self::is_literal),
            Self::Map(entries) => entries.values().all(Self::is_literal),
        }
    }
}

/// The arguments of one instance.
pub type Arguments = BTreeMap<Arc<str>, Piece>;

/// What a manifest says for all instances.
#[derive(Debug, Default, PartialEq)]
pub struct Shared {
    /// `spec.config`.
    pub config: Map<String, Json>,
    /// What `forEach` has for each key, when its instances differ in literals; empty otherwise.
    pub each: BTreeMap<Arc<str>, Map<String, Json>>,
    /// Arguments whose references were given up, since they differ from instance to instance.
    pub unfolded: Vec<Arc<str>>,
}

/// One set of arguments for all instances. `literal` gives an argument of an instance without its references.
pub fn shared(instances: &[(InstanceKey, Arguments)], literal: &dyn Fn(usize, &str) -> Piece) -> Shared {
    let mut shared = Shared::default();
    let mut names: Vec<&Arc<str>> = instances.iter().flat_map(|(_, arguments)| arguments.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let mut pieces: Vec<Piece> = instances
            .iter()
            .map(|(_, arguments)| arguments.get(name).cloned().unwrap_or(Piece::Literal(Json::Null)))
            .collect();
        if pieces.windows(2).any(|pair| pair[0] != pair[1])
            && pieces.iter().any(|piece| piece.to_expression().is_none())
        {
            shared.unfolded.push(name.clone());
            pieces = (0..instances.len()).map(|position| literal(position, name)).collect();
        }
        let written = fold(instances, name, &pieces, &mut shared.each);
        shared.config.insert(name.to_string(), written);
    }
    if !shared.each.is_empty() {
        // Every key of the map has every name, so that none is missing where it is read.
        let keys: Vec<Arc<str>> = instances.iter().filter_map(|(key, _)| key_text(key)).collect();
        for key in keys {
            shared.each.entry(key).or_default();
        }
    }
    shared
}

fn key_text(key: &InstanceKey) -> Option<Arc<str>> {
    match key {
        InstanceKey::Key(key) => Some(key.clone()),
        _ => None,
    }
}

fn fold(
    instances: &[(InstanceKey, Arguments)],
    name: &Arc<str>,
    pieces: &[Piece],
    each: &mut BTreeMap<Arc<str>, Map<String, Json>>,
) -> Json {
    let same = pieces.windows(2).all(|pair| pair[0] == pair[1]);
    if same {
        return pieces.first().map_or(Json::Null, Piece::to_json);
    }
    let is_key = |((key, _), piece): (&(InstanceKey, Arguments), &Piece)| match (key, piece) {
        (InstanceKey::Key(key), Piece::Literal(Json::String(text))) => **key == **text,
        (InstanceKey::Index(index), Piece::Literal(Json::Number(number))) => number.as_u64() == Some(*index),
        _ => false,
    };
    let keyed = matches!(instances.first(), Some((InstanceKey::Key(_), _)));
    if instances.iter().zip(pieces).all(is_key) {
        return Json::from(if keyed { "${each.key}" } else { "${count.index}" });
    }
    if keyed && pieces.iter().all(Piece::is_literal) {
        for ((key, _), piece) in instances.iter().zip(pieces) {
            let Some(key) = key_text(key) else { continue };
            each.entry(key).or_default().insert(name.to_string(), piece.to_json());
        }
        return Json::from(format!("${{each.value.{name}}}"));
    }
    // Templates were given up before.
    let texts = pieces.iter().map(|piece| piece.to_expression().unwrap_or_else(|| "null".to_owned()));
    if keyed {
        let keys = instances.iter().filter_map(|(key, _)| key_text(key));
        let pairs: Vec<String> =
            keys.zip(texts).map(|(key, text)| format!("{}: {text}", Json::from(key.as_ref()))).collect();
        return Json::from(format!("${{{{{}}}[each.key]}}", pairs.join(", ")));
    }
    // Where an instance is missing, its place is never read.
    let mut places: BTreeMap<u64, String> = BTreeMap::new();
    for ((key, _), text) in instances.iter().zip(texts) {
        if let InstanceKey::Index(index) = key {
            places.insert(*index, text);
        }
    }
    let last = places.keys().next_back().copied().unwrap_or(0);
    let all: Vec<String> = (0..=last).map(|index| places.remove(&index).unwrap_or_else(|| "null".to_owned())).collect();
    Json::from(format!("${{[{}][count.index]}}", all.join(", ")))
}

/// A value as it is written. `known` gives the text of an expression that stands for a value, wherever one does;
/// `secret` what stands for a sensitive value that nothing else stands for.
pub fn pieces(
    value: &Value,
    at: &str,
    known: &dyn Fn(&Value) -> Option<String>,
    secret: &mut dyn FnMut(&str, &Value) -> Piece,
) -> Piece {
    if let Some(text) = known(value) {
        return Piece::Template(text);
    }
    let below = |key: &str| format!("{at}_{key}");
    match value {
        Value::Sensitive(inner) => secret(at, inner),
        Value::List(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(place, item)| pieces(item, &below(&place.to_string()), known, secret)).collect();
            gathered(Piece::List(items), value)
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, item)| (key.clone(), pieces(item, &below(key), known, secret)));
            gathered(Piece::Map(entries.collect()), value)
        }
        other => Piece::Literal(other.to_json()),
    }
}

/// What is literal through and through is one literal.
fn gathered(piece: Piece, value: &Value) -> Piece {
    if piece.is_literal() { Piece::Literal(value.to_json()) } else { piece }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn family(keyed: bool, values: &[Piece]) -> Vec<(InstanceKey, Arguments)> {
        let key = |place: usize| match keyed {
            true => InstanceKey::Key(["a", "b", "c"][place].into()),
            false => InstanceKey::Index(place as u64),
        };
        values
            .iter()
            .enumerate()
            .map(|(i, piece)| (key(i), BTreeMap::from([(Arc::from("x"), piece.clone())])))
            .collect()
    }

    fn text(text: &str) -> Piece {
        Piece::Literal(json!(text))
    }

    #[test]
    fn what_is_the_same_is_written_once_and_what_differs_by_key() {
        let made = |keyed, values: &[Piece]| {
            let Shared { config, each, .. } = shared(&family(keyed, values), &|_, _| text("given up"));
            (config["x"].clone(), json!(each))
        };
        assert_eq!(made(true, &[text("${x}"), text("${x}")]), (json!("$${x}"), json!({})));
        assert_eq!(made(true, &[text("a"), text("b")]), (json!("${each.key}"), json!({})));
        assert_eq!(
            made(false, &[Piece::Literal(json!(0)), Piece::Literal(json!(1))]),
            (json!("${count.index}"), json!({}))
        );
        let each = json!({"a": {"x": "q\""}, "b": {"x": null}});
        assert_eq!(made(true, &[text("q\""), Piece::Literal(Json::Null)]), (json!("${each.value.x}"), each));
        assert_eq!(made(false, &[text("q\""), text("r")]), (json!("${[\"q\\\"\", \"r\"][count.index]}"), json!({})));
        let inputs = [Piece::Input("x_a".into(), false), Piece::Input("x_b".into(), true)];
        let chosen = "${{\"a\": inputs.x_a, \"b\": json.unmarshal(inputs.x_b)}[each.key]}";
        assert_eq!(made(true, &inputs), (json!(chosen), json!({})));
        let templates = [Piece::Template("${p.id}".into()), Piece::Template("${q.id}".into())];
        assert_eq!(made(true, &templates).0, json!("given up"));
        assert_eq!(made(true, &[templates[0].clone(), templates[0].clone()]).0, json!("${p.id}"));
    }

    #[test]
    fn secrets_inside_of_a_value_are_found() {
        let value = Value::map([("list", Value::list([Value::from("a"), Value::from("s").into_sensitive()]))]);
        let mut found = Vec::new();
        let piece = pieces(&value, "v", &|_| None, &mut |at, secret| {
            found.push((at.to_owned(), secret.clone()));
            Piece::Input(at.to_owned(), false)
        });
        assert_eq!(found, [("v_list_1".to_owned(), Value::from("s"))]);
        assert_eq!(piece.to_json(), json!({"list": ["a", "${inputs.v_list_1}"]}));
    }
}
