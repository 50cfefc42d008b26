//! The scope of expressions during planning: the values of other objects.

use super::decision::Decision;
use super::input::{Id, PlanInput};
use crate::load::expression::Scope;
use crate::load::{Instance, InstanceScope};
use model::{Action, Address, Diagnostics, Health, InstanceKey, Reason, Value};

/// The objects decided so far. An object that the plan changes has its planned value, which may contain unknown values.
/// Any other object has its recorded value.
pub struct EvalScope<'s, 'a> {
    pub input: &'s PlanInput<'a>,
    pub decisions: &'s [Option<Decision>],
}

/// Evaluates the configuration of an instance.
pub trait Evaluate: Sync {
    fn evaluate(&self, instance: &Instance, scope: &dyn Scope) -> Result<Value, Diagnostics>;
}

/// Evaluates the template of the instance.
pub struct TemplateEvaluator;

impl Evaluate for TemplateEvaluator {
    fn evaluate(&self, instance: &Instance, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        instance.config.evaluate(&InstanceScope { instance, others: scope })
    }
}

impl EvalScope<'_, '_> {
    /// Objects are decided before their dependents.
    pub fn decision(&self, id: Id) -> Option<&Decision> {
        self.decisions[id].as_ref()
    }

    /// The value of a desired object or of a junction.
    pub fn value(&self, id: Id) -> Value {
        self.decision(id).and_then(|decision| decision.value.clone()).unwrap_or(Value::Unknown)
    }

    /// The objects without a value: the object itself, or the instances because of which a family has no value.
    pub fn hidden(&self, id: Id) -> Vec<Id> {
        if !self.is_hidden(id) {
            return Vec::new();
        }
        let members: Vec<Id> = self
            .input
            .members(id)
            .filter(|member| self.input.nodes[*member].desired && self.is_hidden(*member))
            .collect();
        if members.is_empty() { vec![id] } else { members }
    }

    /// Whether an object or a junction has no value.
    pub fn is_hidden(&self, id: Id) -> bool {
        self.decision(id).is_none_or(|decision| decision.value.is_none())
    }

    /// The health of an object that is not ready and has no step in this plan.
    pub fn health(&self, id: Id) -> Option<&Health> {
        let decision = self.decision(id)?;
        let has_step = decision.changes_object() || decision.action == Action::Wait;
        let known = decision.health.as_ref().or_else(|| self.input.options.health.get(self.input.address(id)));
        known.filter(|health| !has_step && !health.is_current())
    }

    /// The object itself, or the desired instances of a family.
    pub fn objects(&self, id: Id) -> Vec<Id> {
        match self.input.is_junction(id) {
            true => self.input.members(id).filter(|id| self.input.nodes[*id].desired).collect(),
            false => vec![id],
        }
    }

    /// The objects of a reference whose last operation is unresolved: they may differ from their records.
    pub fn unresolved(&self, target: &Address) -> Vec<Id> {
        self.input.desired_targets(target).into_iter().filter(|id| self.is_unresolved(*id)).collect()
    }

    pub fn is_unresolved(&self, id: Id) -> bool {
        let block = self.decision(id).and_then(|decision| decision.block.as_deref());
        block.is_some_and(|block| block.held && block.reason() == Reason::OperationInProgress)
    }
}

impl Scope for EvalScope<'_, '_> {
    fn object(&self, address: &Address) -> Option<Value> {
        if let Some(output) = self.input.config.output(address, self) {
            return Some(output);
        }
        let id = self.input.resolve(address)?;
        let whole = address.key == InstanceKey::None || !self.input.is_junction(id);
        whole.then(|| self.value(id))
    }

    fn namespace(&self) -> Value {
        self.input.options.namespace_value.clone()
    }
}

/// Reports an expression that failed because it reads a disabled Resource as a missing dependency.
pub fn disabled(input: &PlanInput<'_>, instance: &Instance, mut problems: Diagnostics) -> Diagnostics {
    for problem in &mut problems {
        let disabled = instance.references.iter().find(|reference| {
            Some(&reference.at) == problem.path.as_ref()
                && input
                    .resolve(&reference.target)
                    .and_then(|target| input.nodes[target].family)
                    .is_some_and(|family| family.is_disabled())
        });
        if let Some(reference) = disabled {
            problem.reason = Reason::DependencyNotFound;
            problem.detail = std::mem::replace(
                &mut problem.summary,
                format!("references `{}`, which is disabled and therefore null", reference.target),
            );
            problem.hint = Some("use `has(...)` or `? :` to provide a value for this case".to_owned());
        }
    }
    problems
}
