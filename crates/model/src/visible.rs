//! Paths that users may see: the keys in a sensitive value are as secret as the value.

use super::{Path, Value};

/// The path up to the first value on its way that is sensitive in one of these versions of an object.
pub fn path(path: Path, versions: &[&Value]) -> Path {
    let is_marked = |part: &Path| versions.iter().any(|value| matches!(value.at(part), Some(Value::Sensitive(_))));
    let cut = (0..path.0.len()).map(|length| Path(path.0[..length].to_vec())).find(is_marked);
    cut.unwrap_or(path)
}

/// The same for several paths, without the duplicates that this results in.
pub fn paths(paths: impl IntoIterator<Item = Path>, versions: &[&Value]) -> Vec<Path> {
    let mut visible: Vec<Path> = paths.into_iter().map(|one| path(one, versions)).collect();
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

    #[test]
    fn a_path_ends_at_a_value_that_is_sensitive_in_any_version() {
        let value = |secret: serde_json::Value, open: serde_json::Value| {
            (Value::from_json(secret), Value::map([("open", Value::from_json(open))]))
        };
        let (secret, after) = value(json!({"key": 1, "other": [1]}), json!({"a": {"b": 1}, "list": [1]}));
        let (old, before) = value(json!({"key": 2, "other": [2]}), json!({"a": {"b": 2}, "list": [1]}));
        let shown = |before: &Value, after: &Value| {
            let paths = differences(before, after);
            paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let (marked, unmarked) = (after.with("secret", secret.clone().into_sensitive()), before.with("secret", old));
        assert_eq!(shown(&unmarked, &marked), "open.a.b secret");
        assert_eq!(shown(&marked, &unmarked), "open.a.b secret");
        assert_eq!(shown(&before, &marked), "open.a.b secret", "the keys of a new secret");
        assert_eq!(shown(&unmarked, &after.with("secret", secret)), "open.a.b secret.key secret.other[0]");
        assert_eq!(shown(&unmarked.into_sensitive(), &marked), "");
    }
}
