//! Checks each Provider and says in its status whether it can be used: it is started once, and asked what it serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lease::Leadership;
use crate::api;
use crate::api::conditions::{ConditionType, condition, merge};
use crate::driver::{Preparation, ProviderFacts, Providers};
use crate::install::Locked;
use crate::load::ProviderSpec;
use crate::model::{Reason, Severity};
use crate::process::{Clock, Random};
use crate::reconcile::retry;

/// A lock as a status has it.
fn lock(locked: &Locked) -> api::ProviderLock {
    api::ProviderLock {
        version: locked.version.to_string(),
        constraint: locked.constraint.clone(),
        hashes: locked.hashes.iter().map(ToString::to_string).collect(),
    }
}

/// The lock that a status has, for the next installation. One that cannot be read counts for nothing, and the log says so.
pub fn locked(object: &api::Provider) -> Option<Locked> {
    let lock = object.status.as_ref()?.lock.as_ref()?;
    let hashes = lock.hashes.iter().map(|hash| hash.parse().ok());
    let read = lock.version.parse().ok().zip(hashes.collect::<Option<_>>());
    if read.is_none() {
        tracing::warn!(
            provider = object.metadata.name,
            "the lock in its status cannot be read, and counts for nothing"
        );
    }
    let (version, hashes) = read?;
    Some(Locked { version, constraint: lock.constraint.clone(), hashes })
}

/// How often a replica that does not lead looks whether it does.
const FOLLOWING: Duration = Duration::from_secs(15);

/// A Provider as it was read.
pub struct Seen {
    /// The object.
    pub object: api::Provider,
    /// What it means.
    pub spec: Arc<ProviderSpec>,
}

/// How many Providers are checked at once: one that hangs takes a minute, and each check has a process of its own.
const AT_ONCE: usize = 4;

/// Writes the statuses of Providers.
pub struct ProviderChecks {
    /// To the API server.
    pub client: Client,
    /// Serves providers.
    pub providers: Arc<Providers>,
    /// Only the leader writes.
    pub leadership: Leadership,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for pauses.
    pub random: Arc<dyn Random>,
    /// Providers can be kept from our files.
    pub confines: bool,
}

struct Pending {
    seen: Seen,
    failures: u32,
    at: Instant,
}

/// What is said of a Provider where its processes reach whatever the controller can.
fn unconfined(generation: i64) -> Condition {
    let message = "the kernel has no Landlock (Linux 5.13 or newer, switched on), so the provider reaches whatever the \
                   controller's Pod can: give the Pod nothing that it must not see";
    condition(ConditionType::Unconfined, "True", Reason::NotConfined, message, generation)
}

