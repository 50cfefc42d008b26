//! Masks sensitive values in the output of drivers and hooks. Values that the expressions of an object read are masked
//! as well, not only their results.

use std::sync::Arc;

use drivers::{CallContext, Driver};
use model::{Diagnostics, RecordedObject, Secrets, Value};

/// Marks the values of attributes that the schema declares sensitive, wherever they were written.
pub(crate) fn mark_sensitive(driver: &dyn Driver, context: &CallContext, config: &Value) -> Value {
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

/// Collects the values to mask in the output of a call: sensitive values of the configuration, of the prior object, and
/// of the values that the expressions `read`.
pub(crate) fn secrets(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    prior: Option<&RecordedObject>,
    read: &[&Value],
) -> Secrets {
    let marked = mark_sensitive(driver, context, config);
    let own = prior.map(|object| &object.value).into_iter().chain([&marked]);
    Secrets::of(own.chain(read.iter().copied()))
}

/// Masks diagnostics. `secrets` is called only if there are diagnostics.
pub(crate) fn diagnostics(found: Diagnostics, secrets: impl FnOnce() -> Secrets) -> Diagnostics {
    if found.is_empty() {
        return found;
    }
    let secrets = secrets();
    found.into_iter().map(|problem| secrets.redact_diagnostic(problem)).collect()
}
