//! Sensitive marks: a value stays marked on its way from configuration and schema through drivers, which know of none.

use std::sync::Arc;

use crate::model::{PlanResponse, Schema, Value};

/// The value with every attribute marked that the schema calls sensitive.
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

/// The value with a mark at each place where `pattern` has one, as far as both have the same shape. Null stays
/// unmarked: that nothing is set is no secret of the driver's value.
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
            // A list that grew: what is new is as secret as the last place known.
            let pattern = patterns.get(at).or(patterns.last()).unwrap_or(&Value::Null);
            like(item.clone(), pattern)
        })),
        _ => value,
    }
}

/// What the planner asks and gets of `PlanResponse`, with marks: the driver's values know of none.
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
