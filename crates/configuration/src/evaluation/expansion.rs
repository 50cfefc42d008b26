//! How often blocks are repeated: `count`, `for_each`, `enabled`.

use std::sync::Arc;

use cty::{Mark, Type, Value, convert};
use hcl::{Diagnostic, Expr};

use super::item::{Item, ItemId, ModuleId};
use super::scope::{Outcome, Scope};
use super::uses::{Dependency, Uses};
use super::{Each, Evaluation, ModuleInstance, Presence, Stop, Waiting};
use crate::address::{Key, Mode, ResourceAddress, ResourceName};
use crate::module::{ModuleCall, Repetition, Resource};

/// The instances of a block or call.
#[derive(Debug)]
pub struct Instances {
    pub keys: Keys,
    pub uses: Uses,
    /// The objects that the expression of the keys names itself.
    pub direct: Uses,
}

#[derive(Debug)]
pub enum Keys {
    Known(Vec<Each>),
    /// The keys are not known before other objects are changed.
    Unknown,
    Failed,
}

impl Instances {
    pub fn failed() -> Self {
        Self { keys: Keys::Failed, uses: Uses::default(), direct: Uses::default() }
    }

    pub fn known(&self) -> &[Each] {
        match &self.keys {
            Keys::Known(all) => all,
            _ => &[],
        }
    }

    pub fn presence(&self, key: Option<&Key>) -> Presence {
        match self.keys {
            Keys::Known(_) if self.has(key) => Presence::Desired,
            Keys::Known(_) => Presence::Absent,
            Keys::Unknown | Keys::Failed => Presence::Undecided,
        }
    }

    pub fn has(&self, key: Option<&Key>) -> bool {
        match (self.known(), key) {
            // Indexes are dense.
            (all, Some(Key::Int(index))) => {
                usize::try_from(*index).is_ok_and(|index| index < all.len())
                    && all.first().is_some_and(|each| matches!(each.key, Some(Key::Int(_))))
            }
            (all, key) => all.binary_search_by(|each| each.key.as_ref().cmp(&key)).is_ok(),
        }
    }
}

impl Evaluation {
    pub(crate) fn resource_instances(&self, module: ModuleId, name: &ResourceName) -> Result<Instances, Stop> {
        let instance = self.module(module);
        let resource = &instance.module.resources[name];
        self.expand(module, &resource.repetition)
    }

    pub(crate) fn call_instances(&self, module: ModuleId, name: &Arc<str>) -> Result<Instances, Stop> {
        let instance = self.module(module);
        let call = &instance.module.calls[name];
        let Some(node) = self.tree.nodes[instance.node].children.get(name).copied() else {
            return Ok(Instances::failed());
        };
        let depends_on = self.named(module, &call.depends_on)?;
        let instances = self.expand(module, &call.repetition)?;
        self.children.borrow_mut().retain(|(caller, called, _), _| *caller != module || called != name);
        for each in instances.known() {
            let mut uses = instance.uses.clone();
            uses.add(&instances.uses);
            let mut all = instance.depends_on.clone();
            all.add(&depends_on);
            let child = self.add_module(ModuleInstance {
                node,
                module: self.tree.nodes[node].module.clone(),
                path: instance.path.child(name, each.key.clone()),
                caller: Some((module, name.clone())),
                each: each.clone(),
                uses,
                depends_on: all,
            });
            self.children.borrow_mut().insert((module, name.clone(), each.key.clone()), child);
        }
        self.check_arguments(call, node);
        Ok(instances)
    }

    fn check_arguments(&self, call: &ModuleCall, node: usize) {
        let child = &self.tree.nodes[node].module;
        for argument in &call.arguments {
            let name = &argument.name.text;
            if !child.variables.contains_key(name.as_str()) {
                let detail = format!("The module has no variable \"{name}\".");
                self.report(Diagnostic::new("Unsupported argument", detail, argument.name.range));
            }
        }
        for (name, variable) in &child.variables {
            let is_set = call.arguments.iter().any(|argument| argument.name.text == **name);
            if !is_set && variable.default.is_none() {
                let detail = format!("The variable \"{name}\" of the module has no default, so it has to be set.");
                let hint = format!("add `{name} = ...`");
                self.report(Diagnostic::new("Missing required argument", detail, call.range).hint(hint));
            }
        }
    }