impl ProviderChecks {
    /// Checks whatever comes, and again what failed, until nobody sends any more.
    pub async fn run(self, mut seen: mpsc::UnboundedReceiver<Seen>) {
        let mut pending: BTreeMap<String, Pending> = BTreeMap::new();
        // One check of a Provider at a time: they write one status.
        let mut checked: BTreeSet<String> = BTreeSet::new();
        let mut checks = FuturesUnordered::new();
        loop {
            let now = Instant::now();
            let waiting = || pending.iter().filter(|(name, _)| !checked.contains(*name));
            let places = AT_ONCE - checked.len();
            let ready = waiting().filter(|(_, one)| one.at <= now).map(|(name, _)| name.clone());
            let ready: Vec<String> = ready.take(places).collect();
            for name in ready {
                let Some(one) = pending.remove(&name) else { continue };
                checked.insert(name.clone());
                let this = &self;
                checks.push(async move {
                    let wait = this.check(&one.seen, one.failures).await;
                    (name, one, wait)
                });
            }
            let waiting = pending.iter().filter(|(name, _)| !checked.contains(*name));
            let next = waiting.map(|(_, one)| one.at).min().filter(|_| checked.len() < AT_ONCE);
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                one = seen.recv() => {
                    let Some(one) = one else { return };
                    let name = one.object.metadata.name.clone().unwrap_or_default();
                    // What we wrote into the status comes back as well.
                    let news = |before: &Pending| before.seen.spec.provider != one.spec.provider;
                    if pending.get(&name).is_none_or(news) {
                        pending.insert(name, Pending { seen: one, failures: 0, at: Instant::now() });
                    }
                }
                Some((name, one, wait)) = checks.next() => {
                    checked.remove(&name);
                    if let Some(wait) = wait {
                        // What has come meanwhile knows more.
                        let again = Pending { failures: one.failures + 1, at: Instant::now() + wait, ..one };
                        pending.entry(name).or_insert(again);
                    }
                }
                () = due => {}
            }
        }
    }

    /// Checks a Provider and writes what was found. Gives after how long it is to be checked again.
    async fn check(&self, seen: &Seen, failures: u32) -> Option<Duration> {
        let fault = seen.spec.problems.iter().find(|problem| problem.severity == Severity::Error);
        let (reason, message) = match fault {
            Some(problem) => (problem.reason, problem.message()),
            None => {
                let this = std::slice::from_ref(&seen.spec.provider);
                self.providers
                    .prepare(Preparation { namespace: None, version: 0, needed: this, current: this, settled: &[] })
                    .await;
                match self.providers.fault(&seen.spec.provider) {
                    Some(error) => (Reason::ProviderNotReady, error.line()),
                    None => (Reason::Available, "the provider can be used".to_owned()),
                }
            }
        };
        if !self.leadership.is_leading() {
            return Some(FOLLOWING);
        }
        let facts = self.providers.facts(&seen.spec.provider).filter(|_| reason == Reason::Available);
        let written = self.write(&seen.object, reason, message, facts).await;
        let retries = reason == Reason::ProviderNotReady || written.is_err();
        retries.then(|| retry::delay(failures + 1, self.random.number()))
    }

    async fn write(
        &self,
        object: &api::Provider,
        reason: Reason,
        message: String,
        facts: Option<ProviderFacts>,
    ) -> Result<(), kube::Error> {
        let generation = object.metadata.generation.unwrap_or_default();
        let status = if reason == Reason::Available { "True" } else { "False" };
        let old = object.status.as_ref();
        let ready = condition(ConditionType::Ready, status, reason, message, generation);
        // What was installed stays known while it cannot be used: it is what must be installed again.
        let known = old.cloned().unwrap_or_default();
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let status = match facts {
            Some(facts) => api::ProviderStatus {
                version: facts.version,
                protocol: Some(i32::from(facts.protocol)),
                resource_types: Some(count(facts.resource_types)),
                lock: facts.locked.as_ref().map(lock),
                ..known
            },
            None => known,
        };
        let exposed = (!self.confines).then(|| unconfined(generation));
        let before = old.map(|old| old.conditions.as_slice()).unwrap_or_default();
        let conditions = merge(before, [ready].into_iter().chain(exposed), self.clock.now());
        let status = api::ProviderStatus { observed_generation: generation, conditions, ..status };
        if old == Some(&status) {
            return Ok(());
        }
        // Fields that the new status no longer has are removed only when they are named.
        let patch = Patch::Merge(serde_json::json!({ "status": {
            "observedGeneration": status.observed_generation,
            "conditions": status.conditions,
            "version": status.version,
            "protocol": status.protocol,
            "resourceTypes": status.resource_types,
            "lock": status.lock,
        } }));
        let api: Api<api::Provider> = Api::all(self.client.clone());
        let name = object.metadata.name.as_deref().unwrap_or_default();
        match api.patch_status(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            // It is gone; there is nobody to tell.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => {
                tracing::warn!(provider = name, %error, "the status of a Provider could not be written");
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
    fn a_provider_that_is_not_confined_says_so_since_that_was_found() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let first = merge(&[], [unconfined(1)], at(1)).remove(0);
        assert_eq!((first.status.as_str(), first.reason.as_str()), ("True", "NotConfined"));
        let later = merge(std::slice::from_ref(&first), [unconfined(2)], at(2)).remove(0);
        assert_eq!(later.last_transition_time, first.last_transition_time);
        assert_eq!(later.observed_generation, Some(2));
    }
}
