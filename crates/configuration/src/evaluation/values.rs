//! Variables, locals, outputs, and the values of whole calls and blocks.

use std::sync::Arc;

use cty::{Mark, Type, Value};
use hcl::{Diagnostic, Range};

use super::expansion::{Instances, Keys};
use super::inputs::Input;
use super::item::{Item, ModuleId};
use super::scope::{Outcome, Scope};
use super::uses::{Dependency, Uses};
use super::{Computed, Evaluation, Stop};
use crate::address::{Key, Mode, ResourceAddress, ResourceName};
use crate::module::{Output, Repetition, Variable};

impl Evaluation {
    /// What is assigned to a variable, in its type.
    pub(crate) fn assigned(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let instance = self.module(module);
        let variable = &instance.module.variables[name];
        let given = match &instance.caller {
            None => self.input(name, variable),
            Some((caller, call)) => {
                let caller_module = self.module(*caller);
                let arguments = &caller_module.module.calls[call].arguments;
                match arguments.iter().find(|argument| argument.name.text == **name) {
                    Some(argument) => {
                        self.warn_deprecated(name, variable, argument.name.range);
                        let scope = Scope::new(self, *caller, Some(&instance.each));
                        Some((scope.computed(&argument.value)?, argument.value.range))
                    }
                    None => None,
                }
            }
        };
        let (mut computed, range) = match given {
            Some((computed, range)) => (self.fit(computed, name, variable, range), range),
            None => (self.default(name, variable, instance.caller.is_none()), variable.range),
        };
        computed.uses.add(&instance.uses);
        if variable.sensitive {
            computed.value = computed.value.with_mark(Mark::Sensitive);
        }
        if variable.ephemeral {
            computed.value = computed.value.with_mark(Mark::Ephemeral);
        } else if computed.value.contains_mark(&Mark::Ephemeral) {
            let detail =
                format!("The variable \"{name}\" is not ephemeral, so an ephemeral value cannot be assigned to it.");
            let hint = "set `ephemeral = true` in the variable";
            self.report(Diagnostic::new("Ephemeral value not allowed", detail, range).hint(hint));
            computed.failed = true;
        }
        Ok(computed)
    }

    fn input(&self, name: &Arc<str>, variable: &Variable) -> Option<(Computed, Range)> {
        let input = self.settings.variables.get(&**name)?;
        if matches!(input, Input::Linked) {
            return Some((self.linked_value(name), variable.range));
        }
        let computed = match input.value(variable) {
            Ok(value) => Computed { value, uses: Uses::default(), failed: false },
            Err(why) => {
                let detail = format!("The value for the variable \"{name}\" cannot be used: {why}.");
                self.report(Diagnostic::new("Invalid value for input variable", detail, variable.range));
                Computed::failed(Uses::default())
            }
        };
        Some((computed, variable.range))
    }

    fn linked_value(&self, name: &Arc<str>) -> Computed {
        let uses = [Dependency::Variable(name.clone())].into_iter().collect();
        match self.linked.borrow().get(name) {
            Some(Some(value)) => Computed { value: value.clone(), uses, failed: false },
            Some(None) => Computed::failed(uses),
            None => Computed { value: Value::DYNAMIC, uses, failed: false },
        }
    }

    fn warn_deprecated(&self, name: &str, variable: &Variable, range: Range) {
        if let Some(why) = &variable.deprecated {
            self.warn(Diagnostic::new(
                "Variable marked as deprecated by the module author",
                format!("\"{name}\": {why}"),
                range,
            ));
        }
    }

    /// The value in the type of the variable.
    fn fit(&self, computed: Computed, name: &str, variable: &Variable, range: Range) -> Computed {
        if computed.failed {
            return computed;
        }
        let absent = computed.value.is_null() && !variable.nullable;
        if absent && let Some(default) = &variable.default {
            return Computed { value: default.clone(), ..computed };
        }
        match variable.constraint.convert(&computed.value) {
            Ok(_) if absent => {
                let detail = format!("The variable \"{name}\" is not nullable, so it needs a value.");
                self.report(Diagnostic::new("Required variable not set", detail, range));
                Computed::failed(computed.uses)
            }
            Ok(value) => Computed { value, ..computed },
            Err(error) => {
                let detail = format!("The value does not have the type of the variable \"{name}\": {error}.");
                self.report(Diagnostic::new("Invalid value for input variable", detail, range));
                Computed::failed(computed.uses)
            }
        }
    }

