//! The providers that the modules of a tree need, and what each module says of their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::Range;

use super::{NodeId, Tree};
use crate::module::Module;
use crate::providers::ProviderSource;

/// What a module requires of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRequirement {
    /// The module.
    pub node: NodeId,
    /// The constraint on the version, as it is written.
    pub version: Option<String>,
    /// The place: of the requirement, or of a block that needs the provider without one.
    pub range: Range,
}

impl Tree {
    /// The providers that modules require or use, each with what modules say of it.
    pub fn required_providers(&self) -> BTreeMap<ProviderSource, Vec<ProviderRequirement>> {
        let mut all: BTreeMap<ProviderSource, Vec<ProviderRequirement>> = BTreeMap::new();
        for (node, module) in self.nodes.iter().map(|node| &node.module).enumerate() {
            for (source, version, range) in module.requirements() {
                all.entry(source).or_default().push(ProviderRequirement { node, version, range });
            }
        }
        all
    }
}

impl Module {
    fn requirements(&self) -> Vec<(ProviderSource, Option<String>, Range)> {
        let required = self.required_providers.values();
        let mut found: Vec<_> =
            required.map(|required| (required.source.clone(), required.version.clone(), required.range)).collect();
        let blocks = self.providers.iter().map(|(local, block)| (local.name.clone(), block.range));
        let resources = self.resources.iter().map(|(name, resource)| {
            let named = resource.provider.as_ref().map(|reference| reference.name.name.clone());
            (named.unwrap_or_else(|| name.implied_provider()), resource.range)
        });
        let mut used: BTreeMap<Arc<str>, Range> = BTreeMap::new();
        for (name, range) in blocks.chain(resources) {
            let first = used.entry(name).or_insert(range);
            *first = (*first).min(range);
        }
        let implied = used.into_iter().filter(|(name, _)| !self.required_providers.contains_key(name));
        found.extend(implied.map(|(name, range)| (ProviderSource::implied(&name), None, range)));
        found
    }
}
