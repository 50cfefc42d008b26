//! The engine: drivers, journal, clock, randomness and limits, shared by all steps, and the calls of drivers that only
//! read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::in_flight::InFlightSteps;
use super::permits::{Permit, Pool, PoolUsage};
use super::recover::UnsentCalls;
use crate::execute::Journal;
use drivers::hook::{HookRunner, NoHooks};
use drivers::{CallContext, Driver, Registry};
use engine::load::Instance;
use model::{
    Address, Diagnostics, DriverError, Holder, Namespace, PlanRequest, PlanResponse, ProviderUse, Quota, Schema,
    TypeName, Value, has_errors,
};
use process::{Clock, Random, Threads, lock};

/// The limits of a process.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent steps and driver queries of the whole process.
    pub total: usize,
    /// Concurrent steps of one namespace.
    pub per_namespace: usize,
    /// The quota of a namespace whose annotation sets none.
    pub quota: Quota,
}

impl Limits {
    /// The limits of a process with this number of concurrent steps. One namespace gets half of them, and has no quota.
    pub fn of(total: usize) -> Self {
        Self { total, per_namespace: (total / 2).max(1), quota: Quota::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        // 256 calls keep an API server with two cores busy without its priority-and-fairness queue filling up.
        Self::of(256)
    }
}

/// The dependencies of planning and execution. The process has exactly one.
pub struct Engine {
    pub drivers: Registry,
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub hooks: Arc<dyn HookRunner>,
    /// Where steps evaluate expressions.
    pub threads: Threads,
    pub limits: Limits,
    /// Identifies this process in intents.
    pub holder: Holder,
    /// Operations whose intents may be durable but whose calls were not sent.
    pub(crate) unsent_calls: UnsentCalls,
    pub(crate) in_flight: InFlightSteps,
    pools: Pools,
}

/// The limits of calls: one for the whole process, and one for each driver with its own limit.
struct Pools {
    total: Arc<Pool>,
    by_driver: Vec<(Arc<dyn Driver>, Arc<Pool>)>,
    /// One for each provider configuration, so that a provider that hangs does not block the others.
    by_configuration: Mutex<BTreeMap<ConfigurationKey, Arc<Pool>>>,
}

/// A namespace, the name of a provider and the digest of its configuration.
type ConfigurationKey = (Namespace, Arc<str>, Arc<str>);

/// Above this number of entries, the unused ones are removed.
const PRUNE_ABOVE: usize = 1000;

impl Pools {
    fn for_configuration(&self, namespace: &Namespace, used: &ProviderUse) -> Arc<Pool> {
        let mut by_configuration = lock(&self.by_configuration);
        if by_configuration.len() > PRUNE_ABOVE {
            by_configuration.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        let key = (namespace.clone(), used.provider.name.clone(), used.digest.clone());
        let pool =
            by_configuration.entry(key).or_insert_with(|| Pool::exclusive((used.provider.max_calls as usize).max(1)));
        Arc::clone(pool)
    }

    fn for_driver(&self, driver: &Arc<dyn Driver>) -> Option<&Arc<Pool>> {
        self.by_driver.iter().find(|(limited, _)| Arc::ptr_eq(driver, limited)).map(|(_, pool)| pool)
    }
}

impl Engine {
    pub fn new(
        drivers: Registry,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        limits: Limits,
        holder: Holder,
    ) -> Self {
        // A run of the command line has one namespace, which may use everything.
        let pool = if limits.per_namespace < limits.total { Pool::shared } else { Pool::exclusive };
        let pools = Pools {
            total: pool(limits.total),
            by_driver: pools_by_driver(&drivers, pool),
            by_configuration: Mutex::default(),
        };
        Self {
            drivers,
            journal,
            clock,
            random,
            hooks: Arc::new(NoHooks),
            threads: Threads::Caller,
            limits,
            holder,
            unsent_calls: UnsentCalls::default(),
            in_flight: InFlightSteps::default(),
            pools,
        }
    }

    #[must_use]
    pub fn with_hooks(self, hooks: Arc<dyn HookRunner>) -> Self {
        Self { hooks, ..self }
    }

