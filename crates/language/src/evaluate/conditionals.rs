//! `condition ? if_true : if_false`.

use hcl::{Conditional, Diagnostic, Range};

use super::Evaluator;
use crate::cty::{self, Marks, Type, Unified, Value, convert, unify_unsafe};

/// The common type of both results, and how each converts to it.
enum Common {
    /// One is a null without a type, so it takes the other's.
    Of(Type),
    Unified(Unified),
    /// A type is not known yet.
    Open,
}

impl Evaluator<'_> {
    pub fn conditional(&mut self, conditional: &Conditional) -> Value {
        let (if_true, true_problems) = self.attempt(|evaluator| evaluator.value(&conditional.if_true));
        let (if_false, false_problems) = self.attempt(|evaluator| evaluator.value(&conditional.if_false));
        let results = conditional.if_true.range.to(conditional.if_false.range);
        let Some(common) = common_type(&if_true, &if_false) else {
            let detail = format!(
                "Both results must have one type. The first one is {}, and the second one is {}.",
                if_true.ty(),
                if_false.ty()
            );
            return self.problem("Inconsistent conditional result types", detail, results);
        };
        let ty = match &common {
            Common::Of(ty) => ty.clone(),
            Common::Unified(unified) => unified.ty.clone(),
            Common::Open => Type::Dynamic,
        };
        let condition = self.value(&conditional.condition);
        let range = conditional.condition.range;
        if condition.is_null() {
            self.problem("Null condition", "The condition is null; it must be true or false.", range);
            return Value::unknown(ty);
        }
        let mut marks = Marks::NONE;
        let condition = condition.unmarked(&mut marks);
        let (if_true, if_false) = (if_true.unmarked(&mut marks), if_false.unmarked(&mut marks));
        if !condition.is_known() {
            return either(&if_true, &if_false, ty).with_marks(&marks);
        }
        let Some(choice) = convert(&condition, &Type::Bool).ok().and_then(|condition| condition.as_bool()) else {
            self.problem("Incorrect condition type", "The condition must be a bool.", range);
            return Value::unknown(ty);
        };
        let (chosen, problems, range) = if choice {
            (if_true, true_problems, conditional.if_true.range)
        } else {
            (if_false, false_problems, conditional.if_false.range)
        };
        self.chosen(&chosen, problems, &common, ty, range).with_marks(&marks)
    }

    fn chosen(&mut self, value: &Value, problems: Vec<Diagnostic>, common: &Common, ty: Type, range: Range) -> Value {
        self.diagnostics.extend(problems);
        let converted: Result<Value, cty::Error> = match common {
            Common::Of(ty) => convert(value, ty),
            Common::Unified(unified) => unified.convert(value),
            Common::Open => Ok(value.clone()),
        };
        converted.unwrap_or_else(|error| {
            let detail = format!("The result has a wrong type: {error}.");
            self.problem("Inconsistent conditional result types", detail, range);
            Value::unknown(ty)
        })
    }
}

/// `None` if there is no common type.
fn common_type(a: &Value, b: &Value) -> Option<Common> {
    if is_untyped_null(a) {
        return Some(Common::Of(b.ty().clone()));
    }
    if is_untyped_null(b) {
        return Some(Common::Of(a.ty().clone()));
    }
    if *a.ty() == Type::Dynamic || *b.ty() == Type::Dynamic {
        return Some(Common::Open);
    }
    unify_unsafe(&[a.ty().clone(), b.ty().clone()]).map(Common::Unified)
}

fn is_untyped_null(value: &Value) -> bool {
    value.is_null() && *value.ty() == Type::Dynamic && !value.is_marked()
}

/// What is known of the result while the condition is unknown: what both results have in common.
fn either(a: &Value, b: &Value, ty: Type) -> Value {
    if a.is_null() && b.is_null() {
        return Value::null(ty);
    }
    let (a_range, b_range) = (a.range(), b.range());
    let not_null = a_range.not_null && b_range.not_null;
    let mut range = cty::Range { not_null, ..cty::Range::default() };
    if *a.ty() == Type::Number && *b.ty() == Type::Number {
        if let (Some(a), Some(b)) = (&a_range.lower, &b_range.lower) {
            let lower = if a.0 == b.0 {
                (a.0.clone(), a.1 || b.1)
            } else if a.0.compare(&b.0).is_lt() {
                a.clone()
            } else {
                b.clone()
            };
            range = range.with_lower(lower.0, lower.1);
        }
        if let (Some(a), Some(b)) = (&a_range.upper, &b_range.upper) {
            let upper = if a.0 == b.0 {
                (a.0.clone(), a.1 || b.1)
            } else if a.0.compare(&b.0).is_gt() {
                a.clone()
            } else {
                b.clone()
            };
            range = range.with_upper(upper.0, upper.1);
        }
    } else if a.ty() == b.ty() && a.ty().is_collection() {
        let most = a_range.max_length.zip(b_range.max_length).map(|(a, b)| a.max(b));
        range = range.with_lengths(a_range.min_length.min(b_range.min_length), most);
    }
    Value::unknown_in(ty, range)
}
