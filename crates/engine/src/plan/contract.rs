//! Checks Terraform's provider contract: a plan matches the configuration, a final plan matches the plan, and a result
//! matches the final plan.

use model::{Address, Diagnostic, Path, Reason, Schema, Segment, Value, visible};

/// An error for a provider bug.
pub fn fault(address: &Address, summary: String) -> Box<Diagnostic> {
    let error = Diagnostic::error(address, Reason::DriverFault, summary);
    Box::new(error.hint("this is a bug in the provider; report it to its developers"))
}

/// Checks that each configured attribute has its configured or its prior value in the plan.
pub fn check_planned(
    address: &Address,
    config: &Value,
    planned: &Value,
    prior: Option<&Value>,
) -> Result<(), Box<Diagnostic>> {
    let Value::Map(attributes) = config.unmarked() else { return Ok(()) };
    if !matches!(planned.unmarked(), Value::Map(_)) {
        return Err(fault(address, "driver produced an invalid plan: the planned value is not an object".to_owned()));
    }
    for (name, configured) in attributes.iter().filter(|(_, value)| !matches!(value.unmarked(), Value::Null)) {
        let planned = planned.get(name).unwrap_or(&Value::Null);
        let as_before = prior.and_then(|prior| prior.get(name)).is_some_and(|before| before.equals_unmarked(planned));
        if !as_before && !planned.equals_unmarked(configured) {
            let what =
                format!("driver produced an invalid plan: `{name}` has neither its configured nor its prior value");
            return Err(fault(address, what));
        }
    }
    Ok(())
}

/// The "requires replacement" paths at which the planned value differs from the prior one or is unknown. A path that
/// exists in neither value is a provider bug. An absent attribute of the schema is null.
pub fn forcing(
    address: &Address,
    schema: &Schema,
    paths: Vec<Path>,
    prior: &Value,
    planned: &Value,
) -> Result<Vec<Path>, Box<Diagnostic>> {
    let mut forcing = Vec::new();
    for path in paths {
        let attribute = matches!(&path.0[..], [Segment::Name(name)] if schema.attributes.contains_key(name));
        match (prior.at(&path), planned.at(&path)) {
            (None, None) if attribute => {}
            (None, None) => {
                let path = visible::path(path, &[prior, planned]);
                let what =
                    format!("driver produced an invalid plan: `{path}` requires replacement, but does not exist");
                return Err(fault(address, what));
            }
            (before, after) => {
                let after = after.unwrap_or_default();
                if after.has_unknown() || !after.equals_unmarked(&before.unwrap_or_default()) {
                    forcing.push(path);
                }
            }
        }
    }
    Ok(forcing)
}

/// The first path at which `later` differs from a known value in `planned`, for a message. Unknown values may become
/// anything.
pub fn first_difference(planned: &Value, later: &Value) -> Option<Path> {
    let mut at = Vec::new();
    broken(planned, later, &mut at).then(|| visible::path(Path(at), &[planned, later]))
}

/// Leaves the found path in `at`.
fn broken(planned: &Value, later: &Value, at: &mut Vec<Segment>) -> bool {
    match (planned.unmarked(), later.unmarked()) {
        (Value::Unknown, _) => false,
        (Value::Map(a), Value::Map(b)) => {
            let promised = a.iter().map(|(name, item)| (name, item, b.get(name).unwrap_or(&Value::Null)));
            // Attributes absent from the plan are null, so a result must not add any to a known object.
            let added =
                b.iter().filter(|(name, _)| !a.contains_key(name)).map(|(name, item)| (name, &Value::Null, item));
            promised.chain(added).any(|(name, a, b)| within(Segment::Name(name.clone()), a, b, at))
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            a.iter().zip(b.iter()).enumerate().any(|(place, (a, b))| within(Segment::Index(place), a, b, at))
        }
        (a, b) => !a.equals_unmarked(b),
    }
}

fn within(segment: Segment, planned: &Value, later: &Value, at: &mut Vec<Segment>) -> bool {
    at.push(segment);
    let broken = broken(planned, later, at);
    if !broken {
        at.pop();
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: serde_json::Value) -> Value {
        Value::from_json(json)
    }

    #[test]
    fn unknown_values_may_become_anything_and_known_values_may_not_change() {
        let planned = value(serde_json::json!({"a": 1, "list": [1, 2]})).with("b", Value::Unknown);
        let kept = value(serde_json::json!({"a": 1, "list": [1, 2], "b": {"x": 1}}));
        assert_eq!(first_difference(&planned, &kept), None);
        let changed = value(serde_json::json!({"a": 1, "list": [1, 3], "b": 1}));
        assert_eq!(first_difference(&planned, &changed).map(|path| path.to_string()).as_deref(), Some("list[1]"));
    }

    #[test]
    fn only_a_path_that_changes_forces_a_replacement() {
        let address = Address::single("a");
        let prior = value(serde_json::json!({"a": 1, "b": 2}));
        let planned = value(serde_json::json!({"a": 1, "b": 3})).with("c", Value::Unknown);
        let paths = ["a", "b", "c"].map(|name| Path::default().name(name)).to_vec();
        let forcing_paths = forcing(&address, &Schema::default(), paths, &prior, &planned).unwrap();
        assert_eq!(forcing_paths.iter().map(ToString::to_string).collect::<Vec<_>>(), ["b", "c"]);
        let nowhere = vec![Path::default().name("z")];
        let nowhere = forcing(&address, &Schema::default(), nowhere, &prior, &planned).unwrap_err();
        assert!(nowhere.summary.contains("`z` requires replacement"), "{nowhere}");
    }
}
