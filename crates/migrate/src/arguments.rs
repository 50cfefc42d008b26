//! The arguments in manifests: literals, references and inputs for sensitive values. The arguments of a family's
//! instances are merged into one set.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use model::{InstanceKey, Value};

/// A value in a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    Literal(Json),
    /// A string with expressions, already escaped.
    Template(String),
    /// The name of an input. `true`: its value is JSON, not a plain string.
    Input(String, bool),
    List(Vec<ArgumentValue>),
    Map(BTreeMap<Arc<str>, ArgumentValue>),
}

/// Escapes a string so that it contains no expressions.
pub fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// Escapes all strings in a value.
pub fn escape_value(value: &Json) -> Json {
    match value {
        Json::String(text) => Json::String(escape(text)),
        Json::Array(items) => items.iter().map(escape_value).collect(),
        Json::Object(entries) => {
            Json::Object(entries.iter().map(|(key, item)| (key.clone(), escape_value(item))).collect())
        }
        other => other.clone(),
    }
}

impl ArgumentValue {
    /// Returns the value as it is written in a manifest.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Literal(value) => escape_value(value),
            Self::Template(text) => Json::String(text.clone()),
            Self::Input(..) => Json::String(format!("${{{}}}", self.to_expression().unwrap_or_default())),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => {
                Json::Object(entries.iter().map(|(key, item)| (key.to_string(), item.to_json())).collect())
            }
        }
    }

    /// Returns the value as a CEL expression. `None`: it contains a template.
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

    /// Converts literals in a list or a map to one literal.
    pub fn simplified(self) -> Self {
        if !self.is_literal() {
            return self;
        }
        match self {
            Self::List(items) => Self::Literal(items.into_iter().map(Self::into_literal).collect()),
            Self::Map(entries) => {
                let entry = |(key, item): (Arc<str>, Self)| (key.to_string(), item.into_literal());
                Self::Literal(Json::Object(entries.into_iter().map(entry).collect()))
            }
            other => other,
        }
    }

    fn into_literal(self) -> Json {
        match self.simplified() {
            Self::Literal(value) => value,
            _ => Json::Null,
        }
    }

    /// Whether it consists only of literals.
    fn is_literal(&self) -> bool {
        match self {
            Self::Literal(_) => true,
            Self::Template(_) | Self::Input(..) => false,
            Self::List(items) => items.iter().all(Self::is_literal),
            Self::Map(entries) => entries.values().all(Self::is_literal),
        }
    }
}

pub type Arguments = BTreeMap<Arc<str>, ArgumentValue>;

/// The arguments for all instances of a family.
#[derive(Debug, Default, PartialEq)]
pub struct MergedArguments {
    /// `spec.config`.
    pub config: Map<String, Json>,
    /// The `forEach` map, if the instances differ in literals. Empty otherwise.
    pub each: BTreeMap<Arc<str>, Map<String, Json>>,
    /// Arguments that are literals because their references differ between instances.
    pub without_references: Vec<Arc<str>>,
}

