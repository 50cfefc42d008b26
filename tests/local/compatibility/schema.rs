//! Compares two versions of a schema by the rules of Kubernetes for compatible changes of an API: what was valid
//! stays valid and keeps its meaning. A keyword without a rule here must not change at all.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

/// What no client depends on.
const TEXT: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// The schemas of what a value contains, which `fields` and `elements` compare.
const CONTENT: [&str; 3] = ["properties", "items", "additionalProperties"];

/// Adds every incompatible change of the schema of a field to `found`, as one line that begins with the path `at`.
pub(super) fn compare(at: &str, old: &Json, new: &Json, found: &mut Vec<String>) {
    let mut say = |what: String| found.push(format!("{at}: {what}"));
    for keyword in keywords(old, new) {
        let (before, after) = (&old[keyword], &new[keyword]);
        match keyword {
            "required" => {
                for name in missing(after, before).filter_map(Json::as_str) {
                    // Kubernetes sets the default of a field before it checks what is required.
                    if new["properties"][name]["default"].is_null() {
                        say(format!("`{name}` is required now"));
                    }
                }
            }
            "enum" if before.is_null() => say("only some values are valid now (enum)".to_owned()),
            "enum" if after.is_null() => {}
            "enum" => missing(before, after).for_each(|value| say(format!("the value {value} is not valid any more"))),
            "minimum" | "minLength" | "minItems" | "minProperties" => {
                // Without a limit, lengths begin at 0.
                let lowest = if keyword == "minimum" { f64::NEG_INFINITY } else { 0.0 };
                if after.as_f64().unwrap_or(lowest) > before.as_f64().unwrap_or(lowest) {
                    say(changed(keyword, before, after));
                }
            }
            "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
                if after.as_f64().unwrap_or(f64::INFINITY) < before.as_f64().unwrap_or(f64::INFINITY) {
                    say(changed(keyword, before, after));
                }
            }
            // Whether one of these is weaker than another cannot be decided in general. None at all is weaker.
            "pattern" | "format" | "multipleOf" | "allOf" | "anyOf" | "oneOf" | "not" => {
                if !after.is_null() && text_free(before) != text_free(after) {
                    say(changed(keyword, before, after));
                }
            }
            "nullable" | "x-kubernetes-preserve-unknown-fields" => {
                if is_true(before) && !is_true(after) {
                    say(changed(keyword, before, after));
                }
            }
            "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" => {
                if !is_true(before) && is_true(after) {
                    say(changed(keyword, before, after));
                }
            }
            "x-kubernetes-validations" => {
                let known: Vec<_> = entries(before).map(rule).collect();
                for (expression, also_on_create) in entries(after).map(rule) {
                    if !known.contains(&(expression, also_on_create)) {
                        say(format!("the rule `{expression}` was added"));
                    }
                }
            }
            "x-kubernetes-list-type" => fixed(keyword, or(before, "atomic"), or(after, "atomic"), &mut say),
            "x-kubernetes-map-type" => fixed(keyword, or(before, "granular"), or(after, "granular"), &mut say),
            _ => fixed(keyword, before.clone(), after.clone(), &mut say),
        }
    }
    fields(at, old, new, found);
    elements(at, old, new, found);
}

/// Compares the fields of an object.
fn fields(at: &str, old: &Json, new: &Json, found: &mut Vec<String>) {
    let none = Map::new();
    let properties = |schema: &Json| schema["properties"].as_object().cloned();
    let (before, after) = (properties(old), properties(new));
    let (before, after) = (before.as_ref().unwrap_or(&none), after.as_ref().unwrap_or(&none));
    for (name, field) in before {
        let at = format!("{at}.{name}");
        match after.get(name) {
            Some(now) => compare(&at, field, now, found),
            None => found.push(format!("{at}: the field was removed")),
        }
    }
    let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
    for (name, field) in added.filter(|(_, field)| keeps_unknown(old) && !accepts_anything(field)) {
        found.push(format!("{at}.{name}: any value was valid, and now {}", text_free(field)));
    }
}

/// Compares the items of a list, and the values of a map.
fn elements(at: &str, old: &Json, new: &Json, found: &mut Vec<String>) {
    for (keyword, element) in [("items", "[]"), ("additionalProperties", ".*")] {
        let (before, after, at) = (&old[keyword], &new[keyword], format!("{at}{element}"));
        match (before.is_object(), after.is_object()) {
            (true, true) => compare(&at, before, after, found),
            // A map that becomes an object of arbitrary content accepts more.
            (true, false) if is_true(after) || keeps_unknown(new) => {}
            (true, false) => found.push(format!("{at}: the field was removed")),
            (false, true) if (is_true(before) || keeps_unknown(old)) && !accepts_anything(after) => {
                found.push(format!("{at}: any value was valid, and now {}", text_free(after)));
            }
            (false, _) if is_true(before) && !is_true(after) && !keeps_unknown(new) => {
                found.push(format!("{at}: the field was removed"));
            }
            (false, _) => {}
        }
    }
}

/// The keywords about the value itself.
fn keywords<'a>(old: &'a Json, new: &'a Json) -> BTreeSet<&'a str> {
    let all = [old, new].into_iter().filter_map(Json::as_object).flat_map(Map::keys).map(String::as_str);
    all.filter(|keyword| !TEXT.contains(keyword) && !CONTENT.contains(keyword)).collect()
}

fn entries(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// The entries of a list that the other list does not contain.
fn missing<'a>(list: &'a Json, other: &'a Json) -> impl Iterator<Item = &'a Json> {
    entries(list).filter(|entry| entries(other).all(|known| known != *entry))
}

/// What decides when a rule applies and holds. Its message may change.
fn rule(rule: &Json) -> (&str, bool) {
    (rule["rule"].as_str().unwrap_or_default(), is_true(&rule["optionalOldSelf"]))
}

fn is_true(value: &Json) -> bool {
    value == &Json::Bool(true)
}

fn keeps_unknown(schema: &Json) -> bool {
    is_true(&schema["x-kubernetes-preserve-unknown-fields"])
}

fn accepts_anything(schema: &Json) -> bool {
    text_free(schema) == serde_json::json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn or(value: &Json, default: &str) -> Json {
    if value.is_null() { Json::from(default) } else { value.clone() }
}

fn fixed(keyword: &str, before: Json, after: Json, say: &mut impl FnMut(String)) {
    if before != after {
        say(changed(keyword, &before, &after));
    }
}

fn changed(keyword: &str, before: &Json, after: &Json) -> String {
    let show = |value: &Json| if value.is_null() { "absent".to_owned() } else { text_free(value).to_string() };
    format!("{keyword} was {} and is {}", show(before), show(after))
}

/// A schema without its descriptions.
fn text_free(schema: &Json) -> Json {
    match schema {
        Json::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            kept.map(|(name, value)| (name.clone(), text_free(value))).collect::<Map<_, _>>().into()
        }
        Json::Array(values) => values.iter().map(text_free).collect(),
        other => other.clone(),
    }
}
