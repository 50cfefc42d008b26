//! What is computed: the small values of which a configuration consists.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hcl::Range;

use super::Evaluation;
use crate::address::{InstanceAddress, Key, ModulePath, ResourceAddress, ResourceName};
use crate::providers::{LocalProvider, ProviderSource};

/// The position of a module instance in the evaluation.
pub type ModuleId = usize;

/// The number of an item in an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(u32);

/// The items of an evaluation, each with a number: what is kept for an item is kept for its number, so that its names are
/// compared once for each reference.
#[derive(Default)]
pub struct Items {
    numbers: HashMap<Item, ItemId>,
    all: Vec<Item>,
}

impl Items {
    /// The number of an item, also of one that is not declared.
    pub fn id(&mut self, item: Item) -> ItemId {
        if let Some(known) = self.numbers.get(&item) {
            return *known;
        }
        let id = ItemId(u32::try_from(self.all.len()).expect("fewer than 2^32 items fit in memory"));
        self.all.push(item.clone());
        self.numbers.insert(item, id);
        id
    }

    pub fn get(&self, id: ItemId) -> &Item {
        &self.all[id.0 as usize]
    }
}

/// A value that is computed once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// What is assigned to a variable, converted to its type.
    Assigned(ModuleId, Arc<str>),
    /// The same after its validation.
    Variable(ModuleId, Arc<str>),
    Local(ModuleId, Arc<str>),
    Output(ModuleId, Arc<str>),
    /// The instances of a module call.
    Call(ModuleId, Arc<str>),
    /// The outputs of all instances of a call.
    CallValue(ModuleId, Arc<str>),
    /// The instances of a resource block.
    Resource(ModuleId, ResourceName),
    /// The values of all instances of a resource block.
    ResourceValue(ModuleId, ResourceName),
    /// The configuration of an instance of a resource block.
    Object(ModuleId, ResourceName, Option<Key>),
    /// The postconditions of an instance of a resource block.
    After(ModuleId, ResourceName, Option<Key>),
    /// The value of an instance of an `ephemeral` block.
    Opened(ModuleId, ResourceName, Option<Key>),
    /// The assertions of a `check` block.
    Check(ModuleId, Arc<str>),
    /// The instances of a provider configuration.
    Provider(ModuleId, ProviderSource, LocalProvider),
}

impl Item {
    pub fn module(&self) -> ModuleId {
        match self {
            Item::Assigned(module, _)
            | Item::Variable(module, _)
            | Item::Local(module, _)
            | Item::Output(module, _)
            | Item::Call(module, _)
            | Item::CallValue(module, _)
            | Item::Resource(module, _)
            | Item::ResourceValue(module, _)
            | Item::Object(module, _, _)
            | Item::After(module, _, _)
            | Item::Opened(module, _, _)
            | Item::Check(module, _)
            | Item::Provider(module, _, _) => *module,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Assigned(_, name) | Item::Variable(_, name) => write!(f, "var.{name}"),
            Item::Local(_, name) => write!(f, "local.{name}"),
            Item::Output(_, name) => write!(f, "output.{name}"),
            Item::Call(_, name) | Item::CallValue(_, name) => write!(f, "module.{name}"),
            Item::Resource(_, name)
            | Item::ResourceValue(_, name)
            | Item::Object(_, name, None)
            | Item::After(_, name, None)
            | Item::Opened(_, name, None) => {
                write!(f, "{name}")
            }
            Item::Check(_, name) => write!(f, "check.{name}"),
            Item::Object(_, name, Some(key)) | Item::After(_, name, Some(key)) | Item::Opened(_, name, Some(key)) => {
                write!(f, "{name}{key}")
            }
            Item::Provider(_, _, local) => write!(f, "provider.{local}"),
        }
    }
}

impl Evaluation {
    pub(crate) fn id(&self, item: Item) -> ItemId {
        self.items.borrow_mut().id(item)
    }

    pub(crate) fn item(&self, id: ItemId) -> Item {
        self.items.borrow().get(id).clone()
    }

    /// The address of an object.
    pub(crate) fn address_of(&self, object: ItemId) -> Option<InstanceAddress> {
        let Item::Object(module, resource, key) = self.item(object) else { return None };
        let resource = ResourceAddress { module: self.module(module).path.clone(), resource };
        Some(InstanceAddress { resource, key })
    }

    /// Where an item is declared.
    pub(crate) fn place(&self, item: &Item) -> Range {
        let module = self.module(item.module()).module.clone();
        let place = match item {
            Item::Assigned(_, name) | Item::Variable(_, name) => module.variables.get(name).map(|own| own.range),
            Item::Local(_, name) => module.locals.get(name).map(|own| own.range),
            Item::Output(_, name) => module.outputs.get(name).map(|own| own.range),
            Item::Call(_, name) | Item::CallValue(_, name) => module.calls.get(name).map(|own| own.range),
            Item::Check(_, name) => module.checks.get(name).map(|own| own.range),
            Item::Provider(_, _, local) => module.providers.get(local).map(|own| own.range),
            Item::Resource(_, name)
            | Item::ResourceValue(_, name)
            | Item::Object(_, name, _)
            | Item::After(_, name, _)
            | Item::Opened(_, name, _) => module.resources.get(name).map(|own| own.range),
        };
        place.unwrap_or_default()
    }

    /// The address of an item for people.
    pub(crate) fn name(&self, item: &Item) -> String {
        let path: ModulePath = self.module(item.module()).path.clone();
        path.join(item)
    }
}
