//! `lifecycle.ignoreChanges`: differences of an existing object that are not corrected.
//!
//! Replaces the configuration at the ignored paths with the object's current values, so that the driver plans no change
//! there. As in Terraform, a key that the object does not have is removed, and a new object gets its full
//! configuration.

use std::borrow::Cow;
use std::sync::Arc;

use crate::load::Instance;
use crate::load::lifecycle::ignore_changes_path;
use model::{Attribute, AttributeType, Diagnostic, Diagnostics, IgnoredChange, Path, Reason, Schema, Segment, Value};

/// Checks the entries against the schema: an error for a path that the type does not have, a warning for a path that
/// cannot be configured.
pub fn check(instance: &Instance, schema: &Schema) -> Diagnostics {
    let mut problems = Diagnostics::new();
    for (index, entry) in instance.ignore_changes.iter().enumerate() {
        let IgnoredChange::At(path) = entry else { continue };
        let address = &instance.address;
        let problem = match find_attribute(path, schema) {
            Ok(attribute) if is_settable(attribute) => continue,
            Ok(_) => {
                let what = format!("`{path}` has no effect: only the provider sets it");
                Diagnostic::warning(address, Reason::InvalidConfig, what)
            }
            Err((what, hint)) => Diagnostic::error(address, Reason::InvalidConfig, what).hint(hint),
        };
        problems.push(problem.at(ignore_changes_path(index)));
    }
    problems
}

/// The attribute that contains a path. If the type does not have the path: why, and what to write instead.
fn find_attribute<'s>(path: &Path, schema: &'s Schema) -> Result<&'s Attribute, (String, String)> {
    let mut segments = path.0.iter();
    let attribute = match segments.next() {
        Some(Segment::Name(name)) => schema.attributes.get(name),
        _ => None,
    };
    let Some(attribute) = attribute else {
        let settable = schema.attributes.iter().filter(|(_, attribute)| is_settable(attribute));
        let hint = format!("configurable attributes are {}", joined(settable.map(|(name, _)| name)));
        return Err((format!("`{path}` is not an attribute of this type"), hint));
    };
    let mut kind = &attribute.kind;
    for (position, segment) in segments.enumerate() {
        kind = match (kind, segment) {
            (AttributeType::Any, _) => return Ok(attribute),
            (AttributeType::List(item), Segment::Index(_)) | (AttributeType::Map(item), Segment::Name(_)) => item,
            (AttributeType::Object(inner), Segment::Name(name)) if inner.contains_key(name) => &inner[name],
            _ => return Err(does_not_exist(path, &Path(path.0[..=position].to_vec()), kind)),
        };
    }
    Ok(attribute)
}

/// Why a path does not exist below `whole`, and what to write instead.
fn does_not_exist(path: &Path, whole: &Path, kind: &AttributeType) -> (String, String) {
    let what = match kind {
        AttributeType::List(_) => "a list, whose items have an index",
        AttributeType::Map(_) => "a map, whose items have a key",
        AttributeType::Set => "a set, whose items have neither an index nor a key",
        AttributeType::Object(_) => "an object without this attribute",
        _ => "a single value",
    };
    let hint = match kind {
        AttributeType::Object(inner) => format!("its attributes are {}", joined(inner.keys())),
        _ => format!("write `{whole}` to ignore all of it"),
    };
    (format!("`{path}` does not exist: `{whole}` is {what}"), hint)
}

fn joined(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    names.map(|name| name.as_ref().to_owned()).collect::<Vec<String>>().join(", ")
}

fn is_settable(attribute: &Attribute) -> bool {
    attribute.required || attribute.optional
}

/// The configuration with the values of `prior` at every ignored path.
pub fn keep(config: Value, prior: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
    let mut config = config;
    for entry in ignored {
        match entry {
            IgnoredChange::All => {
                for (name, _) in schema.attributes.iter().filter(|(_, attribute)| is_settable(attribute)) {
                    config = keep_at(config, prior, &Path::default().name(name.clone()), schema);
                }
            }
            IgnoredChange::At(path) => config = keep_at(config, prior, path, schema),
        }
    }
    config
}

