//! Checks configuration against the schema: names, required attributes, types. Converts between strings, numbers and
//! booleans as Terraform does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::load::Instance;
use model::{Address, AttributeType, Diagnostic, Diagnostics, Map, Number, Path, Reason, Schema, Segment, Value};

pub fn config_path() -> Path {
    Path::default().name("spec").name("config")
}

/// The absolute path of a path below `spec.config`.
pub fn below_config(path: &Path) -> Path {
    let mut whole = config_path();
    whole.0.extend(path.0.iter().cloned());
    whole
}

/// Attaches the instance to problems found below `spec.config`. A provider warning may have no path.
pub fn located(instance: &Instance, problems: Diagnostics) -> Diagnostics {
    problems
        .into_iter()
        .map(|problem| {
            let problem = Diagnostic { address: Some(instance.address.clone()), ..problem };
            let is_of_field = problem.path.is_some() || problem.reason != Reason::ProviderWarning;
            if is_of_field { problem.below(&config_path()) } else { problem }
        })
        .collect()
}

/// Converts the configuration to the types of the schema, as [`conform`] does.
///
/// # Errors
/// All problems of the configuration.
pub fn conform_config(address: &Address, config: Value, schema: &Schema) -> Result<Value, Diagnostics> {
    let (config, problems) = conform(address, config, schema);
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

/// Converts the configuration to the types of the schema and returns all problems, which are errors. Without errors, the result has only
/// attributes of the schema. Unknown values match any type.
pub fn conform(address: &Address, config: Value, schema: &Schema) -> (Value, Diagnostics) {
    let mut check = Check { address, at: Path::default(), problems: Vec::new() };
    let map = match config {
        Value::Map(map) => map,
        Value::Null => Map::default(),
        other => {
            check.report(format!("must be an object, not {}", word(&other)));
            return (other, check.problems);
        }
    };
    let mut converted: Vec<(Arc<str>, Value)> = Vec::new();
    for (name, value) in map.iter() {
        let new = check.within(Segment::Name(name.clone()), |check| check.attribute(name, value, schema));
        converted.extend(new.map(|new| (name.clone(), new)));
    }
    for (name, _) in schema.attributes.iter().filter(|(_, attribute)| attribute.required) {
        if map.get(name).is_none_or(|value| matches!(value.unmarked(), Value::Null)) {
            check.within(Segment::Name(name.clone()), |check| check.report("is required, but not set".to_owned()));
        }
    }
    if converted.is_empty() {
        return (Value::Map(map), check.problems);
    }
    let mut whole = map.to_tree();
    whole.extend(converted);
    (Value::Map(whole.into()), check.problems)
}

struct Check<'a> {
    address: &'a Address,
    /// The path of the value being checked.
    at: Path,
    problems: Diagnostics,
}

