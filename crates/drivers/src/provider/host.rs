//! Prepares providers before a plan, configures them, and stops them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{NamespaceConfigurations, Providers};
use model::{Diagnostics, DriverError, Namespace, Provider, ProviderUse};
use process::lock;
use tfprovider::install::LockedProvider;
use tfprovider::plugin::Client;
use tfprovider::schema::Block;

#[derive(Clone, Copy, Debug)]
pub struct Preparation<'a> {
    /// The planned namespace; `None` to check a Provider itself.
    pub namespace: Option<&'a Namespace>,
    /// The version of `configurations`. Older versions are ignored.
    pub version: u64,
    pub needed: &'a [Arc<Provider>],
    /// The current providers, which also serve objects that were recorded under another version.
    pub current: &'a [Arc<Provider>],
    /// All current provider configurations of the namespace, which replace recorded ones of the same name.
    pub configurations: &'a [Arc<ProviderUse>],
}

/// The installed version of a provider and a summary of its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderInfo {
    /// The version; `None` for a program that is configured by path.
    pub version: Option<String>,
    /// The protocol version.
    pub protocol: u8,
    pub resource_types: usize,
    /// The lock that later installations must match.
    pub locked: Option<LockedProvider>,
}

impl Providers {
    /// The known resource types or data sources of one provider, or of all.
    pub fn types(&self, provider: Option<&Provider>, is_data: bool) -> Vec<String> {
        match provider {
            Some(provider) => self.cached_types(provider).and_then(Result::ok).map(|served| served.types(is_data)),
            None => Some(self.schema_calls.all().iter().flat_map(|served| served.types(is_data)).collect()),
        }
        .unwrap_or_default()
    }

    /// The schema of a resource type or data source of a provider that is prepared. `None` if it has none of this name.
    ///
    /// # Errors
    /// If the provider cannot be used, or its schema is not valid.
    pub fn type_block(
        &self,
        provider: &Provider,
        is_data: bool,
        type_name: &str,
    ) -> Result<Option<Block>, DriverError> {
        let Some(served) = self.cached_types(provider).transpose()? else { return Ok(None) };
        let kind = if is_data { served.data(type_name)? } else { served.resource(type_name)? };
        Ok(kind.map(|kind| kind.schema.block.clone()))
    }

    /// The schema of the configuration of a provider that is prepared.
    ///
    /// # Errors
    /// If the provider cannot be used.
    pub fn configuration_block(&self, provider: &Provider) -> Result<Option<Block>, DriverError> {
        let served = self.cached_types(provider).transpose()?;
        Ok(served.map(|served| served.configuration().clone()))
    }

    /// The schema of the `provider_meta` blocks for a provider that is prepared.
    ///
    /// # Errors
    /// If the provider cannot be used.
    pub fn meta_block(&self, provider: &Provider) -> Result<Option<Block>, DriverError> {
        let served = self.cached_types(provider).transpose()?;
        served.map_or(Ok(None), |served| served.provider_meta())
    }

    /// Fetches the schemas of providers. [`Providers::preparation_error`] returns the errors.
    pub async fn prepare(&self, preparation: Preparation<'_>) {
        let Preparation { namespace, version, needed, current, configurations } = preparation;
        lock(&self.current).extend(current.iter().map(|provider| (provider.name.clone(), Arc::clone(provider))));
        if let Some(namespace) = namespace {
            let outdated =
                self.set_configurations(namespace, NamespaceConfigurations { version, uses: configurations.to_vec() });
            // A recorded object may still use an old configuration; its process is then restarted.
            outdated.iter().for_each(|used| self.sessions.retire(namespace, used));
        }
        let providers: Vec<Arc<Provider>> = needed.iter().map(|provider| self.current(provider)).collect();
        futures::future::join_all(providers.iter().map(|provider| self.served_types(provider))).await;
    }

    /// The error that prevents the use of a provider.
    pub fn preparation_error(&self, provider: &Provider) -> Option<DriverError> {
        self.cached_types(provider)?.err()
    }

    pub fn info(&self, provider: &Provider) -> Option<ProviderInfo> {
        Some(self.cached_types(provider)?.ok()?.info().clone())
    }

    /// Whether the user has started the provider, so that it is not installed.
    pub fn is_reattached(&self, provider: &Provider) -> bool {
        self.sessions.is_reattached(provider)
    }

    /// Whether this process runs providers in Pods.
    pub fn has_runners(&self) -> bool {
        self.sessions.has_runners()
    }

    /// Whether providers can access all that this process can access.
    pub fn is_unconfined(&self) -> bool {
        self.sessions.is_unconfined()
    }

    /// Configures a provider unless it is configured already, and returns its warnings. `keep`: whether the process is
    /// kept for objects.
    ///
    /// # Errors
    /// If the provider cannot be used with this configuration.
    pub async fn configure(
        &self,
        namespace: &Namespace,
        used: &ProviderUse,
        keep: bool,
    ) -> Result<Diagnostics, DriverError> {
        let used = self.with_current_provider(used);
        let served = self.served_types(&used.provider).await?;
        let leased = self.sessions.lease(namespace, &used, &served).await?;
        let warnings = self.sessions.configuration_warnings(namespace, &used);
        drop(leased);
        if !keep {
            self.sessions.retire(namespace, &used);
        }
        Ok(warnings)
    }

    /// All provider processes that run now.
    pub fn processes(&self) -> Vec<Client> {
        self.sessions.processes()
    }

    /// Waits until a process can start in namespaces in which one could not, and returns them.
    pub async fn process_available(&self) -> BTreeSet<Namespace> {
        self.sessions.process_available().await
    }

    /// The warnings of the last configuration of the provider. Paths are relative to `spec.config`.
    pub fn configuration_warnings(&self, namespace: &Namespace, used: &ProviderUse) -> Diagnostics {
        self.sessions.configuration_warnings(namespace, &self.with_current_provider(used))
    }

    /// Sends stop requests for the running calls, which still return. `false` if no process is running.
    pub async fn stop(&self) -> bool {
        self.stopped.store(true, Ordering::Relaxed);
        self.sessions.stop().await
    }

    /// Ends all processes and connections. No calls may follow.
    pub async fn close(&self) {
        self.sessions.close().await;
    }
}
