//! Keeps sensitive values out of what drivers and hooks say: what the expressions of the object have read is a secret as
//! well, not only what they gave.

use std::sync::Arc;

use crate::driver::{CallContext, Driver};
use crate::model::{Diagnostic, DriverError, Secrets, Value};

/// A configuration with its literal secrets marked: what the schema calls sensitive is, wherever it was written.
pub(super) fn marked(driver: &dyn Driver, context: &CallContext, config: &Value) -> Value {
    let schema = context.schema(driver);
    let (Value::Map(map), Some(schema)) = (config, schema) else { return config.clone() };
    if !schema.attributes.values().any(|attribute| attribute.sensitive) {
        return config.clone();
    }
    let is_sensitive = |name: &Arc<str>| schema.attributes.get(name).is_some_and(|attribute| attribute.sensitive);
    Value::map(map.iter().map(|(name, value)| {
        let value = if is_sensitive(name) { value.clone().into_sensitive() } else { value.clone() };
        (Arc::clone(name), value)
    }))
}

/// The error without the sensitive texts of the values that the driver was given.
pub(super) fn error(error: DriverError, given: &[&Value]) -> DriverError {
    Secrets::of(given.iter().copied()).error(error)
}

/// The diagnostic without them.
pub(super) fn diagnostic(diagnostic: Diagnostic, given: &[&Value]) -> Diagnostic {
    Secrets::of(given.iter().copied()).diagnostic(diagnostic)
}

/// The text without them.
pub(super) fn text(text: String, given: &[&Value]) -> String {
    Secrets::of(given.iter().copied()).text(text)
}
