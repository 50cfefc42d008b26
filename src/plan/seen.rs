//! What expressions see of other objects while a plan is made.

use super::draft::Draft;
use super::scene::{Id, Scene};
use crate::load::expression::Scope;
use crate::load::{Instance, Own};
use crate::model::{Address, Diagnostics, InstanceKey, Value};

/// The objects decided so far, as a scope of expressions. An object that is planned for change is seen as its planned
/// value, unknown where that is unknown; any other as it is recorded.
pub(super) struct Seen<'s, 'a> {
    pub scene: &'s Scene<'a>,
    pub drafts: &'s [Option<Draft>],
}

/// How the configuration of an instance is evaluated.
pub(super) trait Evaluate {
    fn evaluate(&self, instance: &Instance, scope: &dyn Scope) -> Result<Value, Diagnostics>;
}

/// By its template.
pub(super) struct Templates;

impl Evaluate for Templates {
    fn evaluate(&self, instance: &Instance, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        instance.config.evaluate(&Own { instance, others: scope })
    }
}

impl Seen<'_, '_> {
    /// The decision about an object; objects are decided before their dependents.
    pub fn draft(&self, id: Id) -> Option<&Draft> {
        self.drafts[id].as_ref()
    }

    fn value(&self, id: Id) -> Option<Value> {
        self.scene.subjects[id].instance?;
        Some(self.draft(id).and_then(|draft| draft.seen.clone()).unwrap_or(Value::Unknown))
    }

    /// A `count` family is a list, a `forEach` family a map. Instances that are not wanted any more are not part of it,
    /// so that a list that shrinks is the same in plan and apply.
    fn family(&self, name: &str) -> Option<Value> {
        let members = || self.scene.family(name).filter(|id| self.scene.subjects[*id].wanted);
        let keyed = |id: Id| match &self.scene.address(id).key {
            InstanceKey::Key(key) => Some((key.clone(), self.value(id)?)),
            _ => None,
        };
        match members().next().map(|id| &self.scene.address(id).key)? {
            InstanceKey::None => None,
            InstanceKey::Index(_) => Some(Value::list(members().filter_map(|id| self.value(id)))),
            InstanceKey::Key(_) => Some(Value::map(members().filter_map(keyed))),
        }
    }
}

impl Scope for Seen<'_, '_> {
    fn object(&self, address: &Address) -> Option<Value> {
        match self.scene.find(address) {
            Some(id) => self.value(id),
            None if address.key == InstanceKey::None => self.family(&address.name),
            None => None,
        }
    }

    fn namespace(&self) -> Value {
        self.scene.options.namespace_value.clone()
    }
}
