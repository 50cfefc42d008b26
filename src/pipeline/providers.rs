//! The providers of a plan: made ready before it, and what they warn of their configurations.

use std::sync::Arc;

use crate::driver::Preparation;
use crate::execute::Engine;
use crate::load::{Config, ProviderSpec};
use crate::model::{Diagnostic, Diagnostics, Provider, ProviderUse, Recorded, Severity};

/// Makes the providers ready that objects are, or were, managed by.
pub(super) async fn prepare(engine: &Engine, config: &Config, recorded: &Recorded) {
    let Some(providers) = engine.drivers.providers() else { return };
    let wanted = config.instances.values().filter_map(|instance| instance.provider.as_ref()?.provider());
    let families = config.families.values().filter_map(|family| family.shared.provider.as_ref()?.provider());
    let objects =
        recorded.values().flat_map(|stored| stored.record.current.iter().chain(stored.record.deposed.values()));
    let recorded = objects.filter_map(|object| Some(&object.provider.as_ref()?.provider));
    // Most objects share one; comparing the pointers first spares the texts.
    let mut needed: Vec<Arc<Provider>> = Vec::new();
    for provider in wanted.chain(families).chain(recorded) {
        if !needed.iter().any(|known| Arc::ptr_eq(known, provider) || known == provider) {
            needed.push(Arc::clone(provider));
        }
    }
    if needed.is_empty() {
        return;
    }
    let sound = |spec: &&Arc<ProviderSpec>| !spec.problems.iter().any(|one| one.severity == Severity::Error);
    let current: Vec<Arc<Provider>> =
        config.providers.values().filter(sound).map(|spec| Arc::clone(&spec.provider)).collect();
    let settled: Vec<Arc<ProviderUse>> = config.constant_providers().collect();
    let (namespace, version) = (Some(&config.namespace), config.settings_version);
    providers.prepare(Preparation { namespace, version, needed: &needed, current: &current, settled: &settled }).await;
}

/// What a provider warns of the settings that it was asked under: told with each plan that uses them.
pub(super) fn warnings_of_settings(engine: &Engine, used: &ProviderUse) -> Diagnostics {
    let warnings = engine.drivers.providers().map(|providers| providers.warned(used)).unwrap_or_default();
    let told = |warning: Diagnostic| {
        let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
        let (provider, settings) = (&used.provider.name, &used.name);
        let summary =
            format!("the provider `{provider}` warns of the settings `{settings}`: {place}{}", warning.summary);
        Diagnostic { summary, path: None, ..warning }
    };
    warnings.into_iter().map(told).collect()
}
