//! `lifecycle.ignoreChanges`: differences that are not corrected once the object exists.
//!
//! Takes a configuration that fits the schema and the object as it is; gives the configuration with the object's own
//! values at the ignored places, so that a driver that is asked for it finds nothing to correct there. Terraform's
//! rules: a key that the object does not have is taken out; a new object gets its configuration untouched.

use std::borrow::Cow;
use std::sync::Arc;

use crate::load::lifecycle::ignore_changes_path;
use crate::load::{IgnoredChange, Instance};
use crate::model::{Attribute, AttributeType, Diagnostic, Diagnostics, Path, Reason, Schema, Segment, Value};

/// What the schema says of the entries: an error for a path that no object of the type has, a warning for one that
/// cannot be configured anyway.
pub(super) fn check(instance: &Instance, schema: &Schema) -> Diagnostics {
    let mut found = Diagnostics::new();
    for (index, entry) in instance.ignore_changes.iter().enumerate() {
        let IgnoredChange::At(path) = entry else { continue };
        let address = &instance.address;
        let problem = match fit(path, schema) {
            Ok(attribute) if is_settable(attribute) => continue,
            Ok(_) => {
                let what = format!("`{path}` has no effect: only the provider sets it");
                Diagnostic::warning(address, Reason::InvalidConfig, what)
            }
            Err(what) => {
                let names: Vec<&str> =
                    schema.attributes.iter().filter(|(_, a)| is_settable(a)).map(|(name, _)| name.as_ref()).collect();
                let error = Diagnostic::error(address, Reason::InvalidConfig, what);
                error.hint(format!("attributes that can be configured are {}", names.join(", ")))
            }
        };
        found.push(problem.at(ignore_changes_path(index)).from_source(instance.source.clone()));
    }
    found
}

/// The attribute that a path leads into.
fn fit<'s>(path: &Path, schema: &'s Schema) -> Result<&'s Attribute, String> {
    let mut segments = path.0.iter();
    let attribute = match segments.next() {
        Some(Segment::Name(name)) => schema.attributes.get(name),
        _ => None,
    };
    let Some(attribute) = attribute else { return Err(format!("`{path}` is no attribute of this type")) };
    let mut kind = &attribute.kind;
    for (position, segment) in segments.enumerate() {
        kind = match (kind, segment) {
            (AttributeType::Any, _) => return Ok(attribute),
            (AttributeType::List(item), Segment::Index(_)) | (AttributeType::Map(item), Segment::Name(_)) => item,
            _ => {
                let whole = Path(path.0[..=position].to_vec());
                let what = match kind {
                    AttributeType::List(_) => "a list, whose items have numbers",
                    AttributeType::Map(_) => "a map, whose items have keys",
                    _ => "a single value",
                };
                return Err(format!("`{path}` leads nowhere: `{whole}` is {what}"));
            }
        };
    }
    Ok(attribute)
}

fn is_settable(attribute: &Attribute) -> bool {
    attribute.required || attribute.optional
}

/// The configuration of an object that exists as `prior`, with its own values at every ignored place.
pub(super) fn keep(config: Value, prior: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
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

/// The planned value with the recorded values back at every ignored place that a driver shows elsewhere too: that
/// somebody else changed the object there is nothing to be recorded.
pub(super) fn restore(planned: Value, prior: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
    let mut planned = planned;
    for (name, _) in schema.attributes.iter().filter(|(_, attribute)| attribute.shown_in.is_some()) {
        for path in below(name, ignored) {
            if let Some(recorded) = prior.at(&path) {
                planned = put(planned, &path.0, recorded);
            }
        }
    }
    planned
}

/// An object as it was read, whose driver shows elsewhere what became of an argument: without what somebody has removed
/// there at an ignored place. It would be asked for again otherwise, and so be put back.
pub(super) fn without_removed(now: Value, recorded: &Value, ignored: &[IgnoredChange], schema: &Schema) -> Value {
    let mut value = now;
    for (name, attribute) in &schema.attributes {
        let Some(other) = &attribute.shown_in else { continue };
        for path in below(name, ignored) {
            let mut elsewhere = path.clone().into_owned();
            elsewhere.0[0] = Segment::Name(other.clone());
            let (Some(asked), Some(shown)) = (value.at(&path), recorded.at(&elsewhere)) else { continue };
            value = match value.at(&elsewhere).filter(|shown| *shown.unmarked() != Value::Null) {
                Some(now) => put(value, &path.0, still_there(&asked, &shown, &now)),
                // Of an object of which nothing is shown nothing is known.
                None if path.0.len() > 1 && value.get(other).is_some_and(|shown| *shown.unmarked() != Value::Null) => {
                    take_out(value, &path.0)
                }
                None => value,
            };
        }
    }
    value
}

/// The ignored places of an attribute.
fn below<'i>(attribute: &Arc<str>, ignored: &'i [IgnoredChange]) -> impl Iterator<Item = Cow<'i, Path>> {
    let root = Path::default().name(attribute.clone());
    ignored.iter().filter_map(move |entry| match entry {
        IgnoredChange::All => Some(Cow::Owned(root.clone())),
        IgnoredChange::At(path) => path.starts_with(&root).then_some(Cow::Borrowed(path)),
    })
}

