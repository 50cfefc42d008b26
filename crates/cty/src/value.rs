//! Values.

use std::sync::Arc;

use super::{Entries, Mark, Marks, Number, Range, Type, normalize, set};

/// A value with its type and marks. Cloning is cheap: everything large is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    ty: Type,
    marks: Marks,
    data: Data,
    inside: Inside,
}

/// What is true of the parts of a value. It is kept with the value, so that asking does not walk it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inside {
    marked: bool,
    unknown: bool,
    /// The number of values in this one, itself included. Parts that are shared count each time.
    nodes: u32,
}

impl Inside {
    const LEAF: Self = Self { marked: false, unknown: false, nodes: 1 };
    const UNKNOWN: Self = Self { unknown: true, ..Self::LEAF };

    fn of(data: &Data) -> Self {
        match data {
            Data::Unknown(_) => Self::UNKNOWN,
            Data::Items(items) => items.iter().fold(Self::LEAF, Self::with),
            Data::Entries(entries) => entries.values().fold(Self::LEAF, Self::with),
            _ => Self::LEAF,
        }
    }

    fn with(self, part: &Value) -> Self {
        Self {
            marked: self.marked || part.contains_marked(),
            unknown: self.unknown || part.inside.unknown,
            nodes: self.nodes.saturating_add(part.inside.nodes),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Null,
    Unknown(Option<Arc<Range>>),
    Bool(bool),
    Number(Number),
    /// In Unicode normalization form C.
    String(Arc<str>),
    /// The elements of a list or tuple, or of a set in its order.
    Items(Arc<[Value]>),
    /// The elements of a map, or the attributes of an object.
    Entries(Entries<Value>),
}

impl Value {
    /// A value of which not even the type is known.
    pub const DYNAMIC: Self =
        Self { ty: Type::Dynamic, marks: Marks::NONE, data: Data::Unknown(None), inside: Inside::UNKNOWN };
    /// A null without a type.
    pub const NULL: Self = Self { ty: Type::Dynamic, marks: Marks::NONE, data: Data::Null, inside: Inside::LEAF };
    pub const TRUE: Self = Self { ty: Type::Bool, marks: Marks::NONE, data: Data::Bool(true), inside: Inside::LEAF };
    pub const FALSE: Self = Self { ty: Type::Bool, marks: Marks::NONE, data: Data::Bool(false), inside: Inside::LEAF };

    /// The data has the shape of the type.
    pub(crate) fn raw(ty: Type, data: Data) -> Self {
        Self { ty, marks: Marks::NONE, inside: Inside::of(&data), data }
    }

    pub fn null(ty: Type) -> Self {
        Self::raw(ty, Data::Null)
    }

    pub fn unknown(ty: Type) -> Self {
        Self::raw(ty, Data::Unknown(None))
    }

    /// An unknown value that is not null.
    pub fn unknown_not_null(ty: Type) -> Self {
        Range::not_null().into_value(ty)
    }

    pub fn unknown_in(ty: Type, range: Range) -> Self {
        range.into_value(ty)
    }

    pub fn bool(bool: bool) -> Self {
        Self::raw(Type::Bool, Data::Bool(bool))
    }

    pub fn number(number: Number) -> Self {
        Self::raw(Type::Number, Data::Number(number))
    }

    pub fn int(int: i64) -> Self {
        Self::number(int.into())
    }

    pub fn string(text: &str) -> Self {
        Self::raw(Type::String, Data::String(normalize(text)))
    }

    /// A list whose elements have the given type.
    pub fn list(element: Type, items: impl IntoIterator<Item = Self>) -> Self {
        Self::of_items(&Type::list(element), items.into_iter().collect())
    }

    /// A set of the elements. Their marks become those of the set.
    pub fn set(element: Type, items: impl IntoIterator<Item = Self>) -> Self {
        let mut marks = Marks::NONE;
        let items = items.into_iter().map(|item| item.unmarked_deep(&mut marks)).collect();
        Self::of_items(&Type::set(element), items).with_marks(&marks)
    }

    pub fn tuple(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Arc<[Self]> = items.into_iter().collect();
        Self::raw(Type::tuple(items.iter().map(|item| item.ty.clone())), Data::Items(items))
    }

    pub fn map<K: Into<Arc<str>>>(element: Type, entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries: Entries<Self> = entries.into_iter().map(|(key, item)| (normal(key.into()), item)).collect();
        Self::of_entries(&Type::map(element), entries)
    }

    pub fn object<K: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries: Entries<Self> = attributes.into_iter().map(|(name, item)| (normal(name.into()), item)).collect();
        let ty = Type::object(entries.iter().map(|(name, item)| (name.clone(), item.ty.clone())));
        Self::raw(ty, Data::Entries(entries))
    }

    /// A list, set or tuple of a declared type; a tuple where any type is declared. Where the declared type is dynamic,
    /// the value has the types of its parts. Elements of a collection whose types differ keep the declared type.
    pub fn of_items(ty: &Type, mut items: Vec<Self>) -> Self {
        match ty {
            Type::List(declared) => {
                let element = element_type(declared, items.iter_mut().collect());
                Self::raw(Type::List(element), Data::Items(items.into()))
            }
            Type::Set(declared) => {
                let element = element_type(declared, items.iter_mut().collect());
                let items = set::ordered(&element, items);
                Self::raw(Type::Set(element), Data::Items(items.into()))
            }
            Type::Tuple(elements) if !ty.has_dynamic() => {
                items.iter_mut().zip(elements.iter()).for_each(|(item, element)| item.set_type(element));
                Self::raw(ty.clone(), Data::Items(items.into()))
            }
            _ => Self::tuple(items),
        }
    }

    /// A map or object of a declared type; an object where any type is declared. See [`Self::of_items`] for its type.
    pub fn of_entries(ty: &Type, mut entries: Entries<Self>) -> Self {
        if let Type::Map(declared) = ty {
            let element = element_type(declared, entries.iter_mut().map(|(_, entry)| entry).collect());
            return Self::raw(Type::Map(element), Data::Entries(entries));
        }
        for (name, entry) in entries.iter_mut().filter(|(_, entry)| entry.ty == Type::Dynamic) {
            ty.entry(name).into_iter().for_each(|declared| entry.set_type(declared));
        }
        let is_declared = matches!(ty, Type::Object(_)) && !ty.has_dynamic();
        let ty = if is_declared {
            ty.clone()
        } else {
            Type::object(entries.iter().map(|(name, entry)| (name.clone(), entry.ty.clone())))
        };
        Self::raw(ty, Data::Entries(entries))
    }

    /// Null and unknown values without a type take the one that is declared.
    fn set_type(&mut self, declared: &Type) {
        if self.ty == Type::Dynamic {
            self.ty.clone_from(declared);
        }
    }

    pub fn ty(&self) -> &Type {
        &self.ty
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// Whether the value itself is known; its parts may not be.
    pub fn is_known(&self) -> bool {
        !matches!(self.data, Data::Unknown(_))
    }

    pub fn is_wholly_known(&self) -> bool {
        !self.inside.unknown
    }

    /// The number of values in this one, itself included: what it costs to walk it. Parts that are shared count each
    /// time, so this can be much more than the value takes in memory.
    pub fn nodes(&self) -> u32 {
        self.inside.nodes
    }

    pub fn is_definitely_not_null(&self) -> bool {
        match &self.data {
            Data::Null => false,
            Data::Unknown(range) => range.as_ref().is_some_and(|range| range.not_null),
            _ => true,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Data::Bool(bool) = self.data { Some(bool) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Data::String(text) = &self.data { Some(text) } else { None }
    }

    pub fn as_number(&self) -> Option<&Number> {
        if let Data::Number(number) = &self.data { Some(number) } else { None }
    }

    /// The elements of a known list, set or tuple.
    pub fn as_items(&self) -> Option<&[Self]> {
        if let Data::Items(items) = &self.data { Some(items) } else { None }
    }

    /// The elements of a known map, or the attributes of a known object.
    pub fn as_entries(&self) -> Option<&Entries<Self>> {
        if let Data::Entries(entries) = &self.data { Some(entries) } else { None }
    }

    /// The attribute of an object, or the element of a map, if the value has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_entries()?.get(name)
    }

    /// The attribute of an object, or the element of a map. Unknown if the whole value is unknown, null if there is
    /// none.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if let Some(child) = self.get(name) {
            return child.clone();
        }
        let ty = self.ty.entry(name).cloned().unwrap_or(Type::Dynamic);
        if self.is_known() { Self::null(ty) } else { Self::unknown(ty) }
    }

    /// The kind of the value for messages, which must not reveal the value itself.
    pub fn kind(&self) -> &'static str {
        match (&self.data, &self.ty) {
            (Data::Null, _) => "null",
            (Data::Unknown(_), _) => "unknown",
            (Data::Bool(_), _) => "a bool",
            (Data::Number(_), _) => "a number",
            (Data::String(_), _) => "a string",
            (Data::Items(_), Type::Set(_)) => "a set",
            (Data::Items(_), Type::Tuple(_)) => "a tuple",
            (Data::Items(_), _) => "a list",
            (Data::Entries(_), Type::Map(_)) => "a map",
            (Data::Entries(_), _) => "an object",
        }
    }

