//! The configuration of a state: modules with their resources, variables, locals, outputs and provider configurations.
//!
//! It is read from the HCL of a directory, which contains the expressions, or from the output of `terraform show -json
//! PLANFILE`, which contains constants and otherwise only the references of each expression.

mod hcl;
mod plan;
mod references;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hcl_edit::expr::Expression;
use serde_json::Value as Json;

use super::address::{self, ModuleStep, ResourceAddress};
use super::state::ProviderAddress;

pub use hcl::{Folder, normalized, number_value, template};
pub use references::ReferencedValue;
pub use written::arguments as written;

/// An argument as the configuration sets it.
#[derive(Clone, Debug)]
pub enum Source {
    Constant(Json),
    /// The references of an expression, in the addresses of its module.
    References(Vec<String>),
    Expression(Box<Expression>),
    /// A block or an object.
    Object(Arguments),
    /// A list, or the blocks of one type.
    List(Vec<Source>),
    /// A `dynamic` block.
    Dynamic(Box<DynamicBlock>),
}

pub type Arguments = BTreeMap<Arc<str>, Source>;

#[derive(Clone, Debug)]
pub struct DynamicBlock {
    pub for_each: Source,
    /// The name of the variable in `content`.
    pub iterator: String,
    pub content: Arguments,
}

/// The configuration of a state.
#[derive(Debug, Default)]
pub struct Configuration {
    root: Module,
    /// The values of variables of the root module.
    pub values: BTreeMap<String, Json>,
    notes: Vec<String>,
    /// The text files of its directories.
    pub files: Folder,
}

#[derive(Debug, Default)]
pub struct Module {
    pub resources: BTreeMap<BlockName, ResourceBlock>,
    pub variables: BTreeMap<String, Variable>,
    pub locals: BTreeMap<String, Source>,
    pub outputs: BTreeMap<String, Output>,
    pub calls: BTreeMap<String, ModuleCall>,
    pub providers: Vec<ProviderBlock>,
    /// The version constraint and the source of each provider, by local name.
    pub required: BTreeMap<String, Requirement>,
    /// Previous and current addresses of `moved` blocks.
    pub moved: Vec<(String, String)>,
    /// The directory of its files. Empty for a plan.
    pub folder: String,
}

/// Whether it is a data source, its type and its name.
pub type BlockName = (bool, String, String);

/// A block `resource` or `data`.
#[derive(Debug, Default)]
pub struct ResourceBlock {
    pub arguments: Arguments,
    pub count: Option<Source>,
    pub for_each: Option<Source>,
    pub depends_on: Vec<String>,
    pub lifecycle: Lifecycle,
    /// Its lifecycle is known, even if it has no such block.
    pub has_lifecycle: bool,
    pub provisioners: Vec<Provisioner>,
}

/// The `lifecycle` block of a resource.
#[derive(Debug, Default)]
pub struct Lifecycle {
    pub create_before_destroy: bool,
    pub prevent_destroy: Option<Source>,
    pub destroy: Option<bool>,
    /// Of OpenTofu.
    pub enabled: Option<Source>,
    /// As in `spec.lifecycle.ignoreChanges`.
    pub ignore_changes: Vec<String>,
    pub replace_triggered_by: Vec<Expression>,
    pub preconditions: Vec<Condition>,
    pub postconditions: Vec<Condition>,
    /// The names of settings without a counterpart.
    pub others: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Condition {
    pub condition: Source,
    pub message: Source,
}

#[derive(Debug)]
pub struct Provisioner {
    pub kind: String,
    pub before_destroy: bool,
    pub continues: bool,
    pub arguments: Arguments,
}

#[derive(Debug, Default)]
pub struct Variable {
    pub default: Option<Json>,
    pub sensitive: bool,
    /// Its type is a string, a number or a boolean.
    pub kind: Option<Scalar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    String,
    Number,
    Bool,
}

#[derive(Debug)]
pub struct Output {
    pub value: Source,
    pub sensitive: bool,
}

#[derive(Debug, Default)]
pub struct ModuleCall {
    pub arguments: Arguments,
    pub count: Option<Source>,
    pub for_each: Option<Source>,
    pub depends_on: Vec<String>,
    pub module: Module,
}

#[derive(Debug, Default)]
pub struct ProviderBlock {
    pub name: String,
    pub alias: Option<String>,
    /// A version constraint, as before Terraform 0.13.
    pub version: Option<String>,
    pub arguments: Arguments,
}

#[derive(Clone, Debug, Default)]
pub struct Requirement {
    pub source: Option<String>,
    pub version: Option<String>,
}

impl Source {
    /// Whether it must be evaluated as a whole.
    pub fn is_expression(&self) -> bool {
        match self {
            Self::References(_) | Self::Expression(_) | Self::Dynamic(_) => true,
            Self::List(items) => items.iter().any(|item| matches!(item, Self::Dynamic(_))),
            Self::Constant(_) | Self::Object(_) => false,
        }
    }
}

impl Configuration {
    pub const HINT: &str = "specify the directory of the configuration, or create a file with `terraform plan -out FILE` and `terraform show -json FILE` (or `tofu`)";