impl Check<'_> {
    fn within<T>(&mut self, segment: Segment, check: impl FnOnce(&mut Self) -> T) -> T {
        self.at.0.push(segment);
        let result = check(self);
        self.at.0.pop();
        result
    }

    fn report(&mut self, what: String) {
        self.problems.push(Diagnostic::error(self.address, Reason::InvalidConfig, what).at(below_config(&self.at)));
    }

    /// Returns the converted value, or `None` if no conversion is needed.
    fn attribute(&mut self, name: &str, value: &Value, schema: &Schema) -> Option<Value> {
        let Some(attribute) = schema.attributes.get(name) else {
            self.unknown_name(name, schema);
            return None;
        };
        if matches!(value.unmarked(), Value::Null) {
            return None;
        }
        if !attribute.required && !attribute.optional {
            self.report("is computed by the provider and cannot be set".to_owned());
            return None;
        }
        if schema.converted_by_driver { None } else { self.convert(value, &attribute.kind) }
    }

    fn unknown_name(&mut self, name: &str, schema: &Schema) {
        let settable = schema.attributes.iter().filter(|(_, attribute)| attribute.required || attribute.optional);
        let nearest = settable.map(|(known, _)| (distance(name, known), known)).min();
        let what = "is not an attribute of this type";
        let mut diagnostic = Diagnostic::error(self.address, Reason::InvalidConfig, what).at(below_config(&self.at));
        // Suggest a name only if at most two letters, or a third of them, differ.
        if let Some((distance, known)) = nearest
            && distance <= 2.max(known.len().max(name.len()) / 3)
        {
            diagnostic = diagnostic.hint(format!("did you mean `{known}`?"));
        }
        self.problems.push(diagnostic);
    }

    /// The value in the expected type. `None` if no conversion is needed, or after an error was reported.
    fn convert(&mut self, value: &Value, expected: &AttributeType) -> Option<Value> {
        match (value, expected) {
            (Value::Sensitive(inner), _) => self.convert(inner, expected).map(Value::into_sensitive),
            (Value::Null | Value::Unknown, _)
            | (_, AttributeType::Any)
            | (Value::String(_), AttributeType::String)
            | (Value::Bool(_), AttributeType::Bool)
            | (Value::Number(_), AttributeType::Number) => None,
            (Value::Number(number), AttributeType::String) => Some(Value::String(number.to_string().into())),
            (Value::Bool(bool), AttributeType::String) => Some(Value::String(bool.to_string().into())),
            (Value::String(text), AttributeType::Bool) if matches!(text.as_ref(), "true" | "1" | "false" | "0") => {
                Some(Value::Bool(matches!(text.as_ref(), "true" | "1")))
            }
            (Value::String(text), AttributeType::Number) if Number::parse(text).is_some() => {
                Number::parse(text).map(Value::Number)
            }
            (Value::List(items), AttributeType::List(kind)) => self.convert_list(items, kind),
            (Value::Map(map), AttributeType::Map(kind)) => self.convert_map(map, kind),
            (other, expected) => {
                self.report(format!("must be {}, not {}", type_word(expected), word(other)));
                None
            }
        }
    }

    fn convert_list(&mut self, items: &[Value], kind: &AttributeType) -> Option<Value> {
        let mut whole: Option<Vec<Value>> = None;
        for (place, item) in items.iter().enumerate() {
            if let Some(new) = self.within(Segment::Index(place), |check| check.convert(item, kind)) {
                whole.get_or_insert_with(|| items.to_vec())[place] = new;
            }
        }
        whole.map(Value::list)
    }

    fn convert_map(&mut self, map: &Map, kind: &AttributeType) -> Option<Value> {
        let mut whole: Option<BTreeMap<Arc<str>, Value>> = None;
        for (name, item) in map.iter() {
            if let Some(new) = self.within(Segment::Name(name.clone()), |check| check.convert(item, kind)) {
                whole.get_or_insert_with(|| map.to_tree()).insert(name.clone(), new);
            }
        }
        whole.map(|whole| Value::Map(whole.into()))
    }
}

/// The kind of a value, without the value itself.
fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Unknown => "unknown",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "an object",
        Value::Sensitive(inner) => word(inner),
    }
}

fn type_word(expected: &AttributeType) -> &'static str {
    match expected {
        AttributeType::Any => "any value",
        AttributeType::String => "a string",
        AttributeType::Bool => "a boolean",
        AttributeType::Number => "a number",
        AttributeType::List(_) => "a list",
        AttributeType::Map(_) => "a map",
        AttributeType::Set => "a set",
        AttributeType::Object(_) => "an object",
    }
}

/// The edit distance of two names.
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
    use crate::plan::tests::fixture::schema;

    fn check(config: serde_json::Value, expected: &Expect) {
        let (value, found) = conform(&Address::single("a"), Value::from_json(config), &schema());
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        expected.assert_eq(&format!("{}\n{}", value.to_json(), text.join("\n")));
    }

    #[test]
    fn a_misspelled_attribute_gets_a_suggestion() {
        check(
            serde_json::json!({"inptu": 1}),
            &expect![[r#"
                {"inptu":1}
                a: spec.config.inptu: is not an attribute of this type (hint: did you mean `input`?)"#]],
        );
    }

    #[test]
    fn computed_attributes_and_wrong_types_are_rejected_with_their_path() {
        check(
            serde_json::json!({"id": "x", "ports": [1, "2", "three"], "name": 5}),
            &expect![[r#"
                {"id":"x","name":"5","ports":[1,2,"three"]}
                a: spec.config.id: is computed by the provider and cannot be set
                a: spec.config.ports[2]: must be a number, not a string"#]],
        );
    }
}
