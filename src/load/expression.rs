//! Expressions in configuration: `${ ... }` holding CEL, and the templates they stand in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Address, Diagnostics, Value};

/// A configuration tree whose leaves may be expressions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Template {
    literal: Option<Value>,
    _children: Arc<BTreeMap<Arc<str>, Template>>,
}

/// Where expressions find the values of other objects.
pub trait Scope {
    /// The value of an object as expressions see it: `Some(Value::Unknown)` when it is not known yet (or parts of
    /// it are `Unknown`), `None` when there is no such object.
    fn object(&self, address: &Address) -> Option<Value>;
    /// `ns`: name, labels, annotations of the namespace.
    fn namespace(&self) -> Value;
}

impl Template {
    /// The value in the given scope. Unknown and sensitive marks are as fine as the paths read. `Err` holds one
    /// diagnostic for each expression that failed, with its path below `spec.config`.
    pub fn evaluate(&self, _scope: &dyn Scope) -> Result<Value, Diagnostics> {
        Ok(self.literal.clone().unwrap_or_default())
    }
}