    /// Whether the type of the value has the kind of another, and as many parts if that is a tuple or an object.
    pub(crate) fn is_as(&self, ty: &Type) -> bool {
        match (&self.ty, ty) {
            (Type::List(_), Type::List(_)) | (Type::Set(_), Type::Set(_)) | (Type::Map(_), Type::Map(_)) => true,
            (Type::Tuple(own), Type::Tuple(other)) => own.len() == other.len(),
            (Type::Object(own), Type::Object(other)) => own.attributes.len() == other.attributes.len(),
            _ => false,
        }
    }

    /// The elements or attributes of a known value, in order. Empty for others.
    pub fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.data {
            Data::Items(items) => Box::new(items.iter()),
            Data::Entries(entries) => Box::new(entries.values()),
            _ => Box::new(std::iter::empty()),
        }
    }

    // === Marks ===

    pub fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    pub fn has_mark(&self, mark: &Mark) -> bool {
        self.marks.contains(mark)
    }

    /// Whether the value or a part of it has a mark.
    pub fn contains_marked(&self) -> bool {
        self.is_marked() || self.inside.marked
    }

    pub fn contains_mark(&self, mark: &Mark) -> bool {
        self.has_mark(mark) || (self.inside.marked && self.children().any(|child| child.contains_mark(mark)))
    }

    #[must_use]
    pub fn with_marks(mut self, marks: &Marks) -> Self {
        self.marks.add(marks);
        self
    }

    #[must_use]
    pub fn with_mark(self, mark: Mark) -> Self {
        self.with_marks(&mark.into())
    }

    /// The value without its own marks, which are added to `marks`.
    #[must_use]
    pub fn unmarked(&self, marks: &mut Marks) -> Self {
        marks.add(&self.marks);
        Self { ty: self.ty.clone(), marks: Marks::NONE, data: self.data.clone(), inside: self.inside }
    }

    /// The value without any mark at any depth; they are added to `marks`.
    #[must_use]
    pub fn unmarked_deep(&self, marks: &mut Marks) -> Self {
        if !self.contains_marked() {
            return self.clone();
        }
        let mut removed = Marks::NONE;
        let plain = self.map_values(&mut |value| {
            removed.add(&value.marks);
            Self { marks: Marks::NONE, ..value }
        });
        marks.add(&removed);
        plain
    }

    /// Changes every part of the value, the innermost first. The type of a part must stay what it is, except in tuples
    /// and objects.
    #[must_use]
    pub fn map_values(&self, change: &mut impl FnMut(Self) -> Self) -> Self {
        let data = match &self.data {
            Data::Items(items) => Data::Items(items.iter().map(|item| item.map_values(change)).collect()),
            Data::Entries(entries) => {
                Data::Entries(entries.iter().map(|(name, item)| (name.clone(), item.map_values(change))).collect())
            }
            other => other.clone(),
        };
        let rebuilt = match (&self.ty, data) {
            (Type::Tuple(_), Data::Items(items)) => Self::tuple(items.iter().cloned()),
            (Type::Object(_), Data::Entries(entries)) => {
                let ty = Type::object(entries.iter().map(|(name, item)| (name.clone(), item.ty.clone())));
                Self::raw(ty, Data::Entries(entries))
            }
            (Type::Set(element), Data::Items(items)) => Self::set((**element).clone(), items.iter().cloned()),
            (ty, data) => Self::raw(ty.clone(), data),
        };
        change(rebuilt.with_marks(&self.marks))
    }

    // === Unknown values ===

    /// What is known about the value. For a known value, exactly it.
    pub fn range(&self) -> Range {
        match &self.data {
            Data::Null => Range::default(),
            Data::Unknown(range) => range.as_deref().cloned().unwrap_or_default(),
            Data::String(text) => Range { prefix: Some(text.clone()), ..Range::not_null() },
            Data::Number(number) => {
                Range { lower: Some((number.clone(), true)), upper: Some((number.clone(), true)), ..Range::not_null() }
            }
            Data::Items(items) if self.ty.is_collection() && self.length_is_known() => {
                Range::not_null().with_lengths(items.len(), Some(items.len()))
            }
            Data::Entries(entries) if self.ty.is_collection() => {
                Range::not_null().with_lengths(entries.len(), Some(entries.len()))
            }
            _ => Range::not_null(),
        }
    }

    /// Adds to what is known about an unknown value; a known one stays as it is.
    #[must_use]
    pub fn refined(self, refine: impl FnOnce(Range) -> Range) -> Self {
        match &self.data {
            Data::Unknown(range) if self.ty != Type::Dynamic => {
                let range = refine(range.as_deref().cloned().unwrap_or_default());
                range.into_value(self.ty).with_marks(&self.marks)
            }
            _ => self,
        }
    }

    /// Replaces every unknown part with null.
    #[must_use]
    pub fn unknown_as_null(&self) -> Self {
        self.with_unknown(Self::null)
    }

    /// Drops what is known about unknown parts.
    #[must_use]
    pub fn unrefined(&self) -> Self {
        self.with_unknown(Self::unknown)
    }

    /// Replaces every unknown part with the value of its type.
    fn with_unknown(&self, replacement: fn(Type) -> Self) -> Self {
        if self.is_wholly_known() {
            return self.clone();
        }
        let data = match &self.data {
            Data::Items(items) => {
                let items = items.iter().map(|item| item.with_unknown(replacement)).collect();
                return Self::of_items(&self.ty, items).with_marks(&self.marks);
            }
            Data::Entries(entries) => Data::Entries(
                entries.iter().map(|(name, item)| (name.clone(), item.with_unknown(replacement))).collect(),
            ),
            _ => return replacement(self.ty.clone()).with_marks(&self.marks),
        };
        Self::raw(self.ty.clone(), data).with_marks(&self.marks)
    }

    #[must_use]
    pub fn refined_not_null(self) -> Self {
        self.refined(|range| Range { not_null: true, ..range })
    }
}

