//! Names, attributes and indexes.

use hcl::{Diagnostic, Literal, Range, Step, Traversal};

use super::Evaluator;
use crate::cty::{Number, Type, Value, convert};

impl Evaluator<'_> {
    pub fn traversal(&mut self, traversal: &Traversal) -> Value {
        let name = &traversal.root.text;
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| **local == **name) {
            let value = value.clone();
            return self.steps(value, &traversal.steps);
        }
        match self.environment.resolve(traversal) {
            Ok((value, taken)) => self.steps(value, &traversal.steps[taken.min(traversal.steps.len())..]),
            Err(diagnostic) => {
                self.diagnostics.push(diagnostic);
                Value::DYNAMIC
            }
        }
    }

    pub fn steps(&mut self, value: Value, steps: &[Step]) -> Value {
        match traverse(value, steps) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.diagnostics.push(diagnostic);
                Value::DYNAMIC
            }
        }
    }

    pub fn index(&mut self, collection: &Value, key: &Value, range: Range) -> Value {
        match index(collection, key) {
            Ok(value) => value,
            Err((summary, detail)) => self.problem(summary, detail, range),
        }
    }
}

/// Takes steps into a value.
pub fn traverse(value: Value, steps: &[Step]) -> Result<Value, Diagnostic> {
    steps.iter().try_fold(value, |value, step| {
        let result = match step {
            Step::Attribute(name) => attribute(&value, &name.text),
            Step::Index { key, .. } => index(&value, &key_value(key)),
            Step::Splat { .. } => Err(("Invalid reference", "A splat is not allowed here.".to_owned())),
        };
        result.map_err(|(summary, detail)| Diagnostic::new(summary, detail, step.range()))
    })
}

type Problem = (&'static str, String);

fn key_value(key: &Literal) -> Value {
    match key {
        Literal::Number(digits) => Number::parse(digits).map_or(Value::DYNAMIC, Value::number),
        Literal::String(text) => Value::string(text),
        Literal::Bool(bool) => Value::bool(*bool),
        Literal::Null => Value::null(Type::Dynamic),
    }
}

fn attribute(value: &Value, name: &str) -> Result<Value, Problem> {
    const UNSUPPORTED: &str = "Unsupported attribute";
    if value.is_null() {
        return Err((
            "Attempt to get attribute from null value",
            "This value is null, so it has no attributes.".into(),
        ));
    }
    match value.ty() {
        Type::Dynamic => Ok(Value::DYNAMIC.with_marks(value.marks())),
        Type::Object(_) => value
            .attribute(name)
            .ok_or_else(|| (UNSUPPORTED, format!("This object does not have an attribute named \"{name}\"."))),
        Type::Map(_) => value.index(&Value::string(name)).ok_or_else(|| {
            ("Missing map element", format!("This map does not have an element with the key \"{name}\"."))
        }),
        Type::List(element) | Type::Set(element) if matches!(**element, Type::Object(_)) => {
            let detail = "A list or set of objects has no attributes; select an element, or take the attribute of all \
                          of them with `[*]`.";
            Err((UNSUPPORTED, detail.to_owned()))
        }
        other => Err((UNSUPPORTED, format!("A value of type {other} does not have any attributes."))),
    }
}

fn index(collection: &Value, key: &Value) -> Result<Value, Problem> {
    const INVALID: &str = "Invalid index";
    if collection.is_null() {
        return Err(("Attempt to index null value", "This value is null, so it has no elements.".into()));
    }
    if key.is_null() {
        return Err((INVALID, "Null cannot be used as an index.".into()));
    }
    let wanted = match collection.ty() {
        _ if *key.ty() == Type::Dynamic => return Ok(Value::DYNAMIC.with_marks(collection.marks())),
        Type::Dynamic => return Ok(Value::DYNAMIC.with_marks(collection.marks())),
        Type::List(_) | Type::Tuple(_) => Type::Number,
        Type::Map(_) | Type::Object(_) => Type::String,
        Type::Set(_) => {
            let detail = "The elements of a set have no index. Use a `for` expression, or convert the set to a list if \
                          the order does not matter.";
            return Err((INVALID, detail.into()));
        }
        other => return Err((INVALID, format!("A value of type {other} has no elements."))),
    };
    let key = convert(key, &wanted).map_err(|error| (INVALID, format!("The key does not fit: {error}.")))?;
    if let Type::Object(_) = collection.ty() {
        return object_index(collection, &key);
    }
    match collection.has_index(&key).as_bool() {
        None => {
            let ty = collection.ty().element().cloned().unwrap_or(Type::Dynamic);
            Ok(Value::unknown(ty).with_marks(collection.marks()))
        }
        Some(true) => collection.index(&key).ok_or_else(|| (INVALID, String::new())),
        Some(false) => Err((INVALID, why_no_element(collection, &key))),
    }
}

fn object_index(object: &Value, key: &Value) -> Result<Value, Problem> {
    let Some(name) = key.as_str().filter(|_| object.is_known()) else {
        return Ok(Value::DYNAMIC.with_marks(object.marks()));
    };
    object
        .attribute(name)
        .ok_or_else(|| ("Invalid index", "The object has no attribute with the name that the key gives.".to_owned()))
}

fn why_no_element(collection: &Value, key: &Value) -> String {
    let Some(number) = key.as_number() else { return "The map has no element with the given key.".to_owned() };
    if !number.is_integer() {
        "An index must be a whole number.".to_owned()
    } else if number.signum() < 0 {
        "An index must not be negative.".to_owned()
    } else if collection.length().as_number().is_some_and(Number::is_zero) {
        "The collection has no elements.".to_owned()
    } else {
        "The index is greater than that of the last element.".to_owned()
    }
}
