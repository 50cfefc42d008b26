//! What is read of the directory of a module.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use hcl::{Attribute, Expr, Range, Traversal};
use language::TypeConstraint;

use crate::address::{ResourceName, Target};
use crate::layers::Layers;
use crate::providers::{LocalProvider, ProviderSource, RequiredProvider};

/// A module as it is written. Nothing is evaluated except what has to be constant.
#[derive(Debug, Default)]
pub struct Module {
    /// The directory, as `path.module` shows it.
    pub directory: String,
    /// The providers by their names in this module.
    pub required_providers: BTreeMap<Arc<str>, RequiredProvider>,
    /// The `provider` blocks.
    pub providers: BTreeMap<LocalProvider, ProviderBlock>,
    /// The `variable` blocks.
    pub variables: BTreeMap<Arc<str>, Variable>,
    /// The values of `locals` blocks.
    pub locals: BTreeMap<Arc<str>, Local>,
    /// The `output` blocks.
    pub outputs: BTreeMap<Arc<str>, Output>,
    /// The `module` blocks.
    pub calls: BTreeMap<Arc<str>, ModuleCall>,
    /// The `resource`, `data` and `ephemeral` blocks, also those in `check` blocks.
    pub resources: BTreeMap<ResourceName, Resource>,
    /// The `moved` blocks.
    pub moved: Vec<Moved>,
    /// The `import` blocks.
    pub imports: Vec<Import>,
    /// The `removed` blocks.
    pub removed: Vec<Removed>,
    /// The `check` blocks.
    pub checks: BTreeMap<Arc<str>, Check>,
    /// The `provider_meta` blocks, by the name of the provider.
    pub(crate) provider_metas: BTreeMap<Arc<str>, (Layers, Range)>,
}

/// A `variable` block.
#[derive(Debug)]
pub struct Variable {
    /// What the type asks for.
    pub constraint: TypeConstraint,
    /// Whether a type is written.
    pub is_typed: bool,
    /// The value without an assignment, converted to the type.
    pub default: Option<Value>,
    /// Whether null is a value of its own, and not the same as none.
    pub nullable: bool,
    /// Whether the value must not be shown.
    pub sensitive: bool,
    /// Whether the value must not be stored.
    pub ephemeral: bool,
    /// Why it is deprecated.
    pub deprecated: Option<String>,
    /// The text for people.
    pub description: Option<String>,
    /// The `validation` blocks.
    pub validations: Vec<Rule>,
    /// The place.
    pub range: Range,
}

/// A condition with what is said if it is not met.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Must be true.
    pub condition: Expr,
    /// What is said otherwise.
    pub message: Expr,
    /// The place.
    pub range: Range,
}

/// A value of a `locals` block.
#[derive(Debug)]
pub struct Local {
    /// The expression.
    pub value: Expr,
    /// The place.
    pub range: Range,
}

/// An `output` block.
#[derive(Debug)]
pub struct Output {
    /// The expression.
    pub value: Expr,
    /// The text for people.
    pub description: Option<String>,
    /// Whether the value must not be shown.
    pub sensitive: bool,
    /// Whether the value must not be stored.
    pub ephemeral: bool,
    /// Why it is deprecated.
    pub deprecated: Option<String>,
    /// What has to be complete before the value is used.
    pub depends_on: Vec<Traversal>,
    /// What has to be true.
    pub preconditions: Vec<Rule>,
    /// The place.
    pub range: Range,
}

/// How often a block is repeated.
#[derive(Clone, Debug)]
pub enum Repetition {
    /// Once, without a key.
    Once,
    /// `count`.
    Count(Expr),
    /// `for_each`.
    ForEach(Expr),
    /// `enabled` of a `lifecycle` block: once, or not at all.
    Enabled(Expr),
}

impl Repetition {
    /// Whether instances have keys, so that a reference to the block is to a collection.
    pub(crate) fn has_keys(&self) -> bool {
        matches!(self, Self::Count(_) | Self::ForEach(_))
    }

    pub(crate) fn expr(&self) -> Option<&Expr> {
        match self {
            Repetition::Once => None,
            Repetition::Count(expr) | Repetition::ForEach(expr) | Repetition::Enabled(expr) => Some(expr),
        }
    }
}

/// A `module` block.
#[derive(Debug)]
pub struct ModuleCall {
    /// Where the module is. [`crate::Tree`] has the text of it.
    pub source: Option<Expr>,
    /// The constraint on the version of a module of a registry.
    pub version: Option<Expr>,
    /// How often.
    pub repetition: Repetition,
    /// The provider configurations that are passed. Without, those without alias are.
    pub providers: Option<Vec<PassedProvider>>,
    /// What has to be complete before anything in the module.
    pub depends_on: Vec<Traversal>,
    /// The values of the variables.
    pub arguments: Vec<Attribute>,
    /// The place.
    pub range: Range,
}

