//! Sensitive marks: drivers do not handle them, so they are restored from configuration and schema.

use std::sync::Arc;

use crate::model::{PlanResponse, Schema, Value};

/// Marks every attribute that is sensitive in the schema.
pub(super) fn by_schema(value: Value, schema: &Schema) -> Value {
    let Value::Map(map) = &value else { return value };
    let unmarked = |name: &Arc<str>| {
        let shown = map.get(name).is_some_and(|item| !matches!(item, Value::Sensitive(_) | Value::Null));
        shown.then(|| name.clone())
    };
    let names: Vec<Arc<str>> = schema
        .attributes
        .iter()
        .filter(|(_, attribute)| attribute.sensitive)
        .filter_map(|(n, _)| unmarked(n))
        .collect();
    if names.is_empty() {
        return value;
    }
    let mut marked = map.to_tree();
    for name in names {
        if let Some(item) = marked.get_mut(&name) {
            *item = std::mem::take(item).into_sensitive();
        }
    }
    Value::Map(marked.into())
}

/// Marks each value at a path where `pattern` has a mark, as far as both have the same shape. Null stays unmarked,
/// because the absence of a value is not secret.
pub(super) fn like(value: Value, pattern: &Value) -> Value {
    if !pattern.has_sensitive() {
        return value;
    }
    match (&value, pattern) {
        (Value::Null, _) => value,
        (_, Value::Sensitive(_)) => value.into_sensitive(),
        (Value::Map(items), Value::Map(patterns)) => Value::map(items.iter().map(|(name, item)| {
            let pattern = patterns.get(name).unwrap_or(&Value::Null);
            (name.clone(), like(item.clone(), pattern))
        })),
        (Value::List(items), Value::List(patterns)) => Value::list(items.iter().enumerate().map(|(at, item)| {
            // New items of a longer list get the mark of the last known item.
            let pattern = patterns.get(at).or(patterns.last()).unwrap_or(&Value::Null);
            like(item.clone(), pattern)
        })),
        _ => value,
    }
}

/// The response with the marks of the schema and the configuration.
pub(super) fn marked(response: PlanResponse, config: &Value, schema: &Schema) -> PlanResponse {
    let planned = like(by_schema(response.planned, schema), config);
    PlanResponse { planned, ..response }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_follow_the_pattern() {
        let pattern = Value::map([("a", Value::from("x").into_sensitive()), ("b", Value::from("y"))]);
        let value = Value::map([("a", Value::from(1)), ("b", Value::from(2)), ("c", Value::Null)]);
        let marked = like(value, &pattern);
        assert_eq!(marked.get("a"), Some(&Value::from(1).into_sensitive()));
        assert_eq!(marked.get("b"), Some(&Value::from(2)));
    }
}
