//! The diagnostics of a provider.

use cty::{Path, Step};
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

/// A problem that a provider reports. Its strings may contain sensitive values, because providers quote their input;
/// mask them before showing them.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Diagnostic {
    /// See [`Self::is_error`].
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub summary: String,
    /// May be empty.
    #[prost(string, tag = "3")]
    pub detail: String,
    #[prost(message, optional, tag = "4")]
    pub attribute: Option<AttributePath>,
}

impl Diagnostic {
    /// The code of a warning.
    pub const WARNING: i32 = 2;

    /// Every code other than that of a warning is an error.
    pub fn is_error(&self) -> bool {
        self.code != Self::WARNING
    }

    /// The path in the configuration, if the provider names an attribute.
    pub fn path(&self) -> Option<&Path> {
        self.attribute.as_ref().map(|attribute| &attribute.path).filter(|path| !path.0.is_empty())
    }
}

/// The maximum length of a path: more than any schema is deep. A step of two bytes needs many times as much memory.
const MAX_STEPS: usize = 100;

/// A path in a configuration or state. It ends at a set, whose elements have no path, and before the first step that is
/// not supported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributePath {
    pub path: Path,
    ended: bool,
}

impl AttributePath {
    fn add(&mut self, encoded: &[u8]) {
        let step = PathStep::decode(encoded).ok().and_then(|step| match step.selector? {
            Selector::AttributeName(name) | Selector::ElementKeyString(name) => Some(Step::Name(name.into())),
            Selector::ElementKeyInt(index) => usize::try_from(index).ok().map(Step::Index),
        });
        self.ended |= step.is_none() || self.path.0.len() == MAX_STEPS;
        self.path.0.extend(step.filter(|_| !self.ended));
    }
}

impl Message for AttributePath {
    /// Purlin sends no paths.
    fn encode_raw(&self, _: &mut impl BufMut) {}

    fn encoded_len(&self) -> usize {
        0
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 || self.ended || wire_type != WireType::LengthDelimited {
            return encoding::skip_field(wire_type, tag, buffer, context);
        }
        let mut step = Vec::new();
        encoding::bytes::merge(wire_type, &mut step, buffer, context)?;
        self.add(&step);
        Ok(())
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A step of a path.
#[derive(Clone, PartialEq, Message)]
struct PathStep {
    #[prost(oneof = "Selector", tags = "1, 2, 3")]
    selector: Option<Selector>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Selector {
    #[prost(string, tag = "1")]
    AttributeName(String),
    #[prost(string, tag = "2")]
    ElementKeyString(String),
    #[prost(int64, tag = "3")]
    ElementKeyInt(i64),
}

/// Formats the first error on one line.
pub fn first_error(diagnostics: &[Diagnostic]) -> String {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.is_error()) else {
        return "no reason given".to_owned();
    };
    let place = first.path().map(|path| format!("{path}: ")).unwrap_or_default();
    let detail = if first.detail.is_empty() { String::new() } else { format!(": {}", first.detail) };
    format!("{place}{}{detail}", first.summary).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path as a provider encodes it.
    #[derive(Clone, PartialEq, Message)]
    struct Steps {
        #[prost(message, repeated, tag = "1")]
        steps: Vec<PathStep>,
    }

    fn step(selector: Selector) -> PathStep {
        PathStep { selector: Some(selector) }
    }

    fn path(steps: Vec<PathStep>) -> Path {
        AttributePath::decode(Steps { steps }.encode_to_vec().as_slice()).unwrap().path
    }

    #[test]
    fn a_path_ends_before_an_unsupported_step() {
        let steps = vec![
            step(Selector::AttributeName("rule".into())),
            step(Selector::ElementKeyInt(2)),
            step(Selector::ElementKeyString("a b".into())),
            PathStep { selector: None },
            step(Selector::AttributeName("lost".into())),
        ];
        assert_eq!(path(steps).to_string(), r#"rule[2]["a b"]"#);
    }

    #[test]
    fn a_diagnostic_is_an_error_unless_it_is_a_warning() {
        for (code, is_error) in [(0, true), (1, true), (2, false), (7, true)] {
            assert_eq!(Diagnostic { code, ..Diagnostic::default() }.is_error(), is_error);
        }
    }

    #[test]
    fn a_path_has_a_maximum_length() {
        assert_eq!(path(vec![step(Selector::ElementKeyInt(0)); 1_000_000]).0.len(), MAX_STEPS);
    }
}
