//! The type that several types convert to.

use std::cmp::Ordering;

use super::conversion::{apply, can_convert};
use super::{Error, Type, Value};

/// The common type of some types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unified {
    pub ty: Type,
    /// Some of the types are not known yet, so nothing about the values can be said: they become unknown.
    pub undecided: bool,
    is_unsafe: bool,
}

impl Unified {
    /// Converts a value of one of the types to the common type.
    pub fn convert(&self, value: &Value) -> Result<Value, Error> {
        if self.undecided {
            return Ok(Value::DYNAMIC);
        }
        if *value.ty() == self.ty { Ok(value.clone()) } else { apply(value, &self.ty, self.is_unsafe) }
    }
}

/// The type to which all values of the types convert.
pub fn unify(types: &[Type]) -> Option<Unified> {
    unify_with(types, false)
}

/// The type to which some values of each of the types convert.
pub fn unify_unsafe(types: &[Type]) -> Option<Unified> {
    unify_with(types, true)
}

pub(crate) fn unify_with(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    let first = types.first()?;
    if types.iter().all(|ty| ty == first) && !first.has_dynamic() {
        return Some(decided(first.clone(), is_unsafe));
    }
    let count = |is: fn(&Type) -> bool| types.iter().filter(|ty| is(ty)).count();
    let dynamic = count(|ty| matches!(ty, Type::Dynamic));
    let maps = count(|ty| matches!(ty, Type::Map(_)));
    let lists = count(|ty| matches!(ty, Type::List(_)));
    let sets = count(|ty| matches!(ty, Type::Set(_)));
    let objects = count(|ty| matches!(ty, Type::Object(_)));
    let tuples = count(|ty| matches!(ty, Type::Tuple(_)));
    let is_all = |known: usize| known > 0 && known + dynamic == types.len();
    if [maps, lists, sets, objects, tuples].into_iter().any(is_all) {
        if dynamic > 0 {
            return Some(Unified { ty: Type::Dynamic, undecided: true, is_unsafe });
        }
        return match first {
            Type::Map(_) => collections(types, Type::map, is_unsafe),
            Type::List(_) => collections(types, Type::list, is_unsafe),
            Type::Set(_) => collections(types, Type::set, is_unsafe),
            Type::Object(_) => same_objects(types, is_unsafe),
            _ => same_tuples(types, is_unsafe),
        };
    }
    if maps > 0
        && is_all(maps + objects)
        && let Some(unified) = as_collection(types, is_unsafe, |ty| matches!(ty, Type::Object(_)), objects_to_map)
    {
        return Some(unified);
    }
    if lists > 0
        && is_all(lists + tuples)
        && let Some(unified) = as_collection(types, is_unsafe, |ty| matches!(ty, Type::Tuple(_)), tuples_to_list)
    {
        return Some(unified);
    }
    if objects > 0 && tuples > 0 {
        return None;
    }
    most_general(types, is_unsafe)
}

fn decided(ty: Type, is_unsafe: bool) -> Unified {
    Unified { ty, undecided: false, is_unsafe }
}

/// One of the types, to which all others convert.
fn most_general(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    let wanted = preferred_order(types)
        .into_iter()
        .map(|position| &types[position])
        .find(|wanted| types.iter().all(|ty| ty == *wanted || can_convert(ty, wanted, is_unsafe)))?;
    Some(decided(wanted.clone(), is_unsafe))
}

fn collections(types: &[Type], collection: fn(Type) -> Type, is_unsafe: bool) -> Option<Unified> {
    let elements: Vec<Type> = types.iter().filter_map(|ty| ty.element().cloned()).collect();
    checked(types, collection(unify_with(&elements, is_unsafe)?.ty), is_unsafe)
}

fn checked(types: &[Type], common: Type, is_unsafe: bool) -> Option<Unified> {
    if types.iter().all(|ty| *ty == common || can_convert(ty, &common, is_unsafe)) {
        Some(decided(common, is_unsafe))
    } else {
        None
    }
}

fn attributes(types: &[Type]) -> Vec<Type> {
    let objects = types.iter().filter_map(|ty| if let Type::Object(object) = ty { Some(object) } else { None });
    objects.flat_map(|object| object.attributes.values().cloned()).collect()
}

fn elements(types: &[Type]) -> Vec<Type> {
    let tuples = types.iter().filter_map(|ty| if let Type::Tuple(elements) = ty { Some(elements) } else { None });
    tuples.flat_map(|elements| elements.iter().cloned()).collect()
}

fn objects_to_map(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    checked(types, Type::map(unify_with(&attributes(types), is_unsafe)?.ty), is_unsafe)
}

fn tuples_to_list(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    checked(types, Type::list(unify_with(&elements(types), is_unsafe)?.ty), is_unsafe)
}

