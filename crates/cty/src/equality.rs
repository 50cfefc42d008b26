//! Equality of values.

use super::{Data, Marks, Type, Value};

impl Value {
    /// Whether two values are equal, as a bool value: unknown if that depends on what is unknown. Nulls of any type
    /// are equal; otherwise values of different types are not.
    #[must_use]
    pub fn equals(&self, other: &Self) -> Self {
        if self.contains_marked() || other.contains_marked() {
            let mut marks = Marks::NONE;
            let (a, b) = (self.unmarked_deep(&mut marks), other.unmarked_deep(&mut marks));
            if self.is_null() != other.is_null() {
                // The comparison with null reads no parts, so only the marks of the whole values matter.
                marks = self.marks().with(other.marks());
            }
            return a.equals(&b).with_marks(&marks);
        }
        match equal(self, other) {
            Some(equal) => Self::bool(equal),
            None => Self::unknown_not_null(Type::Bool),
        }
    }
}

/// `None` if it is not known yet.
fn equal(a: &Value, b: &Value) -> Option<bool> {
    if (a.is_null() && b.is_definitely_not_null()) || (b.is_null() && a.is_definitely_not_null()) {
        return Some(false);
    }
    match (a.is_known(), b.is_known()) {
        (true, false) => return equal_to_unknown(a, b),
        (false, true) => return equal_to_unknown(b, a),
        (false, false) => return None,
        (true, true) => {}
    }
    if a.is_null() || b.is_null() {
        return Some(a.is_null() && b.is_null());
    }
    if !has_known_type(a) || !has_known_type(b) {
        let never = !a.ty().conforms_to(b.ty()) && !b.ty().conforms_to(a.ty());
        return if never { Some(false) } else { None };
    }
    if a.ty() != b.ty() {
        return Some(false);
    }
    match (a.data(), b.data()) {
        (Data::Bool(a), Data::Bool(b)) => Some(a == b),
        (Data::Number(a), Data::Number(b)) => Some(a == b),
        (Data::String(a), Data::String(b)) => Some(a == b),
        (Data::Items(a_items), Data::Items(b_items)) if matches!(a.ty(), Type::Set(_)) => {
            let (least, most) = (a_items.iter().chain(b_items.iter()), a_items.len() == b_items.len());
            if !least.clone().all(Value::is_known) {
                return None;
            }
            Some(
                most && a_items.iter().all(|item| contains(b_items, item))
                    && b_items.iter().all(|item| contains(a_items, item)),
            )
        }
        (Data::Items(a), Data::Items(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            all_equal(a.iter().zip(b.iter()))
        }
        (Data::Entries(a), Data::Entries(b)) => {
            if a.len() != b.len() || a.keys().ne(b.keys()) {
                return Some(false);
            }
            all_equal(a.values().zip(b.values()))
        }
        _ => Some(false),
    }
}

fn contains(items: &[Value], wanted: &Value) -> bool {
    items.iter().any(|item| equal(item, wanted) == Some(true))
}

fn equal_to_unknown(known: &Value, unknown: &Value) -> Option<bool> {
    if unknown.range().excludes(unknown.ty(), known) {
        return Some(false);
    }
    let open = known.is_null() || unknown.ty().has_dynamic() || known.ty() == unknown.ty();
    if open { None } else { Some(false) }
}

/// The first pair that differs or is unknown decides.
fn all_equal<'a>(mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    pairs.try_fold(true, |same, (a, b)| if same { equal(a, b) } else { Some(false) })
}

/// Whether the value has no unknown part of unknown type.
fn has_known_type(value: &Value) -> bool {
    match value.data() {
        Data::Unknown(_) => !value.ty().has_dynamic(),
        _ => value.children().all(has_known_type),
    }
}
