//! What is known about an unknown value.

use std::sync::Arc;

use super::{Data, Entries, Number, Type, Value};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub not_null: bool,
    /// A string begins with this.
    pub prefix: Option<Arc<str>>,
    /// The lower bound of a number, and whether it is inclusive.
    pub lower: Option<(Number, bool)>,
    /// The upper bound of a number, and whether it is inclusive.
    pub upper: Option<(Number, bool)>,
    /// The smallest number of elements of a collection.
    pub min_length: usize,
    /// The largest number of elements of a collection.
    pub max_length: Option<usize>,
}

impl Range {
    pub fn not_null() -> Self {
        Self { not_null: true, ..Self::default() }
    }

    #[must_use]
    pub fn with_lengths(mut self, min: usize, max: Option<usize>) -> Self {
        self.min_length = self.min_length.max(min);
        self.max_length = match (self.max_length, max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self
    }

    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        let longer = self.prefix.as_ref().is_none_or(|known| known.len() < prefix.len());
        if longer && !prefix.is_empty() {
            self.prefix = Some(prefix.into());
        }
        self
    }

    #[must_use]
    pub fn with_lower(mut self, bound: Number, inclusive: bool) -> Self {
        let weaker = self.lower.as_ref().is_some_and(|(known, _)| bound.compare(known).is_lt());
        if !weaker && bound != Number::NEGATIVE_INFINITY {
            self.lower = Some((bound, inclusive));
        }
        self
    }

    #[must_use]
    pub fn with_upper(mut self, bound: Number, inclusive: bool) -> Self {
        let weaker = self.upper.as_ref().is_some_and(|(known, _)| bound.compare(known).is_gt());
        if !weaker && bound != Number::INFINITY {
            self.upper = Some((bound, inclusive));
        }
        self
    }

    pub(crate) fn lower_bound(&self) -> (Number, bool) {
        self.lower.clone().unwrap_or((Number::NEGATIVE_INFINITY, false))
    }

    pub(crate) fn upper_bound(&self) -> (Number, bool) {
        self.upper.clone().unwrap_or((Number::INFINITY, false))
    }

    /// Whether an unknown value of this range and type cannot turn out to be this known value.
    pub fn excludes(&self, ty: &Type, value: &Value) -> bool {
        if value.is_null() {
            return self.not_null;
        }
        if !value.ty().conforms_to(ty) {
            return true;
        }
        match value.data() {
            Data::String(text) => self.prefix.as_ref().is_some_and(|prefix| !text.starts_with(&**prefix)),
            Data::Number(number) => {
                let below = self
                    .lower
                    .as_ref()
                    .is_some_and(|(bound, inclusive)| number.compare(bound).is_lt() || (!inclusive && number == bound));
                let above = self
                    .upper
                    .as_ref()
                    .is_some_and(|(bound, inclusive)| number.compare(bound).is_gt() || (!inclusive && number == bound));
                below || above
            }
            Data::Items(_) | Data::Entries(_) if ty.is_collection() => {
                let (least, most) = value.length_bounds();
                most.is_some_and(|most| most < self.min_length) || self.max_length.is_some_and(|max| least > max)
            }
            _ => false,
        }
    }

    /// The unknown value of this type and range, or the known one if only one value is possible.
    pub(crate) fn into_value(self, ty: Type) -> Value {
        if ty == Type::Dynamic {
            return Value::DYNAMIC;
        }
        if self.not_null {
            if let (Some((lower, true)), Some((upper, true))) = (&self.lower, &self.upper)
                && lower == upper
            {
                return Value::number(lower.clone());
            }
            if self.max_length == Some(self.min_length)
                && let Some(known) = of_length(&ty, self.min_length)
            {
                return known;
            }
        }
        Value::raw(ty, Data::Unknown((self != Self::default()).then(|| Arc::new(self))))
    }
}

/// A collection of unknown elements. Above a million of them, knowing the length is worth less than the memory.
fn of_length(ty: &Type, length: usize) -> Option<Value> {
    match (ty, length) {
        (Type::List(_) | Type::Set(_), 0) => Some(Value::raw(ty.clone(), Data::Items([].into()))),
        (Type::Map(_), 0) => Some(Value::raw(ty.clone(), Data::Entries(Entries::default()))),
        (Type::List(element), 1..=1_000_000) => {
            let unknown = Value::unknown((**element).clone());
            Some(Value::raw(ty.clone(), Data::Items(vec![unknown; length].into())))
        }
        (Type::Set(element), 1) => {
            Some(Value::raw(ty.clone(), Data::Items([Value::unknown((**element).clone())].into())))
        }
        _ => None,
    }
}
