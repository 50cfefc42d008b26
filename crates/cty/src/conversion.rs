//! Conversion of values between types.
//!
//! A *safe* conversion succeeds for every value of the source type (a number to a string); an *unsafe* one may fail for
//! some (a string to a number). Configuration converts unsafely; unification prefers what is safe.

use super::unification::unify_with;
use super::{Data, Entries, Error, Marks, Number, ObjectType, Range, Step, Type, Value};

/// Converts the value to the type, if there is a conversion and it succeeds for this value.
pub fn convert(value: &Value, wanted: &Type) -> Result<Value, Error> {
    if *value.ty() == wanted.without_optional() {
        return Ok(value.clone());
    }
    if !can_convert(value.ty(), wanted, true) {
        return Err(mismatch(value.ty(), wanted));
    }
    apply(value, wanted, true)
}

/// Whether some value of the type converts to the other.
pub fn is_convertible(from: &Type, to: &Type) -> bool {
    *from == to.without_optional() || can_convert(from, to, true)
}

/// Whether there is a conversion between two different types.
pub(crate) fn can_convert(from: &Type, to: &Type, is_unsafe: bool) -> bool {
    match (from, to) {
        (_, Type::Dynamic) => true,
        (Type::Dynamic, _) => is_unsafe,
        (Type::Number | Type::Bool, Type::String) => true,
        (Type::String, Type::Number | Type::Bool) => is_unsafe,
        (Type::Object(from), Type::Object(to)) => to.attributes.iter().all(|(name, wanted)| {
            from.attributes.get(name).map_or(to.optional.contains(name), |from| is_part(from, wanted, is_unsafe))
        }),
        (Type::Tuple(from), Type::Tuple(to)) => {
            from.len() == to.len() && from.iter().zip(to.iter()).all(|(from, to)| is_part(from, to, is_unsafe))
        }
        (Type::List(from) | Type::Set(from), Type::List(to)) | (Type::Set(from), Type::Set(to)) => {
            is_part(from, to, is_unsafe)
        }
        (Type::List(from), Type::Set(to)) => is_unsafe && is_part(from, to, is_unsafe),
        (Type::Map(from), Type::Map(to)) => can_convert(from, to, is_unsafe),
        (Type::Tuple(elements), Type::List(to) | Type::Set(to)) => elements_type(elements, to, is_unsafe)
            .is_some_and(|common| elements.iter().all(|from| is_part(from, &common, is_unsafe))),
        (Type::Object(object), Type::Map(to)) => {
            let types: Vec<Type> = object.attributes.values().cloned().collect();
            map_element_type(&types, to, is_unsafe)
                .is_some_and(|common| types.iter().all(|from| is_part(from, &common, is_unsafe)))
        }
        (Type::Map(from), Type::Object(to)) => {
            is_unsafe
                && to
                    .attributes
                    .iter()
                    .all(|(name, wanted)| is_part(from, wanted, is_unsafe) || to.optional.contains(name))
        }
        _ => false,
    }
}

/// Whether a part has the wanted type or converts to it.
fn is_part(from: &Type, to: &Type, is_unsafe: bool) -> bool {
    from == to || can_convert(from, to, is_unsafe)
}

/// The type of the elements of a list or set that is made from a tuple.
fn elements_type(elements: &[Type], wanted: &Type, is_unsafe: bool) -> Option<Type> {
    if *wanted != Type::Dynamic || elements.is_empty() {
        return Some(wanted.clone());
    }
    let common = unify_with(elements, is_unsafe)?.ty;
    let possible = common != Type::Dynamic || elements.iter().all(|element| *element == Type::Dynamic);
    possible.then_some(common)
}

/// The type of the elements of a map that is made from an object.
fn map_element_type(types: &[Type], wanted: &Type, is_unsafe: bool) -> Option<Type> {
    if *wanted != Type::Dynamic || types.is_empty() {
        return Some(wanted.clone());
    }
    Some(unify_with(types, is_unsafe)?.ty)
}

