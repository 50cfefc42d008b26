//! Validates the top-level arguments of a configuration against a schema, for built-in drivers.
//!
//! Nested values are validated by the driver itself.

use model::{
    Address, Attribute, AttributeType, Diagnostic, Diagnostics, DriverError, ErrorKind, ImportRequest, Path, Reason,
    Schema, Value,
};

use super::CallContext;

/// Returns one error for each argument that is unknown, computed, of the wrong type, or missing. Paths are relative to
/// `spec.config`.
pub fn check(context: &CallContext, schema: &Schema, config: &Value) -> Diagnostics {
    let Value::Map(arguments) = config.unmarked() else {
        return match config.unmarked() {
            Value::Unknown => Diagnostics::new(),
            Value::Null => missing(context, schema, |_| true),
            _ => vec![error(context, Path::default(), "the configuration must be a map of arguments")],
        };
    };
    let mut diagnostics = Diagnostics::new();
    for (name, value) in arguments.iter().filter(|(_, value)| **value != Value::Null) {
        let path = Path::default().name(name.clone());
        match schema.attributes.get(name) {
            None => diagnostics.push(
                error(context, path, format!("`{}` has no argument `{name}`", context.type_name))
                    .hint(format!("its arguments are {}", argument_names(schema))),
            ),
            Some(attribute) if !attribute.required && !attribute.optional => diagnostics.push(
                error(context, path, format!("`{name}` is set by Purlin and cannot be configured"))
                    .hint("remove it; other Resources can reference it"),
            ),
            Some(attribute) if !fits(&attribute.kind, value) => {
                diagnostics.push(error(context, path, format!("`{name}` must be {}", describe(&attribute.kind))));
            }
            Some(_) => {}
        }
    }
    diagnostics.extend(missing(context, schema, |name| matches!(arguments.get(name), None | Some(Value::Null))));
    diagnostics
}

pub fn error(context: &CallContext, path: Path, summary: impl Into<String>) -> Diagnostic {
    let address =
        context.address.parse::<Address>().unwrap_or_else(|_| Address::single(std::sync::Arc::clone(&context.address)));
    Diagnostic::error(&address, Reason::InvalidConfig, summary).at(path)
}

/// Returns the ID of an import, for types whose objects have no identity.
pub fn import_id<'a>(context: &CallContext, request: &'a ImportRequest) -> Result<&'a str, DriverError> {
    match request {
        ImportRequest::Id(id) => Ok(id),
        ImportRequest::Identity(_) => Err(no_identity(context)),
    }
}

pub fn no_identity(context: &CallContext) -> DriverError {
    DriverError {
        kind: ErrorKind::InvalidConfig,
        message: format!("objects of the type `{}` have no identity", context.type_name),
        path: None,
        hint: Some("set `import.id`".to_owned()),
    }
}

pub fn unsupported_move(context: &CallContext, type_name: &str) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: format!("an object of type `{type_name}` cannot be moved to type `{}`", context.type_name),
        path: None,
        hint: None,
    }
}

/// An attribute that the user configures.
pub fn argument(kind: AttributeType, required: bool, description: &str) -> Attribute {
    Attribute {
        kind,
        required,
        optional: !required,
        computed: false,
        sensitive: false,
        observed_in: None,
        description: description.to_owned(),
    }
}

pub fn computed(kind: AttributeType, description: &str) -> Attribute {
    Attribute {
        kind,
        required: false,
        optional: false,
        computed: true,
        sensitive: false,
        observed_in: None,
        description: description.to_owned(),
    }
}

fn missing(context: &CallContext, schema: &Schema, absent: impl Fn(&str) -> bool) -> Diagnostics {
    let required = schema.attributes.iter().filter(|(name, attribute)| attribute.required && absent(name));
    required
        .map(|(name, _)| error(context, Path::default().name(name.clone()), format!("`{name}` is required")))
        .collect()
}

fn fits(kind: &AttributeType, value: &Value) -> bool {
    matches!(
        (kind, value.unmarked()),
        (AttributeType::Any, _)
            | (_, Value::Unknown)
            | (AttributeType::String, Value::String(_))
            | (AttributeType::Bool, Value::Bool(_))
            | (AttributeType::Number, Value::Number(_))
            | (AttributeType::List(_) | AttributeType::Set, Value::List(_))
            | (AttributeType::Map(_) | AttributeType::Object(_), Value::Map(_))
    )
}

fn describe(kind: &AttributeType) -> &'static str {
    match kind {
        AttributeType::Any => "a value",
        AttributeType::String => "a string",
        AttributeType::Bool => "a boolean",
        AttributeType::Number => "a number",
        AttributeType::List(_) => "a list",
        AttributeType::Map(_) => "a map",
        AttributeType::Set => "a set",
        AttributeType::Object(_) => "an object",
    }
}

fn argument_names(schema: &Schema) -> String {
    let names: Vec<String> = schema
        .attributes
        .iter()
        .filter(|(_, attribute)| attribute.required || attribute.optional)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    names.join(", ")
}
