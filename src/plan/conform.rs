//! Configuration against the schema: names, required attributes, types. Terraform's rules, with its conversions between
//! texts, numbers and booleans.

use std::sync::Arc;

use crate::model::{Address, AttributeType, Diagnostic, Diagnostics, Number, Path, Reason, Schema, Value};

/// The field that configuration stands in.
pub(super) fn config_path() -> Path {
    Path::default().name("spec").name("config")
}

/// A path below `spec.config`, from `spec` on.
pub(super) fn below_config(path: &Path) -> Path {
    let mut whole = config_path();
    whole.0.extend(path.0.iter().cloned());
    whole
}

/// The configuration as the schema has it, with every problem found. Without errors it is an object of attributes of
/// the schema only. Unknown places fit any type.
pub(super) fn conform(address: &Address, config: Value, schema: &Schema) -> (Value, Diagnostics) {
    let mut check = Check { address, found: Vec::new() };
    let map = match config {
        Value::Map(map) => map,
        Value::Null => Arc::default(),
        other => {
            check.report(&Path::default(), format!("must be an object, not {}", word(&other)));
            return (other, check.found);
        }
    };
    let mut changed: Vec<(Arc<str>, Value)> = Vec::new();
    for (name, value) in map.iter() {
        let at = Path::default().name(name.clone());
        let Some(attribute) = schema.attributes.get(name) else {
            check.unknown_name(&at, name, schema);
            continue;
        };
        if matches!(value.unmarked(), Value::Null) {
            continue;
        }
        if !attribute.required && !attribute.optional {
            check.report(&at, "is computed by the provider and cannot be set".to_owned());
        } else if let Some(converted) = check.convert(value, &attribute.kind, &at) {
            changed.push((name.clone(), converted));
        }
    }
    for (name, _) in schema.attributes.iter().filter(|(_, attribute)| attribute.required) {
        if map.get(name).is_none_or(|value| matches!(value.unmarked(), Value::Null)) {
            check.report(&Path::default().name(name.clone()), "is required, but not set".to_owned());
        }
    }
    if changed.is_empty() {
        return (Value::Map(map), check.found);
    }
    let mut converted = map.as_ref().clone();
    converted.extend(changed);
    (Value::Map(Arc::new(converted)), check.found)
}

struct Check<'a> {
    address: &'a Address,
    found: Diagnostics,
}

impl Check<'_> {
    fn report(&mut self, at: &Path, what: String) {
        self.found.push(Diagnostic::error(self.address, Reason::InvalidConfig, what).at(below_config(at)));
    }

    fn unknown_name(&mut self, at: &Path, name: &str, schema: &Schema) {
        let settable = schema.attributes.iter().filter(|(_, attribute)| attribute.required || attribute.optional);
        let nearest = settable.map(|(known, _)| (distance(name, known), known)).min();
        let what = "is no attribute of this type";
        let mut diagnostic = Diagnostic::error(self.address, Reason::InvalidConfig, what).at(below_config(at));
        // Beyond a third of the letters two names are not a slip of the same word.
        if let Some((_, known)) = nearest.filter(|(distance, known)| *distance <= known.len().max(name.len()) / 3) {
            diagnostic = diagnostic.hint(format!("did you mean `{known}`?"));
        }
        self.found.push(diagnostic);
    }

    /// The value in the wanted type; `None` when it is already, or when it cannot be, which is reported.
    fn convert(&mut self, value: &Value, wanted: &AttributeType, at: &Path) -> Option<Value> {
        match (value, wanted) {
            (Value::Sensitive(inner), _) => self.convert(inner, wanted, at).map(Value::into_sensitive),
            (Value::Null | Value::Unknown, _)
            | (_, AttributeType::Any)
            | (Value::String(_), AttributeType::String)
            | (Value::Bool(_), AttributeType::Bool)
            | (Value::Number(_), AttributeType::Number) => None,
            (Value::Number(number), AttributeType::String) => Some(Value::String(number.to_string().into())),
            (Value::Bool(bool), AttributeType::String) => Some(Value::String(bool.to_string().into())),
            (Value::String(text), AttributeType::Bool) if matches!(text.as_ref(), "true" | "false") => {
                Some(Value::Bool(text.as_ref() == "true"))
            }
            (Value::String(text), AttributeType::Number) if Number::parse(text).is_some() => {
                Number::parse(text).map(Value::Number)
            }
            (Value::List(items), AttributeType::List(kind)) => {
                let converted: Vec<_> =
                    items.iter().enumerate().map(|(place, item)| self.convert(item, kind, &at.index(place))).collect();
                let pairs = items.iter().zip(&converted);
                converted
                    .iter()
                    .any(Option::is_some)
                    .then(|| Value::list(pairs.map(|(old, new)| new.clone().unwrap_or_else(|| old.clone()))))
            }
            (Value::Map(map), AttributeType::Map(kind)) => {
                let converted: Vec<_> =
                    map.iter().map(|(name, item)| self.convert(item, kind, &at.name(name.clone()))).collect();
                let pairs = map.iter().zip(&converted);
                converted.iter().any(Option::is_some).then(|| {
                    Value::map(
                        pairs.map(|((name, old), new)| (name.clone(), new.clone().unwrap_or_else(|| old.clone()))),
                    )
                })
            }
            (other, wanted) => {
                self.report(at, format!("must be {}, not {}", type_word(wanted), word(other)));
                None
            }
        }
    }
}

/// What a value is, without telling it.
fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Unknown => "unknown",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "an object",
        Value::Sensitive(inner) => word(inner),
    }
}

fn type_word(wanted: &AttributeType) -> &'static str {
    match wanted {
        AttributeType::Any => "anything",
        AttributeType::String => "a text",
        AttributeType::Bool => "a boolean",
        AttributeType::Number => "a number",
        AttributeType::List(_) => "a list",
        AttributeType::Map(_) => "a map",
    }
}

/// The edit distance of two names: how many letters must be put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::tests::world::schema;

    fn check(config: serde_json::Value, expected: &Expect) {
        let (value, found) = conform(&Address::single("a"), Value::from_json(config), &schema());
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        expected.assert_eq(&format!("{}\n{}", value.to_json(), text.join("\n")));
    }

    #[test]
    fn a_misspelt_attribute_gets_a_suggestion() {
        check(
            serde_json::json!({"inptu": 1}),
            &expect![[r#"
                {"inptu":1}
                a: spec.config.inptu: is no attribute of this type"#]],
        );
    }

    #[test]
    fn computed_attributes_and_wrong_types_are_refused_at_their_path() {
        check(
            serde_json::json!({"id": "x", "ports": [1, "2", "three"], "name": 5}),
            &expect![[r#"
                {"id":"x","name":"5","ports":[1,2,"three"]}
                a: spec.config.id: is computed by the provider and cannot be set
                a: spec.config.ports[2]: must be a number, not a text"#]],
        );
    }
}
