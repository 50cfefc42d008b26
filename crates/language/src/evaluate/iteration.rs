//! `for` expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::For;

use super::Evaluator;
use crate::cty::{Data, Marks, Type, Value, convert};

/// What becomes of an element.
enum Decision {
    Take,
    Skip,
    /// Not known yet, or wrong: so is the whole result.
    Open,
}

impl Evaluator<'_> {
    pub fn iteration(&mut self, each: &For) -> Value {
        let collection = self.value(&each.collection);
        let range = each.collection.range;
        if collection.is_null() {
            return self.problem("Iteration over null value", "A null value has no elements to iterate over.", range);
        }
        if *collection.ty() == Type::Dynamic {
            return Value::DYNAMIC;
        }
        let mut marks = Marks::NONE;
        let collection = collection.unmarked(&mut marks);
        if collection.ty().is_primitive() {
            let detail = format!("A value of type {} has no elements to iterate over.", collection.ty());
            return self.problem("Iteration over non-iterable value", detail, range);
        }
        let Some(condition_marks) = self.check_condition(each) else { return Value::DYNAMIC };
        if !collection.is_known() {
            return Value::DYNAMIC.with_marks(&marks).with_marks(&condition_marks);
        }
        let elements = elements(&collection);
        let result = match &each.key {
            Some(_) => self.iterated_object(each, elements, &mut marks),
            None => self.iterated_tuple(each, elements, &mut marks),
        };
        result.unwrap_or(Value::DYNAMIC).with_marks(&marks)
    }

    /// Evaluates the condition once with unknown names, so that its type is checked also for an empty collection.
    fn check_condition(&mut self, each: &For) -> Option<Marks> {
        let Some(condition) = &each.condition else { return Some(Marks::NONE) };
        let unknown = Value::DYNAMIC;
        let (result, problems) =
            self.attempt(|evaluator| evaluator.within(each, unknown.clone(), unknown, |inner| inner.value(condition)));
        let failed = !problems.is_empty();
        self.diagnostics.extend(problems);
        if result.is_null() {
            self.problem("Condition is null", "The condition of `if` must not be null.", condition.range);
            return None;
        }
        if let Err(error) = convert(&result, &Type::Bool) {
            let detail = format!("The condition of `if` is invalid: {error}.");
            self.problem("Invalid 'for' condition", detail, condition.range);
            return None;
        }
        (!failed).then(|| result.marks().clone())
    }

    fn within<T>(&mut self, each: &For, key: Value, value: Value, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.locals.len();
        if let Some(name) = &each.key_name {
            self.locals.push((name.text.as_str().into(), key));
        }
        self.locals.push((each.value_name.text.as_str().into(), value));
        let result = evaluate(self);
        self.locals.truncate(before);
        result
    }

    /// Evaluates the condition. Only the first problem is reported: the same one would be reported for each element.
    fn decide(&mut self, each: &For, report: bool, marks: &mut Marks) -> Decision {
        let Some(condition) = &each.condition else { return Decision::Take };
        let include = self.value(condition);
        if include.is_null() {
            if report {
                self.problem("Invalid 'for' condition", "The condition of `if` must not be null.", condition.range);
            }
            return Decision::Open;
        }
        let include = include.unmarked(marks);
        // Of an object, upstream checks the type also while the value is unknown.
        if each.key.is_none() && !include.is_known() {
            return Decision::Open;
        }
        match convert(&include, &Type::Bool) {
            Ok(include) => match include.as_bool() {
                Some(true) => Decision::Take,
                Some(false) => Decision::Skip,
                None => Decision::Open,
            },
            Err(error) => {
                if report {
                    let detail = format!("The condition of `if` is invalid: {error}.");
                    self.problem("Invalid 'for' condition", detail, condition.range);
                }
                Decision::Open
            }
        }
    }

    fn iterated_tuple(&mut self, each: &For, elements: Vec<(Value, Value)>, marks: &mut Marks) -> Option<Value> {
        let mut items = Vec::with_capacity(elements.len());
        let mut known = true;
        for (key, value) in elements {
            self.within(each, key, value, |inner| match inner.decide(each, known, marks) {
                Decision::Take => items.push(inner.value(&each.value)),
                Decision::Skip => {}
                Decision::Open => known = false,
            });
        }
        known.then(|| Value::tuple(items))
    }

    fn iterated_object(&mut self, each: &For, elements: Vec<(Value, Value)>, marks: &mut Marks) -> Option<Value> {
        let mut entries: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
        let mut known = true;
        for (key, value) in elements {
            self.within(each, key, value, |inner| match inner.decide(each, known, marks) {
                Decision::Take => known &= inner.add_entry(each, known, marks, &mut entries),
                Decision::Skip => {}
                Decision::Open => known = false,
            });
        }
        let entries = entries
            .into_iter()
            .filter_map(|(key, mut values)| Some((key, if each.group { Value::tuple(values) } else { values.pop()? })));
        known.then(|| Value::object(entries))
    }

    /// Adds the entry of an element, and gives whether its key is known.
    fn add_entry(
        &mut self,
        each: &For,
        report: bool,
        marks: &mut Marks,
        entries: &mut BTreeMap<Arc<str>, Vec<Value>>,
    ) -> bool {
        let Some(key_expr) = &each.key else { return false };
        let key = self.value(key_expr);
        if key.is_null() {
            if report {
                self.problem("Invalid object key", "The key of a `for` expression must not be null.", key_expr.range);
            }
            return false;
        }
        let key = key.unmarked(marks);
        if !key.is_known() {
            return false;
        }
        let key = match convert(&key, &Type::String) {
            Ok(key) => key,
            Err(error) => {
                if report {
                    let detail = format!("The key of the `for` expression is invalid: {error}.");
                    self.problem("Invalid object key", detail, key_expr.range);
                }
                return false;
            }
        };
        let name = key.as_str().unwrap_or_default();
        let value = self.value(&each.value);
        let values = entries.entry(name.into()).or_default();
        if each.group || values.is_empty() {
            values.push(value);
        } else {
            let detail = format!(
                "Two elements have the key \"{name}\". With `...` after the value, values of the same key are collected."
            );
            self.problem("Duplicate object key", detail, key_expr.range);
        }
        true
    }
}

/// Keys and values of a known collection. The key of a set's element is the element.
pub fn elements(collection: &Value) -> Vec<(Value, Value)> {
    match collection.data() {
        Data::Items(items) if matches!(collection.ty(), Type::Set(_)) => {
            items.iter().map(|item| (item.clone(), item.clone())).collect()
        }
        Data::Items(items) => {
            items.iter().enumerate().map(|(index, item)| (Value::number(index.into()), item.clone())).collect()
        }
        Data::Entries(entries) => entries.iter().map(|(key, item)| (Value::string(key), item.clone())).collect(),
        _ => Vec::new(),
    }
}
