//! Checks each Provider, by starting it and requesting its schema, and reports in its status whether it is available.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::leadership::Leadership;
use api::RawObject;
use api::conditions::{ConditionType, condition, merge};
use drivers::{Preparation, ProviderInfo, Providers};
use engine::load::ProviderSpec;
use model::{Reason, errors};
use process::{Clock, Random, request_error};
use runtime::reconcile::retry;
use tfprovider::install::LockedProvider;

/// The lock in the format of the status.
fn lock(locked: &LockedProvider) -> api::ProviderLock {
    api::ProviderLock {
        version: locked.version.to_string(),
        constraint: locked.constraint.clone(),
        hashes: locked.hashes.iter().map(ToString::to_string).collect(),
    }
}

/// How often a replica without the Lease of the cluster checks again.
const STANDBY_INTERVAL: Duration = Duration::from_secs(15);

/// A Provider as the watch delivered it.
pub struct ObservedProvider {
    pub name: String,
    pub generation: i64,
    pub status: Option<api::ProviderStatus>,
    pub spec: Arc<ProviderSpec>,
}

impl ObservedProvider {
    pub fn of(object: &RawObject<api::Provider>, spec: &Arc<ProviderSpec>) -> Self {
        Self {
            name: object.name_any(),
            generation: object.metadata.generation.unwrap_or_default(),
            status: object.status(),
            spec: spec.clone(),
        }
    }

    /// The lock in the status, for the next installation. An unreadable lock is ignored and logged.
    pub fn locked(&self) -> Option<LockedProvider> {
        let lock = self.status.as_ref()?.lock.as_ref()?;
        let hashes = lock.hashes.iter().map(|hash| hash.parse().ok());
        let read = lock.version.parse().ok().zip(hashes.collect::<Option<_>>());
        if read.is_none() {
            let provider = self.name.as_str();
            tracing::warn!(provider, "ignoring the lock in the status of a Provider: it cannot be read");
        }
        let (version, hashes) = read?;
        Some(LockedProvider { version, constraint: lock.constraint.clone(), hashes })
    }
}

/// How many Providers are checked at the same time: an unresponsive one takes a minute, and each check has its own
/// process.
const MAX_CHECKS: usize = 4;

/// Checks Providers and writes their status.
pub struct ProviderChecks {
    pub client: Client,
    pub providers: Arc<Providers>,
    /// Only the holder of the Lease of the cluster writes.
    pub leadership: Leadership,
    pub clock: Arc<dyn Clock>,
    /// For jitter.
    pub random: Arc<dyn Random>,
}

struct PendingCheck {
    observed: ObservedProvider,
    failures: u32,
    at: Instant,
}

/// The condition if providers start although the kernel cannot sandbox them.
fn unconfined(generation: i64) -> Condition {
    let message = "the kernel does not provide Landlock (Linux 5.13 or later, enabled), and --allow-unconfined-providers \
                   is set, so the provider can access everything that the controller's Pod can access, and the \
                   providers of all namespaces";
    condition(ConditionType::Unconfined, "True", Reason::SandboxUnavailable, message, generation)
}

