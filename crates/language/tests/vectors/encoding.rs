//! The encoding of values in the recorded lines; `encode.go` describes it.

use cty::{Data, Mark, Marks, Number, Range, Type, Value};
use serde_json::{Map, Value as Json, json};

pub fn decode(value: &Json) -> Value {
    typed(&Type::from_json(value["t"].to_string().as_bytes()).unwrap(), &value["v"])
}

fn typed(ty: &Type, json: &Json) -> Value {
    if let Some(object) = json.as_object() {
        if let Some(range) = object.get("?") {
            return Value::unknown_in(ty.clone(), decode_range(range));
        }
        if let Some(marks) = object.get("m") {
            return typed(ty, &object["v"]).with_marks(&decode_marks(marks));
        }
    }
    match (ty, json) {
        (_, Json::Null) => Value::null(ty.clone()),
        (Type::Bool, Json::Bool(bool)) => Value::bool(*bool),
        (Type::Number, Json::String(text)) => Value::number(Number::parse(text).unwrap()),
        (Type::String, Json::String(text)) => Value::string(text),
        (Type::List(element), Json::Array(items)) => {
            Value::list((**element).clone(), items.iter().map(|item| typed(element, item)))
        }
        (Type::Set(element), Json::Array(items)) => {
            Value::set((**element).clone(), items.iter().map(|item| typed(element, item)))
        }
        (Type::Tuple(elements), Json::Array(items)) => {
            Value::tuple(items.iter().zip(elements.iter()).map(|(item, element)| typed(element, item)))
        }
        (Type::Map(element), Json::Object(object)) => {
            let entries = object["o"].as_object().unwrap().iter();
            Value::map((**element).clone(), entries.map(|(name, item)| (name.as_str(), typed(element, item))))
        }
        (Type::Object(wanted), Json::Object(object)) => {
            let entries = object["o"].as_object().unwrap().iter();
            Value::object(
                entries.map(|(name, item)| (name.as_str(), typed(wanted.attributes.get(name).unwrap(), item))),
            )
        }
        other => panic!("{other:?}"),
    }
}

fn decode_marks(json: &Json) -> Marks {
    let marks = json.as_array().unwrap().iter().map(|mark| match mark.as_str().unwrap() {
        "sensitive" => Mark::Sensitive,
        "ephemeral" => Mark::Ephemeral,
        other => panic!("{other}"),
    });
    marks.collect()
}

fn decode_range(json: &Json) -> Range {
    let bound = |name: &str| {
        let bound = json.get(name)?.as_array()?;
        Some((Number::parse(bound[0].as_str()?)?, bound[1].as_bool()?))
    };
    let length = |name: &str| json.get(name).and_then(Json::as_u64).map(|length| usize::try_from(length).unwrap());
    Range {
        not_null: json.get("notNull").is_some(),
        prefix: json.get("prefix").and_then(Json::as_str).map(Into::into),
        lower: bound("lower"),
        upper: bound("upper"),
        min_length: length("min").unwrap_or(0),
        max_length: length("max"),
    }
}

/// Whether a result is what OpenTofu gave.
///
/// Two differences are wanted: unknown values keep the marks of what they come from, which upstream drops where a
/// function handles marks itself; and `-0` is `0`.
pub fn same(here: &Json, there: &Json) -> bool {
    match (here, there) {
        (Json::Object(here), Json::Object(there)) => {
            if let (Some(unmarked), None) = (here.get("m").and(here.get("v")), there.get("m"))
                && unmarked.get("?").is_some()
            {
                return same(unmarked, &Json::Object(there.clone()));
            }
            here.len() == there.len()
                && here.iter().all(|(name, item)| there.get(name).is_some_and(|other| same(item, other)))
        }
        (Json::Array(here), Json::Array(there)) => {
            here.len() == there.len() && here.iter().zip(there).all(|(here, there)| same(here, there))
        }
        (Json::String(here), Json::String(there)) => here == there || (here == "0" && there == "-0"),
        _ => here == there,
    }
}

pub fn encode(value: &Value) -> Json {
    let ty: Json = serde_json::from_str(&value.ty().to_json()).unwrap();
    json!({"t": ty, "v": data(value)})
}

fn data(value: &Value) -> Json {
    if value.is_marked() {
        let names: Vec<&str> = value.marks().iter().map(mark_name).collect();
        let mut names = names;
        names.sort_unstable();
        return json!({"m": names, "v": data(&value.unmarked(&mut Marks::default()))});
    }
    match value.data() {
        Data::Null => Json::Null,
        Data::Unknown(range) => json!({"?": encode_range(&range.as_deref().cloned().unwrap_or_default())}),
        Data::Bool(bool) => json!(bool),
        Data::Number(number) => json!(number.to_string()),
        Data::String(text) => json!(&**text),
        Data::Items(items) => Json::Array(items.iter().map(data).collect()),
        Data::Entries(entries) => {
            let entries: Map<String, Json> =
                entries.iter().map(|(name, item)| (name.to_string(), data(item))).collect();
            json!({"o": entries})
        }
    }
}

fn mark_name(mark: &Mark) -> &'static str {
    match mark {
        Mark::Sensitive => "sensitive",
        Mark::Ephemeral => "ephemeral",
        Mark::Deprecated(_) => "other",
    }
}

fn encode_range(range: &Range) -> Json {
    let mut known = Map::new();
    if range.not_null {
        known.insert("notNull".to_owned(), json!(true));
    }
    if let Some(prefix) = &range.prefix {
        known.insert("prefix".to_owned(), json!(&**prefix));
    }
    for (name, bound) in [("lower", &range.lower), ("upper", &range.upper)] {
        if let Some((number, inclusive)) = bound {
            known.insert(name.to_owned(), json!([number.to_string(), inclusive]));
        }
    }
    if range.min_length > 0 {
        known.insert("min".to_owned(), json!(range.min_length));
    }
    if let Some(most) = range.max_length {
        known.insert("max".to_owned(), json!(most));
    }
    Json::Object(known)
}
