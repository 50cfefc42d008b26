//! Keeps sensitive values out of what drivers and hooks say: what the expressions of the object have read is a secret as
//! well, not only what they gave.

use std::sync::Arc;

use crate::driver::{CallContext, Driver};
use crate::model::{Diagnostics, RecordedObject, Secrets, Value};

/// A configuration with its literal secrets marked: what the schema calls sensitive is, wherever it was written.
pub(crate) fn marked(driver: &dyn Driver, context: &CallContext, config: &Value) -> Value {
    let schema = driver.schema_of(context);
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

/// What must not be told of a call about an object: what is sensitive in its configuration, in the object as it was, and in
/// what its expressions have `read`.
pub(crate) fn secrets(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    prior: Option<&RecordedObject>,
    read: &[&Value],
) -> Secrets {
    let marked = marked(driver, context, config);
    let own = prior.map(|object| &object.value).into_iter().chain([&marked]);
    Secrets::of(own.chain(read.iter().copied()))
}

/// The diagnostics without `secrets`, which are gathered only when there is something to tell.
pub(crate) fn diagnostics(found: Diagnostics, secrets: impl FnOnce() -> Secrets) -> Diagnostics {
    if found.is_empty() {
        return found;
    }
    let secrets = secrets();
    found.into_iter().map(|problem| secrets.diagnostic(problem)).collect()
}