/// What was asked for, without what was shown and is not any more.
fn still_there(asked: &Value, shown: &Value, now: &Value) -> Value {
    let value = match (asked.unmarked(), shown.unmarked(), now.unmarked()) {
        (Value::Map(asked), shown @ Value::Map(_), now @ Value::Map(_)) => {
            let entries = asked.iter().filter_map(|(key, asked)| match (shown.get(key), now.get(key)) {
                (Some(_), None) => None,
                (Some(shown), Some(now)) => Some((key.clone(), still_there(asked, shown, now))),
                (None, _) => Some((key.clone(), asked.clone())),
            });
            Value::map(entries)
        }
        (Value::List(asked), Value::List(shown), Value::List(now))
            if asked.len() == shown.len() && shown.len() == now.len() =>
        {
            let items = asked.iter().zip(shown.iter()).zip(now.iter());
            Value::list(items.map(|((asked, shown), now)| still_there(asked, shown, now)))
        }
        _ => return asked.clone(),
    };
    if matches!(asked, Value::Sensitive(_)) { value.into_sensitive() } else { value }
}

fn keep_at(config: Value, prior: &Value, path: &Path, schema: &Schema) -> Value {
    let Some(Segment::Name(name)) = path.0.first() else { return config };
    let Some(attribute) = schema.attributes.get(name).filter(|attribute| is_settable(attribute)) else { return config };
    match found(prior, &path.0) {
        Found::There(value) => {
            let shown = attribute.shown_in.as_ref().and_then(|other| {
                let mut elsewhere = path.clone();
                elsewhere.0[0] = Segment::Name(other.clone());
                prior.at(&elsewhere)
            });
            put(config, &path.0, shown.map_or(value.clone(), |shown| as_shown(&value, &shown)))
        }
        // What must be there cannot be taken out.
        Found::Absent if path.0.len() == 1 && attribute.required => config,
        Found::Absent => take_out(config, &path.0),
        Found::NoSuchItem => config,
    }
}

/// What stands at a path of an object.
enum Found {
    There(Value),
    /// A key on the way is missing, or null.
    Absent,
    /// A list on the way is too short: an item that is new has to be as it is configured.
    NoSuchItem,
}

fn found(prior: &Value, segments: &[Segment]) -> Found {
    for length in 1..=segments.len() {
        match prior.at(&Path(segments[..length].to_vec())) {
            Some(value) if matches!(value.unmarked(), Value::Null) => return Found::Absent,
            Some(value) if length == segments.len() => return Found::There(value),
            Some(_) => {}
            None if matches!(segments[length - 1], Segment::Index(_)) => return Found::NoSuchItem,
            None => return Found::Absent,
        }
    }
    Found::Absent
}

/// The recorded value with what is shown of it now. What is shown besides belongs to others.
fn as_shown(recorded: &Value, shown: &Value) -> Value {
    let value = match (recorded.unmarked(), shown.unmarked()) {
        (Value::Map(recorded), Value::Map(shown)) => Value::map(recorded.iter().map(|(key, recorded)| {
            (key.clone(), shown.get(key).map_or_else(|| recorded.clone(), |shown| as_shown(recorded, shown)))
        })),
        (Value::List(recorded), Value::List(shown)) if recorded.len() == shown.len() => {
            Value::list(recorded.iter().zip(shown.iter()).map(|(recorded, shown)| as_shown(recorded, shown)))
        }
        (_, shown) => shown.clone(),
    };
    let marked = matches!(recorded, Value::Sensitive(_)) || matches!(shown, Value::Sensitive(_));
    if marked { value.into_sensitive() } else { value }
}

/// The value with `new` at a place. Maps on the way are made; lists are not made longer, and what is not known stays
/// unknown: once it is known, this is done again.
fn put(value: Value, segments: &[Segment], new: Value) -> Value {
    let Some((segment, rest)) = segments.split_first() else { return new };
    match (value, segment) {
        (Value::Sensitive(inner), _) => put(inner.as_ref().clone(), segments, new).into_sensitive(),
        (Value::Map(map), Segment::Name(name)) => {
            let mut map = map.to_tree();
            let inner = map.remove(name).unwrap_or_default();
            map.insert(name.clone(), put(inner, rest, new));
            Value::Map(map.into())
        }
        (Value::Null, Segment::Name(name)) => Value::map([(name.clone(), put(Value::Null, rest, new))]),
        (Value::List(items), Segment::Index(index)) if *index < items.len() => {
            let mut items = items.to_vec();
            items[*index] = put(std::mem::take(&mut items[*index]), rest, new);
            Value::list(items)
        }
        (other, _) => other,
    }
}

