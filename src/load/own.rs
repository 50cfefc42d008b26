//! The scope of one object's own expressions: the variables that mean something at its place, and all others.

use super::Instance;
use super::expression::{Scope, Variable};
use crate::model::{Address, InstanceKey, Value};

/// Other objects as a scope knows them, and the variables of one instance.
pub struct Own<'a> {
    /// Whose expressions they are.
    pub instance: &'a Instance,
    /// Where other objects are found.
    pub others: &'a dyn Scope,
}

impl Scope for Own<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        self.others.object(address)
    }

    fn namespace(&self) -> Value {
        self.others.namespace()
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::Count => self.instance.count(),
            Variable::Each => self.instance.each_in(self.others),
            Variable::Inputs => Some(self.instance.inputs.values.clone()),
            Variable::Itself => self.others.variable(variable),
        }
    }
}

/// A scope in which `self` is an object.
pub struct WithSelf<'a> {
    /// The object.
    pub object: &'a Value,
    /// Everything else.
    pub scope: &'a dyn Scope,
}

impl Scope for WithSelf<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        self.scope.object(address)
    }

    fn namespace(&self) -> Value {
        self.scope.namespace()
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::Itself => Some(self.object.clone()),
            other => self.scope.variable(other),
        }
    }
}

impl Instance {
    /// `count` of expressions: the index of an instance of a `count` family.
    pub(super) fn count(&self) -> Option<Value> {
        match self.address.key {
            InstanceKey::Index(index) => Some(Value::map([("index", Value::from(i64::try_from(index).ok()?))])),
            _ => None,
        }
    }

    /// `each` of expressions, as far as it was known when the instances were made out.
    pub(super) fn each(&self) -> Option<Value> {
        let InstanceKey::Key(key) = &self.address.key else { return None };
        let value = self.each.as_ref().map_or(Value::Unknown, |each| each.value.clone());
        Some(Value::map([("key", Value::String(key.clone())), ("value", value)]))
    }

    /// `each` with what is known now: of a `forEach` that hangs on other objects the keys are known before the values.
    fn each_in(&self, scope: &dyn Scope) -> Option<Value> {
        let each = self.each()?;
        let (Some(source), InstanceKey::Key(key)) = (&self.each, &self.address.key) else { return Some(each) };
        if !each.has_unknown() {
            return Some(each);
        }
        let now = source.source.evaluate(scope).ok();
        let value = now.as_ref().and_then(|map| map.get(key)).cloned();
        Some(value.map_or(each.clone(), |value| each.with("value", value)))
    }
}