/// The planned value with the recorded values at every ignored path whose current value the driver reports in another
/// attribute: an ignored change must not be recorded.
pub fn restore(planned: Value, prior: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
    let mut planned = planned;
    for (name, _) in schema.attributes.iter().filter(|(_, attribute)| attribute.observed_in.is_some()) {
        for path in below(name, ignored) {
            if let Some(recorded) = prior.at(&path) {
                planned = set_at(planned, &path.0, recorded);
            }
        }
    }
    planned
}

/// A refreshed object whose driver reports the current value of an argument in another attribute: removes keys at
/// ignored paths that another client removed there. Otherwise the next update would restore them.
pub fn without_removed(now: Value, recorded: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
    let mut value = now;
    for (name, attribute) in &schema.attributes {
        let Some(other) = &attribute.observed_in else { continue };
        for path in below(name, ignored) {
            let mut elsewhere = path.clone().into_owned();
            elsewhere.0[0] = Segment::Name(other.clone());
            let (Some(asked), Some(shown)) = (value.at(&path), recorded.at(&elsewhere)) else { continue };
            value = match value.at(&elsewhere).filter(|shown| *shown.unmarked() != Value::Null) {
                Some(now) => set_at(value, &path.0, without_removed_keys(&asked, &shown, &now)),
                None => match value.get(other).filter(|shown| *shown.unmarked() != Value::Null) {
                    Some(shown) if path.0.len() > 1 => {
                        let shown = Value::map([(name.clone(), shown.clone())]);
                        remove_at(value, &path.0, &shown)
                    }
                    // If the other attribute is null, the current value is not known.
                    _ => value,
                },
            };
        }
    }
    value
}

fn below<'i>(attribute: &Arc<str>, ignored: &'i [IgnoredChange]) -> impl Iterator<Item = Cow<'i, Path>> {
    let root = Path::default().name(attribute.clone());
    ignored.iter().filter_map(move |entry| match entry {
        IgnoredChange::All => Some(Cow::Owned(root.clone())),
        IgnoredChange::At(path) => path.starts_with(&root).then_some(Cow::Borrowed(path)),
    })
}

/// The argument without the keys that were reported before and are not reported now.
fn without_removed_keys(asked: &Value, shown: &Value, now: &Value) -> Value {
    let value = match (asked.unmarked(), shown.unmarked(), now.unmarked()) {
        (Value::Map(asked), shown @ Value::Map(_), now @ Value::Map(_)) => {
            let entries = asked.iter().filter_map(|(key, asked)| match (shown.get(key), now.get(key)) {
                (Some(_), None) => None,
                (Some(shown), Some(now)) => Some((key.clone(), without_removed_keys(asked, shown, now))),
                (None, _) => Some((key.clone(), asked.clone())),
            });
            Value::map(entries)
        }
        (Value::List(asked), Value::List(shown), Value::List(now))
            if asked.len() == shown.len() && shown.len() == now.len() =>
        {
            let items = asked.iter().zip(shown.iter()).zip(now.iter());
            Value::list(items.map(|((asked, shown), now)| without_removed_keys(asked, shown, now)))
        }
        _ => return asked.clone(),
    };
    if matches!(asked, Value::Sensitive(_)) { value.into_sensitive() } else { value }
}

fn keep_at(config: Value, prior: &Value, path: &Path, schema: &Schema) -> Value {
    let Some(Segment::Name(name)) = path.0.first() else { return config };
    let Some(attribute) = schema.attributes.get(name).filter(|attribute| is_settable(attribute)) else { return config };
    match path_value(prior, &path.0) {
        PathValue::Present(value) => {
            let shown = attribute.observed_in.as_ref().and_then(|other| {
                let mut elsewhere = path.clone();
                elsewhere.0[0] = Segment::Name(other.clone());
                prior.at(&elsewhere)
            });
            set_at(config, &path.0, shown.map_or(value.clone(), |shown| with_observed(&value, &shown)))
        }
        // A required attribute cannot be removed.
        PathValue::Absent if path.0.len() == 1 && attribute.required => config,
        PathValue::Absent => remove_at(config, &path.0, prior),
        PathValue::NoSuchItem => config,
    }
}

/// The value at a path of an object.
enum PathValue {
    Present(Value),
    /// A key on the path is missing or null.
    Absent,
    /// A list on the path is missing or too short: a new item has its configured value.
    NoSuchItem,
}

