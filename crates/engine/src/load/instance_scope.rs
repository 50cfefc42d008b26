//! The scope of the expressions of one instance: its variables and all other objects.

use super::Instance;
use super::expression::{Scope, Variable};
use model::{Address, InstanceKey, Value};

/// A scope with the variables of one instance.
pub struct InstanceScope<'a> {
    /// The instance that contains the expressions.
    pub instance: &'a Instance,
    /// The scope of all other objects.
    pub others: &'a dyn Scope,
}

impl Scope for InstanceScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        self.others.object(address)
    }

    fn namespace(&self) -> Value {
        self.others.namespace()
    }

    fn is_final(&self) -> bool {
        self.others.is_final()
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

/// A scope with a value for `self`.
pub struct SelfScope<'a> {
    pub object: &'a Value,
    /// The scope of everything else.
    pub scope: &'a dyn Scope,
}

impl Scope for SelfScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        self.scope.object(address)
    }

    fn namespace(&self) -> Value {
        self.scope.namespace()
    }

    fn is_final(&self) -> bool {
        self.scope.is_final()
    }

    fn variable(&self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::Itself => Some(self.object.clone()),
            other => self.scope.variable(other),
        }
    }
}

impl Instance {
    /// The value of `count` in expressions, for an instance of a `count` family.
    pub fn count(&self) -> Option<Value> {
        match self.address.key {
            InstanceKey::Index(index) => Some(Value::map([("index", Value::from(i64::try_from(index).ok()?))])),
            _ => None,
        }
    }

    /// The value of `each` in expressions, as far as it was known when the family was expanded.
    pub fn each(&self) -> Option<Value> {
        let InstanceKey::Key(key) = &self.address.key else { return None };
        let value = self.each.as_ref().map_or(Value::Unknown, |each| each.value.clone());
        Some(Value::map([("key", Value::String(key.clone())), ("value", value)]))
    }

    /// The value of `each` in the current scope. The keys of a `forEach` may be known before its values.
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
