//! The providers of a configuration, and their configurations, as the engine has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use configuration::{ProviderAddress, ProviderSource, Tree};
use engine::load::{ProviderSpec, provider_source};
use model::{Diagnostic, Package, Provider, Reason};

use crate::problem;
use crate::schemas::is_built_in;

/// The providers that the modules of a tree name, or whose types they use. `prefix` stands before the names of files.
pub fn required(tree: &Tree, prefix: &str) -> BTreeMap<ProviderSource, ProviderSpec> {
    let mut versions: BTreeMap<ProviderSource, BTreeSet<String>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for node in &tree.nodes {
        for required in node.module.required_providers.values() {
            versions.entry(required.source.clone()).or_default().extend(required.version.clone());
            places.entry(required.source.clone()).or_insert(required.range);
        }
        for (name, resource) in &node.module.resources {
            let local = resource.provider.as_ref().map(|reference| reference.name.name.clone());
            let local = local.unwrap_or_else(|| name.kind.split('_').next().unwrap_or_default().into());
            let source = node.module.provider_source(&local);
            places.entry(source.clone()).or_insert(resource.range);
            versions.entry(source).or_default();
        }
    }
    let foreign: Vec<_> = versions.into_iter().filter(|(source, _)| !is_built_in(source)).collect();
    let is_ambiguous =
        |source: &ProviderSource| foreign.iter().filter(|(other, _)| other.name == source.name).count() > 1;
    let spec = |(source, versions): &(ProviderSource, BTreeSet<String>)| {
        let name = if is_ambiguous(source) { source.to_string().into() } else { source.name.clone() };
        let place = places.get(source).and_then(|range| problem::place(*range, &tree.sources, prefix));
        (source.clone(), spec(name, source, versions, place))
    };
    foreign.iter().map(spec).collect()
}

fn spec(
    name: Arc<str>,
    source: &ProviderSource,
    versions: &BTreeSet<String>,
    place: Option<model::Source>,
) -> ProviderSpec {
    let text = source.to_string();
    let address = provider_source(&text);
    let what = format!("`{text}` is not the address of a provider");
    let problems = address.is_none().then(|| Diagnostic::general(Reason::ProviderNotReady, what)).into_iter().collect();
    let provider = Provider {
        name,
        source: address.unwrap_or_else(|| text.into()),
        version: versions.iter().map(String::as_str).collect::<Vec<_>>().join(", ").into(),
        package: Package::Registry,
        checksums: Vec::new(),
        environment: BTreeMap::new(),
        files: model::Files::default(),
        max_calls: Provider::DEFAULT_CALLS,
        max_memory: None,
    };
    ProviderSpec { provider: Arc::new(provider), runner: None, problems, source: place }
}

/// The name of a provider configuration.
pub fn config_name(address: &ProviderAddress) -> String {
    let key = address.key.as_ref().map(ToString::to_string).unwrap_or_default();
    address.module.join(format!("{}{key}", address.local))
}
