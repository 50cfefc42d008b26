//! Splats: `source[*].each`, and the legacy `source.*.each`.

use hcl::{Expr, Splat};

use super::Evaluator;
use crate::cty::{Marks, Range, Type, Value};

impl Evaluator<'_> {
    pub fn splat(&mut self, splat: &Splat) -> Value {
        let (source, problems) = self.attempt(|evaluator| evaluator.value(&splat.source));
        if !problems.is_empty() {
            self.diagnostics.extend(problems);
            return Value::DYNAMIC;
        }
        let is_sequence = matches!(source.ty(), Type::Tuple(_) | Type::List(_) | Type::Set(_));
        if source.is_null() {
            if !is_sequence {
                return Value::tuple([]).with_marks(source.marks());
            }
            let detail = "A splat cannot be applied to a null list.";
            return self.problem("Splat of null value", detail, splat.source.range);
        }
        if *source.ty() == Type::Dynamic {
            return Value::DYNAMIC.with_marks(source.marks());
        }
        if is_sequence {
            return self.sequence(splat, &source);
        }
        // A single value stands for a tuple of it, which is empty if the value turns out to be null.
        let may_be_null = !source.is_definitely_not_null();
        let marks = source.marks().clone();
        let result = self.sequence(splat, &Value::tuple([source]).with_marks(&marks));
        if may_be_null { Value::DYNAMIC.with_marks(&marks) } else { result }
    }

    fn sequence(&mut self, splat: &Splat, source: &Value) -> Value {
        let mut marks = Marks::NONE;
        let source = source.unmarked(&mut marks);
        if !source.is_known() {
            let ty = self.result_type(splat, source.ty());
            let lengths = source.range();
            let range = match (&ty, source.ty().is_collection()) {
                (Type::List(_), true) => Range::not_null().with_lengths(lengths.min_length, lengths.max_length),
                _ => Range::not_null(),
            };
            return Value::unknown_in(ty, range).with_marks(&marks);
        }
        let items = source.as_items().unwrap_or_default();
        let mut results = Vec::with_capacity(items.len());
        let mut failed = false;
        for item in items {
            let (result, problems) = self.attempt(|evaluator| evaluator.each(&splat.each, item.clone()));
            failed |= !problems.is_empty();
            self.diagnostics.extend(problems);
            results.push(result);
        }
        if failed {
            let (ty, _) = self.attempt(|evaluator| evaluator.result_type(splat, source.ty()));
            return Value::unknown(ty).with_marks(&marks);
        }
        if let Type::Tuple(_) = source.ty() {
            return Value::tuple(results).with_marks(&marks);
        }
        let mut types = results.iter().map(Value::ty).filter(|ty| **ty != Type::Dynamic);
        if types.next().is_some_and(|first| types.any(|ty| ty != first)) {
            let detail = "The elements have different types, so they are no list. Use a `for` expression instead.";
            return self.problem("Invalid nested splat expressions", detail, splat.each.range);
        }
        let element = match results.first() {
            Some(first) => first.ty().clone(),
            None => self.result_type(splat, source.ty()).element().cloned().unwrap_or(Type::Dynamic),
        };
        Value::list(element, results).with_marks(&marks)
    }

    fn each(&mut self, each: &Expr, item: Value) -> Value {
        self.items.push(item);
        let result = self.value(each);
        self.items.pop();
        result
    }

    /// The type of the result, from the types of the elements alone.
    fn result_type(&mut self, splat: &Splat, source: &Type) -> Type {
        match source {
            Type::List(element) | Type::Set(element) => {
                Type::list(self.each(&splat.each, Value::unknown((**element).clone())).ty().clone())
            }
            Type::Tuple(elements) => {
                let types: Vec<Type> = elements
                    .iter()
                    .map(|element| self.each(&splat.each, Value::unknown(element.clone())).ty().clone())
                    .collect();
                Type::tuple(types)
            }
            _ => Type::Dynamic,
        }
    }
}