/// Converts a value for whose type there is a conversion.
pub(crate) fn apply(value: &Value, to: &Type, is_unsafe: bool) -> Result<Value, Error> {
    if value.is_marked() {
        let mut marks = Marks::NONE;
        let plain = value.unmarked(&mut marks);
        return Ok(apply(&plain, to, is_unsafe)?.with_marks(&marks));
    }
    if *to == Type::Dynamic {
        return Ok(value.clone());
    }
    match value.data() {
        Data::Null => return Ok(Value::null(filled(value.ty(), &to.without_optional()))),
        Data::Unknown(_) => return Ok(unknown(value, filled(value.ty(), &to.without_optional()))),
        _ => {}
    }
    match (value.ty(), to) {
        (Type::Dynamic, _) => convert(value, to),
        (Type::Number | Type::Bool | Type::String, Type::String) => Ok(Value::string(&as_text(value))),
        (Type::String, Type::Number) => match value.as_str().and_then(Number::parse) {
            Some(number) => Ok(Value::number(number)),
            None => Err(Error::new("a number is required")),
        },
        (Type::String, Type::Bool) => as_bool(value.as_str().unwrap_or_default()),
        (Type::Object(_), Type::Object(wanted)) => to_object(value, wanted, is_unsafe),
        (Type::Map(_), Type::Object(wanted)) => from_map(value, wanted, is_unsafe),
        (Type::Tuple(_), Type::Tuple(wanted)) => {
            let items = value.as_items().unwrap_or_default().iter().zip(wanted.iter()).enumerate();
            let items = items.map(|(index, (item, to))| within(Step::Index(index), part(item, to, is_unsafe)));
            Ok(Value::tuple(items.collect::<Result<Vec<_>, _>>()?))
        }
        _ => to_collection(value, to, is_unsafe),
    }
}

fn within<T>(step: Step, result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| error.inside(step))
}

/// Converts a part whose type may be the wanted one already.
fn part(value: &Value, to: &Type, is_unsafe: bool) -> Result<Value, Error> {
    if value.ty() == to { Ok(value.clone()) } else { apply(value, to, is_unsafe) }
}

/// A part that is null loses its marks where go-cty makes the null again: as an attribute, and in what was a collection
/// or becomes a set.
fn bare_null(value: Value) -> Value {
    if value.is_null() { Value::null(value.ty().clone()) } else { value }
}

fn as_text(value: &Value) -> String {
    match value.data() {
        Data::Bool(bool) => bool.to_string(),
        Data::Number(number) => number.to_string(),
        Data::String(text) => text.to_string(),
        _ => String::new(),
    }
}

fn as_bool(text: &str) -> Result<Value, Error> {
    match text {
        "true" | "1" => Ok(Value::TRUE),
        "false" | "0" => Ok(Value::FALSE),
        other if ["true", "false"].contains(&other.to_lowercase().as_str()) => {
            Err(Error::new(format!("a bool is required; write \"{}\" in lowercase", other.to_lowercase())))
        }
        _ => Err(Error::new("a bool is required")),
    }
}

fn to_object(value: &Value, wanted: &ObjectType, is_unsafe: bool) -> Result<Value, Error> {
    let entries = value.as_entries().cloned().unwrap_or_default();
    let attributes = wanted.attributes.iter().map(|(name, to)| {
        let converted = match entries.get(name) {
            Some(item) => bare_null(within(Step::Name(name.clone()), part(item, to, is_unsafe))?),
            None => Value::null(to.without_optional()),
        };
        Ok((name.clone(), converted))
    });
    Ok(Value::object(attributes.collect::<Result<Vec<_>, Error>>()?))
}

fn from_map(value: &Value, wanted: &ObjectType, is_unsafe: bool) -> Result<Value, Error> {
    let entries = value.as_entries().cloned().unwrap_or_default();
    let attributes = wanted.attributes.iter().map(|(name, to)| {
        let converted = match entries.get(name) {
            Some(item) if item.ty() != to && !can_convert(item.ty(), to, is_unsafe) => {
                return Err(mismatch(item.ty(), to).inside(Step::Name(name.clone())));
            }
            Some(item) => bare_null(within(Step::Name(name.clone()), part(item, to, is_unsafe))?),
            None if wanted.optional.contains(name) => Value::null(to.without_optional()),
            None => return Err(Error::new(format!("the map has no element for the required attribute \"{name}\""))),
        };
        Ok((name.clone(), converted))
    });
    Ok(Value::object(attributes.collect::<Result<Vec<_>, Error>>()?))
}

