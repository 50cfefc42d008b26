//! What every step needs: drivers, journal, clock, randomness, limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use super::uncalled::Uncalled;
use super::under_way::UnderWay;
use crate::driver::hook::{HookRunner, NoHooks};
use crate::driver::{CallContext, Driver, Registry, Warnings};
use crate::execute::Journal;
use crate::load::Instance;
use crate::model::{Address, Holder, ProviderUse, Schema};
use crate::process::{Clock, Random, lock};

/// How much may happen at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps and questions at once, in the whole process.
    pub total: usize,
    /// Steps at once in one namespace.
    pub per_namespace: usize,
    /// How long another process may still run after its intent's deadline: the duration of its lease.
    pub lease_duration: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // 256 calls keep an API server with two cores busy without its priority-and-fairness queue filling up.
        Self { total: 256, per_namespace: 128, lease_duration: Duration::from_secs(15) }
    }
}

/// The surroundings of planning and executing. One for the whole process.
pub struct Engine {
    /// The drivers.
    pub drivers: Registry,
    /// Where records are kept.
    pub journal: Arc<dyn Journal>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Runs hooks.
    pub hooks: Arc<dyn HookRunner>,
    /// The limits.
    pub limits: Limits,
    /// Who we are, for intents.
    pub holder: Holder,
    /// What was intended here, perhaps, and not called.
    pub(crate) uncalled: Uncalled,
    /// The steps that run.
    pub(crate) under_way: UnderWay,
    slots: Slots,
}

/// The places for calls: of the whole process, and of each driver that has a limit of its own.
struct Slots {
    total: Arc<Semaphore>,
    by_driver: Vec<(Arc<dyn Driver>, Arc<Semaphore>)>,
    /// Of each configuration of a provider: one that hangs takes up its own places and no others.
    by_settings: Mutex<BTreeMap<Settings, Arc<Semaphore>>>,
}

/// The name of a provider, and the digest of its settings.
type Settings = (Arc<str>, Arc<str>);

/// So many configurations of providers may be remembered before those are looked for that nobody uses.
const REMEMBERED: usize = 1000;

impl Slots {
    /// The places of one configuration of a provider.
    fn of_settings(&self, used: &ProviderUse) -> Arc<Semaphore> {
        let mut by_settings = lock(&self.by_settings);
        if by_settings.len() > REMEMBERED {
            by_settings.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = || Arc::new(Semaphore::new((used.provider.max_calls as usize).max(1)));
        Arc::clone(by_settings.entry((used.provider.name.clone(), used.digest.clone())).or_insert_with(places))
    }
}

impl Engine {
    /// An engine over the given surroundings.
    pub fn new(
        drivers: Registry,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        limits: Limits,
        holder: Holder,
    ) -> Self {
        let slots = Slots {
            total: Arc::new(Semaphore::new(limits.total)),
            by_driver: slots_by_driver(&drivers),
            by_settings: Mutex::default(),
        };
        Self {
            drivers,
            journal,
            clock,
            random,
            hooks: Arc::new(NoHooks),
            limits,
            holder,
            uncalled: Uncalled::default(),
            under_way: UnderWay::default(),
            slots,
        }
    }

    /// The same, running hooks in some way.
    #[must_use]
    pub fn with_hooks(self, hooks: Arc<dyn HookRunner>) -> Self {
        Self { hooks, ..self }
    }

    /// The places that a call for this type needs, all of them; those that many wait for come last.
    pub(crate) fn slots(&self, type_name: &str, used: Option<&ProviderUse>) -> Vec<Arc<Semaphore>> {
        let settings = used.map(|used| self.slots.of_settings(used));
        let driver = self.drivers.get(type_name);
        let own =
            |(other, _): &&(Arc<dyn Driver>, Arc<Semaphore>)| driver.is_some_and(|driver| Arc::ptr_eq(driver, other));
        let places = self.slots.by_driver.iter().find(own).map(|(_, places)| places);
        settings.into_iter().chain(places.into_iter().chain(std::iter::once(&self.slots.total)).cloned()).collect()
    }

