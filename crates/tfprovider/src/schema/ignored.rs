//! Puts the values of an object back at the ignored paths of a plan.

use std::sync::Arc;

use cty::{Path, Step, Type, Value};

use super::{Block, Entries, entries};

/// Returns the planned value with the prior value at an ignored path, which is how Terraform corrects the plan of a
/// provider with the legacy SDK. A path that only one of the values has is skipped, except for a key of a map.
#[must_use]
pub fn with_prior_at(block: &Block, planned: &Value, prior: &Value, path: &Path) -> Value {
    if prior.is_null() { planned.clone() } else { with_prior(block.ty(), planned, prior, &path.0) }
}

fn with_prior(ty: &Type, planned: &Value, prior: &Value, steps: &[Step]) -> Value {
    let Some((step, rest)) = steps.split_first() else { return prior.clone() };
    let is_known = planned.is_known() && prior.is_known();
    match (ty, step) {
        // A map without the key can be null.
        (Type::Map(_), Step::Name(key)) if is_known && !(planned.is_null() && prior.is_null()) => {
            let entries = with_prior_entry(ty, entries(planned), entries(prior), (key, rest));
            if entries.is_empty() && prior.is_null() { prior.clone() } else { Value::of_entries(ty, entries) }
        }
        (Type::Object(_), Step::Name(name)) => match (planned.as_entries(), prior.as_entries()) {
            (Some(planned), Some(before)) => Value::of_entries(ty, with_prior_entry(ty, planned, before, (name, rest))),
            _ => planned.clone(),
        },
        (Type::List(element), Step::Index(place)) => match (planned.as_items(), prior.as_items()) {
            (Some(items), Some(before)) => {
                let mut items = items.to_vec();
                if let (Some(item), Some(before)) = (items.get_mut(*place), before.get(*place)) {
                    *item = with_prior(element, item, before, rest);
                }
                Value::of_items(ty, items)
            }
            _ => planned.clone(),
        },
        _ => planned.clone(),
    }
}

fn with_prior_entry(ty: &Type, entries: &Entries, prior: &Entries, (name, rest): (&Arc<str>, &[Step])) -> Entries {
    let mut entries = entries.to_tree();
    let kept = match (entries.remove(name), prior.get(name)) {
        (_, before) if rest.is_empty() => before.cloned(),
        (Some(planned), Some(before)) => {
            Some(with_prior(ty.entry(name).unwrap_or(&Type::Dynamic), &planned, before, rest))
        }
        (planned, _) => planned,
    };
    entries.extend(kept.map(|kept| (name.clone(), kept)));
    entries.into()
}

#[cfg(test)]
mod tests {
    use super::super::Nesting;
    use super::super::builders::{block, nested, optional};
    use super::*;

    fn schema() -> Block {
        let rule = block([("name", optional(Type::String)), ("port", optional(Type::Number))], []);
        block(
            [("tags", optional(Type::map(Type::String))), ("text", optional(Type::String))],
            [("rule", nested(Nesting::List, rule))],
        )
    }

    fn object(text: &str, tags: Value, rules: &[(&str, i64)]) -> Value {
        let rules =
            rules.iter().map(|(name, port)| Value::object([("name", (*name).into()), ("port", (*port).into())]));
        let element = Type::object([("name", Type::String), ("port", Type::Number)]);
        Value::object([("rule", Value::list(element, rules)), ("tags", tags), ("text", text.into())])
    }

    fn tags(entries: &[(&str, &str)]) -> Value {
        Value::map(Type::String, entries.iter().map(|(key, value)| (*key, Value::from(*value))))
    }

    fn check(planned: &Value, prior: &Value, ignored: &[Path], expected: &Value) {
        let found =
            ignored.iter().fold(planned.clone(), |planned, path| with_prior_at(&schema(), &planned, prior, path));
        assert_eq!(found, *expected);
    }

    fn at(name: &str) -> Path {
        Path::default().name(name)
    }

    #[test]
    fn ignored_attributes_and_items_have_their_prior_values() {
        let (prior, planned) = (object("a", tags(&[]), &[("a", 1)]), object("b", tags(&[]), &[("b", 2), ("b", 3)]));
        check(&planned, &prior, &[Path::default()], &prior);
        check(&planned, &Value::NULL, &[Path::default(), at("text")], &planned);
        check(&planned, &prior, &[at("text")], &object("a", tags(&[]), &[("b", 2), ("b", 3)]));
        // The object has no second item, and no attribute of that name.
        let port = |index| at("rule").index(index).name("port");
        let paths = [port(0), port(1), at("text").name("x"), at("none")];
        check(&planned, &prior, &paths, &object("b", tags(&[]), &[("b", 1), ("b", 3)]));
    }

    #[test]
    fn ignored_keys_are_added_and_removed() {
        let (null, unknown) = (Value::null(Type::map(Type::String)), Value::unknown(Type::map(Type::String)));
        for (planned, prior, expected) in [
            (tags(&[("k", "new"), ("x", "1")]), tags(&[("k", "old")]), tags(&[("k", "old"), ("x", "1")])),
            (tags(&[("k", "new"), ("x", "1")]), tags(&[]), tags(&[("x", "1")])),
            (tags(&[("k", "new")]), tags(&[]), tags(&[])),
            (tags(&[("k", "new")]), null.clone(), null.clone()),
            (null.clone(), tags(&[("k", "old"), ("x", "1")]), tags(&[("k", "old")])),
            (null.clone(), null.clone(), null),
            (unknown.clone(), tags(&[("k", "old")]), unknown),
        ] {
            let of = |tags: Value| object("a", tags, &[]);
            check(&of(planned), &of(prior), &[at("tags").name("k")], &of(expected));
        }
    }
}
