//! Sensitive marks: drivers do not handle them, so they are restored from configuration and schema.

use std::sync::Arc;

use model::{PlanResponse, Schema, Value};

/// Marks every attribute that is sensitive in the schema.
pub fn by_schema(value: Value, schema: &Schema) -> Value {
    let Value::Map(map) = &value else { return value };
    let names: Vec<Arc<str>> = schema
        .attributes
        .iter()
        .filter(|(_, attribute)| attribute.sensitive)
        .map(|(name, _)| name)
        .filter(|name| map.get(name).is_some_and(|item| !matches!(item, Value::Sensitive(_) | Value::Null)))
        .cloned()
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

/// Marks each value at a path where `pattern` has a mark. A value of another shape is marked as a whole. Null stays
/// unmarked, because the absence of a value is not secret.
///
/// The items of `value` may have another order or number: sets are sorted, and other clients insert and remove items.
/// So unless each marked value is still at its place, what is sensitive in one item is sensitive in all of them.
pub fn like(value: Value, pattern: &Value) -> Value {
    if !pattern.has_sensitive() {
        return value;
    }
    match (&value, pattern) {
        (Value::Null, _) => value,
        (Value::Map(items), Value::Map(patterns)) => Value::map(items.iter().map(|(name, item)| {
            let pattern = patterns.get(name).unwrap_or(&Value::Null);
            (name.clone(), like(item.clone(), pattern))
        })),
        (Value::List(items), Value::List(patterns)) if are_in_place(&value, pattern) => {
            Value::list(items.iter().zip(patterns.iter()).map(|(item, pattern)| like(item.clone(), pattern)))
        }
        (Value::List(items), Value::List(patterns)) => {
            let pattern = patterns.iter().fold(Value::Null, merged);
            Value::list(items.iter().map(|item| like(item.clone(), &pattern)))
        }
        _ => value.into_sensitive(),
    }
}

/// Whether each marked value of `pattern` is at the same path of `value`.
fn are_in_place(value: &Value, pattern: &Value) -> bool {
    if !pattern.has_sensitive() {
        return true;
    }
    match (value, pattern) {
        (_, Value::Sensitive(_)) => value.equals_unmarked(pattern),
        (Value::Map(items), Value::Map(patterns)) => {
            patterns.iter().all(|(name, pattern)| are_in_place(items.get(name).unwrap_or(&Value::Null), pattern))
        }
        (Value::List(items), Value::List(patterns)) => {
            items.len() == patterns.len()
                && items.iter().zip(patterns.iter()).all(|(item, pattern)| are_in_place(item, pattern))
        }
        _ => false,
    }
}

/// A pattern with the marks of both, for a value that may correspond to either.
fn merged(one: Value, other: &Value) -> Value {
    match (one, other) {
        (one, other) if !other.has_sensitive() => one,
        (one, other) if !one.has_sensitive() => other.clone(),
        (Value::Map(one), Value::Map(other)) => {
            let mut both = one.to_tree();
            for (name, pattern) in other.iter() {
                let known = both.entry(name.clone()).or_default();
                *known = merged(std::mem::take(known), pattern);
            }
            Value::Map(both.into())
        }
        (Value::List(one), Value::List(other)) => {
            Value::list([one.iter().chain(other.iter()).fold(Value::Null, merged)])
        }
        _ => Value::Null.into_sensitive(),
    }
}

/// The response with the marks of the schema and the configuration.
pub fn marked(response: PlanResponse, config: &Value, schema: &Schema) -> PlanResponse {
    let planned = like(by_schema(response.planned, schema), config);
    PlanResponse { planned, ..response }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Value {
        Value::from(text).into_sensitive()
    }

    /// An object with these attributes.
    fn item<const N: usize>(attributes: [(&str, Value); N]) -> Value {
        Value::map(attributes)
    }

    #[test]
    fn marks_follow_the_pattern() {
        let pattern = item([("a", secret("x")), ("b", Value::from("y"))]);
        let value = item([("a", Value::from(1)), ("b", Value::from(2)), ("c", Value::Null)]);
        let marked = like(value, &pattern);
        assert_eq!(marked.get("a"), Some(&Value::from(1).into_sensitive()));
        assert_eq!(marked.get("b"), Some(&Value::from(2)));
    }

    #[test]
    fn a_set_in_the_order_of_the_provider_shows_no_secret() {
        let configured = |key: &str, value: Value| item([("key", Value::from(key)), ("value", value)]);
        let pattern = Value::list([configured("z", secret("s")), configured("a", Value::from("plain"))]);
        let planned = [configured("a", Value::from("plain")), configured("z", Value::from("s"))];
        let expected = [configured("a", secret("plain")), configured("z", secret("s"))];
        assert_eq!(like(Value::list(planned), &pattern), Value::list(expected));

        let pattern = Value::list([secret("s"), Value::from("a")]);
        let planned = Value::list([Value::from("a"), Value::from("s")]);
        assert_eq!(like(planned, &pattern), Value::list([secret("a"), secret("s")]));
    }

    #[test]
    fn an_inserted_item_shifts_no_mark() {
        let pattern = Value::list([secret("s"), Value::from("a")]);
        let read = Value::list([Value::from("new"), Value::from("s"), Value::from("a")]);
        assert_eq!(like(read, &pattern), Value::list([secret("new"), secret("s"), secret("a")]));
        let read = Value::list([Value::from("s"), Value::from("s"), Value::from("a")]);
        assert_eq!(like(read, &pattern), Value::list([secret("s"), secret("s"), secret("a")]));
    }

    #[test]
    fn a_list_with_computed_attributes_is_marked_by_position() {
        let block = |value: Value, id: Value| item([("id", id), ("value", value)]);
        let pattern = Value::list([block(secret("s"), Value::Unknown), block(Value::from("plain"), Value::Null)]);
        let result =
            Value::list([block(Value::from("s"), Value::from(1)), block(Value::from("plain"), Value::from(2))]);
        let expected = Value::list([block(secret("s"), Value::from(1)), block(Value::from("plain"), Value::from(2))]);
        assert_eq!(like(result, &pattern), expected);

        // A secret that is still unknown is at its place if the planned value is unknown too.
        let pattern = Value::list([Value::Unknown.into_sensitive(), Value::from("a")]);
        let marked = like(Value::list([Value::Unknown, Value::from("a")]), &pattern);
        assert_eq!(marked, pattern);
        let marked = like(Value::list([Value::from("a"), Value::Unknown]), &pattern);
        assert_eq!(marked, Value::list([secret("a"), Value::Unknown.into_sensitive()]));
    }

    #[test]
    fn lists_in_reordered_items_show_no_secret() {
        let block = |values: [Value; 2]| item([("list", Value::list(values)), ("name", Value::from("n"))]);
        let plain = |texts: [&str; 2]| block(texts.map(Value::from));
        let pattern = Value::list([block([secret("s"), Value::from("a")]), plain(["b", "c"])]);
        let expected = [block(["b", "c"].map(secret)), block([secret("s"), Value::from("a")])];
        assert_eq!(like(Value::list([plain(["b", "c"]), plain(["s", "a"])]), &pattern), Value::list(expected));
    }

    #[test]
    fn a_value_of_another_shape_is_marked_as_a_whole() {
        let pattern = item([("password", secret("s"))]);
        assert_eq!(like(Value::from("password=s"), &pattern), secret("password=s"));
        assert_eq!(like(Value::list([Value::from("s")]), &pattern), Value::list([Value::from("s")]).into_sensitive());
        assert_eq!(like(Value::Null, &pattern), Value::Null);
    }
}
