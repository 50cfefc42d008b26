//! Ephemeral resources: values that a provider gives for one run. They are no objects: nothing of them is planned or kept, and
//! what uses them waits for what they come from.

use cty::{Mark, Value};
use hcl::Diagnostic;

use super::item::{Item, ModuleId};
use super::objects::Object;
use super::scope::Outcome;
use super::uses::{Dependency, Uses};
use super::{Computed, Evaluation, ProviderConfig, Stop};
use crate::address::{InstanceAddress, Key, Mode, ResourceName};
use crate::diagnostics::Diagnostics;

/// An ephemeral resource that is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct EphemeralRequest<'a> {
    /// Its address.
    pub address: &'a InstanceAddress,
    /// The provider configuration, without unknown values.
    pub provider: &'a ProviderConfig,
    /// The configuration by the schema, without unknown values.
    pub config: &'a Value,
}

impl Evaluation {
    /// Asks for the values of all ephemeral resources of a module, also of those that nothing uses: they may be wanted for what
    /// opening them does.
    pub(crate) fn open_all(&self, module: ModuleId) {
        let instance = self.module(module);
        for name in instance.module.resources.keys().filter(|name| name.mode == Mode::Ephemeral) {
            let block = self.demand(Item::Resource(module, name.clone()));
            let instances = self.instances.borrow().get(&block).cloned();
            let keys = instances.iter().flat_map(|instances| instances.known()).map(|each| each.key.clone());
            self.want(keys.map(|key| Item::Opened(module, name.clone(), key)));
        }
    }

    /// The problems of ephemeral resources, which are no objects of a plan.
    pub fn ephemeral_problems(&self) -> Diagnostics {
        let mut all = Diagnostics::default();
        let items = self.items.borrow();
        for (item, own) in &*self.problems.borrow() {
            if let Item::Object(_, name, _) | Item::Opened(_, name, _) = items.get(*item)
                && name.mode == Mode::Ephemeral
            {
                all.extend(own.clone());
            }
        }
        all.sort();
        all
    }

    /// The value of an ephemeral resource. It is unknown as long as its configuration is, and while something that it depends on
    /// is.
    pub(crate) fn opened(&self, module: ModuleId, name: &ResourceName, key: Option<&Key>) -> Result<Computed, Stop> {
        let object = self.object_of(Item::Object(module, name.clone(), key.cloned()))?;
        let mut uses: Uses = object.uses.clone();
        uses.add(&object.depends_on);
        let Some(schema) = object.schema.clone().filter(|_| !object.failed) else {
            return Ok(Computed::failed(uses));
        };
        let Some(provider) = self.provider_of(&object.provider)? else { return Ok(Computed::failed(uses)) };
        uses.add(&provider.uses.iter().cloned().collect());
        if provider.failed {
            return Ok(Computed::failed(uses));
        }
        let is_ready =
            object.config.is_wholly_known() && provider.config.is_wholly_known() && self.are_known(&object)?;
        let request = EphemeralRequest { address: &object.address, provider: &provider, config: &object.config };
        let opened = if is_ready { self.world.open(&request) } else { Ok(None) };
        let value = match opened {
            Ok(Some(value)) => schema.mark(&value),
            Ok(None) => Value::unknown(schema.implied_type()),
            Err(failure) => {
                let summary = "Ephemeral resource cannot be opened";
                let problem = Diagnostic::new(summary, format!("{}: {failure}", object.address), object.range);
                self.report(match failure.hint {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                });
                return Ok(Computed::failed(uses));
            }
        };
        let value = value.with_mark(Mark::Ephemeral);
        let mut outcome = Outcome { uses, ..Outcome::default() };
        let holds = self.postconditions_hold(module, name, key, value.clone(), &mut outcome)?;
        Ok(Computed { value, uses: outcome.uses, failed: !holds })
    }

    /// Whether everything is known that `depends_on` names: what is about to change may be what the provider needs.
    fn are_known(&self, object: &Object) -> Result<bool, Stop> {
        for dependency in object.depends_on.iter() {
            let value = match dependency {
                Dependency::Resource(address, _) => {
                    let module = self.paths.borrow().get(&address.module).copied();
                    module.map(|module| Item::ResourceValue(module, address.resource.clone()))
                }
                Dependency::Module { module, call, .. } => {
                    let module = self.paths.borrow().get(module).copied();
                    module.map(|module| Item::CallValue(module, call.clone()))
                }
                Dependency::Variable(name) => Some(Item::Variable(0, name.clone())),
            };
            let Some(value) = value else { continue };
            if !self.value_of(value)?.value.is_wholly_known() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
