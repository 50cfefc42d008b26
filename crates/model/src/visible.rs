//! Paths that users may see: the keys in a sensitive value are as secret as the value.

use super::{Path, Value};

/// The path up to the first value on its way that is sensitive in one of these versions of an object.
pub fn path(path: Path, versions: &[&Value]) -> Path {
    (0..path.0.len())
        .map(|length| Path(path.0[..length].to_vec()))
        .find(|part| versions.iter().any(|value| matches!(value.at(part), Some(Value::Sensitive(_)))))
        .unwrap_or(path)
}

/// The same for several paths, without the duplicates that this results in.
pub fn paths(paths: impl IntoIterator<Item = Path>, versions: &[&Value]) -> Vec<Path> {
    let mut visible: Vec<Path> = paths.into_iter().map(|changed| path(changed, versions)).collect();
    visible.dedup();
    visible
}

/// The paths at which the values differ, ignoring marks.
pub fn differences(before: &Value, after: &Value) -> Vec<Path> {
    paths(before.differences(after), &[before, after])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(secret: serde_json::Value, open: serde_json::Value) -> (Value, Value) {
        (Value::from_json(secret), Value::map([("open", Value::from_json(open))]))
    }

    fn shown(before: &Value, after: &Value) -> String {
        let paths = differences(before, after);
        paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_path_ends_at_a_value_that_is_sensitive_in_any_version() {
        let (secret, after) = value(json!({"key": 1, "other": [1]}), json!({"a": {"b": 1}, "list": [1]}));
        let (old, before) = value(json!({"key": 2, "other": [2]}), json!({"a": {"b": 2}, "list": [1]}));
        let (marked, unmarked) = (after.with("secret", secret.clone().into_sensitive()), before.with("secret", old));
        assert_eq!(shown(&unmarked, &marked), "open.a.b secret");
        assert_eq!(shown(&marked, &unmarked), "open.a.b secret");
        assert_eq!(shown(&before, &marked), "open.a.b secret", "the keys of a new secret");
        assert_eq!(shown(&unmarked, &after.with("secret", secret)), "open.a.b secret.key secret.other[0]");
        assert_eq!(shown(&unmarked.into_sensitive(), &marked), "");
    }
}
