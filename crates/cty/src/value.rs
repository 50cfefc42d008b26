//! Values.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Mark, Marks, Number, Range, Type, normalize, set};

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
    Entries(Arc<BTreeMap<Arc<str>, Value>>),
}

impl Value {
    /// A value of which not even the type is known.
    pub const DYNAMIC: Self =
        Self { ty: Type::Dynamic, marks: Marks::NONE, data: Data::Unknown(None), inside: Inside::UNKNOWN };
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
        let items: Vec<Self> = items.into_iter().collect();
        let element = common_type(element, &mut items.iter());
        let items: Arc<[Self]> = items.into_iter().map(|item| item.with_type(&element)).collect();
        Self::raw(Type::list(element), Data::Items(items))
    }

    /// A set of the elements. Their marks become those of the set.
    pub fn set(element: Type, items: impl IntoIterator<Item = Self>) -> Self {
        let mut marks = Marks::NONE;
        let items: Vec<Self> = items.into_iter().map(|item| item.unmarked_deep(&mut marks)).collect();
        let element = common_type(element, &mut items.iter());
        let items = items.into_iter().map(|item| item.with_type(&element)).collect();
        let items = set::ordered(&element, items);
        Self::raw(Type::set(element), Data::Items(items.into())).with_marks(&marks)
    }

    pub fn tuple(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Arc<[Self]> = items.into_iter().collect();
        Self::raw(Type::tuple(items.iter().map(|item| item.ty.clone())), Data::Items(items))
    }

    pub fn map<K: AsRef<str>>(element: Type, entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let mut entries: BTreeMap<Arc<str>, Self> =
            entries.into_iter().map(|(key, item)| (normalize(key.as_ref()), item)).collect();
        let element = common_type(element, &mut entries.values());
        entries.values_mut().for_each(|item| *item = item.clone().with_type(&element));
        Self::raw(Type::map(element), Data::Entries(Arc::new(entries)))
    }

    pub fn object<K: AsRef<str>>(attributes: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries: BTreeMap<Arc<str>, Self> =
            attributes.into_iter().map(|(name, item)| (normalize(name.as_ref()), item)).collect();
        let ty = Type::object(entries.iter().map(|(name, item)| (name.clone(), item.ty.clone())));
        Self::raw(ty, Data::Entries(Arc::new(entries)))
    }

    /// Null and unknown values without a type take that of the collection in which they are.
    fn with_type(self, element: &Type) -> Self {
        if self.ty == Type::Dynamic { Self { ty: element.clone(), ..self } } else { self }
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
    pub fn as_entries(&self) -> Option<&BTreeMap<Arc<str>, Self>> {
        if let Data::Entries(entries) = &self.data { Some(entries) } else { None }
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
        let mut all = Marks::NONE;
        let plain = self.map_values(&mut |value| {
            all.add(&value.marks);
            Self { marks: Marks::NONE, ..value }
        });
        marks.add(&all);
        plain
    }

    /// Changes every part of the value, the innermost first. The type of a part must stay what it is, except in tuples
    /// and objects.
    #[must_use]
    pub fn map_values(&self, change: &mut impl FnMut(Self) -> Self) -> Self {
        let data = match &self.data {
            Data::Items(items) => Data::Items(items.iter().map(|item| item.map_values(change)).collect()),
            Data::Entries(entries) => Data::Entries(Arc::new(
                entries.iter().map(|(name, item)| (name.clone(), item.map_values(change))).collect(),
            )),
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

    #[must_use]
    pub fn refined_not_null(self) -> Self {
        self.refined(|range| Range { not_null: true, ..range })
    }
}

/// The type of the first element that has one; all others are of the same type.
fn common_type(element: Type, items: &mut dyn Iterator<Item = &Value>) -> Type {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return element;
    }
    items.find(|item| item.ty != Type::Dynamic).map_or(Type::Dynamic, |item| item.ty.clone())
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
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
