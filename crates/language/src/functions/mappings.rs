//! Maps and objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{Call, shown};
use super::parameter::{any, parameter, string};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Entries, Marks, Type, Value, convert};

pub const FUNCTIONS: &[Function] = &[
    function("keys", keys).takes(&[any("inputMap").unknown().marked()]).gives_type_of(keys_type).says(
        "The keys of a map, sorted.",
        "keys({b = 2, a = 1})",
        "[\"a\", \"b\"]",
    ),
    function("lookup", lookup)
        .takes(&[any("inputMap").marked(), string("key").marked()])
        .and_any(any("default").anything().marked())
        .gives_type_of(lookup_type)
        .or_null()
        .says(
            "The element of a map at a key, or a default if there is none.",
            "lookup({a = \"ay\"}, \"c\", \"what?\")",
            "\"what?\"",
        ),
    function("map", map).and_any(any("vals").anything()).gives_type_of(|_| Err(Failure::new(NO_MAP))).says(
        "Not available: write `tomap({ ... })`.",
        "",
        "",
    ),
    function("merge", merge).and_any(any("maps").untyped().null().marked()).gives_type_of(merge_type).says(
        "One map or object of the elements of several ones; later ones win.",
        "merge({a = 1, b = 2}, {b = 3})",
        "{a = 1, b = 3}",
    ),
    function("transpose", transpose)
        .takes(&[parameter("values", Accepts::MapOfListsOfStrings)])
        .gives(Accepts::MapOfListsOfStrings)
        .says(
            "A map of lists of strings with keys and elements exchanged.",
            "transpose({a = [\"1\", \"2\"], b = [\"2\"]})",
            "{\"1\" = [\"a\"], \"2\" = [\"a\", \"b\"]}",
        ),
    function("values", values).takes(&[any("mapping").marked()]).gives_type_of(values_type).says(
        "The elements of a map, in the order of its keys.",
        "values({b = 2, a = 1})",
        "[1, 2]",
    ),
    function("zipmap", zipmap)
        .takes(&[parameter("keys", Accepts::ListOfStrings).marked(), any("values").marked()])
        .gives_type_of(zipmap_type)
        .says("A map of a list of keys and a list of values.", "zipmap([\"a\", \"b\"], [1, 2])", "{a = 1, b = 2}"),
];

const NO_MAP: &str = "the function `map` is not available; write tomap({ ... })";

fn not_a_map(argument: usize, ty: &Type) -> Failure {
    Failure::of(argument, format!("a map or object is required, but the value is {ty}"))
}

fn keys_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::Map(_) => Ok(Type::list(Type::String)),
        Type::Object(object) => Ok(Type::tuple(object.attributes.keys().map(|_| Type::String))),
        other => Err(not_a_map(0, other)),
    }
}

fn keys(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let map = call.plain(0, &mut marks);
    let keys = match (map.ty(), map.as_entries()) {
        (Type::Object(object), _) => Value::tuple(object.attributes.keys().map(|name| Value::string(name))),
        (_, Some(entries)) => Value::list(Type::String, entries.keys().map(|key| Value::string(key))),
        _ => Value::unknown(call.ty.clone()),
    };
    Ok(keys.with_marks(&marks))
}

fn values_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[0].ty() {
        Type::Map(element) => Ok(Type::list((**element).clone())),
        Type::Object(object) => Ok(Type::tuple(object.attributes.values().cloned())),
        other => Err(not_a_map(0, other)),
    }
}

fn values(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let map = call.plain(0, &mut marks);
    let items = map.as_entries().into_iter().flat_map(Entries::values).cloned();
    let result = match call.ty {
        Type::List(element) => Value::list((**element).clone(), items),
        _ => Value::tuple(items),
    };
    Ok(result.with_marks(&marks))
}

fn lookup_type(call: &Call<'_>) -> Result<Type, Failure> {
    if call.arguments.len() > 3 {
        return Err(Failure::new("lookup takes two or three arguments"));
    }
    match call.arguments[0].ty() {
        Type::Object(object) => {
            let Some(key) = call.arguments[1].as_str() else { return Ok(Type::Dynamic) };
            match (object.attributes.get(key), call.arguments.get(2)) {
                (Some(ty), _) => Ok(ty.clone()),
                (None, Some(default)) => Ok(default.ty().clone()),
                (None, None) => Err(Failure::of(0, "the object has no attribute of this name")),
            }
        }
        Type::Map(element) => {
            if let Some(default) = call.arguments.get(2) {
                convert(default, element)
                    .map_err(|_| Failure::of(2, "the default must have the type of the map's elements"))?;
            }
            Ok((**element).clone())
        }
        other => Err(not_a_map(0, other)),
    }
}

