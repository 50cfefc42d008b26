//! The providers of a configuration, and their configurations, as the engine has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use configuration::{ProviderAddress, ProviderSource, Tree};
use engine::load::{ProviderSpec, provider_source};
use model::{Diagnostic, Name, Package, Provider, Reason};

use crate::problem;

/// The providers that the modules of a tree name, or whose types they use. `prefix` stands before the names of files.
pub fn required(tree: &Tree, prefix: &str) -> BTreeMap<ProviderSource, Arc<ProviderSpec>> {
    let mut required = tree.required_providers();
    required.retain(|source, _| !source.is_built_in());
    let specs = required.iter().map(|(source, requirements)| {
        let is_ambiguous = required.keys().filter(|other| other.name == source.name).count() > 1;
        let name = if is_ambiguous { source.to_string().into() } else { source.name.clone() };
        let versions = requirements.iter().filter_map(|requirement| requirement.version.as_deref()).collect();
        let first = requirements.first();
        let place = first.and_then(|requirement| problem::place(requirement.range, &tree.sources, prefix));
        (source.clone(), Arc::new(spec(name, source, &versions, place)))
    });
    specs.collect()
}

fn spec(
    name: Arc<str>,
    source: &ProviderSource,
    versions: &BTreeSet<&str>,
    place: Option<model::Source>,
) -> ProviderSpec {
    let text = source.to_string();
    let address = provider_source(&text);
    let what = format!("`{text}` is not the address of a provider");
    let problems = address.is_none().then(|| Diagnostic::general(Reason::ProviderNotReady, what)).into_iter().collect();
    let provider = Provider {
        name,
        source: address.unwrap_or_else(|| text.into()),
        version: versions.iter().copied().collect::<Vec<_>>().join(", ").into(),
        package: Package::Registry,
        checksums: Vec::new(),
        environment: BTreeMap::new(),
        files: model::Files::default(),
        max_calls: Provider::DEFAULT_CALLS,
        max_memory: None,
    };
    ProviderSpec { provider: Arc::new(provider), runner: None, problems, source: place }
}

/// The name of a provider configuration of the Module of this name.
pub fn config_name(module: &Name, address: &ProviderAddress) -> String {
    let key = address.key.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{module}{}", address.module.join(format!("{}{key}", address.local)))
}