/// An item of `providers` in a `module` block.
#[derive(Debug)]
pub struct PassedProvider {
    /// The name in the module that is called.
    pub child: LocalProvider,
    /// The name in the module that calls.
    pub parent: ProviderReference,
    /// The place.
    pub range: Range,
}

/// A provider configuration as `provider = aws.west` or `aws.by_region["a"]` names it.
#[derive(Clone, Debug)]
pub struct ProviderReference {
    /// Which configuration.
    pub name: LocalProvider,
    /// Which instance, if the configuration has `for_each`.
    pub key: Option<Expr>,
    /// The place.
    pub range: Range,
}

/// A `resource`, `data` or `ephemeral` block.
#[derive(Debug)]
pub struct Resource {
    /// How often.
    pub repetition: Repetition,
    /// The provider configuration, if it is named.
    pub provider: Option<ProviderReference>,
    /// What has to be complete before.
    pub depends_on: Vec<Traversal>,
    /// The `lifecycle` block.
    pub lifecycle: Lifecycle,
    /// The `provisioner` blocks.
    pub provisioners: Vec<Provisioner>,
    /// The `connection` block, for those of the provisioners that have none.
    pub(crate) connection: Option<Layers>,
    /// What the provider understands.
    pub(crate) body: Layers,
    /// The `check` block around it.
    pub check: Option<Arc<str>>,
    /// The place.
    pub range: Range,
}

/// The arguments of a `lifecycle` block.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// Whether a replacement is created before the old object is destroyed.
    pub create_before_destroy: Option<bool>,
    /// Whether a plan that destroys the object is an error. Evaluated with the block.
    pub prevent_destroy: Option<Expr>,
    /// Whether the object is destroyed when it is not wanted any more, and not only forgotten.
    pub destroy: Option<bool>,
    /// The arguments whose changes are ignored.
    pub ignore_changes: IgnoreChanges,
    /// Changes of these replace the object.
    pub replace_triggered_by: Vec<Expr>,
    /// What has to be true before.
    pub preconditions: Vec<Rule>,
    /// What has to be true after.
    pub postconditions: Vec<Rule>,
}

/// The arguments whose changes are ignored.
#[derive(Clone, Debug, Default)]
pub enum IgnoreChanges {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// These, as paths into the configuration.
    Paths(Vec<Traversal>),
}

/// A `provisioner` block.
#[derive(Clone, Debug)]
pub struct Provisioner {
    /// The type, such as `local-exec`.
    pub kind: String,
    /// Whether it runs before the object is destroyed, and not after it is created.
    pub on_destroy: bool,
    /// Whether a failure is ignored.
    pub continue_on_failure: bool,
    /// Its own `connection` block.
    pub(crate) connection: Option<Layers>,
    /// The arguments.
    pub(crate) body: Layers,
    /// The place.
    pub range: Range,
}

/// A `provider` block.
#[derive(Debug)]
pub struct ProviderBlock {
    /// The keys of its instances.
    pub for_each: Option<Expr>,
    /// What the provider understands.
    pub(crate) body: Layers,
    /// The place.
    pub range: Range,
}

/// A `moved` block.
#[derive(Debug)]
pub struct Moved {
    /// The address before.
    pub from: Target,
    /// The address now.
    pub to: Target,
    /// The place.
    pub range: Range,
}

/// An `import` block.
#[derive(Debug)]
pub struct Import {
    /// The address of the instance, whose keys may be expressions.
    pub to: Expr,
    /// The identifier for the provider.
    pub id: Option<Expr>,
    /// The identity for the provider.
    pub identity: Option<Expr>,
    /// One import for each of these.
    pub for_each: Option<Expr>,
    /// The provider configuration, if it is named.
    pub provider: Option<ProviderReference>,
    /// The place.
    pub range: Range,
}

/// A `removed` block.
#[derive(Debug)]
pub struct Removed {
    /// The address of a resource or module that is not in the configuration any more.
    pub from: Target,
    /// Whether the objects are destroyed, and not only forgotten, which is the default.
    pub destroy: bool,
    /// What runs before an object is destroyed.
    pub provisioners: Vec<Provisioner>,
    /// The place.
    pub range: Range,
}

/// A `check` block. Its data source, if there is one, is a resource of the module.
#[derive(Debug)]
pub struct Check {
    /// The data source in it.
    pub data: Option<ResourceName>,
    /// What has to be true.
    pub assertions: Vec<Rule>,
    /// The place.
    pub range: Range,
}

impl ProviderBlock {
    pub(crate) fn is_empty(&self) -> bool {
        let body = &self.body.base;
        body.attributes.is_empty() && body.blocks.is_empty() && body.json.is_none() && self.body.overrides.is_empty()
    }
}

impl Module {
    /// The provider that a name stands for in this module.
    pub fn provider_source(&self, name: &str) -> ProviderSource {
        match self.required_providers.get(name) {
            Some(required) => required.source.clone(),
            None => ProviderSource::implied(name),
        }
    }
}