impl ProviderChecks {
    /// Checks new and failed Providers until the channel is closed.
    pub async fn run(self, mut observed: mpsc::UnboundedReceiver<ObservedProvider>) {
        let mut pending: BTreeMap<String, PendingCheck> = BTreeMap::new();
        // Each Provider is checked by one task at a time: checks write the same status.
        let mut checked: BTreeSet<String> = BTreeSet::new();
        let mut checks = FuturesUnordered::new();
        loop {
            let now = Instant::now();
            let waiting = pending.iter().filter(|(name, _)| !checked.contains(*name));
            let ready: Vec<String> = waiting
                .filter(|(_, check)| check.at <= now)
                .map(|(name, _)| name.clone())
                .take(MAX_CHECKS - checked.len())
                .collect();
            for name in ready {
                let Some(check) = pending.remove(&name) else { continue };
                checked.insert(name.clone());
                let this = &self;
                checks.push(async move {
                    let wait = this.check(&check.observed, check.failures).await;
                    (name, check, wait)
                });
            }
            let waiting = pending.iter().filter(|(name, _)| !checked.contains(*name));
            let next = waiting.map(|(_, check)| check.at).min().filter(|_| checked.len() < MAX_CHECKS);
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                observed = observed.recv() => {
                    let Some(observed) = observed else { return };
                    let name = observed.name.clone();
                    // The watch also delivers own status writes.
                    if pending.get(&name).is_none_or(|check| check.observed.spec.provider != observed.spec.provider) {
                        pending.insert(name, PendingCheck { observed, failures: 0, at: Instant::now() });
                    }
                }
                Some((name, check, wait)) = checks.next() => {
                    checked.remove(&name);
                    if let Some(wait) = wait {
                        // A newer event takes precedence.
                        let again = PendingCheck { failures: check.failures + 1, at: Instant::now() + wait, ..check };
                        pending.entry(name).or_insert(again);
                    }
                }
                () = due => {}
            }
        }
    }

    /// Checks a Provider and writes its status. Returns the delay before the next check.
    async fn check(&self, observed: &ObservedProvider, failures: u32) -> Option<Duration> {
        let fault = errors(&observed.spec.problems).next();
        let (reason, message) = match fault {
            Some(problem) => (problem.reason, problem.message()),
            None => {
                let this = std::slice::from_ref(&observed.spec.provider);
                self.providers
                    .prepare(Preparation {
                        namespace: None,
                        version: 0,
                        needed: this,
                        current: this,
                        configurations: &[],
                    })
                    .await;
                match self.providers.preparation_error(&observed.spec.provider) {
                    Some(error) => (Reason::ProviderNotReady, error.line()),
                    None => (Reason::Available, "the provider is available".to_owned()),
                }
            }
        };
        if !self.leadership.leads_cluster() {
            return Some(STANDBY_INTERVAL);
        }
        let facts = self.providers.info(&observed.spec.provider).filter(|_| reason == Reason::Available);
        let written = self.write(observed, reason, message, facts).await;
        let retries = reason == Reason::ProviderNotReady || written.is_err();
        retries.then(|| retry::delay(failures + 1, self.random.number()))
    }

    async fn write(
        &self,
        object: &ObservedProvider,
        reason: Reason,
        message: String,
        facts: Option<ProviderInfo>,
    ) -> Result<(), kube::Error> {
        let generation = object.generation;
        let status = if reason == Reason::Available { "True" } else { "False" };
        let old = object.status.as_ref();
        let ready = condition(ConditionType::Ready, status, reason, message, generation);
        // The lock is kept while the Provider is unavailable: the same version must be installed again.
        let known = old.cloned().unwrap_or_default();
        let status = match facts {
            Some(facts) => api::ProviderStatus {
                version: facts.version,
                protocol: Some(i32::from(facts.protocol)),
                resource_types: Some(i32::try_from(facts.resource_types).unwrap_or(i32::MAX)),
                lock: facts.locked.as_ref().map(lock),
                ..known
            },
            None => known,
        };
        let exposed = self.providers.is_unconfined().then(|| unconfined(generation));
        let before = old.map(|old| old.conditions.as_slice()).unwrap_or_default();
        let conditions = merge(before, [ready].into_iter().chain(exposed), self.clock.now());
        let status = api::ProviderStatus { observed_generation: generation, conditions, ..status };
        if old == Some(&status) {
            return Ok(());
        }
        // A merge patch removes only fields that it names.
        let patch = Patch::Merge(serde_json::json!({ "status": {
            "observedGeneration": status.observed_generation,
            "conditions": status.conditions,
            "version": status.version,
            "protocol": status.protocol,
            "resourceTypes": status.resource_types,
            "lock": status.lock,
        } }));
        let api: Api<RawObject<api::Provider>> = Api::all(self.client.clone());
        let name = object.name.as_str();
        match api.patch_status(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            // The Provider was deleted.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => {
                tracing::warn!(
                    provider = name,
                    error = request_error(&error),
                    "could not write the status of a Provider"
                );
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn an_unconfined_provider_keeps_the_time_of_its_condition() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let first = merge(&[], [unconfined(1)], at(1)).remove(0);
        assert_eq!((first.status.as_str(), first.reason.as_str()), ("True", "SandboxUnavailable"));
        let later = merge(std::slice::from_ref(&first), [unconfined(2)], at(2)).remove(0);
        assert_eq!(later.last_transition_time, first.last_transition_time);
        assert_eq!(later.observed_generation, Some(2));
    }
}
