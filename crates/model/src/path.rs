//! Attribute paths: `rule[0].port`, `tags["Owner"]`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// An attribute, or a key of a map.
    Name(Arc<str>),
    /// A position in a list.
    Index(usize),
}

/// A path in a value. The empty path is the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Segment>);

impl Path {
    #[must_use]
    pub fn join(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Segment::Name(Arc::from(*name))).collect())
    }

    #[must_use]
    pub fn name(&self, name: impl Into<Arc<str>>) -> Self {
        self.join(Segment::Name(name.into()))
    }

    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.join(Segment::Index(index))
    }

    /// Whether `self` is `other` or a path inside of it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// Whether a name can follow a dot without quotes.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}

/// Whether a name can also follow a dot in an expression, where `-` subtracts.
fn is_plain(name: &str) -> bool {
    is_identifier(name) && !name.contains('-')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Name(name) if is_plain(name) => {
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

/// The error of a string that is not an attribute path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPath(String);

impl FromStr for Path {
    type Err = InvalidPath;

    /// Parses the format of `Display`. Keys can also have single quotes, and names with `-` need none.
    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() || segments.is_empty() {
            let after_dot = rest.strip_prefix('.').filter(|_| !segments.is_empty());
            let (segment, after) = match (rest.strip_prefix('['), after_dot) {
                (Some(inside), _) if !segments.is_empty() => {
                    let place = text.chars().count() - inside.chars().count();
                    subscript(inside).ok_or_else(|| {
                        InvalidPath(format!(
                            "`[` at column {place} must be followed by a number or a quoted key, and `]`"
                        ))
                    })?
                }
                (_, name) if name.is_some() || segments.is_empty() => identifier(name.unwrap_or(rest))?,
                _ => return Err(InvalidPath(format!("`.` or `[` is missing before `{rest}`"))),
            };
            segments.push(segment);
            rest = after;
        }
        Ok(Self(segments))
    }
}

fn identifier(text: &str) -> Result<(Segment, &str), InvalidPath> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if is_identifier(name) {
        return Ok((Segment::Name(name.into()), rest));
    }
    Err(InvalidPath(match text.chars().next() {
        None => "the name of an attribute is missing at the end".to_owned(),
        Some(next) => format!("the name of an attribute is missing before `{next}`"),
    }))
}

/// Parses the text after `[`: an index or a quoted key, and `]`.
fn subscript(text: &str) -> Option<(Segment, &str)> {
    if let Some(inner) = text.strip_prefix('\'') {
        let (key, rest) = inner.split_once("']")?;
        return Some((Segment::Name(key.into()), rest));
    }
    if text.starts_with('"') {
        let mut keys = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let key = keys.next()?.ok()?;
        return Some((Segment::Name(key.into()), text[keys.byte_offset()..].strip_prefix(']')?));
    }
    let (index, rest) = text.split_once(']')?;
    let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
    Some((Segment::Index(index.parse().ok().filter(|_| is_number)?), rest))
}

impl serde::Serialize for Path {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads what `Serialize` writes, which can be empty or begin with a quoted key.
impl<'de> serde::Deserialize<'de> for Path {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let below_root = match text.chars().next() {
            None => return Ok(Self::default()),
            Some('[') => format!("root{text}"),
            Some(_) => format!("root.{text}"),
        };
        let Self(segments) = below_root.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(segments[1..].to_vec()))
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

    #[test]
    fn displayed_paths_can_be_parsed() {
        for text in [r#"rule[0].tags["a b"]["c-d"]"#, r#"tags["a\"]b"]"#, "_x", "manifest.spec.replicas"] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
        assert_eq!("tags['Owner']".parse::<Path>(), r#"tags["Owner"]"#.parse());
        assert_eq!("tags.c-d".parse::<Path>(), r#"tags["c-d"]"#.parse());
    }

    fn problem(text: &str) -> String {
        text.parse::<Path>().unwrap_err().to_string()
    }

    #[test]
    fn errors_describe_the_problem() {
        assert_eq!(problem(""), "the name of an attribute is missing at the end");
        assert_eq!(problem("*"), "the name of an attribute is missing before `*`");
        assert_eq!(problem("tags."), "the name of an attribute is missing at the end");
        assert_eq!(problem("a b"), "`.` or `[` is missing before ` b`");
        let bracket = "`[` at column 2 must be followed by a number or a quoted key, and `]`";
        for text in ["a[x]", "a[-1]", "a[0", "a[]", "a[\"b\"", "a['b"] {
            assert_eq!(problem(text), bracket);
        }
        assert_eq!(problem("[0]"), "the name of an attribute is missing before `[`");
    }
}
