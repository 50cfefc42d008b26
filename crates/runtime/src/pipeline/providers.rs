//! Prepares the providers of a plan, and collects the warnings about their configurations.

use std::sync::Arc;

use crate::execute::Engine;
use drivers::Preparation;
use engine::load::{Config, ProviderSpec};
use model::{Diagnostic, Diagnostics, Provider, ProviderUse, Reason, Recorded, Severity, has_errors};

/// Prepares the providers of configured and recorded objects, as a plan does before it calls them.
pub async fn prepare(engine: &Engine, config: &Config, recorded: &Recorded) {
    let Some(providers) = engine.drivers.providers() else { return };
    let desired = config.instances.values().filter_map(|instance| instance.provider.as_ref()?.provider());
    let families = config.families.values().filter_map(|family| family.shared.provider.as_ref()?.provider());
    let objects =
        recorded.values().flat_map(|stored| stored.record.current.iter().chain(stored.record.deposed.values()));
    let recorded = objects.filter_map(|object| Some(&object.provider.as_ref()?.provider));
    // Most objects share a provider: comparing pointers first avoids comparing strings.
    let mut needed: Vec<Arc<Provider>> = Vec::new();
    for provider in desired.chain(families).chain(recorded) {
        if !needed.iter().any(|known| Arc::ptr_eq(known, provider) || known == provider) {
            needed.push(Arc::clone(provider));
        }
    }
    if needed.is_empty() {
        return;
    }
    let is_valid = |spec: &&Arc<ProviderSpec>| !has_errors(&spec.problems);
    let current: Vec<Arc<Provider>> =
        config.providers.values().filter(is_valid).map(|spec| Arc::clone(&spec.provider)).collect();
    let configurations: Vec<Arc<ProviderUse>> = config.constant_providers().collect();
    let (namespace, version) = (Some(&config.namespace), config.provider_config_version);
    providers
        .prepare(Preparation {
            namespace,
            version,
            needed: &needed,
            current: &current,
            configurations: &configurations,
        })
        .await;
}

/// Returns the warnings of a provider about its configuration, for each plan that uses it.
pub(super) fn configuration_warnings(engine: &Engine, namespace: &Arc<str>, used: &ProviderUse) -> Diagnostics {
    let providers = engine.drivers.providers();
    let warnings = providers.map(|providers| providers.configuration_warnings(namespace, used)).unwrap_or_default();
    let with_summary = |warning: Diagnostic| {
        let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
        let (provider, configuration) = (&used.provider.name, &used.name);
        let summary = format!(
            "the provider `{provider}` warns about its configuration `{configuration}`: {place}{}",
            warning.summary
        );
        Diagnostic { summary, path: None, ..warning }
    };
    let as_process = providers.is_some_and(|providers| used.runner.is_some() && !providers.has_runners());
    let note = as_process.then(|| {
        let summary = format!(
            "the provider configuration `{}` has a runner of the kind `Pod`, which only the controller uses: the provider \
             runs as a process of this command",
            used.name
        );
        Diagnostic { severity: Severity::Warning, ..Diagnostic::general(Reason::ProviderWarning, summary) }
    });
    note.into_iter().chain(warnings.into_iter().map(with_summary)).collect()
}
