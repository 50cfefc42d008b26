//! Providers as programs that are hosted: made ready before a plan, configured, asked to give up, and ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Providers, Settled};
use crate::install::Locked;
use crate::model::{Diagnostics, DriverError, Provider, ProviderUse};
use crate::process::lock;

/// What providers are to be ready for.
#[derive(Clone, Copy, Debug)]
pub struct Preparation<'a> {
    /// The namespace whose objects are planned; `None`: a Provider is looked at for its own sake.
    pub namespace: Option<&'a Arc<str>>,
    /// Which state of the namespace's settings this is. An older one than is known already says nothing about them.
    pub version: u64,
    /// The providers whose schemas are needed.
    pub needed: &'a [Arc<Provider>],
    /// Providers as they are given now: objects recorded under another version of one are called by these.
    pub current: &'a [Arc<Provider>],
    /// All settings that hold now in the namespace: its objects recorded under older ones of the same name are called
    /// with these. Those of other namespaces have nothing to do with it.
    pub settled: &'a [Arc<ProviderUse>],
}

/// What is known of a provider that was asked what it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFacts {
    /// Its version; a program that was named by its path has none.
    pub version: Option<String>,
    /// The version of the provider protocol.
    pub protocol: u8,
    /// How many resource types it has.
    pub resource_types: usize,
    /// What every later installation has to keep to.
    pub locked: Option<Locked>,
}

impl Providers {
    /// The names of the types that are known to be served, of one provider or of all; those of data sources if asked for.
    pub fn types(&self, provider: Option<&Provider>, is_data: bool) -> Vec<String> {
        match provider {
            Some(provider) => self.known(provider).and_then(Result::ok).map(|served| served.types(is_data)),
            None => Some(self.asking.all().iter().flat_map(|served| served.types(is_data)).collect()),
        }
        .unwrap_or_default()
    }

    /// Gets ready to serve providers, so that their schemas are known. [`Providers::fault`] says what cannot be made ready.
    pub async fn prepare(&self, preparation: Preparation<'_>) {
        let Preparation { namespace, version, needed, current, settled } = preparation;
        lock(&self.current).extend(current.iter().map(|one| (one.name.clone(), Arc::clone(one))));
        if let Some(namespace) = namespace {
            let left = self.settle(namespace, Settled { version, uses: settled.to_vec() });
            // Should an object be left that was made under them, they are started once more.
            left.iter().for_each(|used| self.sessions.retire(used));
        }
        let all: Vec<Arc<Provider>> = needed.iter().map(|provider| self.current(provider)).collect();
        futures::future::join_all(all.iter().map(|provider| self.ask(provider))).await;
    }

    /// Why nothing of a provider is served.
    pub fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.known(provider)?.err()
    }

    /// What is known of a provider that is served.
    pub fn facts(&self, provider: &Provider) -> Option<ProviderFacts> {
        Some(self.known(provider)?.ok()?.facts().clone())
    }

    /// Configures a provider, unless it is configured so already. Gives what it warns of.
    ///
    /// # Errors
    /// Why it cannot be used with these settings.
    pub async fn configure(&self, used: &ProviderUse) -> Result<Diagnostics, DriverError> {
        let used = self.as_served(used);
        let served = self.ask(&used.provider).await?;
        self.sessions.configured(&used, &served).await?;
        Ok(self.sessions.warned(&used))
    }

    /// What a provider has warned of when it was configured with these settings last. Paths are below `spec.config`.
    pub fn warned(&self, used: &ProviderUse) -> Diagnostics {
        self.sessions.warned(&self.as_served(used))
    }

    /// Asks for an early end of the calls that run: they still answer. `false` when none runs that can be asked.
    pub async fn stop(&self) -> bool {
        self.stopped.store(true, Ordering::Relaxed);
        self.sessions.stop().await
    }

    /// Lets go of processes and connections. No call comes after it.
    pub async fn close(&self) {
        self.sessions.close().await;
    }
}
