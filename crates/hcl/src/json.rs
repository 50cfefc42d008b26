//! JSON syntax, which programs write: `.tf.json`.
//!
//! A text gives values; what they mean is known with a schema only, so a body keeps its properties until then.

mod reader;

use crate::diagnostic::Diagnostic;
use crate::parser::{Parsed, template_of_text};
use crate::source::{Range, Source};
use crate::tree::{
    Body, Expr, ExprKind, JsonBody, JsonString, JsonValue, JsonValueKind, Literal, ObjectItem, ObjectKey, Property,
};

/// Parses a file in JSON syntax. After an error nothing of it is known.
///
/// ```
/// use hcl::{FileId, Schema, Source, parse_json};
/// let parsed = parse_json(Source::new(FileId(0), "main.tf.json", r#"{"locals": [{"a": "${var.b}"}]}"#));
/// let (content, _) = parsed.value.content(&Schema::new(&[], &[("locals", &[])]));
/// let (attributes, _) = content.blocks[0].body.clone().just_attributes();
/// assert_eq!(attributes[0].value.references()[0].root.text, "var");
/// ```
pub fn parse_json(source: Source) -> Parsed<Body> {
    let (value, diagnostics) = match reader::read(&source) {
        Ok(value) => match value.kind {
            JsonValueKind::Object(_) | JsonValueKind::Array(_) => (body_of(value), Vec::new()),
            _ => {
                let detail = "A file in JSON syntax is an object, or an array of objects.";
                (Body::default(), vec![Diagnostic::new("Root value must be object", detail, value.range)])
            }
        },
        Err(diagnostic) => (Body::default(), vec![diagnostic]),
    };
    let json = Some(value.json.unwrap_or_default());
    Parsed { value: Body { json, ..value }, diagnostics, source }
}

/// Parses an expression in JSON syntax. In strings and keys there may be templates.
///
/// ```
/// use hcl::{ExprKind, FileId, Source, parse_json_expression};
/// let parsed = parse_json_expression(Source::new(FileId(0), "a.json", r#"[1, "a ${b}"]"#));
/// let ExprKind::Tuple(items) = &parsed.value.kind else { panic!() };
/// assert!(matches!(items[1].kind, ExprKind::JsonString(_)));
/// ```
pub fn parse_json_expression(source: Source) -> Parsed<Expr> {
    let (value, diagnostics) = match reader::read(&source) {
        Ok(value) => (expression(value), Vec::new()),
        Err(diagnostic) => (Expr::new(ExprKind::Invalid, diagnostic.range), vec![diagnostic]),
    };
    Parsed { value, diagnostics, source }
}

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
    match value.kind {
        JsonValueKind::Null => Vec::new(),
        JsonValueKind::Object(properties) => properties,
        JsonValueKind::Array(values) => {
            let mut members = Vec::new();
            for value in values {
                match value.kind {
                    JsonValueKind::Object(properties) => members.extend(properties),
                    _ => problems.push(no_object(value.range, why)),
                }
            }
            members
        }
        _ => {
            problems.push(no_object(value.range, why));
            Vec::new()
        }
    }
}

fn no_object(range: Range, why: &str) -> Diagnostic {
    Diagnostic::new("Incorrect JSON value type", format!("An object is expected here: {why}."), range)
}

/// Makes an expression of a value.
pub(crate) fn expression(value: JsonValue) -> Expr {
    let kind = match value.kind {
        JsonValueKind::Null => ExprKind::Literal(Literal::Null),
        JsonValueKind::Bool(truth) => ExprKind::Literal(Literal::Bool(truth)),
        JsonValueKind::Number(text) => ExprKind::Literal(Literal::Number(text)),
        JsonValueKind::String(text) => return string(text, value.range),
        JsonValueKind::Array(values) => ExprKind::Tuple(values.into_iter().map(expression).collect()),
        JsonValueKind::Object(properties) => ExprKind::Object(properties.into_iter().map(item).collect()),
    };
    Expr::new(kind, value.range)
}

fn item(property: Property) -> ObjectItem {
    let key = string(property.name.text, property.name.range);
    ObjectItem { key: ObjectKey { expr: key, in_parentheses: true }, value: expression(property.value) }
}

fn string(text: String, range: Range) -> Expr {
    let (template, diagnostics) = template_of_text(&text, range);
    Expr::new(ExprKind::JsonString(Box::new(JsonString { text, template, diagnostics })), range)
}
