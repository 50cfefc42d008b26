//! What expressions see of other objects while a plan is made.

use super::draft::Draft;
use super::scene::{Id, Scene};
use crate::load::expression::Scope;
use crate::load::{Instance, Own, Reference};
use crate::model::{Address, Diagnostics, InstanceKey, Reason, Value};

/// The objects decided so far, as a scope of expressions. An object that is planned for change is seen as its planned
/// value, unknown where that is unknown; any other as it is recorded.
pub(super) struct Seen<'s, 'a> {
    pub scene: &'s Scene<'a>,
    pub drafts: &'s [Option<Draft>],
}

/// How the configuration of an instance is evaluated.
pub(super) trait Evaluate: Sync {
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

    /// What expressions see of a wanted object, or of a junction.
    pub fn value(&self, id: Id) -> Value {
        self.draft(id).and_then(|draft| draft.seen.clone()).unwrap_or(Value::Unknown)
    }

    /// Those of which nothing can be seen: the object itself, or the instances of a family because of which that is so.
    pub fn hidden(&self, id: Id) -> Vec<Id> {
        let is_hidden = |id: &Id| self.draft(*id).is_none_or(|draft| draft.seen.is_none());
        if !is_hidden(&id) {
            return Vec::new();
        }
        let members: Vec<Id> =
            self.scene.members(id).filter(|id| self.scene.subjects[*id].wanted).filter(is_hidden).collect();
        if members.is_empty() { vec![id] } else { members }
    }

    /// The objects of a reference whose last operation is still to be settled: they may not be what is recorded any more.
    pub fn unsettled(&self, target: &Address) -> Vec<Id> {
        let is_unsettled = |id: &Id| {
            let block = self.draft(*id).and_then(|draft| draft.block.as_deref());
            block.is_some_and(|block| block.held && block.reason() == Reason::OperationInProgress)
        };
        self.scene.wanted_of(target).into_iter().filter(is_unsettled).collect()
    }
}

impl Scope for Seen<'_, '_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let id = self.scene.resolve(address)?;
        let whole = address.key == InstanceKey::None || !self.scene.is_junction(id);
        whole.then(|| self.value(id))
    }

    fn namespace(&self) -> Value {
        self.scene.options.namespace_value.clone()
    }
}

/// An expression that failed because it reads a disabled Resource waits for that one.
pub(super) fn disabled(scene: &Scene<'_>, instance: &Instance, mut problems: Diagnostics) -> Diagnostics {
    let off = |reference: &&Reference| {
        let family = scene.resolve(&reference.target).and_then(|target| scene.subjects[target].family);
        family.is_some_and(|family| family.is_disabled())
    };
    for problem in &mut problems {
        let here = instance.references.iter().filter(|reference| Some(&reference.at) == problem.path.as_ref());
        if let Some(reference) = here.into_iter().find(off) {
            problem.reason = Reason::DependencyNotFound;
            problem.detail = std::mem::replace(
                &mut problem.summary,
                format!("refers to `{}`, which is disabled, and so is null", reference.target),
            );
            problem.hint = Some("`has(...)` and `? :` tell what holds without it".to_owned());
        }
    }
    problems
}