fn lookup(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let map = call.plain(0, &mut marks);
    let mut key_marks = Marks::NONE;
    let key = call.plain(1, &mut key_marks);
    let key = key.as_str().unwrap_or_default();
    marks.add(&key_marks);
    if let Some(found) = map.as_entries().and_then(|entries| entries.get(key)) {
        return Ok(found.clone().with_marks(&marks));
    }
    match call.arguments.get(2) {
        Some(default) => Ok(convert(default, call.ty)?.with_marks(&marks)),
        None => Err(Failure::of(1, format!("the map has no element {}", shown(key, &key_marks)))),
    }
}

fn map(_: &Call<'_>) -> Result<Value, Failure> {
    Err(Failure::new(NO_MAP))
}

fn merge_type(call: &Call<'_>) -> Result<Type, Failure> {
    let mut attributes: BTreeMap<Arc<str>, Type> = BTreeMap::new();
    let mut open = false;
    let mut types = Vec::new();
    for (index, map) in call.arguments.iter().enumerate() {
        match map.ty() {
            Type::Dynamic => return Ok(Type::Dynamic),
            Type::Object(object) => {
                if !map.is_null() {
                    attributes.extend(object.attributes.iter().map(|(name, ty)| (name.clone(), ty.clone())));
                }
                types.push(map.ty().clone());
            }
            Type::Map(element) => {
                if let Some(entries) = map.as_entries() {
                    attributes.extend(entries.keys().map(|key| (key.clone(), (**element).clone())));
                }
                open |= !map.is_known();
                types.push(map.ty().clone());
            }
            other => return Err(not_a_map(index, other)),
        }
    }
    match types.first() {
        None => Ok(Type::object(std::iter::empty::<(&str, Type)>())),
        Some(first) if types.iter().all(|ty| ty == first) => Ok(first.clone()),
        Some(_) if open => Ok(Type::Dynamic),
        Some(_) => Ok(Type::object(attributes)),
    }
}

fn merge(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for (index, map) in call.arguments.iter().enumerate().filter(|(_, map)| !map.is_null()) {
        let plain = map.unmarked(&mut marks);
        let plain = plain.as_entries().ok_or_else(|| not_a_map(index, map.ty()))?;
        entries.extend(plain.iter().map(|(key, item)| (key.clone(), item.clone())));
    }
    let result = match call.ty {
        Type::Map(element) => Value::map((**element).clone(), entries),
        Type::Object(object) if object.attributes.len() != entries.len() => {
            return Err(Failure::new("all objects are null"));
        }
        _ => Value::object(entries),
    };
    Ok(result.with_marks(&marks))
}

fn transpose(call: &Call<'_>) -> Result<Value, Failure> {
    if !call.arguments[0].is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let mut exchanged: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for (key, list) in call.arguments[0].as_entries().into_iter().flatten() {
        let items = list.as_items().ok_or_else(|| Failure::of(0, format!("the list at \"{key}\" is null")))?;
        for item in items {
            let item = item.as_str().ok_or_else(|| Failure::of(0, format!("a string at \"{key}\" is null")))?;
            exchanged.entry(item.into()).or_default().push(Value::string(key));
        }
    }
    let lists = exchanged.into_iter().map(|(key, keys)| (key, Value::list(Type::String, keys)));
    Ok(Value::map(Type::list(Type::String), lists))
}

fn different_lengths() -> Failure {
    Failure::of(1, "there must be as many values as keys")
}

fn zipmap_type(call: &Call<'_>) -> Result<Type, Failure> {
    match call.arguments[1].ty() {
        Type::List(element) => Ok(Type::map((**element).clone())),
        Type::Tuple(elements) => {
            if !call.arguments[0].is_wholly_known() {
                return Ok(Type::Dynamic);
            }
            let keys = call.items(0);
            if keys.len() != elements.len() {
                return Err(different_lengths());
            }
            let attributes = keys.iter().zip(elements.iter()).map(|(key, ty)| match key.as_str() {
                Some(key) => Ok((key, ty.clone())),
                None => Err(Failure::of(0, "a key is null")),
            });
            Ok(Type::object(attributes.collect::<Result<Vec<_>, _>>()?))
        }
        other => Err(Failure::of(1, format!("a list or tuple is required, but the value is {other}"))),
    }
}

fn zipmap(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let (keys, values) = (call.plain(0, &mut marks), call.plain(1, &mut marks));
    if !keys.is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()).with_marks(&marks));
    }
    let (keys, values) = (keys.as_items().unwrap_or_default(), values.as_items().unwrap_or_default());
    if keys.len() != values.len() {
        return Err(different_lengths());
    }
    let mut entries = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(values) {
        let key = key.unmarked(&mut marks);
        let key = key.as_str().ok_or_else(|| Failure::of(0, "a key is null"))?;
        entries.push((key.to_owned(), value.clone()));
    }
    let result = match call.ty {
        Type::Map(element) => Value::map((**element).clone(), entries),
        _ => Value::object(entries),
    };
    Ok(result.with_marks(&marks))
}
