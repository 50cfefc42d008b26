//! Renders a plan as JSON: format version 1 of `docs/formats.md`. The document is streamed without a JSON tree, because
//! a plan may have a hundred thousand values.

use std::io;

use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::plan::Plan;
use model::{Action, Change, Diagnostic, Value};

/// New fields may be added to a format version. Any other change needs a new version.
pub const FORMAT_VERSION: &str = "1";

pub fn write(plan: &Plan, graph: &impl Serialize, out: impl io::Write) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, &Document { plan, graph })
}

/// The document `plan -o json`.
pub struct Document<'a, G> {
    /// Written as `changes` and `diagnostics`.
    pub plan: &'a Plan,
    /// Written as `graph`.
    pub graph: &'a G,
}

/// The array `changes`.
pub struct Changes<C>(pub C);

/// The array `diagnostics`.
pub struct Diagnostics<'a>(pub &'a [Diagnostic]);

/// One entry of `diagnostics`.
pub struct OneDiagnostic<'a>(pub &'a Diagnostic);

/// A value without secrets: a sensitive value is `{"sensitive":true}`. An unknown value is omitted from an object and
/// `null` in a list.
pub struct Public<'a>(pub &'a Value);

struct OneChange<'a>(&'a Change);

/// The shape of a value with `true` at each unknown value.
struct Unknowns<'a>(&'a Value);

impl<G: Serialize> Serialize for Document<'_, G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Plan", 4)?;
        document.serialize_field("formatVersion", FORMAT_VERSION)?;
        document.serialize_field("changes", &Changes(self.plan.changes()))?;
        document.serialize_field("graph", self.graph)?;
        document.serialize_field("diagnostics", &Diagnostics(&self.plan.diagnostics))?;
        document.end()
    }
}

impl<'a, C: IntoIterator<Item = &'a Change> + Clone> Serialize for Changes<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone().into_iter().map(OneChange))
    }
}

impl Serialize for Diagnostics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(OneDiagnostic))
    }
}

impl Serialize for OneChange<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let change = self.0;
        let mut entry = serializer.serialize_struct("Change", 11)?;
        entry.serialize_field("address", &change.address)?;
        entry.serialize_field("type", &change.type_name)?;
        entry.serialize_field("action", &change.action)?;
        entry.serialize_field("order", &change.order)?;
        entry.serialize_field("deposedKey", &change.deposed)?;
        match change.blocked.filter(|_| change.action == Action::Blocked) {
            Some(reason) => entry.serialize_field("reason", &reason)?,
            None => entry
                .serialize_field("reason", &change.because.as_ref().map(ToString::to_string).unwrap_or_default())?,
        }
        entry.serialize_field("replacePaths", &change.replace_paths)?;
        entry.serialize_field("imported", &change.imported)?;
        entry.serialize_field("before", &change.before.as_ref().map(Public))?;
        entry.serialize_field("after", &change.after.as_ref().map(Public))?;
        entry.serialize_field("afterUnknown", &Unknowns(change.after.as_ref().unwrap_or(&Value::Null)))?;
        entry.end()
    }
}

impl Serialize for OneDiagnostic<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let diagnostic = self.0;
        // The format has no separate fields for source, path and hint.
        let summary = match &diagnostic.path {
            Some(path) => format!("{path}: {}", diagnostic.summary),
            None => diagnostic.summary.clone(),
        };
        let hint = diagnostic.hint.as_ref().map(|hint| format!("hint: {hint}"));
        let place = diagnostic.source.as_ref().map(|source| format!("at {source}"));
        let detail = [place, Some(diagnostic.detail.clone()).filter(|detail| !detail.is_empty()), hint];
        let mut entry = serializer.serialize_struct("Diagnostic", 4)?;
        entry.serialize_field("severity", &diagnostic.severity)?;
        entry.serialize_field("address", &diagnostic.address)?;
        entry.serialize_field("summary", &summary)?;
        entry.serialize_field("detail", &detail.into_iter().flatten().collect::<Vec<_>>().join("; "))?;
        entry.end()
    }
}

impl Serialize for Public<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Unknown => serializer.serialize_unit(),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items.iter().map(Public)),
            Value::Map(map) => {
                let known = map.iter().filter(|(_, item)| !matches!(item.unmarked(), Value::Unknown));
                serializer.collect_map(known.map(|(name, item)| (name, Public(item))))
            }
            Value::Sensitive(_) => serializer.collect_map([("sensitive", true)]),
        }
    }
}

impl Serialize for Unknowns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.unmarked() {
            Value::Unknown => serializer.serialize_bool(true),
            Value::Map(map) => {
                let mut marks = serializer.serialize_map(None)?;
                for (name, item) in map.iter().filter(|(_, item)| item.has_unknown()) {
                    marks.serialize_entry(name, &Unknowns(item))?;
                }
                marks.end()
            }
            Value::List(items) if self.0.has_unknown() => {
                let mut marks = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    if item.has_unknown() {
                        marks.serialize_element(&Unknowns(item))?;
                    } else {
                        marks.serialize_element(&false)?;
                    }
                }
                marks.end()
            }
            _ => serializer.serialize_map(Some(0))?.end(),
        }
    }
}