/// Objects with the same attributes unify attribute by attribute, others to a map.
fn same_objects(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    let objects: Vec<_> =
        types.iter().filter_map(|ty| if let Type::Object(object) = ty { Some(object) } else { None }).collect();
    let first = objects.first()?;
    if objects.iter().any(|object| object.attributes.keys().ne(first.attributes.keys())) {
        return objects_to_map(types, is_unsafe);
    }
    let attributes = first.attributes.keys().map(|name| {
        let across: Vec<Type> = objects.iter().filter_map(|object| object.attributes.get(name).cloned()).collect();
        Some((name.clone(), unify_with(&across, is_unsafe)?.ty))
    });
    let common = Type::object(attributes.collect::<Option<Vec<_>>>()?);
    checked(types, common, is_unsafe).or_else(|| objects_to_map(types, is_unsafe))
}

/// Tuples of one length unify element by element, others to a list.
fn same_tuples(types: &[Type], is_unsafe: bool) -> Option<Unified> {
    let tuples: Vec<_> =
        types.iter().filter_map(|ty| if let Type::Tuple(elements) = ty { Some(elements) } else { None }).collect();
    let length = tuples.first()?.len();
    if tuples.iter().any(|elements| elements.len() != length) {
        return tuples_to_list(types, is_unsafe);
    }
    let elements = (0..length).map(|index| {
        let across: Vec<Type> = tuples.iter().map(|elements| elements[index].clone()).collect();
        Some(unify_with(&across, is_unsafe)?.ty)
    });
    let common = Type::tuple(elements.collect::<Option<Vec<_>>>()?);
    checked(types, common, is_unsafe).or_else(|| tuples_to_list(types, is_unsafe))
}

/// Objects among maps, and tuples among lists, are unified as maps and lists first.
fn as_collection(
    types: &[Type],
    is_unsafe: bool,
    is_structural: fn(&Type) -> bool,
    to_collection: fn(&[Type], bool) -> Option<Unified>,
) -> Option<Unified> {
    let structural: Vec<Type> = types.iter().filter(|ty| is_structural(ty)).cloned().collect();
    let collection = to_collection(&structural, is_unsafe)?.ty;
    let replaced: Vec<Type> =
        types.iter().map(|ty| if is_structural(ty) { collection.clone() } else { ty.clone() }).collect();
    let unified = unify_with(&replaced, is_unsafe)?;
    if unified.ty.is_collection() { Some(unified) } else { None }
}

/// The positions of the types, the most general first.
fn preferred_order(types: &[Type]) -> Vec<usize> {
    let mut more_general = vec![Vec::new(); types.len()];
    let mut before = vec![0usize; types.len()];
    for i in 0..types.len() {
        for j in i + 1..types.len() {
            match preference(&types[i], &types[j]) {
                Ordering::Less => {
                    more_general[i].push(j);
                    before[j] += 1;
                }
                Ordering::Greater => {
                    more_general[j].push(i);
                    before[i] += 1;
                }
                Ordering::Equal => {}
            }
        }
    }
    let mut order: Vec<usize> = (0..types.len()).filter(|position| before[*position] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for &other in &more_general[order[next]] {
            before[other] -= 1;
            if before[other] == 0 {
                order.push(other);
            }
        }
        next += 1;
    }
    order
}

/// `Less` if the first type is the more general one.
fn preference(a: &Type, b: &Type) -> Ordering {
    match (a, b) {
        (Type::Dynamic, Type::Dynamic) => Ordering::Equal,
        (_, Type::Dynamic) => Ordering::Less,
        (Type::Dynamic, _) => Ordering::Greater,
        (Type::String, Type::Bool | Type::Number) => Ordering::Less,
        (Type::Bool | Type::Number, Type::String) => Ordering::Greater,
        (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) | (Type::Map(a), Type::Map(b)) => {
            preference(a, b)
        }
        (Type::List(_), Type::Tuple(_) | Type::Set(_)) | (Type::Tuple(_), Type::Set(_)) => Ordering::Less,
        (Type::Map(_), Type::Object(_)) => Ordering::Less,
        (Type::Set(_), Type::List(_) | Type::Tuple(_)) | (Type::Tuple(_), Type::List(_)) => Ordering::Greater,
        (Type::Object(_), Type::Map(_)) => Ordering::Greater,
        (Type::Object(a), Type::Object(b)) => {
            if a.attributes.keys().ne(b.attributes.keys()) {
                return Ordering::Equal;
            }
            combined(a.attributes.values().zip(b.attributes.values()))
        }
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => combined(a.iter().zip(b.iter())),
        _ => Ordering::Equal,
    }
}

fn combined<'a>(pairs: impl Iterator<Item = (&'a Type, &'a Type)>) -> Ordering {
    let mut result = Ordering::Equal;
    for (a, b) in pairs {
        match (preference(a, b), result) {
            (Ordering::Equal, _) => {}
            (order, Ordering::Equal) => result = order,
            (order, before) if order != before => return Ordering::Equal,
            _ => {}
        }
    }
    result
}
