//! The order of numbers, and lengths.

use super::operations::with_marks_of;
use super::{Data, Marks, Number, Range, Type, Value};

impl Value {
    #[must_use]
    pub fn less_than(&self, other: &Self) -> Self {
        with_marks_of(self, other, |a, b| Some(strictly_less(a, b))).unwrap_or(Self::DYNAMIC)
    }

    #[must_use]
    pub fn greater_than(&self, other: &Self) -> Self {
        with_marks_of(self, other, |a, b| Some(strictly_less(b, a))).unwrap_or(Self::DYNAMIC)
    }

    #[must_use]
    pub fn at_most(&self, other: &Self) -> Self {
        self.less_than(other).or(&self.equals(other))
    }

    #[must_use]
    pub fn at_least(&self, other: &Self) -> Self {
        self.greater_than(other).or(&self.equals(other))
    }

    /// The number of elements of a collection or tuple that is not null.
    #[must_use]
    pub fn length(&self) -> Self {
        let mut marks = Marks::NONE;
        let value = self.unmarked(&mut marks);
        if let Type::Tuple(elements) = value.ty() {
            return Self::number(elements.len().into()).with_marks(&marks);
        }
        let (least, most) = value.length_bounds();
        let length = match most {
            Some(most) if most == least => Self::number(least.into()),
            _ => {
                let range = Range::not_null().with_lower(Number::from(least), true);
                // A collection without a bound still has at most as many elements as 64 bits can count.
                let most = most.unwrap_or(i64::MAX as usize);
                Self::unknown_in(Type::Number, range.with_upper(Number::from(most), true))
            }
        };
        length.with_marks(&marks)
    }

    pub(crate) fn length_bounds(&self) -> (usize, Option<usize>) {
        match self.data() {
            Data::Items(items) if self.length_is_known() => (items.len(), Some(items.len())),
            Data::Items(items) => (1, Some(items.len())),
            Data::Entries(entries) => (entries.len(), Some(entries.len())),
            Data::Unknown(Some(range)) => (range.min_length, range.max_length),
            _ => (0, None),
        }
    }

    /// Elements of a set that are unknown may turn out to be equal to others.
    pub(crate) fn length_is_known(&self) -> bool {
        match (self.ty(), self.data()) {
            (Type::Set(_), Data::Items(items)) => items.len() <= 1 || self.is_wholly_known(),
            (_, Data::Items(_) | Data::Entries(_)) => true,
            _ => false,
        }
    }
}

fn strictly_less(a: &Value, b: &Value) -> Value {
    if let (Some(a), Some(b)) = (a.as_number(), b.as_number()) {
        return Value::bool(a.compare(b).is_lt());
    }
    if *a.ty() == Type::Number && *b.ty() == Type::Number {
        let (a, b) = (a.range(), b.range());
        if a.upper_bound().0.compare(&b.lower_bound().0).is_lt() {
            return Value::TRUE;
        }
        if a.lower_bound().0.compare(&b.upper_bound().0).is_gt() {
            return Value::FALSE;
        }
    }
    Value::unknown_not_null(Type::Bool)
}