/// Merges the arguments of all instances. `sets_each`: the values of `forEach` can be chosen. `literal` returns an argument of an instance without references.
pub fn merge(
    instances: &[(InstanceKey, Arguments)],
    sets_each: bool,
    literal: &dyn Fn(usize, &str) -> ArgumentValue,
) -> MergedArguments {
    let mut shared = MergedArguments::default();
    let mut names: Vec<&Arc<str>> = instances.iter().flat_map(|(_, arguments)| arguments.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let mut pieces: Vec<ArgumentValue> = instances
            .iter()
            .map(|(_, arguments)| arguments.get(name).cloned().unwrap_or(ArgumentValue::Literal(Json::Null)))
            .collect();
        if pieces.windows(2).any(|pair| pair[0] != pair[1])
            && pieces.iter().any(|piece| piece.to_expression().is_none())
        {
            shared.without_references.push(name.clone());
            pieces = (0..instances.len()).map(|position| literal(position, name)).collect();
        }
        let each = sets_each.then_some(&mut shared.each);
        let written = fold(instances, name, &pieces, each);
        shared.config.insert(name.to_string(), written);
    }
    if !shared.each.is_empty() {
        // Each entry of the map has the same keys, so that each read succeeds.
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
    pieces: &[ArgumentValue],
    each: Option<&mut BTreeMap<Arc<str>, Map<String, Json>>>,
) -> Json {
    let same = pieces.windows(2).all(|pair| pair[0] == pair[1]);
    if same {
        return pieces.first().map_or(Json::Null, ArgumentValue::to_json);
    }
    let is_key = |((key, _), piece): (&(InstanceKey, Arguments), &ArgumentValue)| match (key, piece) {
        (InstanceKey::Key(key), ArgumentValue::Literal(Json::String(text))) => **key == **text,
        (InstanceKey::Index(index), ArgumentValue::Literal(Json::Number(number))) => number.as_u64() == Some(*index),
        _ => false,
    };
    let keyed = matches!(instances.first(), Some((InstanceKey::Key(_), _)));
    if instances.iter().zip(pieces).all(is_key) {
        return Json::from(if keyed { "${each.key}" } else { "${count.index}" });
    }
    if let Some(each) = each.filter(|_| keyed && pieces.iter().all(ArgumentValue::is_literal)) {
        for ((key, _), piece) in instances.iter().zip(pieces) {
            let Some(key) = key_text(key) else { continue };
            each.entry(key).or_default().insert(name.to_string(), piece.to_json());
        }
        return Json::from(format!("${{each.value.{name}}}"));
    }
    // The caller has replaced templates by literals.
    let texts = pieces.iter().map(|piece| piece.to_expression().unwrap_or_else(|| "null".to_owned()));
    if keyed {
        let keys = instances.iter().filter_map(|(key, _)| key_text(key));
        let pairs: Vec<String> =
            keys.zip(texts).map(|(key, text)| format!("{}: {text}", Json::from(key.as_ref()))).collect();
        return Json::from(format!("${{{{{}}}[each.key]}}", pairs.join(", ")));
    }
    // The place of a missing instance is never read.
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

/// Converts a value. `known` returns the expression for a value, if one exists; `secret` returns the argument for a
/// sensitive value without expression.
pub fn argument_value(
    value: &Value,
    at: &str,
    known: &dyn Fn(&Value) -> Option<String>,
    secret: &mut dyn FnMut(&str, &Value) -> ArgumentValue,
) -> ArgumentValue {
    if let Some(text) = known(value) {
        return ArgumentValue::Template(text);
    }
    let below = |key: &str| format!("{at}_{key}");
    match value {
        Value::Sensitive(inner) => secret(at, inner),
        Value::List(items) => {
            let items = items.iter().enumerate();
            let items =
                items.map(|(place, item)| argument_value(item, &below(&place.to_string()), known, secret)).collect();
            simplify(ArgumentValue::List(items), value)
        }
        Value::Map(entries) => {
            let entries =
                entries.iter().map(|(key, item)| (key.clone(), argument_value(item, &below(key), known, secret)));
            simplify(ArgumentValue::Map(entries.collect()), value)
        }
        other => ArgumentValue::Literal(other.to_json()),
    }
}

/// Converts a value of literals to one literal.
fn simplify(piece: ArgumentValue, value: &Value) -> ArgumentValue {
    if piece.is_literal() { ArgumentValue::Literal(value.to_json()) } else { piece }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn family(keyed: bool, values: &[ArgumentValue]) -> Vec<(InstanceKey, Arguments)> {
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

    fn text(text: &str) -> ArgumentValue {
        ArgumentValue::Literal(json!(text))
    }

    #[test]
    fn equal_arguments_are_merged_and_others_depend_on_the_key() {
        let made = |keyed, values: &[ArgumentValue]| {
            let MergedArguments { config, each, .. } = merge(&family(keyed, values), true, &|_, _| text("given up"));
            (config["x"].clone(), json!(each))
        };
        assert_eq!(made(true, &[text("${x}"), text("${x}")]), (json!("$${x}"), json!({})));
        assert_eq!(made(true, &[text("a"), text("b")]), (json!("${each.key}"), json!({})));
        assert_eq!(
            made(false, &[ArgumentValue::Literal(json!(0)), ArgumentValue::Literal(json!(1))]),
            (json!("${count.index}"), json!({}))
        );
        let each = json!({"a": {"x": "q\""}, "b": {"x": null}});
        assert_eq!(made(true, &[text("q\""), ArgumentValue::Literal(Json::Null)]), (json!("${each.value.x}"), each));
        assert_eq!(made(false, &[text("q\""), text("r")]), (json!("${[\"q\\\"\", \"r\"][count.index]}"), json!({})));
        let inputs = [ArgumentValue::Input("x_a".into(), false), ArgumentValue::Input("x_b".into(), true)];
        let chosen = "${{\"a\": inputs.x_a, \"b\": json.unmarshal(inputs.x_b)}[each.key]}";
        assert_eq!(made(true, &inputs), (json!(chosen), json!({})));
        let templates = [ArgumentValue::Template("${p.id}".into()), ArgumentValue::Template("${q.id}".into())];
        assert_eq!(made(true, &templates).0, json!("given up"));
        assert_eq!(made(true, &[templates[0].clone(), templates[0].clone()]).0, json!("${p.id}"));
    }

    #[test]
    fn nested_secrets_are_found() {
        let value = Value::map([("list", Value::list([Value::from("a"), Value::from("s").into_sensitive()]))]);
        let mut found = Vec::new();
        let piece = argument_value(&value, "v", &|_| None, &mut |at, secret| {
            found.push((at.to_owned(), secret.clone()));
            ArgumentValue::Input(at.to_owned(), false)
        });
        assert_eq!(found, [("v_list_1".to_owned(), Value::from("s"))]);
        assert_eq!(piece.to_json(), json!({"list": ["a", "${inputs.v_list_1}"]}));
    }
}