    fn default(&self, name: &str, variable: &Variable, is_root: bool) -> Computed {
        if let Some(value) = &variable.default {
            return Computed { value: value.clone(), uses: Uses::default(), failed: false };
        }
        // A variable that a call leaves out is reported at the call.
        if is_root {
            let detail = format!("The variable \"{name}\" has no default, and no value is assigned to it.");
            let hint = format!("pass `-var {name}=...`, or set it in terraform.tfvars");
            self.report(Diagnostic::new("No value for required variable", detail, variable.range).hint(hint));
        }
        Computed::failed(Uses::default())
    }

    pub(crate) fn variable(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let mut computed = self.value_of(Item::Assigned(module, name.clone()))?;
        let instance = self.module(module);
        let mut scope = Scope::new(self, module, None);
        scope.validated = Some(name.clone());
        let rules = &instance.module.variables[name].validations;
        if !computed.failed && !self.check(&scope, rules, "Invalid value for variable", &mut Outcome::default())? {
            computed.failed = true;
        }
        Ok(computed)
    }

    pub(crate) fn local(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let instance = self.module(module);
        Scope::new(self, module, None).computed(&instance.module.locals[name].value)
    }

    pub(crate) fn output_value(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let instance = self.module(module);
        let output = &instance.module.outputs[name];
        let scope = Scope::new(self, module, None);
        let mut outcome = Outcome { uses: instance.uses.clone(), ..Outcome::default() };
        outcome.uses.add(&self.named(module, &output.depends_on)?);
        let holds =
            self.check(&scope, &output.preconditions, "Module output value precondition failed", &mut outcome)?;
        let value = scope.eval(&output.value, &mut outcome)?;
        let value = self.marked_output(name, output, value, instance.caller.is_none(), &mut outcome);
        Ok(Computed { value, uses: outcome.uses, failed: outcome.failed || !holds })
    }

    fn marked_output(&self, name: &str, output: &Output, value: Value, is_root: bool, outcome: &mut Outcome) -> Value {
        let mut refuse = |summary: &str, detail: String, hint: &str| {
            self.report(Diagnostic::new(summary, detail, output.value.range).hint(hint));
            outcome.failed = true;
        };
        if is_root && !output.sensitive && value.contains_mark(&Mark::Sensitive) {
            let detail =
                format!("The value of the output \"{name}\" comes from a sensitive value, and would be shown.");
            refuse("Output refers to sensitive values", detail, "set `sensitive = true` in the output");
        }
        if value.contains_mark(&Mark::Ephemeral) && (is_root || !output.ephemeral) {
            let detail = format!("The value of the output \"{name}\" comes from an ephemeral value.");
            let hint = if is_root { "remove the output" } else { "set `ephemeral = true` in the output" };
            refuse("Output refers to ephemeral values", detail, hint);
        }
        let value = if output.sensitive { value.with_mark(Mark::Sensitive) } else { value };
        if output.ephemeral { value.with_mark(Mark::Ephemeral) } else { value }
    }

    pub(crate) fn call_value(&self, module: ModuleId, name: &Arc<str>) -> Result<Computed, Stop> {
        let instance = self.module(module);
        let call = &instance.module.calls[name];
        let instances = self.instances_of(Item::Call(module, name.clone()))?;
        let own = Dependency::Module { module: instance.path.clone(), call: name.clone(), key: None };
        self.collect(&instances, &call.repetition, Whole::Parts(own), |key| {
            let child = self.children.borrow().get(&(module, name.clone(), key.cloned())).copied();
            let Some(child) = child else { return Ok(Computed::failed(Uses::default())) };
            let mut all = Computed { value: Value::DYNAMIC, uses: Uses::default(), failed: false };
            let mut attributes = Vec::new();
            for output in self.module(child).module.outputs.keys() {
                let computed = self.value_of(Item::Output(child, output.clone()))?;
                all.uses.add(&computed.uses);
                all.failed |= computed.failed;
                attributes.push((output.clone(), computed.value));
            }
            Ok(Computed { value: Value::object(attributes), ..all })
        })
    }