/// The value without what stands at a place. A map that becomes empty by that goes too: the object had none.
fn take_out(value: Value, segments: &[Segment]) -> Value {
    let Some((segment, rest)) = segments.split_first() else { return Value::Null };
    match (value, segment) {
        (Value::Sensitive(inner), _) => match take_out(inner.as_ref().clone(), segments) {
            Value::Null => Value::Null,
            other => other.into_sensitive(),
        },
        (Value::Map(map), Segment::Name(name)) if map.contains_key(name) => {
            let mut map = map.to_tree();
            let inner = take_out(map.remove(name).unwrap_or_default(), rest);
            if !matches!(inner, Value::Null) {
                map.insert(name.clone(), inner);
            }
            if map.is_empty() { Value::Null } else { Value::Map(map.into()) }
        }
        (Value::List(items), Segment::Index(index)) if *index < items.len() && !rest.is_empty() => {
            let mut items = items.to_vec();
            items[*index] = take_out(std::mem::take(&mut items[*index]), rest);
            Value::list(items)
        }
        (other, _) => other,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::model::Address;
    use crate::plan::tests::world::{instance, schema};

    fn ignored(texts: &[&str]) -> Arc<[IgnoredChange]> {
        let entry = |text: &&str| match *text {
            "all" => IgnoredChange::All,
            path => IgnoredChange::At(path.parse().unwrap()),
        };
        texts.iter().map(entry).collect()
    }

    fn kept(config: serde_json::Value, prior: serde_json::Value, texts: &[&str]) -> String {
        let [config, prior] = [config, prior].map(Value::from_json);
        keep(config, &prior, &ignored(texts), &schema()).to_json().to_string()
    }

    #[test]
    fn an_ignored_place_keeps_the_value_of_the_object() {
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
    fn a_key_that_the_object_does_not_have_is_taken_out_and_one_that_was_removed_put_back() {
        let keys = &["input[\"Owner\"]"];
        assert_eq!(
            kept(json!({"input": {"Owner": 1, "x": 2}}), json!({"input": {"x": 1}}), keys),
            r#"{"input":{"x":2}}"#
        );
        assert_eq!(
            kept(json!({"input": {"x": 2}}), json!({"input": {"Owner": 1}}), keys),
            r#"{"input":{"Owner":1,"x":2}}"#
        );
        assert_eq!(kept(json!({"input": {"Owner": 1}}), json!({"input": null}), keys), "null");
        assert_eq!(kept(json!({}), json!({"input": {"Owner": 1}}), keys), r#"{"input":{"Owner":1}}"#);
    }

    #[test]
    fn marks_stay_and_what_is_unknown_is_left_for_later() {
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
    fn what_is_shown_elsewhere_is_kept_as_it_is_there() {
        let mut schema = schema();
        schema.attributes.get_mut("input").unwrap().shown_in = Some("output".into());
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
    fn what_somebody_removed_elsewhere_at_an_ignored_place_is_not_asked_for_again() {
        let mut schema = schema();
        schema.attributes.get_mut("input").unwrap().shown_in = Some("output".into());
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
        // What is not ignored, what was never shown, and what nobody shows now stay.
        assert_eq!(read(json!({"m": {"x": 1, "y": 2}}), &["input.m"]), all);
        assert_eq!(read(json!({"a": 1, "m": {"x": 1, "y": 2}}), &["input.written"]), all);
        assert_eq!(read(json!(null), &["input.a", "all"]), all);
    }

    fn told(texts: &[&str], expected: &Expect) {
        let instance = Instance { ignore_changes: ignored(texts), ..instance(Address::single("a")) };
        let lines = check(&instance, &schema()).into_iter().map(|found| format!("{:?}: {found}\n", found.severity));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn the_schema_decides_which_paths_there_are() {
        told(&["all", "input.anything[0]", "ports[1]"], &expect![""]);
        told(
            &["inptu", "ports.x", "name[0]", "id"],
            &expect![[r#"
                Error: a: spec.lifecycle.ignoreChanges[0]: `inptu` is no attribute of this type (hint: attributes that can be configured are force, input, name, ports, secret)
                Error: a: spec.lifecycle.ignoreChanges[1]: `ports.x` leads nowhere: `ports` is a list, whose items have numbers (hint: attributes that can be configured are force, input, name, ports, secret)
                Error: a: spec.lifecycle.ignoreChanges[2]: `name[0]` leads nowhere: `name` is a single value (hint: attributes that can be configured are force, input, name, ports, secret)
                Warning: a: spec.lifecycle.ignoreChanges[3]: `id` has no effect: only the provider sets it
            "#]],
        );
    }
}