    /// The schema of a type, as the provider of an object has it.
    pub(crate) fn schema(&self, type_name: &str, provider: Option<&Arc<ProviderUse>>) -> Option<Arc<Schema>> {
        self.drivers.get(type_name)?.schema(type_name, provider.map(|used| used.provider.as_ref()))
    }

    /// The context of a call that may take as long as given.
    pub(crate) fn call_context(&self, call: &Call<'_>, timeout: Duration) -> CallContext {
        CallContext {
            type_name: Arc::clone(call.type_name),
            namespace: Arc::clone(call.namespace),
            address: call.address.to_string().into(),
            provider: call.provider.cloned(),
            service_account: Arc::clone(call.service_account),
            deadline: after(self.clock.now(), timeout),
            operation_id: Arc::from(""),
            warnings: Warnings::default(),
        }
    }
}

/// Whom a call concerns.
pub(crate) struct Call<'a> {
    /// The resource type.
    pub type_name: &'a Arc<str>,
    /// Namespace of the Resource.
    pub namespace: &'a Arc<str>,
    /// Name and instance.
    pub address: &'a Address,
    /// The provider, with its settings.
    pub provider: Option<&'a Arc<ProviderUse>>,
    /// As whom.
    pub service_account: &'a Arc<str>,
}

/// A driver has one set of places, whatever types it serves: by name, or as a family of a prefix.
fn slots_by_driver(drivers: &Registry) -> Vec<(Arc<dyn Driver>, Arc<Semaphore>)> {
    let mut by_driver: Vec<(Arc<dyn Driver>, Arc<Semaphore>)> = Vec::new();
    for driver in drivers.types().filter_map(|served| drivers.get(served)) {
        let Some(limit) = driver.concurrency() else { continue };
        if !by_driver.iter().any(|(other, _)| Arc::ptr_eq(other, driver)) {
            by_driver.push((Arc::clone(driver), Arc::new(Semaphore::new(limit))));
        }
    }
    by_driver
}

/// The time `duration` after `start`; the end of time when that is later than can be told.
pub(crate) fn after(start: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| start.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

/// As whom the calls for an object are made: its Resource says, or its record when there is no Resource any more.
pub(crate) fn service_account<'a>(instance: Option<&'a Instance>, recorded: &'a Arc<str>) -> &'a Arc<str> {
    instance.map_or(recorded, |instance| &instance.service_account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::KubernetesObject;
    use crate::driver::kubernetes_object::OwnerScope;
    use crate::process::{SystemClock, SystemRandom};
    use crate::store::MemoryJournal;

    #[test]
    fn all_types_of_a_driver_share_its_places() {
        let driver = || Arc::new(KubernetesObject::local(OwnerScope::Fixed("test".into()), Arc::new(SystemClock)));
        let drivers = Registry::default().with_family("cloud", driver()).with("other", driver());
        let holder = Holder { pod: "".into(), process: "".into() };
        let journal = Arc::new(MemoryJournal::default());
        let limits = Limits::default();
        let engine = Engine::new(drivers, journal, Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder);
        let own = |type_name: &str| engine.slots(type_name, None).first().map(Arc::as_ptr);
        assert_eq!(engine.slots("cloud_disk", None).len(), 2);
        assert_eq!(own("cloud_disk"), own("cloud_network"));
        assert_ne!(own("cloud_disk"), own("other"));
        assert_eq!(engine.slots("nobody", None).len(), 1);
        let provider = serde_json::json!({"name": "far", "source": "registry.opentofu.org/acme/far", "maxCalls": 2});
        let provider: Arc<crate::model::Provider> = Arc::new(serde_json::from_value(provider).unwrap());
        let used = |text: &str| ProviderUse::new("far".into(), Arc::clone(&provider), text.into());
        let of = |text: &str| engine.slots("far_thing", Some(&used(text)));
        assert_eq!((of("a").len(), of("a")[0].available_permits()), (2, 2));
        assert!(Arc::ptr_eq(&of("a")[0], &of("a")[0]));
        assert!(!Arc::ptr_eq(&of("a")[0], &of("b")[0]));
    }
}
