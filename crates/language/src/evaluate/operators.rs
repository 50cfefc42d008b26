//! Operators.

use hcl::{BinaryOperator, Diagnostic, Expr, ExprKind, Range, UnaryOperator};

use super::Evaluator;
use crate::cty::{Marks, Type, Value, convert};

/// The types of the operands and of the result.
fn types(operator: BinaryOperator) -> (Type, Type) {
    match operator {
        BinaryOperator::Or | BinaryOperator::And => (Type::Bool, Type::Bool),
        BinaryOperator::Equal | BinaryOperator::NotEqual => (Type::Dynamic, Type::Bool),
        BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual
        | BinaryOperator::Less
        | BinaryOperator::LessOrEqual => (Type::Number, Type::Bool),
        _ => (Type::Number, Type::Number),
    }
}

/// The value of an operand in the type of the operator, and its own problems.
type Operand = (Option<Value>, Vec<Diagnostic>);

impl Evaluator<'_> {
    /// A chain such as `a + b + c` is deep on its left side, so that side is walked with a loop.
    pub fn binary(&mut self, expr: &Expr) -> Value {
        let mut chain = Vec::new();
        let mut left = expr;
        while let ExprKind::Binary(binary) = &left.kind {
            chain.push((left.range, binary));
            left = &binary.left;
        }
        let (mut value, mut problems) = self.attempt(|evaluator| evaluator.value(left));
        let mut left_range = left.range;
        for (range, binary) in chain.into_iter().rev() {
            let wanted = types(binary.operator).0;
            let left = operand(value, problems, &wanted, left_range);
            let (right, right_problems) = self.attempt(|evaluator| evaluator.value(&binary.right));
            let right = operand(right, right_problems, &wanted, binary.right.range);
            (value, problems) = self.attempt(|evaluator| evaluator.operation(binary.operator, left, right, range));
            left_range = range;
        }
        self.diagnostics.extend(problems);
        value
    }

    fn operation(&mut self, operator: BinaryOperator, left: Operand, right: Operand, range: Range) -> Value {
        let ty = types(operator).1;
        let ((Some(a), a_problems), (Some(b), b_problems)) = (&left, &right) else {
            self.diagnostics.extend(left.1.into_iter().chain(right.1));
            return Value::unknown(ty);
        };
        if let Err(failure) = self.scope.budget.walk(&[a.clone(), b.clone()]) {
            return self.problem("Evaluation stopped", failure.message, range);
        }
        let mut marks = Marks::NONE;
        let (a, b) = (a.unmarked_deep(&mut marks), b.unmarked_deep(&mut marks));
        if let BinaryOperator::Or | BinaryOperator::And = operator {
            let decides = operator == BinaryOperator::Or;
            if let Some((value, problems)) = short_circuit(decides, &a, &b, a_problems, b_problems) {
                self.diagnostics.extend(problems.iter().cloned());
                return value.with_marks(&marks);
            }
        }
        let failed = !(a_problems.is_empty() && b_problems.is_empty());
        self.diagnostics.extend(left.1.into_iter().chain(right.1));
        if failed {
            return Value::unknown(ty).with_marks(&marks);
        }
        match apply(operator, &a, &b) {
            Ok(value) => value.with_marks(&marks),
            Err(detail) => {
                self.problem("Operation failed", detail, range);
                Value::unknown(ty)
            }
        }
    }

    pub fn unary(&mut self, operator: UnaryOperator, operand_expr: &Expr, range: Range) -> Value {
        let ty = match operator {
            UnaryOperator::Negate => Type::Number,
            UnaryOperator::Not => Type::Bool,
        };
        let (value, problems) = self.attempt(|evaluator| evaluator.value(operand_expr));
        let (value, problems) = operand(value, problems, &ty, operand_expr.range);
        let failed = !problems.is_empty();
        self.diagnostics.extend(problems);
        let Some(value) = value.filter(|_| !failed) else { return Value::unknown(ty) };
        if value.is_null() {
            self.problem("Operation failed", "The operand is null.", range);
            return Value::unknown(ty);
        }
        match operator {
            UnaryOperator::Negate => value.negate(),
            UnaryOperator::Not => value.not(),
        }
    }
}

fn operand(value: Value, mut problems: Vec<Diagnostic>, wanted: &Type, range: Range) -> Operand {
    match convert(&value, wanted) {
        Ok(value) => (Some(value), problems),
        Err(error) => {
            problems.push(Diagnostic::new("Invalid operand", format!("The operand does not fit: {error}."), range));
            (None, problems)
        }
    }
}

/// One operand may decide, and then the problems of the other one do not matter.
fn short_circuit<'p>(
    decides: bool,
    a: &Value,
    b: &Value,
    a_problems: &'p [Diagnostic],
    b_problems: &'p [Diagnostic],
) -> Option<(Value, &'p [Diagnostic])> {
    match (a.is_known(), b.is_known()) {
        (false, false) if a_problems.is_empty() => Some((Value::unknown_not_null(Type::Bool), a_problems)),
        (false, false) => None,
        _ if is(a, decides) => Some((Value::bool(decides), a_problems)),
        _ if is(b, decides) => Some((Value::bool(decides), b_problems)),
        (false, true) => Some((Value::unknown_not_null(Type::Bool), a_problems)),
        (true, false) => Some((Value::unknown_not_null(Type::Bool), b_problems)),
        (true, true) => None,
    }
}

/// Null is not true, and that is enough to decide.
fn is(value: &Value, bool: bool) -> bool {
    value.is_known() && (value.as_bool() == Some(true)) == bool
}

fn apply(operator: BinaryOperator, a: &Value, b: &Value) -> Result<Value, String> {
    match operator {
        BinaryOperator::Equal => return Ok(a.equals(b)),
        BinaryOperator::NotEqual => return Ok(a.equals(b).not()),
        _ if a.is_null() || b.is_null() => return Err("An operand is null.".to_owned()),
        _ => {}
    }
    match operator {
        BinaryOperator::Or => Ok(a.or(b)),
        BinaryOperator::And => Ok(a.and(b)),
        BinaryOperator::Greater => Ok(a.greater_than(b)),
        BinaryOperator::GreaterOrEqual => Ok(a.at_least(b)),
        BinaryOperator::Less => Ok(a.less_than(b)),
        BinaryOperator::LessOrEqual => Ok(a.at_most(b)),
        BinaryOperator::Add => arithmetic(a, b, Value::add),
        BinaryOperator::Subtract => arithmetic(a, b, Value::subtract),
        BinaryOperator::Multiply => arithmetic(a, b, Value::multiply),
        BinaryOperator::Divide => arithmetic(a, b, Value::divide),
        BinaryOperator::Modulo => arithmetic(a, b, Value::remainder),
        BinaryOperator::Equal | BinaryOperator::NotEqual => Ok(Value::DYNAMIC),
    }
}

fn arithmetic(a: &Value, b: &Value, operation: fn(&Value, &Value) -> Option<Value>) -> Result<Value, String> {
    if a.is_known() && b.is_known() {
        operation(a, b).ok_or_else(|| "The result is not a number.".to_owned())
    } else {
        Ok(Value::unknown_not_null(Type::Number))
    }
}
