//! What every step needs: drivers, journal, clock, randomness, limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use crate::driver::{CallContext, Driver, Registry};
use crate::execute::Journal;
use crate::load::Instance;
use crate::model::{Address, Holder};
use crate::process::{Clock, Random};

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
    /// The limits.
    pub limits: Limits,
    /// Who we are, for intents.
    pub holder: Holder,
    slots: Slots,
}

/// The places for calls: of the whole process, and of each driver that has a limit of its own.
struct Slots {
    total: Arc<Semaphore>,
    by_type: BTreeMap<Arc<str>, Arc<Semaphore>>,
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
        let slots = Slots { total: Arc::new(Semaphore::new(limits.total)), by_type: slots_by_type(&drivers) };
        Self { drivers, journal, clock, random, limits, holder, slots }
    }

    /// The places that a call for this type needs, all of them.
    pub(crate) fn slots(&self, type_name: &str) -> impl Iterator<Item = &Arc<Semaphore>> {
        self.slots.by_type.get(type_name).into_iter().chain(std::iter::once(&self.slots.total))
    }

    /// The context of a call that may take as long as given.
    pub(crate) fn call_context(&self, call: &Call<'_>, timeout: Duration) -> CallContext {
        CallContext {
            type_name: Arc::clone(call.type_name),
            namespace: Arc::clone(call.namespace),
            address: call.address.to_string().into(),
            service_account: Arc::clone(call.service_account),
            deadline: after(self.clock.now(), timeout),
            operation_id: Arc::from(""),
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
    /// As whom.
    pub service_account: &'a Arc<str>,
}

/// Drivers that serve several types have one set of places for all of them.
fn slots_by_type(drivers: &Registry) -> BTreeMap<Arc<str>, Arc<Semaphore>> {
    let mut by_driver: Vec<(&Arc<dyn Driver>, Arc<Semaphore>)> = Vec::new();
    let mut by_type = BTreeMap::new();
    for type_name in drivers.types() {
        let Some(driver) = drivers.get(type_name) else { continue };
        let Some(limit) = driver.concurrency() else { continue };
        let known = by_driver.iter().find(|(other, _)| Arc::ptr_eq(other, driver));
        let slots = match known {
            Some((_, slots)) => Arc::clone(slots),
            None => Arc::new(Semaphore::new(limit)),
        };
        by_driver.push((driver, Arc::clone(&slots)));
        by_type.insert(Arc::clone(type_name), slots);
    }
    by_type
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
