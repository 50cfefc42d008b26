//! What a plan needs of providers and drivers before it calls them: prepares providers, collects the warnings about
//! their configurations, and answers questions about types.

use std::sync::Arc;

use crate::execute::Engine;
use drivers::{Preparation, Registry};
use engine::load::Config;
use engine::plan::Types;
use model::suggest::closest;
use model::{
    Diagnostic, Diagnostics, DriverError, ImportRequest, Namespace, Provider, ProviderUse, Reason, Recorded, Schema,
    Severity, Value, has_errors,
};

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
    let current: Vec<Arc<Provider>> = config
        .providers
        .values()
        .filter(|spec| !has_errors(&spec.problems))
        .map(|spec| Arc::clone(&spec.provider))
        .collect();
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
pub fn configuration_warnings(engine: &Engine, namespace: &Namespace, used: &ProviderUse) -> Diagnostics {
    let providers = engine.drivers.providers();
    let warnings = providers.map(|providers| providers.configuration_warnings(namespace, used)).unwrap_or_default();
    let as_process = providers.is_some_and(|providers| used.runner.is_some() && !providers.has_runners());
    let note = as_process.then(|| {
        let summary = format!(
            "the provider configuration `{}` has a runner of the kind `Pod`, which only the controller uses: the provider \
             runs as a process of this command",
            used.name
        );
        Diagnostic { severity: Severity::Warning, ..Diagnostic::general(Reason::ProviderWarning, summary) }
    });
    note.into_iter().chain(warnings.into_iter().map(|warning| configuration_warning(used, warning))).collect()
}

fn configuration_warning(used: &ProviderUse, warning: Diagnostic) -> Diagnostic {
    let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
    let (provider, configuration) = (&used.provider.name, &used.name);
    let summary = format!(
        "the provider `{provider}` warns about its configuration `{configuration}`: {place}{}",
        warning.summary
    );
    Diagnostic { summary, path: None, ..warning }
}

/// The types that the planner can use: those of the drivers.
pub struct DriverTypes<'a>(pub &'a Registry);

impl DriverTypes<'_> {
    fn serves(&self, type_name: &str, is_data: bool) -> bool {
        match is_data {
            true => self.data_schema(type_name, None).is_some(),
            false => self.schema(type_name, None).is_some(),
        }
    }
}

impl Types for DriverTypes<'_> {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.get(type_name)?.schema(type_name, provider)
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.get(type_name)?.data()?.data_schema(type_name, provider)
    }

    fn closest(&self, type_name: &str, provider: Option<&Provider>, is_data: bool) -> Option<String> {
        let of_drivers =
            self.0.types().filter(|name| provider.is_none() && self.serves(name, is_data)).map(ToString::to_string);
        let of_providers = self.0.providers().map(|providers| providers.types(provider, is_data)).unwrap_or_default();
        let names: Vec<String> = of_drivers.chain(of_providers).collect();
        // All types of a provider share a prefix, which is ignored in the comparison.
        let prefix = provider.and_then(|_| type_name.find('_')).map_or("", |end| &type_name[..=end]);
        let meant = closest(&type_name[prefix.len()..], names.iter().filter_map(|name| name.strip_prefix(prefix)))?;
        Some(format!("{prefix}{meant}"))
    }

    fn import_identities(&self, type_name: &str, namespace: &str, request: &ImportRequest) -> Vec<Value> {
        self.0.get(type_name).map(|driver| driver.import_identities(namespace, request)).unwrap_or_default()
    }

    fn config_identities(&self, type_name: &str, namespace: &str, config: &Value) -> Vec<Value> {
        self.0.get(type_name).map(|driver| driver.config_identities(namespace, config)).unwrap_or_default()
    }

    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.0.providers()?.preparation_error(provider)
    }
}