fn to_collection(value: &Value, to: &Type, is_unsafe: bool) -> Result<Value, Error> {
    match (value.ty(), to) {
        (Type::List(_) | Type::Set(_), Type::List(wanted)) => {
            if !value.length_is_known() {
                return Ok(Value::unknown(Type::list(value.ty().element().cloned().unwrap_or(Type::Dynamic))));
            }
            let items = elements(value, wanted, is_unsafe)?.into_iter().map(bare_null).collect();
            let items = same_type(items, "list")?;
            Ok(Value::list(element_type(&mut items.iter(), element_of_empty(value.ty(), wanted)), items))
        }
        (Type::List(_) | Type::Set(_), Type::Set(wanted)) => {
            let items = elements(value, wanted, is_unsafe)?.into_iter().map(bare_null).collect();
            let items = same_type(items, "set")?;
            Ok(Value::set(element_type(&mut items.iter(), element_of_empty(value.ty(), wanted)), items))
        }
        (Type::Tuple(types), Type::Set(wanted)) => {
            let common = elements_type(types, wanted, is_unsafe).ok_or_else(no_common_type)?;
            let items = elements(value, &common, is_unsafe)?.into_iter().map(bare_null).collect();
            let items = same_type(items, "set")?;
            Ok(Value::set(element_type(&mut items.iter(), common.without_optional()), items))
        }
        (Type::Tuple(types), Type::List(wanted)) => {
            let common = elements_type(types, wanted, is_unsafe).ok_or_else(no_common_type)?;
            let items = unified(elements(value, &common, is_unsafe)?, is_unsafe)?;
            let items = same_type(items, "list")?;
            Ok(Value::list(element_type(&mut items.iter(), common.without_optional()), items))
        }
        (Type::Map(_), Type::Map(wanted)) => {
            let entries = entries(value, wanted, is_unsafe)?;
            let entries = if wanted.is_collection() || matches!(**wanted, Type::Object(_)) {
                unified_entries(entries, false)?
            } else {
                entries
            };
            map_of(entries, element_of_empty(value.ty(), wanted))
        }
        (Type::Object(object), Type::Map(wanted)) => {
            let types: Vec<Type> = object.attributes.values().cloned().collect();
            let common = map_element_type(&types, wanted, is_unsafe).ok_or_else(no_common_type)?;
            let entries = entries(value, &common, is_unsafe)?;
            let entries = if common.is_collection() || matches!(common, Type::Object(_)) {
                unified_entries(entries, is_unsafe)?
            } else {
                entries
            };
            map_of(entries, common.without_optional())
        }
        _ => Err(mismatch(value.ty(), to)),
    }
}

/// An empty collection keeps its element type where any would do.
fn element_of_empty(from: &Type, wanted: &Type) -> Type {
    match from.element() {
        Some(own) if *wanted == Type::Dynamic => own.clone(),
        _ => wanted.without_optional(),
    }
}

/// Elements decide themselves: a set of unknown length has become a list of its own elements, whatever was wanted.
fn element_type(items: &mut dyn Iterator<Item = &Value>, wanted: Type) -> Type {
    let typed = items.map(Value::ty).find(|ty| **ty != Type::Dynamic);
    typed.cloned().unwrap_or(wanted)
}

fn elements(value: &Value, to: &Type, is_unsafe: bool) -> Result<Vec<Value>, Error> {
    let items = value.as_items().unwrap_or_default().iter().enumerate();
    items.map(|(index, item)| within(Step::Index(index), part(item, to, is_unsafe))).collect()
}

fn entries(value: &Value, to: &Type, is_unsafe: bool) -> Result<Entries<Value>, Error> {
    let entries = value.as_entries().into_iter().flatten();
    entries
        .map(|(name, item)| Ok((name.clone(), within(Step::Name(name.clone()), part(item, to, is_unsafe))?)))
        .collect()
}

fn no_common_type() -> Error {
    Error::new("the elements have no common type")
}

/// Elements of optional and dynamic types may have become different types; a collection needs one.
fn unified(items: Vec<Value>, is_unsafe: bool) -> Result<Vec<Value>, Error> {
    let types: Vec<Type> = items.iter().map(|item| item.ty().clone()).collect();
    if types.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(items);
    }
    let common = unify_with(&types, is_unsafe).ok_or_else(no_common_type)?;
    let items = items.iter().enumerate();
    items.map(|(index, item)| within(Step::Index(index), part(item, &common.ty, is_unsafe))).collect()
}

fn unified_entries(entries: Entries<Value>, is_unsafe: bool) -> Result<Entries<Value>, Error> {
    let types: Vec<Type> = entries.values().map(|item| item.ty().clone()).collect();
    if types.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(entries);
    }
    let common = unify_with(&types, is_unsafe).ok_or_else(no_common_type)?;
    let entries = entries.iter();
    entries
        .map(|(name, item)| {
            let converted = within(Step::Name(name.clone()), part(item, &common.ty, is_unsafe))?;
            Ok((name.clone(), converted))
        })
        .collect()
}

fn same_type(items: Vec<Value>, kind: &str) -> Result<Vec<Value>, Error> {
    if one_type(&mut items.iter()) {
        Ok(items)
    } else {
        Err(Error::new(format!("the elements of a {kind} must have one type")))
    }
}

fn map_of(entries: Entries<Value>, element: Type) -> Result<Value, Error> {
    if one_type(&mut entries.values()) {
        let element = element_type(&mut entries.values(), element);
        Ok(Value::of_entries(&Type::map(element), entries))
    } else {
        Err(Error::new("the elements of a map must have one type"))
    }
}

/// Null and unknown elements without a type go with any other.
fn one_type(items: &mut dyn Iterator<Item = &Value>) -> bool {
    let mut types = items.map(Value::ty).filter(|ty| **ty != Type::Dynamic);
    types.next().is_none_or(|first| types.all(|ty| ty == first))
}

