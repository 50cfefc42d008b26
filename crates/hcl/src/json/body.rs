//! Bodies in JSON syntax: the properties of an object, or of the objects of an array.

use crate::diagnostic::Diagnostic;
use crate::source::Range;
use crate::tree::{Body, JsonBody, JsonValue, JsonValueKind, Property};

/// Makes a body of a value. If the value is no object, that is reported when the content is asked for.
pub(crate) fn body_of(value: JsonValue) -> Body {
    let range = value.range;
    // The closing brace is the place for what is missing; of an array, the opening bracket.
    let (no_object, end_range) = match value.kind {
        JsonValueKind::Object(_) => (None, Range { start: range.end.saturating_sub(1), ..range }),
        JsonValueKind::Array(_) => (Some(range), Range { end: range.start + 1, ..range }),
        _ => (Some(range), range),
    };
    let mut problems = Vec::new();
    let properties = properties(value, "the arguments and blocks are its properties", &mut problems);
    let json = Some(JsonBody { properties, problems, no_object });
    Body { range, end_range, json, ..Body::default() }
}

/// Returns the properties of an object, or of the objects of an array.
pub(crate) fn properties(value: JsonValue, why: &str, problems: &mut Vec<Diagnostic>) -> Vec<Property> {
    let not_an_object = |range: Range| {
        let detail = format!("An object is expected here: {why}.");
        Diagnostic::new("Incorrect JSON value type", detail, range)
    };
    match value.kind {
        JsonValueKind::Null => Vec::new(),
        JsonValueKind::Object(properties) => properties,
        JsonValueKind::Array(values) => {
            let mut found = Vec::new();
            for value in values {
                match value.kind {
                    JsonValueKind::Object(properties) => found.extend(properties),
                    _ => problems.push(not_an_object(value.range)),
                }
            }
            found
        }
        _ => {
            problems.push(not_an_object(value.range));
            Vec::new()
        }
    }
}
