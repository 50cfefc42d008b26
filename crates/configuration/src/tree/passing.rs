//! Which provider configuration a name means, through the calls that pass configurations on.

use std::sync::Arc;

use super::{NodeId, Tree};
use crate::diagnostics::Diagnostics;
use crate::module::{Module, ModuleCall, ProviderReference, Repetition};
use crate::providers::{LocalProvider, ProviderSource};

/// A provider configuration at its module, as it is written in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Configured {
    /// The module with the configuration, or the root module if there is none and it is empty.
    pub node: NodeId,
    pub source: ProviderSource,
    pub local: LocalProvider,
    /// The reference with a key that chose the instance of it, and the module in which the reference stands.
    pub chosen: Option<(NodeId, ProviderReference)>,
}

impl Tree {
    /// The configuration that a name in a module means.
    pub(crate) fn provider(&self, node: NodeId, reference: &ProviderReference) -> Configured {
        let mut at = node;
        let mut local = reference.name.clone();
        let source = self.nodes[node].module.provider_source(&local.name);
        let mut chosen = reference.key.is_some().then(|| (node, reference.clone()));
        loop {
            let Some(parent) = self.nodes[at].parent.filter(|_| !self.nodes[at].module.configures(&local)) else {
                return Configured { node: at, source, local, chosen };
            };
            let passed = self.call_of(at).and_then(|call| call.providers.as_ref());
            match passed.and_then(|passed| passed.iter().find(|item| item.child == local)) {
                Some(item) => {
                    if item.parent.key.is_some() {
                        chosen = Some((parent, item.parent.clone()));
                    }
                    local = item.parent.name.clone();
                }
                None => local = self.nodes[parent].module.local_name(&source, local.alias),
            }
            at = parent;
        }
    }

    /// The call of a module, in the module that calls it.
    pub(crate) fn call_of(&self, node: NodeId) -> Option<&ModuleCall> {
        let parent = self.nodes[node].parent?;
        self.nodes[parent].module.calls.get(self.nodes[node].path.last()?)
    }
}

impl Module {
    fn local_name(&self, source: &ProviderSource, alias: Option<Arc<str>>) -> LocalProvider {
        let named = self.required_providers.iter().find(|(_, required)| required.source == *source);
        let name = named.map_or_else(|| source.name.clone(), |(name, _)| name.clone());
        LocalProvider { name, alias }
    }

    /// Whether the module has a configuration of its own. An empty block in a module that is called stands for one that is
    /// passed, as it did before there was `configuration_aliases`.
    fn configures(&self, local: &LocalProvider) -> bool {
        self.providers.get(local).is_some_and(|block| !block.is_empty())
    }

    /// Whether a configuration is written in the module, or has to be passed to it.
    fn has_provider(&self, local: &LocalProvider) -> bool {
        let required = self.required_providers.get(&local.name);
        self.providers.contains_key(local) || required.is_some_and(|required| required.aliases.contains(local))
    }
}

/// Checks that every configuration that is named exists, and that modules get what they need.
pub fn check(tree: &Tree, diagnostics: &mut Diagnostics) {
    for (id, node) in tree.nodes.iter().enumerate() {
        check_resources(&node.module, diagnostics);
        if let (Some(call), Some(parent)) = (tree.call_of(id), node.parent) {
            check_call(&node.module, call, &tree.nodes[parent].module, diagnostics);
        }
    }
}

fn check_resources(module: &Module, diagnostics: &mut Diagnostics) {
    for (name, resource) in &module.resources {
        let Some(reference) = &resource.provider else { continue };
        if reference.name.alias.is_some() && !module.has_provider(&reference.name) {
            let detail =
                format!("`{name}` uses the provider configuration `{}`, which is not in this module.", reference.name);
            let hint = format!(
                "add a `provider \"{}\"` block with this alias, or name the alias in `configuration_aliases` of `required_providers`",
                reference.name.name
            );
            diagnostics.hinted("Provider configuration not present", detail, hint, reference.range);
        }
    }
}

fn check_call(child: &Module, call: &ModuleCall, parent: &Module, diagnostics: &mut Diagnostics) {
    let is_repeated = !matches!(call.repetition, Repetition::Once) || !call.depends_on.is_empty();
    if is_repeated && child.providers.values().any(|block| !block.is_empty()) {
        let detail = "A module with `provider` blocks of its own cannot be called with `count`, `for_each`, `enabled` or `depends_on`.";
        let hint = "move the `provider` blocks to the root module, and pass them with `providers`";
        diagnostics.hinted("Module is incompatible with count, for_each, and depends_on", detail, hint, call.range);
    }
    let passed = call.providers.as_deref().unwrap_or_default();
    for item in passed {
        if item.parent.name.alias.is_some() && !parent.has_provider(&item.parent.name) {
            let detail =
                format!("There is no provider configuration `{}` in the module that passes it.", item.parent.name);
            diagnostics.error("Provider configuration not present", detail, item.parent.range);
        }
        let expected = child.provider_source(&item.child.name);
        let given = parent.provider_source(&item.parent.name.name);
        if expected != given {
            let detail = format!("`{}` is {expected} in the module, but {given} is passed for it.", item.child);
            let hint = format!(
                "add `{} = {{ source = \"{given}\" }}` to `required_providers` of one of the two",
                item.child.name
            );
            diagnostics.hinted("Provider type mismatch", detail, hint, item.range);
        }
        if item.child.alias.is_some() && !child.has_provider(&item.child) {
            let detail = format!("The module has no provider configuration `{}`.", item.child);
            let summary = "Reference to undefined provider";
            // As upstream, what modules pass from before they had to declare it goes on.
            match expected == ProviderSource::implied(&expected.name) {
                true => diagnostics.warning(summary, detail, item.range),
                false => diagnostics.error(summary, detail, item.range),
            }
        }
    }
    for alias in child.required_providers.values().flat_map(|required| &required.aliases) {
        // The configuration without an alias is inherited.
        if alias.alias.is_some() && !passed.iter().any(|item| item.child == *alias) {
            let detail = format!("The module needs the provider configuration `{alias}`.");
            let hint = format!("add `providers = {{ {alias} = ... }}` to the module block");
            diagnostics.hinted("Missing required provider configuration", detail, hint, call.range);
        }
    }
}
