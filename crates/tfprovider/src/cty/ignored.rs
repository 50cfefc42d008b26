//! Puts the values of an object back at the ignored paths of a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Value;
use model::{IgnoredChange, Segment};

/// Returns the planned value with the prior values at the ignored paths, which is how Terraform corrects the plan of a
/// provider with the legacy SDK. With `all`, nothing changes. A path that only one of the values has is skipped, except
/// for a key of a map.
#[must_use]
pub fn with_ignored(planned: &Value, prior: &Value, ignored: &[IgnoredChange]) -> Value {
    ignored.iter().fold(planned.clone(), |planned, change| match change {
        _ if prior.is_null() => planned,
        IgnoredChange::All => prior.clone(),
        IgnoredChange::At(path) => with_prior(&planned, prior, &path.0),
    })
}

fn with_prior(planned: &Value, prior: &Value, segments: &[Segment]) -> Value {
    let Some((segment, rest)) = segments.split_first() else { return prior.clone() };
    match (planned, prior, segment) {
        (Value::Object(entries), Value::Object(before), Segment::Name(name)) => {
            Value::Object(Arc::new(with_prior_entry(entries.as_ref().clone(), before, name, rest)))
        }
        // A map without the key can be null.
        (Value::Map(_), Value::Map(_) | Value::Null, Segment::Name(key))
        | (Value::Null, Value::Map(_), Segment::Name(key)) => {
            let entries = with_prior_entry(entries(planned), &entries(prior), key, rest);
            if entries.is_empty() && prior.is_null() { Value::Null } else { Value::Map(Arc::new(entries)) }
        }
        (Value::List(items), Value::List(before), Segment::Index(place)) => {
            let with_item = |(at, item): (usize, &Value)| match before.get(at).filter(|_| at == *place) {
                Some(before) => with_prior(item, before, rest),
                None => item.clone(),
            };
            Value::list(items.iter().enumerate().map(with_item))
        }
        _ => planned.clone(),
    }
}

type Entries = BTreeMap<Arc<str>, Value>;

fn entries(map: &Value) -> Entries {
    match map {
        Value::Map(entries) => entries.as_ref().clone(),
        _ => Entries::new(),
    }
}

fn with_prior_entry(mut entries: Entries, prior: &Entries, name: &Arc<str>, rest: &[Segment]) -> Entries {
    let kept = match (entries.remove(name), prior.get(name)) {
        (_, before) if rest.is_empty() => before.cloned(),
        (Some(planned), Some(before)) => Some(with_prior(&planned, before, rest)),
        (planned, _) => planned,
    };
    entries.extend(kept.map(|kept| (name.clone(), kept)));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str, tags: Value, ports: &[i64]) -> Value {
        let rules = ports.iter().map(|port| Value::object([("name", text.into()), ("port", (*port).into())]));
        Value::object([("rule", Value::list(rules)), ("tags", tags), ("text", text.into())])
    }

    fn tags(entries: &[(&str, &str)]) -> Value {
        Value::map(entries.iter().map(|(key, value)| (*key, Value::from(*value))))
    }

    fn check(planned: &Value, prior: &Value, ignored: &[&str], expected: &Value) {
        let change = |text: &&str| match *text {
            "all" => IgnoredChange::All,
            path => IgnoredChange::At(path.parse().unwrap()),
        };
        let ignored: Vec<IgnoredChange> = ignored.iter().map(change).collect();
        assert_eq!(with_ignored(planned, prior, &ignored), *expected);
    }

    #[test]
    fn ignored_attributes_and_items_have_their_prior_values() {
        let (prior, planned) = (object("a", tags(&[]), &[1]), object("b", tags(&[]), &[2, 3]));
        check(&planned, &prior, &["all"], &prior);
        check(&planned, &Value::Null, &["all", "text"], &planned);
        let with_text =
            Value::object([("rule", planned.get("rule").unwrap().clone()), ("tags", tags(&[])), ("text", "a".into())]);
        check(&planned, &prior, &["text"], &with_text);
        let second = Value::object([("name", "b".into()), ("port", 3.into())]);
        let first = Value::object([("name", "b".into()), ("port", 1.into())]);
        let with_port =
            Value::object([("rule", Value::list([first, second])), ("tags", tags(&[])), ("text", "b".into())]);
        // The object has no second item, and no attribute of that name.
        check(&planned, &prior, &["rule[0].port", "rule[1].port", "text.x", "none"], &with_port);
    }

    #[test]
    fn ignored_keys_are_added_and_removed() {
        let of = |tags: Value| object("a", tags, &[]);
        for (planned, prior, expected) in [
            (tags(&[("k", "new"), ("x", "1")]), tags(&[("k", "old")]), tags(&[("k", "old"), ("x", "1")])),
            (tags(&[("k", "new"), ("x", "1")]), tags(&[]), tags(&[("x", "1")])),
            (tags(&[("k", "new")]), tags(&[]), tags(&[])),
            (tags(&[("k", "new")]), Value::Null, Value::Null),
            (Value::Null, tags(&[("k", "old"), ("x", "1")]), tags(&[("k", "old")])),
            (Value::Null, Value::Null, Value::Null),
            (Value::UNKNOWN, tags(&[("k", "old")]), Value::UNKNOWN),
        ] {
            check(&of(planned), &of(prior), &["tags[\"k\"]"], &of(expected));
        }
    }
}