    /// The keys that an argument gives.
    fn expand(&self, module: ModuleId, repetition: &Repetition) -> Result<Instances, Stop> {
        let scope = Scope::new(self, module, None);
        let mut outcome = Outcome::default();
        let keys = match repetition {
            Repetition::Once => Keys::Known(vec![Each::default()]),
            Repetition::Count(expr) => count(&scope, expr, &mut outcome)?,
            Repetition::ForEach(expr) => for_each(&scope, expr, &mut outcome)?,
            Repetition::Enabled(expr) => enabled(&scope, expr, &mut outcome)?,
        };
        let keys = match keys {
            _ if outcome.failed => Keys::Failed,
            Keys::Known(all) => {
                let range = repetition.expr().map_or_else(hcl::Range::default, |expr| expr.range);
                if self.count_instances(all.len(), range) { Keys::Known(all) } else { Keys::Failed }
            }
            other => other,
        };
        Ok(Instances { keys, uses: outcome.uses, direct: outcome.direct })
    }

    /// What follows when an item is computed: the objects of a block, and what is reported of it.
    pub(crate) fn continue_with(&self, id: ItemId) {
        match self.item(id) {
            Item::Resource(module, name) => {
                let instance = self.module(module);
                let instances = self.instances.borrow()[&id].clone();
                let each = instances.known().iter().rev();
                self.want(each.map(|each| Item::Object(module, name.clone(), each.key.clone())));
                if !matches!(instances.keys, Keys::Known(_)) {
                    let resource: &Resource = &instance.module.resources[&name];
                    let address = ResourceAddress { module: instance.path.clone(), resource: name };
                    self.found.borrow_mut().waiting.push(waiting(
                        &address.to_string(),
                        &instance,
                        Some(address),
                        &instances,
                        &resource.repetition,
                    ));
                }
            }
            Item::Call(module, name) => {
                let instance = self.module(module);
                let instances = self.instances.borrow()[&id].clone();
                if !matches!(instances.keys, Keys::Known(_)) {
                    let address = instance.path.join(format!("module.{name}"));
                    self.found.borrow_mut().waiting.push(waiting(
                        &address,
                        &instance,
                        None,
                        &instances,
                        &instance.module.calls[&name].repetition,
                    ));
                }
            }
            Item::Object(_, name, _) if name.mode != Mode::Ephemeral => {
                self.found.borrow_mut().objects.push(self.objects.borrow()[&id].clone());
            }
            _ => {}
        }
        if self.settings.on_demand {
            self.found.take();
        }
    }
}

fn waiting(
    address: &str,
    module: &ModuleInstance,
    resource: Option<ResourceAddress>,
    instances: &Instances,
    repetition: &Repetition,
) -> Waiting {
    let uses: Vec<Dependency> = instances.uses.iter().cloned().collect();
    let range = repetition.expr().map_or_else(hcl::Range::default, |expr| expr.range);
    let failed = matches!(instances.keys, Keys::Failed);
    Waiting { failed, address: address.to_owned(), module: module.path.clone(), resource, uses, range }
}

/// Refuses a value that cannot decide how many objects there are.
fn refused(scope: &Scope<'_>, argument: &str, value: &Value, expr: &Expr, outcome: &mut Outcome) -> bool {
    let why = if value.has_mark(&Mark::Sensitive) {
        "The value is sensitive, and the addresses of the instances would show it."
    } else if value.has_mark(&Mark::Ephemeral) {
        "The value is ephemeral, and the instances are kept."
    } else if value.is_null() {
        "The value is null."
    } else {
        return false;
    };
    scope.problem(&format!("Invalid {argument} argument"), why, expr, outcome);
    true
}

