//! Marks of a state on the values of objects.

use model::{Path, Segment, Value};

/// Marks the values at the paths of a state as sensitive.
pub fn marked(value: Value, paths: &[Path]) -> Value {
    paths.iter().fold(value, |value, path| mark(&value, &path.0))
}

/// The output of `terraform_data` equals its input, but Terraform marks only the input.
pub fn marked_output(value: Value, paths: &[Path]) -> Value {
    let input = Segment::Name("input".into());
    let below = paths.iter().filter_map(|path| path.0.strip_prefix(std::slice::from_ref(&input)));
    let output = |rest: &[Segment]| [&[Segment::Name("output".into())], rest].concat();
    below.fold(value, |value, rest| mark(&value, &output(rest)))
}

/// Marks the value at a path as sensitive. A path that does not exist, or that is inside a marked value, is ignored.
fn mark(value: &Value, path: &[Segment]) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return if *value == Value::Null { Value::Null } else { value.clone().into_sensitive() };
    };
    match (value, first) {
        (Value::Map(entries), Segment::Name(name)) if entries.contains_key(name) => {
            let inner = entries.get(name).unwrap_or(&Value::Null);
            value.with(name.clone(), mark(inner, rest))
        }
        (Value::List(items), Segment::Index(place)) if *place < items.len() => {
            let one = |(at, item): (usize, &Value)| if at == *place { mark(item, rest) } else { item.clone() };
            Value::list(items.iter().enumerate().map(one))
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_paths_are_marked() {
        let value = Value::map([("a", Value::list([Value::from("x"), Value::from("y")])), ("b", Value::Null)]);
        let all = Path::default();
        let made =
            marked(value.clone(), &[all.name("a").index(1), all.name("b"), all.name("c"), all.name("a").index(7)]);
        let expected = Value::list([Value::from("x"), Value::from("y").into_sensitive()]);
        assert_eq!(made, value.with("a", expected));
    }
}
