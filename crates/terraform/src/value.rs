//! Values of the engine and of the configuration.

use std::sync::Arc;

use cty::{Data, Mark, Number, Type, Value};
use model::Path;

/// A value of the engine in a type. What does not fit the type keeps its own.
pub fn from_model(value: &model::Value, ty: &Type) -> Value {
    match value {
        model::Value::Null => Value::null(ty.clone()),
        model::Value::Unknown => Value::unknown(ty.clone()),
        model::Value::Sensitive(inner) => from_model(inner, ty).with_mark(Mark::Sensitive),
        model::Value::Bool(bool) => converted(Value::bool(*bool), ty),
        model::Value::Number(number) => match Number::parse(&number.to_string()) {
            Some(number) => converted(Value::number(number), ty),
            None => Value::unknown(Type::Number),
        },
        model::Value::String(text) => converted(Value::string(text), ty),
        model::Value::List(items) => {
            let items = items.iter().enumerate().map(|(at, item)| from_model(item, item_type(ty, at)));
            match ty {
                Type::List(element) => Value::list(element.as_ref().clone(), items),
                Type::Set(element) => Value::set(element.as_ref().clone(), items),
                _ => Value::tuple(items),
            }
        }
        model::Value::Map(entries) => entries_of(entries, ty),
    }
}

fn entries_of(entries: &model::Map, ty: &Type) -> Value {
    match ty {
        Type::Map(element) => {
            let entries = entries.iter().map(|(key, item)| (key.clone(), from_model(item, element)));
            Value::map(element.as_ref().clone(), entries)
        }
        Type::Object(object) => {
            // The engine leaves out what is null.
            let attributes = object.attributes.iter().map(|(name, ty)| {
                (name.clone(), entries.get(name).map_or_else(|| Value::null(ty.clone()), |item| from_model(item, ty)))
            });
            Value::object(attributes)
        }
        _ => Value::object(entries.iter().map(|(key, item)| (key.clone(), from_model(item, &Type::Dynamic)))),
    }
}

fn item_type(ty: &Type, at: usize) -> &Type {
    ty.element().or_else(|| ty.item(at)).unwrap_or(&Type::Dynamic)
}

fn converted(value: Value, ty: &Type) -> Value {
    match ty {
        Type::Dynamic => value,
        _ => cty::convert(&value, ty).unwrap_or(value),
    }
}

/// A value of the configuration for the engine. What is sensitive or ephemeral is sensitive there.
pub fn to_model(value: &Value) -> model::Value {
    let model = match value.data() {
        Data::Null => model::Value::Null,
        Data::Unknown(_) => model::Value::Unknown,
        Data::Bool(bool) => model::Value::Bool(*bool),
        Data::Number(number) => model::Value::Number(to_number(number)),
        Data::String(text) => model::Value::String(text.clone()),
        Data::Items(items) => model::Value::list(items.iter().map(to_model)),
        Data::Entries(entries) => model::Value::map(entries.iter().map(|(key, item)| (key.clone(), to_model(item)))),
    };
    if is_secret(value) { model.into_sensitive() } else { model }
}

/// Whether no message may show a value itself.
fn is_secret(value: &Value) -> bool {
    value.has_mark(&Mark::Sensitive) || value.has_mark(&Mark::Ephemeral)
}

/// The places of ephemeral values. In a set, which has no places, it is the whole set.
pub fn ephemeral_paths(value: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    add_ephemeral(value, &Path::default(), &mut paths);
    paths
}

fn add_ephemeral(value: &Value, at: &Path, paths: &mut Vec<Path>) {
    if !value.contains_mark(&Mark::Ephemeral) {
        return;
    }
    if value.has_mark(&Mark::Ephemeral) || matches!(value.ty(), Type::Set(_)) {
        paths.push(at.clone());
        return;
    }
    match value.data() {
        Data::Items(items) => {
            items.iter().enumerate().for_each(|(index, item)| add_ephemeral(item, &at.index(index), paths));
        }
        Data::Entries(entries) => {
            entries.iter().for_each(|(name, item)| add_ephemeral(item, &at.name(Arc::clone(name)), paths));
        }
        _ => {}
    }
}

fn to_number(number: &Number) -> model::Number {
    match number.to_i64() {
        Some(int) => model::Number::Int(int),
        None => {
            let text = number.to_string();
            model::Number::parse(&text).unwrap_or_else(|| model::Number::Decimal(text.into()))
        }
    }
}

/// What an `import` block asks for.
pub fn import(request: &configuration::ImportRequest) -> Option<model::ImportRequest> {
    match (&request.id, &request.identity) {
        (Some(id), _) => id.as_str().map(|id| model::ImportRequest::Id(id.into())),
        (None, Some(identity)) => Some(model::ImportRequest::Identity(to_config(identity))),
        (None, None) => None,
    }
}

/// The configuration of an object: what is not written is left out.
pub fn to_config(value: &Value) -> model::Value {
    let Some(entries) = value.as_entries() else { return to_model(value) };
    let written = entries.iter().filter(|(_, item)| !item.is_null());
    let config = model::Value::map(written.map(|(name, item)| (Arc::clone(name), to_model(item))));
    if is_secret(value) { config.into_sensitive() } else { config }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_come_back() {
        let ty = Type::object([
            ("text", Type::String),
            ("size", Type::Number),
            ("on", Type::Bool),
            ("names", Type::set(Type::String)),
            ("rules", Type::list(Type::object([("port", Type::Number), ("cidr", Type::String)]))),
            ("tags", Type::map(Type::String)),
            ("any", Type::Dynamic),
        ]);
        let rule = Value::object([("port", Value::int(80)), ("cidr", Value::null(Type::String))]);
        let rules = Type::object([("port", Type::Number), ("cidr", Type::String)]);
        let value = Value::object([
            ("text", Value::string("x").with_mark(Mark::Sensitive)),
            ("size", Value::number(Number::parse("12345678901234567890.5").unwrap())),
            ("on", Value::null(Type::Bool)),
            ("names", Value::set(Type::String, [Value::string("b"), Value::string("a")])),
            ("rules", Value::list(rules, [rule])),
            ("tags", Value::map(Type::String, [("k", Value::unknown(Type::String))])),
            ("any", Value::tuple([Value::int(1), Value::string("1")])),
        ]);
        assert_eq!(from_model(&to_model(&value), &ty), value);
        assert_eq!(from_model(&to_config(&value), &ty), value, "what is null can be left out");
    }

    #[test]
    fn an_unknown_object_has_its_type() {
        let ty = Type::object([("id", Type::String)]);
        assert_eq!(from_model(&model::Value::Unknown, &ty), Value::unknown(ty));
    }
}
