//! Attribute paths: `rule[0].port`, `tags["Owner"]`.

use std::fmt;
use std::sync::Arc;

use super::Value;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// An attribute, or a key of a map.
    Name(Arc<str>),
    /// A position in a list.
    Index(usize),
}

/// Where in a value. The empty path is the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The path with one segment more.
    #[must_use]
    pub fn join(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// The path with one name more.
    #[must_use]
    pub fn name(&self, name: impl Into<Arc<str>>) -> Self {
        self.join(Segment::Name(name.into()))
    }

    /// The path with one index more.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.join(Segment::Index(index))
    }

    /// Whether `self` is `other` or leads to a place inside of it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// What stands at this path. Looking into `Unknown` gives `Unknown`, into `Sensitive` a sensitive value;
    /// a place that does not exist gives `None`.
    pub fn get(&self, value: &Value) -> Option<Value> {
        let mut here = value.clone();
        let mut sensitive = false;
        for segment in &self.0 {
            while let Value::Sensitive(inner) = here {
                sensitive = true;
                here = inner.as_ref().clone();
            }
            here = match (&here, segment) {
                (Value::Unknown, _) => Value::Unknown,
                (Value::Map(map), Segment::Name(name)) => map.get(name.as_ref())?.clone(),
                (Value::List(list), Segment::Index(index)) => list.get(*index)?.clone(),
                _ => return None,
            };
        }
        Some(if sensitive { here.into_sensitive() } else { here })
    }
}

/// Whether a name can stand after a dot.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Name(name) if is_identifier(name) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(name)?;
                }
                Segment::Name(name) => write!(f, "[{}]", serde_json::Value::from(name.as_ref()))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Path {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_in_index_notation() {
        let path = Path::default().name("rule").index(0).name("tags").name("a b");
        assert_eq!(path.to_string(), r#"rule[0].tags["a b"]"#);
    }
}
