//! Validations, pre- and postconditions, and checks.

use std::sync::Arc;

use cty::{Mark, Type, Value, convert};
use hcl::Diagnostic;

use super::item::{Item, ModuleId};
use super::scope::{Outcome, Scope};
use super::uses::Uses;
use super::{Computed, Evaluation, Stop};
use crate::address::{Key, ResourceName};
use crate::module::Rule;

/// What a condition that is not met says.
struct Broken {
    message: String,
    rule: hcl::Range,
}

impl Evaluation {
    /// Whether all rules hold, as far as that is known. What does not is reported as an error.
    pub(crate) fn check(
        &self,
        scope: &Scope<'_>,
        rules: &[Rule],
        summary: &str,
        outcome: &mut Outcome,
    ) -> Result<bool, Stop> {
        let mut holds = true;
        for rule in rules {
            let mut own = Outcome::default();
            let broken = broken(scope, rule, &mut own)?;
            outcome.add(&own);
            holds &= broken.is_none() && !own.failed;
            if let Some(broken) = broken {
                self.report(Diagnostic::new(summary, broken.message, broken.rule));
            }
        }
        Ok(holds)
    }

    pub(crate) fn postconditions(
        &self,
        module: ModuleId,
        name: &ResourceName,
        key: Option<&Key>,
    ) -> Result<Computed, Stop> {
        let value = self.object_value(module, name, key)?;
        let mut outcome = Outcome::default();
        let holds = self.postconditions_hold(module, name, key, value.value, &mut outcome)?;
        Ok(Computed { value: Value::bool(holds), uses: outcome.uses, failed: !holds })
    }

    /// Whether the postconditions of an instance hold with this value.
    pub(crate) fn postconditions_hold(
        &self,
        module: ModuleId,
        name: &ResourceName,
        key: Option<&Key>,
        value: Value,
        outcome: &mut Outcome,
    ) -> Result<bool, Stop> {
        let rules = &self.module(module).module.resources[name].lifecycle.postconditions;
        let instances = self.instances_of(Item::Resource(module, name.clone()))?;
        let each = instances.known().iter().find(|each| each.key.as_ref() == key);
        let mut scope = Scope::new(self, module, each);
        scope.this = Some(value);
        self.check(&scope, rules, "Resource postcondition failed", outcome)
    }

    /// The assertions of a check block. What does not hold is a warning.
    pub(crate) fn assertions(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let instance = self.module(module);
        let scope = Scope::new(self, module, None);
        let mut holds = true;
        let mut uses = Uses::default();
        for rule in &instance.module.checks[name].assertions {
            let mut outcome = Outcome::default();
            let broken = broken(&scope, rule, &mut outcome)?;
            uses.add(&outcome.uses);
            if let Some(broken) = broken {
                holds = false;
                self.warn(Diagnostic::new("Check block assertion failed", broken.message, broken.rule));
            }
        }
        Ok(Computed { value: Value::bool(holds), uses, failed: false })
    }
}

/// What a rule says that is known not to hold.
fn broken(scope: &Scope<'_>, rule: &Rule, outcome: &mut Outcome) -> Result<Option<Broken>, Stop> {
    let value = scope.converted(&rule.condition, &Type::Bool, "the condition", outcome)?;
    if outcome.failed {
        return Ok(None);
    }
    if value.is_null() {
        scope.problem(
            "Invalid condition result",
            "The condition is null, and has to be true or false.",
            &rule.condition,
            outcome,
        );
        return Ok(None);
    }
    if value.as_bool() != Some(false) {
        return Ok(None);
    }
    let message = scope.eval(&rule.message, &mut Outcome::default())?;
    Ok(Some(Broken { message: shown(&message), rule: rule.condition.range }))
}

/// The text of an error message, unless it must not be shown.
fn shown(message: &Value) -> String {
    if message.contains_mark(&Mark::Sensitive) || message.contains_mark(&Mark::Ephemeral) {
        return "The condition is not met. Its message comes from a sensitive value, and is not shown.".to_owned();
    }
    let text = convert(message, &Type::String).ok();
    text.as_ref().and_then(Value::as_str).unwrap_or("The condition is not met.").trim().to_owned()
}