fn path_value(prior: &Value, segments: &[Segment]) -> PathValue {
    for length in 1..=segments.len() {
        match prior.at(&Path(segments[..length].to_vec())) {
            Some(value) if *value.unmarked() != Value::Null => {
                if length == segments.len() {
                    return PathValue::Present(value);
                }
            }
            None if is_index(&segments[length - 1]) => return PathValue::NoSuchItem,
            _ if segments[length..].iter().any(is_index) => return PathValue::NoSuchItem,
            _ => return PathValue::Absent,
        }
    }
    PathValue::Absent
}

fn is_index(segment: &Segment) -> bool {
    matches!(segment, Segment::Index(_))
}

/// The recorded value updated with the reported one. Additional reported keys belong to other clients.
fn with_observed(recorded: &Value, shown: &Value) -> Value {
    let value = match (recorded.unmarked(), shown.unmarked()) {
        (Value::Map(recorded), Value::Map(shown)) => Value::map(recorded.iter().map(|(key, recorded)| {
            (key.clone(), shown.get(key).map_or_else(|| recorded.clone(), |shown| with_observed(recorded, shown)))
        })),
        (Value::List(recorded), Value::List(shown)) if recorded.len() == shown.len() => {
            Value::list(recorded.iter().zip(shown.iter()).map(|(recorded, shown)| with_observed(recorded, shown)))
        }
        (_, shown) => shown.clone(),
    };
    let marked = matches!(recorded, Value::Sensitive(_)) || matches!(shown, Value::Sensitive(_));
    if marked { value.into_sensitive() } else { value }
}

/// The value with `new` at a path. Creates maps on the path, does not extend lists, and keeps unknown values: they are
/// replaced once they are known.
fn set_at(value: Value, segments: &[Segment], new: Value) -> Value {
    let Some((segment, rest)) = segments.split_first() else { return new };
    match (value, segment) {
        (Value::Sensitive(inner), _) => set_at(inner.as_ref().clone(), segments, new).into_sensitive(),
        (Value::Map(map), Segment::Name(name)) => {
            let mut map = map.to_tree();
            let inner = map.remove(name).unwrap_or_default();
            map.insert(name.clone(), set_at(inner, rest, new));
            Value::Map(map.into())
        }
        (Value::Null, Segment::Name(name)) => Value::map([(name.clone(), set_at(Value::Null, rest, new))]),
        (Value::List(items), Segment::Index(index)) if *index < items.len() => {
            let mut items = items.to_vec();
            items[*index] = set_at(std::mem::take(&mut items[*index]), rest, new);
            Value::list(items)
        }
        (other, _) => other,
    }
}