    pub(crate) fn resource_value(&self, module: ModuleId, name: &ResourceName) -> Result<Computed, Stop> {
        let instance = self.module(module);
        let repetition = &instance.module.resources[name].repetition;
        let instances = self.instances_of(Item::Resource(module, name.clone()))?;
        let resource = ResourceAddress { module: instance.path.clone(), resource: name.clone() };
        let own = Dependency::Resource(resource, None);
        // Nothing waits for an ephemeral resource itself, but for what it comes from.
        let is_object = name.mode != Mode::Ephemeral;
        let own = if repetition.has_keys() && is_object { Whole::Itself(own) } else { Whole::Parts(own) };
        self.collect(&instances, repetition, own, |key| self.object_value(module, name, key))
    }

    /// The value of an object, with itself as what it comes from.
    pub(crate) fn object_value(
        &self,
        module: ModuleId,
        name: &ResourceName,
        key: Option<&Key>,
    ) -> Result<Computed, Stop> {
        if name.mode == Mode::Ephemeral {
            return self.value_of(Item::Opened(module, name.clone(), key.cloned()));
        }
        let instance = self.module(module);
        let address = ResourceAddress { module: instance.path.clone(), resource: name.clone() };
        let uses = [Dependency::Resource(address, key.cloned())].into_iter().collect();
        let id = self.id(Item::Object(module, name.clone(), key.cloned()));
        self.reads(Stop::Object(id));
        if let Some(value) = self.given.borrow().get(&id) {
            return Ok(Computed { value: value.clone(), uses, failed: false });
        }
        self.reads(Stop::Item(id));
        let is_failed = self.objects.borrow().get(&id).map(|object| object.failed);
        if is_failed.ok_or(Stop::Item(id))? {
            return Ok(Computed::failed(uses));
        }
        if !self.settings.on_demand {
            return Err(Stop::Object(id));
        }
        let ty = self.shape(instance.node, name).map_or(Type::Dynamic, |shape| shape.ty);
        Ok(Computed { value: Value::unknown(ty), uses, failed: false })
    }

    /// The value of all instances, in the form that the repetition gives. What is missing of them is computed next, all of it.
    fn collect(
        &self,
        instances: &Instances,
        repetition: &Repetition,
        own: Whole,
        value: impl Fn(Option<&Key>) -> Result<Computed, Stop>,
    ) -> Result<Computed, Stop> {
        let mut all = Computed { value: Value::DYNAMIC, uses: instances.uses.clone(), failed: false };
        match &instances.keys {
            Keys::Failed => return Ok(Computed::failed(all.uses)),
            Keys::Unknown => {
                let (Whole::Itself(own) | Whole::Parts(own)) = own;
                all.uses.insert(own);
                return Ok(all);
            }
            Keys::Known(_) => {}
        }
        let has_parts = matches!(own, Whole::Parts(_));
        if let Whole::Itself(own) = own {
            all.uses.insert(own);
        }
        let (mut values, mut missing) = (Vec::new(), None);
        for each in instances.known() {
            let computed = match value(each.key.as_ref()) {
                Ok(computed) => computed,
                Err(stop) => {
                    if let Stop::Item(item) = stop {
                        self.ready.borrow_mut().push(item);
                    }
                    missing = Some(stop);
                    continue;
                }
            };
            if has_parts {
                all.uses.add(&computed.uses);
            }
            all.failed |= computed.failed;
            values.push((each.key.as_ref(), computed.value));
        }
        if let Some(stop) = missing {
            return Err(stop);
        }
        all.value = match repetition {
            Repetition::Count(_) => Value::tuple(values.into_iter().map(|(_, value)| value)),
            Repetition::ForEach(_) => Value::object(values.into_iter().map(|(key, value)| (text(key), value))),
            Repetition::Once | Repetition::Enabled(_) => {
                values.pop().map_or_else(|| Value::null(Type::Dynamic), |(_, value)| value)
            }
        };
        Ok(all)
    }
}

/// What the value of all instances comes from.
enum Whole {
    /// The block, as upstream has it: one entry instead of one for each instance.
    Itself(Dependency),
    /// What the instances come from. If they are not known yet, the call.
    Parts(Dependency),
}

fn text(key: Option<&Key>) -> Arc<str> {
    match key {
        Some(Key::Text(text)) => text.clone(),
        _ => "".into(),
    }
}