/// The type of the elements of a collection: the declared one, or where that is dynamic the one that all of them have.
fn element_type(declared: &Arc<Type>, items: Vec<&mut Value>) -> Arc<Type> {
    let mut element = declared.clone();
    if declared.has_dynamic() {
        let mut types = items.iter().map(|item| &item.ty).filter(|ty| **ty != Type::Dynamic);
        if let Some(first) = types.next().filter(|first| types.all(|ty| ty == *first)) {
            element = Arc::new(first.clone());
        }
    }
    items.into_iter().for_each(|item| item.set_type(&element));
    element
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

/// ASCII strings, the usual case, are shared.
fn normal(text: Arc<str>) -> Arc<str> {
    if text.is_ascii() { text } else { normalize(&text) }
}

impl From<&Arc<str>> for Value {
    fn from(text: &Arc<str>) -> Self {
        Self::raw(Type::String, Data::String(normal(text.clone())))
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::bool(bool)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::int(int)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parts_become_null_and_equal_set_elements_merge() {
        let unknown = || Value::unknown_not_null(Type::String);
        let value = Value::object([("a", Value::set(Type::String, [unknown(), unknown()])), ("b", 1.into())]);
        assert!(!value.is_wholly_known());
        let null = Value::null(Type::String);
        assert_eq!(value.unknown_as_null(), Value::object([("a", Value::set(Type::String, [null])), ("b", 1.into())]));
        let plain = Value::set(Type::String, [Value::unknown(Type::String), Value::unknown(Type::String)]);
        assert_eq!(value.unrefined(), Value::object([("a", plain), ("b", 1.into())]));
    }

    #[test]
    fn a_value_has_the_types_of_its_parts_where_the_declared_type_is_dynamic() {
        let list = Type::list(Type::Dynamic);
        let same = Value::of_items(&list, vec!["a".into(), Value::NULL]);
        assert_eq!(same, Value::list(Type::String, ["a".into(), Value::null(Type::String)]));
        assert_eq!(*Value::of_items(&list, vec!["a".into(), 1.into()]).ty(), list);
        let object = Type::object([("any", Type::Dynamic), ("text", Type::String)]);
        let entries: Entries<Value> = [("any", true.into()), ("text", Value::NULL)].into_iter().collect();
        assert_eq!(
            Value::of_entries(&object, entries),
            Value::object([("any", true.into()), ("text", Value::null(Type::String))])
        );
    }

    #[test]
    fn a_part_of_an_unknown_object_is_unknown_and_that_of_a_null_one_is_null() {
        let ty = Type::object([("a", Type::Bool)]);
        assert_eq!(Value::unknown(ty.clone()).child("a"), Value::unknown(Type::Bool));
        assert_eq!(Value::null(ty).child("a"), Value::null(Type::Bool));
        assert_eq!(Value::object([("a", true.into())]).child("a"), true.into());
    }
}