/// The value without the one at a path. A map that becomes empty is removed too, unless `prior` has one there: an empty
/// map, or an object whose attributes are all null.
fn remove_at(value: Value, segments: &[Segment], prior: &Value) -> Value {
    let Some((segment, rest)) = segments.split_first() else { return Value::Null };
    let prior_below = prior.at(&Path(vec![segment.clone()])).unwrap_or_default();
    match (value, segment) {
        (Value::Sensitive(inner), _) => match remove_at(inner.as_ref().clone(), segments, prior) {
            Value::Null => Value::Null,
            other => other.into_sensitive(),
        },
        (Value::Map(map), Segment::Name(name)) if map.contains_key(name) => {
            let mut map = map.to_tree();
            let inner = remove_at(map.remove(name).unwrap_or_default(), rest, &prior_below);
            if !matches!(inner, Value::Null) {
                map.insert(name.clone(), inner);
            }
            if map.is_empty() && *prior.unmarked() == Value::Null { Value::Null } else { Value::Map(map.into()) }
        }
        (Value::List(items), Segment::Index(index)) if *index < items.len() && !rest.is_empty() => {
            let mut items = items.to_vec();
            items[*index] = remove_at(std::mem::take(&mut items[*index]), rest, &prior_below);
            Value::list(items)
        }
        (other, _) => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::plan::tests::fixture::{instance, schema};
    use model::Address;

    fn ignored(texts: &[&str]) -> Arc<[IgnoredChange]> {
        texts
            .iter()
            .map(|text| match *text {
                "all" => IgnoredChange::All,
                path => IgnoredChange::At(path.parse().unwrap()),
            })
            .collect()
    }

    fn kept(config: serde_json::Value, prior: serde_json::Value, texts: &[&str]) -> String {
        let [config, prior] = [config, prior].map(Value::from_json);
        keep(config, &prior, &ignored(texts), &schema()).to_json().to_string()
    }

    #[test]
    fn an_ignored_path_keeps_the_value_of_the_object() {
        let prior = json!({"id": "x", "input": {"a": 1, "b": [{"c": 2}]}, "force": 3, "output": 9});
        let config = json!({"input": {"a": 10, "b": [{"c": 20}, {"c": 21}], "d": 40}, "force": 30});
        expect![[r#"{"force":3,"input":{"a":10,"b":[{"c":20},{"c":21}],"d":40}}"#]].assert_eq(&kept(
            config.clone(),
            prior.clone(),
            &["force"],
        ));
        expect![[r#"{"force":30,"input":{"a":1,"b":[{"c":2},{"c":21}],"d":40}}"#]].assert_eq(&kept(
            config.clone(),
            prior.clone(),
            &["input.a", "input.b[0].c", "input.b[1].c", "id"],
        ));
        expect![[r#"{"force":3,"input":{"a":1,"b":[{"c":2}]}}"#]].assert_eq(&kept(config, prior, &["all"]));
    }

    #[test]
    fn a_key_absent_from_the_object_is_removed_and_a_removed_key_restored() {
        let keys = &["input[\"Owner\"]"];
        assert_eq!(
            kept(json!({"input": {"Owner": 1, "x": 2}}), json!({"input": {"x": 1}}), keys),
            r#"{"input":{"x":2}}"#
        );
        assert_eq!(
            kept(json!({"input": {"x": 2}}), json!({"input": {"Owner": 1}}), keys),
            r#"{"input":{"Owner":1,"x":2}}"#
        );
        assert_eq!(kept(json!({}), json!({"input": {"Owner": 1}}), keys), r#"{"input":{"Owner":1}}"#);
    }

    #[test]
    fn what_becomes_empty_is_as_in_the_object() {
        let keys = &["input[\"Owner\"]"];
        let config = json!({"input": {"Owner": 1}});
        assert_eq!(kept(config.clone(), json!({"input": null}), keys), "{}");
        assert_eq!(kept(config.clone(), json!({}), keys), "{}");
        assert_eq!(kept(config, json!({"input": {}}), keys), r#"{"input":{}}"#);
        let (config, port) = (json!({"input": [{"port": 80}]}), &["input[0].port"]);
        assert_eq!(kept(config.clone(), json!({"input": [{"port": null}]}), port), r#"{"input":[{}]}"#);
        assert_eq!(kept(config.clone(), json!({"input": [{}]}), port), r#"{"input":[{}]}"#);
        // A list that the object does not have is new.
        for prior in [json!({"input": null}), json!({"input": []}), json!({})] {
            assert_eq!(kept(config.clone(), prior, port), config.to_string());
        }
    }

    #[test]
    fn marks_and_unknown_values_are_kept() {
        let secret = Value::from("old").into_sensitive();
        let prior = Value::map([("input", Value::map([("a", secret.clone())]))]);
        let config =
            Value::map([("input", Value::map([("a", Value::Unknown), ("b", Value::from(1))]).into_sensitive())]);
        let here = keep(config, &prior, &ignored(&["input.a"]), &schema());
        assert_eq!(here.get("input").unwrap().get("a"), Some(&secret));
        assert!(matches!(here.get("input"), Some(Value::Sensitive(_))));
        let unknown = Value::map([("input", Value::Unknown)]);
        assert_eq!(keep(unknown.clone(), &prior, &ignored(&["input.a"]), &schema()), unknown);
        let whole = keep(unknown, &prior, &ignored(&["input"]), &schema());
        assert_eq!(whole.get("input"), prior.get("input"));
    }

    #[test]
    fn a_value_reported_in_another_attribute_is_kept() {
        let mut schema = schema();
        schema.attributes.get_mut("input").unwrap().observed_in = Some("output".into());
        let prior =
            Value::from_json(json!({"input": {"n": 2, "l": {"a": 1}}, "output": {"n": 5, "l": {"a": 7, "b": 8}}}));
        let config = Value::from_json(json!({"input": {"n": 2, "l": {"a": 1}}}));
        let entries = ignored(&["input.n", "input.l"]);
        let here = keep(config, &prior, &entries, &schema);
        assert_eq!(here.to_json(), json!({"input": {"n": 5, "l": {"a": 7}}}));
        let planned = here.with("output", prior.get("output").unwrap().clone());
        assert_eq!(restore(planned, &prior, &entries, &schema), prior);
    }

    #[test]
    fn a_key_removed_outside_of_purlin_at_an_ignored_path_is_not_restored() {
        let mut schema = schema();
        schema.attributes.get_mut("input").unwrap().observed_in = Some("output".into());
        let recorded = Value::from_json(json!({
            "input": {"a": 1, "m": {"x": 1, "y": 2}, "written": "only"}, "output": {"a": 1, "m": {"x": 1, "y": 2, "z": 3}}
        }));
        let read = |output: serde_json::Value, texts: &[&str]| {
            let now = recorded.with("output", Value::from_json(output));
            let now = without_removed(now, &recorded, &ignored(texts), &schema);
            now.get("input").unwrap().to_json().to_string()
        };
        let all = r#"{"a":1,"m":{"x":1,"y":2},"written":"only"}"#;
        assert_eq!(read(json!({"a": 1, "m": {"x": 1}}), &["input.m"]), r#"{"a":1,"m":{"x":1},"written":"only"}"#);
        assert_eq!(read(json!({"m": {"x": 1, "y": 2}}), &["all"]), r#"{"m":{"x":1,"y":2},"written":"only"}"#);
        assert_eq!(read(json!({"m": {"x": 1, "y": 2}}), &["input.a"]), r#"{"m":{"x":1,"y":2},"written":"only"}"#);
        assert_eq!(read(json!({"a": 1}), &["input.m.x"]), r#"{"a":1,"m":{"y":2},"written":"only"}"#);
        assert_eq!(read(json!({"a": 1}), &["input.m.x", "input.m.y"]), r#"{"a":1,"written":"only"}"#);
        assert_eq!(read(json!({"m": {}}), &["input.m.x", "input.m.y", "input.a"]), r#"{"m":{},"written":"only"}"#);
        // Values that are not ignored, were never reported, or are not reported at all stay.
        assert_eq!(read(json!({"m": {"x": 1, "y": 2}}), &["input.m"]), all);
        assert_eq!(read(json!({"a": 1, "m": {"x": 1, "y": 2}}), &["input.written"]), all);
        assert_eq!(read(json!(null), &["input.a", "all"]), all);
    }

    fn check_entries(texts: &[&str], expected: &Expect) {
        let mut schema = schema();
        let inner = BTreeMap::from([("port".into(), AttributeType::Number), ("names".into(), AttributeType::Set)]);
        schema.attributes.get_mut("force").unwrap().kind = AttributeType::List(Box::new(AttributeType::Object(inner)));
        let instance = Instance { ignore_changes: ignored(texts), ..instance(Address::single("a")) };
        let lines = check(&instance, &schema).into_iter().map(|found| format!("{:?}: {found}\n", found.severity));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn paths_are_checked_against_the_schema() {
        check_entries(&["all", "input.anything[0]", "ports[1]", "force[0].port", "force[0].names"], &expect![""]);
        check_entries(
            &["inptu", "ports.x", "name[0]", "id", "force[0].prot", "force[0].names[1]"],
            &expect![[r#"
                Error: a: spec.lifecycle.ignoreChanges[0]: `inptu` is not an attribute of this type (hint: configurable attributes are force, input, name, ports, secret)
                Error: a: spec.lifecycle.ignoreChanges[1]: `ports.x` does not exist: `ports` is a list, whose items have an index (hint: write `ports` to ignore all of it)
                Error: a: spec.lifecycle.ignoreChanges[2]: `name[0]` does not exist: `name` is a single value (hint: write `name` to ignore all of it)
                Warning: a: spec.lifecycle.ignoreChanges[3]: `id` has no effect: only the provider sets it
                Error: a: spec.lifecycle.ignoreChanges[4]: `force[0].prot` does not exist: `force[0]` is an object without this attribute (hint: its attributes are names, port)
                Error: a: spec.lifecycle.ignoreChanges[5]: `force[0].names[1]` does not exist: `force[0].names` is a set, whose items have neither an index nor a key (hint: write `force[0].names` to ignore all of it)
            "#]],
        );
    }
}
