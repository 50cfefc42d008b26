//! Arithmetic and logic. Operands have the right type and are not null; a result is unknown if an operand is.

use super::{Data, Marks, Number, Range, Type, Value};

/// The result of an operation on two values: the operands without marks, then the marks on the result.
pub(crate) fn with_marks_of(
    a: &Value,
    b: &Value,
    operation: impl FnOnce(&Value, &Value) -> Option<Value>,
) -> Option<Value> {
    if !a.is_marked() && !b.is_marked() {
        return operation(a, b);
    }
    let mut marks = Marks::NONE;
    let (a, b) = (a.unmarked(&mut marks), b.unmarked(&mut marks));
    Some(operation(&a, &b)?.with_marks(&marks))
}

type Arithmetic = fn(&Number, &Number) -> Option<Number>;

impl Value {
    /// `None` if the result is not a number or too large.
    pub fn add(&self, other: &Self) -> Option<Self> {
        arithmetic(self, other, Number::add, true)
    }

    pub fn subtract(&self, other: &Self) -> Option<Self> {
        arithmetic(self, other, Number::subtract, true)
    }

    pub fn multiply(&self, other: &Self) -> Option<Self> {
        arithmetic(self, other, Number::multiply, true)
    }

    pub fn divide(&self, other: &Self) -> Option<Self> {
        arithmetic(self, other, Number::divide, false)
    }

    pub fn remainder(&self, other: &Self) -> Option<Self> {
        arithmetic(self, other, Number::remainder, false)
    }

    #[must_use]
    pub fn negate(&self) -> Self {
        match self.data() {
            Data::Number(number) => Self::number(number.negated()).with_marks(self.marks()),
            _ => Self::unknown_not_null(Type::Number).with_marks(self.marks()),
        }
    }

    #[must_use]
    pub fn absolute(&self) -> Self {
        match self.data() {
            Data::Number(number) => Self::number(number.absolute()).with_marks(self.marks()),
            _ => {
                let range = Range::not_null().with_lower(Number::ZERO, true);
                Self::unknown_in(Type::Number, range).with_marks(self.marks())
            }
        }
    }

    #[must_use]
    pub fn not(&self) -> Self {
        match self.as_bool() {
            Some(bool) => Self::bool(!bool).with_marks(self.marks()),
            None => Self::unknown_not_null(Type::Bool).with_marks(self.marks()),
        }
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        logic(self, other, false)
    }

    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        logic(self, other, true)
    }
}

/// One operand that decides is enough, even if the other one is unknown.
fn logic(a: &Value, b: &Value, decides: bool) -> Value {
    let result = match (a.as_bool(), b.as_bool()) {
        (Some(a), _) | (_, Some(a)) if a == decides => Value::bool(decides),
        (Some(_), Some(_)) => Value::bool(!decides),
        _ => Value::unknown_not_null(Type::Bool),
    };
    result.with_marks(a.marks()).with_marks(b.marks())
}

fn arithmetic(a: &Value, b: &Value, operation: Arithmetic, monotone: bool) -> Option<Value> {
    with_marks_of(a, b, |a, b| match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => operation(a, b).map(Value::number),
        _ if monotone => Some(Value::unknown_in(Type::Number, range_of(&a.range(), &b.range(), operation))),
        _ => Some(Value::unknown_not_null(Type::Number)),
    })
}

/// The bounds of a monotone operation are among the results at the bounds of its operands.
fn range_of(a: &Range, b: &Range, operation: Arithmetic) -> Range {
    let corners: Option<Vec<Number>> = [(a.lower_bound().0, b.lower_bound().0), (a.lower_bound().0, b.upper_bound().0)]
        .into_iter()
        .chain([(a.upper_bound().0, b.lower_bound().0), (a.upper_bound().0, b.upper_bound().0)])
        .map(|(a, b)| operation(&a, &b))
        .collect();
    let mut range = Range::not_null();
    // A corner that is no number says nothing about the others.
    let Some(corners) = corners else { return range };
    if let Some(lower) = corners.iter().min_by(|a, b| a.compare(b)) {
        range = range.with_lower(lower.clone(), true);
    }
    if let Some(upper) = corners.iter().max_by(|a, b| a.compare(b)) {
        range = range.with_upper(upper.clone(), true);
    }
    range
}
