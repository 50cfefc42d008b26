//! Filters the paths that a provider lists as requiring replacement.

use cty::{Error, Path, Step, Type, Value};

use super::{Attribute, Block, Shape, entries, items};

/// Returns the paths at which the planned value differs from the prior one, is unknown, or is write-only. For a new
/// object (`prior` is null) the result is empty: providers with the legacy type system list paths even then. A path
/// into a set is shortened to the set, because its elements have no path. A path that exists in neither value is an
/// error.
pub fn replace_paths(block: &Block, prior: &Value, planned: &Value, paths: &[Path]) -> Result<Vec<Path>, Error> {
    let mut replacing: Vec<Path> = Vec::new();
    if prior.is_null() {
        return Ok(replacing);
    }
    for path in paths {
        let (before, after) = (lookup(prior, path), lookup(planned, path));
        let reached = before.as_ref().or(after.as_ref()).map(|(length, _)| *length);
        let Some(length) = reached else {
            return Err(Error::at(
                path.clone(),
                "is listed by the provider as requiring replacement, but does not exist",
            ));
        };
        let (before, after) = (before.map(|(_, value)| value), after.map(|(_, value)| value));
        let (before, after) = (before.unwrap_or(&Value::NULL), after.unwrap_or(&Value::NULL));
        let both_null = before.is_null() && after.is_null();
        let changes = (before != after && !both_null) || !after.is_wholly_known() || !before.is_wholly_known();
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
    for step in &path.0 {
        let Step::Name(name) = step else { continue };
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

/// Returns the value at a path and the number of steps that lead to it, which is smaller than the length of the path if
/// the path leads into a set or an unknown value. `None` if the path does not exist.
fn lookup<'a>(value: &'a Value, path: &Path) -> Option<(usize, &'a Value)> {
    let mut here = value;
    for (passed, step) in path.0.iter().enumerate() {
        if !here.is_known() || (matches!(here.ty(), Type::Set(_)) && !here.is_null()) {
            return Some((passed, here));
        }
        here = match step {
            Step::Name(name) => entries(here).get(name)?,
            Step::Index(place) => items(here).get(*place)?,
        };
    }
    Some((path.0.len(), here))
}

#[cfg(test)]
mod tests {
    use super::super::Nesting;
    use super::super::builders::{block, nested, optional};
    use super::*;

    fn check(prior: &Value, planned: &Value, paths: &[Path]) -> Result<Vec<String>, String> {
        let rule = block([("port", optional(Type::Number))], []);
        let secret = Attribute { write_only: true, ..optional(Type::String) };
        let outer = block(
            [("a", optional(Type::String)), ("secret", secret)],
            [("rule", nested(Nesting::List, rule.clone())), ("set", nested(Nesting::Set, rule))],
        );
        let found = replace_paths(&outer, prior, planned, paths).map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    fn at(name: &str) -> Path {
        Path::default().name(name)
    }

    fn port(name: &str, index: usize) -> Path {
        at(name).index(index).name("port")
    }

    fn rule() -> Type {
        Type::object([("port", Type::Number)])
    }

    fn value(a: Value, ports: &[i64]) -> Value {
        let rules = || ports.iter().map(|port| Value::object([("port", (*port).into())]));
        Value::object([
            ("a", a),
            ("rule", Value::list(rule(), rules())),
            ("secret", Value::null(Type::String)),
            ("set", Value::set(rule(), rules())),
        ])
    }

    #[test]
    fn only_changed_paths_require_replacement() {
        let (one, two) = (value("x".into(), &[1]), value("x".into(), &[2]));
        assert_eq!(check(&one, &two, &[at("a"), port("rule", 0)]).unwrap(), ["rule[0].port"]);
        let unknown = value(Value::unknown(Type::String), &[1]);
        assert_eq!(check(&one, &unknown, &[at("a"), port("rule", 0)]).unwrap(), ["a"]);
        assert_eq!(check(&Value::NULL, &two, &[at("a"), at("nowhere")]).unwrap(), [""; 0]);
        assert_eq!(check(&one, &one, &[at("secret")]).unwrap(), ["secret"]);
    }

    #[test]
    fn a_path_into_a_set_leads_to_the_set() {
        let (one, two) = (value("x".into(), &[1]), value("x".into(), &[2]));
        assert_eq!(check(&one, &two, &[port("set", 0), port("set", 1)]).unwrap(), ["set"]);
        assert_eq!(check(&one, &one, &[port("set", 0)]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_path_on_one_side_changes_and_a_path_on_neither_side_is_an_error() {
        let (one, none) = (value("x".into(), &[1]), value("x".into(), &[]));
        assert_eq!(check(&one, &none, &[port("rule", 0)]).unwrap(), ["rule[0].port"]);
        let error = check(&none, &none, &[port("rule", 0)]).unwrap_err();
        assert_eq!(error, "rule[0].port: is listed by the provider as requiring replacement, but does not exist");
    }
}