fn count(scope: &Scope<'_>, expr: &Expr, outcome: &mut Outcome) -> Result<Keys, Stop> {
    let value = scope.converted(expr, &Type::Number, "`count`", outcome)?;
    if outcome.failed || refused(scope, "count", &value, expr, outcome) {
        return Ok(Keys::Failed);
    }
    let Some(number) = value.as_number() else { return Ok(Keys::Unknown) };
    let Some(count) = number.to_usize() else {
        scope.problem("Invalid count argument", "The value has to be a whole number, and at least 0.", expr, outcome);
        return Ok(Keys::Failed);
    };
    if count > scope.evaluation.settings.max_instances {
        scope.problem(
            "Invalid count argument",
            "The value is greater than the number of objects that are possible.",
            expr,
            outcome,
        );
        return Ok(Keys::Failed);
    }
    Ok(Keys::Known((0..count as u64).map(|index| Each { key: Some(Key::Int(index)), value: None }).collect()))
}

fn enabled(scope: &Scope<'_>, expr: &Expr, outcome: &mut Outcome) -> Result<Keys, Stop> {
    let value = scope.converted(expr, &Type::Bool, "`enabled`", outcome)?;
    if outcome.failed || refused(scope, "enabled", &value, expr, outcome) {
        return Ok(Keys::Failed);
    }
    Ok(match value.as_bool() {
        Some(true) => Keys::Known(vec![Each::default()]),
        Some(false) => Keys::Known(Vec::new()),
        None => Keys::Unknown,
    })
}

fn for_each(scope: &Scope<'_>, expr: &Expr, outcome: &mut Outcome) -> Result<Keys, Stop> {
    const INVALID: &str = "Invalid for_each argument";
    let value = scope.eval(expr, outcome)?;
    if outcome.failed || refused(scope, "for_each", &value, expr, outcome) {
        return Ok(Keys::Failed);
    }
    let is_keyed = matches!(value.ty(), Type::Map(_) | Type::Object(_) | Type::Set(_) | Type::Dynamic);
    if !is_keyed {
        let detail = format!("A map or a set of strings is required, and the value is a {}.", value.ty());
        let diagnostic = Diagnostic::new(INVALID, detail, expr.range);
        let diagnostic = match value.ty() {
            Type::List(_) | Type::Tuple(_) => diagnostic.hint("use toset(...) if all elements are different strings"),
            _ => diagnostic,
        };
        scope.evaluation.report(diagnostic);
        outcome.failed = true;
        return Ok(Keys::Failed);
    }
    if let Some(entries) = value.as_entries() {
        let each =
            entries.iter().map(|(key, value)| Each { key: Some(Key::Text(key.clone())), value: Some(value.clone()) });
        return Ok(Keys::Known(each.collect()));
    }
    let Some(items) = value.as_items().filter(|_| value.is_wholly_known()) else { return Ok(Keys::Unknown) };
    let mut all = Vec::new();
    for item in items {
        let text = convert(item, &Type::String).ok().filter(|_| *item.ty() == Type::String);
        match text.as_ref().and_then(Value::as_str) {
            Some(text) => all.push(Each { key: Some(Key::Text(text.into())), value: Some(item.clone()) }),
            None => {
                let detail = "The elements of a set for `for_each` have to be strings, and none of them null.";
                scope.problem("Invalid for_each set argument", detail, expr, outcome);
                return Ok(Keys::Failed);
            }
        }
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Keys::Known(all))
}

/// The instances of a provider configuration with `for_each`.
pub fn provider_keys(value: &Value) -> Vec<Each> {
    match (value.as_entries(), value.as_items()) {
        (Some(entries), _) => entries.iter().map(|(key, value)| provider_key(key, value)).collect(),
        (_, Some(items)) => items.iter().filter_map(|item| Some(provider_key(item.as_str()?, item))).collect(),
        _ => Vec::new(),
    }
}

fn provider_key(key: &str, value: &Value) -> Each {
    Each { key: Some(Key::Text(key.into())), value: Some(value.clone()) }
}