    #[must_use]
    pub fn with_threads(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// The pool from which every call needs a permit.
    pub(crate) fn total_pool(&self) -> &Arc<Pool> {
        &self.pools.total
    }

    /// How the permits for calls are used.
    pub fn permit_usage(&self) -> PoolUsage {
        self.pools.total.usage()
    }

    /// Waits for the right to make calls of this type in a namespace.
    pub(crate) async fn permit(&self, namespace: &Namespace, type_name: &str, used: Option<&ProviderUse>) -> Permit {
        Permit::wait(self.pools(namespace, type_name, used), namespace).await
    }

    /// The pools from which a call of this type needs a permit, the most contended ones last.
    pub(crate) fn pools(&self, namespace: &Namespace, type_name: &str, used: Option<&ProviderUse>) -> Vec<Arc<Pool>> {
        let configuration = used.map(|used| self.pools.for_configuration(namespace, used));
        let driver_pool = self.drivers.get(type_name).and_then(|driver| self.pools.for_driver(driver));
        configuration
            .into_iter()
            .chain(driver_pool.into_iter().chain(std::iter::once(&self.pools.total)).cloned())
            .collect()
    }

    /// The schema of a type, from the provider of the object.
    pub(crate) fn schema(&self, type_name: &str, provider: Option<&Arc<ProviderUse>>) -> Option<Arc<Schema>> {
        self.drivers.get(type_name)?.schema(type_name, provider.map(|used| used.provider.as_ref()))
    }

    pub(crate) fn call_context(&self, call: &Call<'_>, timeout: Duration) -> CallContext {
        CallContext {
            type_name: call.type_name.clone(),
            namespace: call.namespace.clone(),
            address: call.address.to_string().into(),
            provider: call.provider.cloned(),
            service_account: Arc::clone(call.service_account),
            deadline: after(self.clock.now(), timeout),
            read: call.read.iter().copied().cloned().collect(),
            ..CallContext::default()
        }
    }
}

/// The object of a call.
pub(crate) struct Call<'a> {
    pub type_name: &'a TypeName,
    pub namespace: &'a Namespace,
    pub address: &'a Address,
    pub provider: Option<&'a Arc<ProviderUse>>,
    /// The ServiceAccount that the call acts as.
    pub service_account: &'a Arc<str>,
    /// The values that the object's expressions read.
    pub read: &'a [&'a Value],
}

/// Returns one pool for each driver with a limit, even if the driver serves several types.
fn pools_by_driver(drivers: &Registry, pool: fn(usize) -> Arc<Pool>) -> Vec<(Arc<dyn Driver>, Arc<Pool>)> {
    let mut by_driver: Vec<(Arc<dyn Driver>, Arc<Pool>)> = Vec::new();
    for driver in drivers.types().filter_map(|served| drivers.get(served)) {
        let Some(limit) = driver.concurrency() else { continue };
        if !by_driver.iter().any(|(other, _)| Arc::ptr_eq(other, driver)) {
            by_driver.push((Arc::clone(driver), pool(limit)));
        }
    }
    by_driver
}

/// Returns the time `duration` after `start`, or the maximum timestamp on overflow.
pub(crate) fn after(start: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| start.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

/// Returns the ServiceAccount for calls about an object: that of its Resource, or that of its record if the Resource
/// does not exist.
pub(crate) fn service_account<'a>(instance: Option<&'a Instance>, recorded: &'a Arc<str>) -> &'a Arc<str> {
    instance.map_or(recorded, |instance| &instance.service_account)
}

/// Validates a configuration, and plans it when validation finds no error.
pub(crate) async fn validate_and_plan(
    driver: &dyn Driver,
    context: &CallContext,
    request: PlanRequest,
) -> (Diagnostics, Result<Option<PlanResponse>, DriverError>) {
    let written = request.ignored.as_ref().map_or(&request.config, |ignored| &ignored.written);
    match driver.validate(context, written).await {
        Err(error) => (Vec::new(), Err(error)),
        Ok(found) if has_errors(&found) => (found, Ok(None)),
        Ok(found) => {
            let answer = driver.plan(context, request).await;
            (with_warnings(found, context), answer.map(Some))
        }
    }
}

/// Validates the configuration of a data source. When validation finds no error, reads the data source if `read` is
/// set, and otherwise returns its expected value.
pub(crate) async fn read_data(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    read: bool,
) -> (Diagnostics, Result<Option<Value>, DriverError>) {
    let planned = async {
        let sources = driver.sources(context)?;
        Ok((sources, sources.plan_data(context, config).await?))
    };
    match planned.await {
        Err(error) => (Vec::new(), Err(error)),
        Ok((_, (found, _))) if has_errors(&found) => (found, Ok(None)),
        Ok((sources, (found, expected))) => {
            let value = if read { sources.read_data(context, config).await } else { Ok(expected) };
            (with_warnings(found, context), value.map(Some))
        }
    }
}

/// Adds the warnings of the calls. Providers built with SDKv2 repeat those of the validation.
fn with_warnings(mut found: Diagnostics, context: &CallContext) -> Diagnostics {
    let mut warnings = context.warnings.take();
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryJournal;
    use drivers::KubernetesObject;
    use drivers::kubernetes_object::OwnerScope;
    use process::{SystemClock, SystemRandom};

    #[test]
    fn all_types_of_a_driver_share_its_pool() {
        let driver = || Arc::new(KubernetesObject::local(OwnerScope::Fixed("test".into()), Arc::new(SystemClock)));
        let drivers = Registry::default().with_family("cloud", driver()).with("other", driver());
        let holder = Holder { pod: "".into(), process: "".into() };
        let journal = Arc::new(MemoryJournal::default());
        let limits = Limits::default();
        let engine = Engine::new(drivers, journal, Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder);
        let shop: Namespace = "shop".into();
        let first_pool = |type_name: &str| engine.pools(&shop, type_name, None).first().map(Arc::as_ptr);
        assert_eq!(engine.pools(&shop, "cloud_disk", None).len(), 2);
        assert_eq!(first_pool("cloud_disk"), first_pool("cloud_network"));
        assert_ne!(first_pool("cloud_disk"), first_pool("other"));
        assert_eq!(engine.pools(&shop, "unknown", None).len(), 1);
        let provider = serde_json::json!({"name": "far", "source": "registry.opentofu.org/acme/far", "maxCalls": 2});
        let provider: Arc<model::Provider> = Arc::new(serde_json::from_value(provider).unwrap());
        let pools = |namespace: &Namespace, text: &str| {
            let used = ProviderUse::new("far".into(), Arc::clone(&provider), text.into());
            engine.pools(namespace, "far_thing", Some(&used))
        };
        let first = pools(&shop, "a");
        assert_eq!(first.len(), 2);
        assert!(Arc::ptr_eq(&first[0], &pools(&shop, "a")[0]));
        assert!(!Arc::ptr_eq(&first[0], &pools(&shop, "b")[0]));
        assert!(!Arc::ptr_eq(&first[0], &pools(&"other".into(), "a")[0]), "no two namespaces share a limit");
    }
}