/// What is known about the result of converting an unknown value.
fn unknown(value: &Value, to: Type) -> Value {
    let source = value.range();
    let range = Range { not_null: source.not_null, ..Range::default() };
    let range = match (value.ty(), &to) {
        (Type::Object(object), Type::Map(_)) => {
            let length = object.attributes.len();
            range.with_lengths(length, Some(length))
        }
        (Type::Tuple(elements), Type::List(_)) => range.with_lengths(elements.len(), Some(elements.len())),
        (Type::Tuple(elements), Type::Set(_)) => range.with_lengths(elements.len().min(1), Some(elements.len())),
        (from, Type::Set(_)) if from.is_collection() => range.with_lengths(source.min_length.min(1), source.max_length),
        (from, to) if from.is_collection() && to.is_collection() => {
            range.with_lengths(source.min_length, source.max_length)
        }
        _ => range,
    };
    Value::unknown_in(to, range)
}

/// The wanted type with its dynamic places filled from the type of the value.
fn filled(from: &Type, wanted: &Type) -> Type {
    if *from == Type::Dynamic {
        return wanted.clone();
    }
    match (wanted, from) {
        (Type::Dynamic, _) => from.clone(),
        (Type::Map(to), Type::Map(from)) => Type::map(filled(from, to)),
        (Type::Map(to), Type::Object(from)) => {
            Type::map(filled_from_parts(&from.attributes.values().cloned().collect::<Vec<_>>(), to))
        }
        (Type::Object(to), Type::Map(from)) => {
            Type::object(to.attributes.iter().map(|(name, to)| (name.clone(), filled(from, to))))
        }
        (Type::Object(to), Type::Object(from)) => Type::object(to.attributes.iter().map(|(name, to)| {
            let ty = from.attributes.get(name).map_or_else(|| to.clone(), |from| filled(from, to));
            (name.clone(), ty)
        })),
        // No value of such a type becomes an object, but a null does.
        (Type::Object(_), _) => Type::object(std::iter::empty::<(&str, Type)>()),
        (Type::Set(to), Type::Set(from) | Type::List(from)) => Type::set(filled(from, to)),
        (Type::Set(to), Type::Tuple(from)) => Type::set(filled_from_parts(from, to)),
        (Type::List(to), Type::Set(from) | Type::List(from)) => Type::list(filled(from, to)),
        (Type::List(to), Type::Tuple(from)) => Type::list(filled_from_parts(from, to)),
        (Type::Tuple(to), Type::Tuple(from)) if to.len() == from.len() => {
            Type::tuple(from.iter().zip(to.iter()).map(|(from, to)| filled(from, to)))
        }
        _ => wanted.clone(),
    }
}

/// The wanted type of an element with its dynamic places filled from what the parts have in common.
fn filled_from_parts(parts: &[Type], wanted: &Type) -> Type {
    match unify_with(parts, true) {
        Some(common) => filled(&common.ty, wanted),
        None => wanted.clone(),
    }
}

/// Why there is no conversion: the innermost part that differs.
pub(crate) fn mismatch(from: &Type, wanted: &Type) -> Error {
    match (from, wanted) {
        (Type::Object(from), Type::Object(to)) => {
            for (name, wanted) in &to.attributes {
                match from.attributes.get(name) {
                    None if !to.optional.contains(name) => {
                        return Error::new(format!("attribute \"{name}\" is required"));
                    }
                    Some(from) if from != wanted && !can_convert(from, wanted, true) => {
                        return mismatch(from, wanted).inside(Step::Name(name.clone()));
                    }
                    _ => {}
                }
            }
        }
        (Type::List(from) | Type::Set(from), Type::List(to) | Type::Set(to)) | (Type::Map(from), Type::Map(to)) => {
            return Error::new(format!("incorrect element type: {}", mismatch(from, to)));
        }
        (Type::Tuple(from), Type::List(to) | Type::Set(to)) => {
            let wrong = from.iter().position(|from| from != &**to && !can_convert(from, to, true));
            if let Some(index) = wrong.filter(|_| **to != Type::Dynamic) {
                return mismatch(&from[index], to).inside(Step::Index(index));
            }
            return Error::new("all elements must have the same type");
        }
        (Type::Object(from), Type::Map(to)) => {
            let wrong = from.attributes.iter().find(|(_, from)| *from != &**to && !can_convert(from, to, true));
            if let Some((name, from)) = wrong.filter(|_| **to != Type::Dynamic) {
                return mismatch(from, to).inside(Step::Name(name.clone()));
            }
            return Error::new("all elements must have the same type");
        }
        (Type::Tuple(from), Type::Tuple(to)) if from.len() != to.len() => {
            return Error::new(format!("a tuple of {} elements is required, not {}", to.len(), from.len()));
        }
        _ => {}
    }
    Error::new(format!("{wanted} is required, but the value is {from}"))
}