    /// Takes the values of variables from another source of the same configuration.
    pub fn take_values(&mut self, other: Self) {
        self.values.extend(other.values);
    }

    /// What the configuration contains and a manifest cannot, one line each.
    pub fn notes(&self) -> Vec<String> {
        let missing = self.root.variables.iter().filter(|(name, variable)| {
            self.has_expressions() && variable.default.is_none() && !self.values.contains_key(*name)
        });
        let hint = "name a file with its value with --var-file";
        let missing = missing.map(|(name, _)| {
            format!("the variable `{name}` has no value, so what reads it has the value of the state; {hint}")
        });
        self.notes.iter().cloned().chain(missing).collect()
    }

    pub fn root(&self) -> &Module {
        &self.root
    }

    /// Whether it contains expressions, and not only their references.
    pub fn has_expressions(&self) -> bool {
        !self.root.folder.is_empty()
    }

    pub fn module(&self, path: &[&str]) -> Option<&Module> {
        path.iter().try_fold(&self.root, |module, name| Some(&module.calls.get(*name)?.module))
    }

    pub fn resource(&self, address: &ResourceAddress) -> Option<&ResourceBlock> {
        let name = (address.is_data, address.type_name.clone(), address.name.clone());
        self.module(&address.modules())?.resources.get(&name)
    }

    /// Returns a provider configuration. `name` is the name of its `Provider`.
    pub fn provider(&self, address: &ProviderAddress, name: &str) -> Option<&ProviderBlock> {
        let module = self.module(&address::module_names(&address.module))?;
        let is_it = |one: &&ProviderBlock| {
            one.alias == address.alias
                && match module.required.get(&one.name).and_then(|required| required.source.as_deref()) {
                    Some(source) => address.source == source || address.source.ends_with(&format!("/{source}")),
                    None => one.name == name || address.source.ends_with(&format!("/{}", one.name)),
                }
        };
        module.providers.iter().find(is_it)
    }

    /// The version constraints of a provider in all modules, which apply together.
    pub fn version(&self, source: &str) -> Option<String> {
        fn collect(module: &Module, source: &str, found: &mut Vec<String>) {
            let required = module.required.iter().map(|(name, required)| (name, &required.version));
            let configured = module.providers.iter().map(|provider| (&provider.name, &provider.version));
            for (name, version) in required.chain(configured) {
                let own = module.required.get(name).and_then(|required| required.source.as_ref()).unwrap_or(name);
                let is_it = source == own || source.ends_with(&format!("/{own}"));
                found.extend(version.clone().filter(|version| is_it && !found.contains(version)));
            }
            module.calls.values().for_each(|call| collect(&call.module, source, found));
        }
        let mut found = Vec::new();
        collect(&self.root, source, &mut found);
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// The resources that the configuration contains, as addresses in the configuration.
    pub fn resource_addresses(&self) -> BTreeSet<String> {
        fn collect(module: &Module, path: &[ModuleStep], found: &mut BTreeSet<String>) {
            for (is_data, type_name, name) in module.resources.keys() {
                let (type_name, name) = (type_name.clone(), name.clone());
                let address = ResourceAddress { module: path.to_vec(), is_data: *is_data, type_name, name };
                found.insert(address.in_configuration());
            }
            for (name, call) in &module.calls {
                let below: Vec<ModuleStep> = path.iter().cloned().chain([(name.clone(), None)]).collect();
                collect(&call.module, &below, found);
            }
        }
        let mut found = BTreeSet::new();
        collect(&self.root, &[], &mut found);
        found
    }
}
