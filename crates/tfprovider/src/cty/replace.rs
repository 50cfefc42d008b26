//! Filters the paths that a provider lists as requiring replacement.

use super::schema::{Attribute, Block, Shape};
use super::{Value, ValueError};
use model::{Path, Segment};

/// Returns the paths at which the planned value differs from the prior one, is unknown, or is write-only. For a new
/// object (`prior` is null) the result is empty: providers with the legacy type system list paths even then. A path
/// into a set is shortened to the set, because its elements have no path. A path that exists in neither value is an
/// error.
pub fn replace_paths(block: &Block, prior: &Value, planned: &Value, paths: &[Path]) -> Result<Vec<Path>, ValueError> {
    let mut replacing: Vec<Path> = Vec::new();
    if prior.is_null() {
        return Ok(replacing);
    }
    for path in paths {
        let (before, after) = (prior.lookup(path), planned.lookup(path));
        let reached = before.as_ref().or(after.as_ref()).map(|(length, _)| *length);
        let Some(length) = reached else {
            let what = "is listed by the provider as requiring replacement, but does not exist".to_owned();
            return Err(ValueError { path: path.clone(), what });
        };
        let (before, after) = (before.map(|(_, value)| value), after.map(|(_, value)| value));
        let (before, after) = (before.unwrap_or(&Value::Null), after.unwrap_or(&Value::Null));
        let both_null = before.is_null() && after.is_null();
        let changes = (before != after && !both_null) || after.has_unknown() || before.has_unknown();
        let path = Path(path.0[..length].to_vec());
        if (changes || is_write_only(block, &path)) && !replacing.contains(&path) {
            replacing.push(path);
        }
    }
    Ok(replacing)
}

/// Whether the path leads to or into a write-only attribute.
fn is_write_only(block: &Block, path: &Path) -> bool {
    let mut block = Some(block);
    let mut attribute: Option<&Attribute> = None;
    for segment in &path.0 {
        let Segment::Name(name) = segment else { continue };
        let attributes = match (attribute.map(|attribute| &attribute.shape), block) {
            (Some(Shape::Nested(nested)), _) => nested.attributes(),
            (None, Some(block)) => block.attributes(),
            _ => return false,
        };
        if let Some(found) = attributes.get(name) {
            attribute = Some(found);
        } else if attribute.is_none()
            && let Some(nested) = block.and_then(|block| block.blocks().get(name))
        {
            block = Some(&nested.block);
        }
        if attribute.is_some_and(|attribute| attribute.write_only) {
            return true;
        }
    }
    false
}

impl Value {
    /// Returns the value at a path and the number of segments that lead to it, which is smaller than the length of the
    /// path if the path leads into a set or an unknown value. `None` if the path does not exist.
    fn lookup(&self, path: &Path) -> Option<(usize, &Self)> {
        let mut here = self;
        for (passed, segment) in path.0.iter().enumerate() {
            here = match (here.bare(), segment) {
                (Self::Set(_) | Self::Unknown(_), _) => return Some((passed, here)),
                (Self::Map(entries) | Self::Object(entries), Segment::Name(name)) => entries.get(name)?,
                (Self::List(items) | Self::Tuple(items), Segment::Index(place)) => items.get(*place)?,
                _ => return None,
            };
        }
        Some((path.0.len(), here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cty::Type;
    use crate::cty::schema::Nesting;
    use crate::cty::schema::tests::{block, nested, optional};

    fn check(prior: &Value, planned: &Value, paths: &[&str]) -> Result<Vec<String>, String> {
        let rule = block([("port", optional(Type::Number))], []);
        let secret = Attribute { write_only: true, ..optional(Type::String) };
        let outer = block(
            [("a", optional(Type::String)), ("secret", secret)],
            [("rule", nested(Nesting::List, rule.clone())), ("set", nested(Nesting::Set, rule))],
        );
        let paths: Vec<Path> = paths.iter().map(|path| path.parse().unwrap()).collect();
        let found = replace_paths(&outer, prior, planned, &paths).map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    fn value(a: Value, port: Value) -> Value {
        let rule = Value::object([("port", port)]);
        Value::object([
            ("a", a),
            ("rule", Value::list([rule.clone()])),
            ("secret", Value::Null),
            ("set", Value::set([rule])),
        ])
    }

    #[test]
    fn only_changed_paths_require_replacement() {
        let (one, two) = (value("x".into(), 1.into()), value("x".into(), 2.into()));
        assert_eq!(check(&one, &two, &["a", "rule[0].port"]).unwrap(), ["rule[0].port"]);
        let unknown = value(Value::UNKNOWN, 1.into());
        assert_eq!(check(&one, &unknown, &["a", "rule[0].port"]).unwrap(), ["a"]);
        assert_eq!(check(&Value::Null, &two, &["a", "nowhere"]).unwrap(), [""; 0]);
        assert_eq!(check(&one, &one, &["secret"]).unwrap(), ["secret"]);
    }

    #[test]
    fn a_path_into_a_set_leads_to_the_set() {
        let (one, two) = (value("x".into(), 1.into()), value("x".into(), 2.into()));
        assert_eq!(check(&one, &two, &["set[0].port", "set[1].port"]).unwrap(), ["set"]);
        assert_eq!(check(&one, &one, &["set[0].port"]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_path_on_one_side_changes_and_a_path_on_neither_side_is_an_error() {
        let one = value("x".into(), 1.into());
        let Value::Object(entries) = &one else { panic!("no object") };
        let mut entries = entries.as_ref().clone();
        entries.insert("rule".into(), Value::list([]));
        let none = Value::Object(entries.into());
        assert_eq!(check(&one, &none, &["rule[0].port"]).unwrap(), ["rule[0].port"]);
        let error = check(&none, &none, &["rule[0].port"]).unwrap_err();
        assert_eq!(error, "rule[0].port: is listed by the provider as requiring replacement, but does not exist");
    }
}
