//! A use of a provider.

use std::sync::Arc;

use model::ProviderUse;

/// The Provider `cloud` with this configuration.
pub fn provider_use(configuration: &str) -> Arc<ProviderUse> {
    let provider = serde_json::json!({"name": "cloud", "source": "registry.opentofu.org/acme/cloud"});
    let provider = Arc::new(serde_json::from_value(provider).unwrap());
    Arc::new(ProviderUse::new("cloud".into(), provider, configuration.into()))
}
