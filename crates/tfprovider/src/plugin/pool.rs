//! The pool of provider processes: one process for each configuration of each package in each namespace. A process is
//! started on demand and closed when it is idle for too long, too old or too large, or when another process needs its
//! place.
//!
//! A provider can be configured only once, and configuring it often involves a login, so processes are reused and never
//! get another configuration. A crashed process is restarted with exponential back-off. A process is never closed while
//! a call runs in it.

mod backoff;
mod places;

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use process::{Clock, lock};

use super::{Client, PluginError};
use backoff::Backoff;

use places::Places;
pub use places::{Place, PlaceLimits, Shortage};

/// The identity of a process in the pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The namespace whose objects the process serves: no two namespaces share a process.
    pub namespace: Arc<str>,
    /// The checksum or path of the provider's package.
    pub package: String,
    /// A digest of the configuration, of every value used in it, and of everything else that processes must not share.
    pub configuration: [u8; 32],
}

/// Limits for closing and restarting processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// How long an unused process is kept.
    pub idle_timeout: Duration,
    /// The maximum age of a process: providers leak memory, and some tokens expire after a day.
    pub max_age: Duration,
    /// The memory in bytes above which a process gets no new calls, unless [`Limits::memory`](super::Limits::memory) is
    /// set.
    pub max_memory: u64,
    /// How long a caller waits for a place, and for the back-off of a crashed process. If the remaining back-off is
    /// longer, the caller gets an error.
    pub max_wait: Duration,
    pub places: PlaceLimits,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            // Longer than the gaps between the objects of one apply, shorter than drift check intervals.
            idle_timeout: Duration::from_mins(5),
            max_age: Duration::from_hours(24),
            // The largest providers normally use a few hundred megabytes.
            max_memory: 2 * 1024 * 1024 * 1024,
            max_wait: Duration::from_secs(10),
            places: PlaceLimits::default(),
        }
    }
}

/// How often processes are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How long a place is kept for a process that still starts elsewhere, and that nothing asks for: longer than the longest
/// time between two attempts of a namespace.
pub const RESERVATION: Duration = Duration::from_mins(15);

/// How long a process is kept that ends soon and has no successor: longer than the gaps between the destroys of a namespace.
const LAST_IDLE: Duration = Duration::from_secs(10);

/// How long a process may take to respond to the stop request.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Pool {
    options: PoolOptions,
    clock: Arc<dyn Clock>,
    state: Mutex<PoolState>,
    released: Arc<Notify>,
    places: Arc<Places>,
}

#[derive(Default)]
struct PoolState {
    closing: bool,
    slots: HashMap<PoolKey, Arc<Slot>>,
    /// Processes that get no new calls and are closed after their last call.
    draining: Vec<Arc<PooledProcess>>,
}

/// The state of one key.
#[derive(Default)]
struct Slot {
    /// Held while a process starts, so concurrent callers share one start.
    starting: tokio::sync::Mutex<()>,
    inner: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    process: Option<Arc<PooledProcess>>,
    backoff: Backoff,
    /// The place of a process that still starts elsewhere, and since when.
    reserved: Option<(Place, Timestamp)>,
    /// The error of the last attempt, for callers that waited for it.
    failed: Option<PluginError>,
    /// The number of attempted starts.
    attempts: u64,
}

struct PooledProcess {
    client: Client,
    /// After `client`, so that the process ends first.
    place: Place,
    started: Timestamp,
    used: Mutex<Timestamp>,
}

/// The right to use a process. The process is not closed while a lease exists.
pub struct Lease {
    process: Option<Arc<PooledProcess>>,
    released: Arc<Notify>,
    places: Arc<Places>,
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.process.as_ref().expect("only `drop` clears it").client
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.process = None;
        self.released.notify_one();
        self.places.became_idle();
    }
}

impl Pool {
    /// Creates an empty pool. [`Self::maintain`] must run concurrently.
    pub fn new(options: PoolOptions, clock: Arc<dyn Clock>) -> Self {
        let places = Places::new(options.places);
        Self { options, clock, state: Mutex::default(), released: Arc::default(), places }
    }

    /// Returns a running, configured provider. `start` starts and configures it if none runs yet; concurrent callers
    /// get the same process or the same error. `memory`: its memory limit.
    pub async fn lease(
        &self,
        key: &PoolKey,
        memory: Option<u64>,
        start: impl AsyncFnOnce() -> Result<Client, PluginError>,
    ) -> Result<Lease, PluginError> {
        let slot = self.slot(key)?;
        let attempts_before = match self.running(&slot) {
            Ok(lease) => return Ok(lease),
            Err(attempts) => attempts,
        };
        let _starting = slot.starting.lock().await;
        match self.running(&slot) {
            Ok(lease) => return Ok(lease),
            Err(attempts) if attempts != attempts_before => {
                if let Some(error) = lock(&slot.inner).failed.clone() {
                    return Err(error);
                }
            }
            Err(_) => {}
        }
        self.wait(&slot).await?;
        let reserved = lock(&slot.inner).reserved.take();
        let place = match reserved {
            Some((place, _)) => Ok(place),
            None => self.place(&key.namespace, &key.package, memory).await,
        };
        let (is_start, started) = match place {
            Ok(place) => match start().await {
                Ok(client) => (true, Ok((client, place))),
                Err(error @ PluginError::Waiting { .. }) => {
                    lock(&slot.inner).reserved = Some((place, self.clock.now()));
                    (false, Err(error))
                }
                Err(error) => (true, Err(error)),
            },
            Err(refused) => (false, Err(refused)),
        };
        let now = self.clock.now();
        let mut inner = lock(&slot.inner);
        inner.attempts += 1;
        inner.failed = started.as_ref().err().cloned();
        match started {
            Ok((client, place)) => {
                let process = Arc::new(PooledProcess { client, place, started: now, used: Mutex::new(now) });
                inner.process = Some(Arc::clone(&process));
                Ok(self.lease_process(process))
            }
            Err(error) => {
                if is_start {
                    inner.backoff.failed(now, error.clone());
                }
                Err(error)
            }
        }
    }

    /// Waits for a place for a process. The least recently used idle process ends for it if necessary.
    ///
    /// # Errors
    /// If no place is free in time. [`Self::process_available`] returns when there is one.
    pub async fn place(&self, namespace: &Arc<str>, provider: &str, memory: Option<u64>) -> Result<Place, PluginError> {
        let memory = memory.unwrap_or(self.options.max_memory);
        let limits = self.options.places;
        let provider = provider.to_owned();
        if memory > limits.memory {
            return Err(PluginError::TooLarge { provider, memory, available: limits.memory });
        }
        let waiting = self.places.queue(namespace, memory);
        let wait = async {
            loop {
                let changed = self.places.change();
                match waiting.try_take() {
                    Ok(place) => return place,
                    Err(None) => {}
                    Err(Some(shortage)) => {
                        self.places.short.notify_one();
                        if self.end_idle(namespace, shortage) {
                            self.close_drained().await;
                        }
                    }
                }
                changed.await;
            }
        };
        if let Ok(place) = tokio::time::timeout(self.options.max_wait, wait).await {
            return Ok(place);
        }
        let namespace = match waiting.try_take() {
            Ok(place) => return Ok(place),
            Err(Some(Shortage::Namespace)) => Some(namespace.to_string()),
            Err(_) => None,
        };
        waiting.refuse();
        Err(PluginError::NoPlace { provider, namespace })
    }

    /// Waits until a process can start in a namespace in which one could not, and returns it.
    pub async fn process_available(&self) -> BTreeSet<Arc<str>> {
        loop {
            let changed = self.places.change();
            let available =
                self.places.available(|namespace, shortage| self.least_recently_used(namespace, shortage).is_some());
            if !available.is_empty() {
                return available;
            }
            changed.await;
        }
    }

    /// Waits until there are too few places.
    pub async fn place_shortage(&self) {
        self.places.short.notified().await;
    }

    /// The idle process that was used last the longest time ago, and whose end makes a place for the namespace.
    fn least_recently_used(&self, namespace: &str, shortage: Shortage) -> Option<Arc<Slot>> {
        let state = lock(&self.state);
        let slots = state
            .slots
            .iter()
            .filter(|(key, _)| shortage == Shortage::Total || *key.namespace == *namespace)
            .map(|(_, slot)| slot);
        let idle = slots.filter_map(|slot| {
            let inner = lock(&slot.inner);
            let process = inner.process.as_ref().filter(|process| process.is_unused())?;
            let used = *lock(&process.used);
            Some((process.client.is_alive(), used, slot))
        });
        idle.min_by_key(|(is_alive, used, _)| (*is_alive, *used)).map(|(_, _, slot)| Arc::clone(slot))
    }

    /// Ends an idle process for another one of the namespace. Returns whether there was one.
    fn end_idle(&self, namespace: &str, shortage: Shortage) -> bool {
        let Some(slot) = self.least_recently_used(namespace, shortage) else { return false };
        // It may be in use again.
        let Some(process) = lock(&slot.inner).process.take_if(|process| process.is_unused()) else { return true };
        process.place.mark_ending();
        lock(&self.state).draining.push(process);
        true
    }

    /// Sends no new calls to a process and closes it after its last call, because its configuration is outdated.
    pub fn retire(&self, key: &PoolKey) {
        let mut state = lock(&self.state);
        let process = state.slots.remove(key).and_then(|slot| lock(&slot.inner).process.take());
        state.draining.extend(process);
        self.released.notify_one();
    }

    /// Closes unused processes as long as it is polled.
    pub async fn maintain(&self) {
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                _ = sweeps.tick() => self.sweep().await,
                // Runs after every call, so it must be cheap.
                () = self.released.notified() => self.close_drained().await,
            }
        }
    }

    /// Closes processes that are idle for too long, too old, too large or retired, and drops expired back-offs.
    pub async fn sweep(&self) {
        let now = self.clock.now();
        {
            let mut state = lock(&self.state);
            let mut retired = Vec::new();
            state.slots.retain(|_, slot| {
                let mut inner = lock(&slot.inner);
                inner.drop_exited(now);
                if let Some(process) = inner.process.take_if(|process| self.should_retire(process, now)) {
                    retired.push(process);
                }
                // Nothing asks for the process any more.
                inner.reserved.take_if(|(_, since)| has_passed(*since, RESERVATION, now));
                let is_used = inner.process.is_some() || inner.reserved.is_some();
                // A caller that is starting a process also holds the slot.
                is_used || !inner.backoff.is_expired(now) || Arc::strong_count(slot) > 1
            });
            state.draining.append(&mut retired);
        }
        self.close_drained().await;
        // Detached calls may have ended since, which nothing else reports.
        self.places.became_idle();
    }

    /// Closes the draining processes whose last call has finished.
    async fn close_drained(&self) {
        let mut ended = Vec::new();
        {
            let mut state = lock(&self.state);
            let (unused, used) = std::mem::take(&mut state.draining).into_iter().partition(PooledProcess::is_unused);
            state.draining = used;
            ended.extend::<Vec<_>>(unused);
        }
        close(ended).await;
    }

    /// Requests all processes with running calls to stop those calls, which still respond. Returns the number of
    /// processes that accepted the request.
    pub async fn stop(&self) -> usize {
        let busy: Vec<Client> = {
            let state = lock(&self.state);
            let processes = state.slots.values().filter_map(|slot| lock(&slot.inner).process.clone());
            let clients = processes.chain(state.draining.iter().cloned()).map(|process| process.client.clone());
            clients.filter(|client| client.is_alive() && !client.is_idle()).collect()
        };
        let asked = busy.iter().map(|client| async {
            // A process that does not accept the request cannot stop its calls.
            client.with_limit(STOP_TIMEOUT).stop().await.inspect_err(|error| tracing::warn!("{error}")).is_ok()
        });
        futures::future::join_all(asked).await.into_iter().filter(|asked| *asked).count()
    }

    /// Closes all processes, including those with running calls, and prevents new starts.
    pub async fn close(&self) {
        let processes: Vec<_> = {
            let mut state = lock(&self.state);
            state.closing = true;
            let slots = std::mem::take(&mut state.slots);
            let pooled = slots.into_values().filter_map(|slot| lock(&slot.inner).process.take());
            pooled.chain(std::mem::take(&mut state.draining)).collect()
        };
        close(processes).await;
    }

    /// The processes in the pool, including draining ones.
    pub fn processes(&self) -> Vec<Client> {
        let state = lock(&self.state);
        // A clone of the process itself would count as a lease.
        let used = state
            .slots
            .values()
            .filter_map(|slot| lock(&slot.inner).process.as_ref().map(|process| process.client.clone()));
        used.chain(state.draining.iter().map(|process| process.client.clone())).collect()
    }

    /// The number of processes in the pool, including draining ones.
    pub fn len(&self) -> usize {
        let state = lock(&self.state);
        let processes = state.slots.values().filter(|slot| lock(&slot.inner).process.is_some()).count();
        processes + state.draining.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, key: &PoolKey) -> Result<Arc<Slot>, PluginError> {
        let mut state = lock(&self.state);
        if state.closing {
            return Err(PluginError::ShuttingDown { provider: key.package.clone() });
        }
        Ok(Arc::clone(state.slots.entry(key.clone()).or_default()))
    }

    /// Leases the process of a slot. If none runs, returns the number of attempted starts.
    fn running(&self, slot: &Slot) -> Result<Lease, u64> {
        let retired =
            lock(&slot.inner).process.take_if(|process| process.client.is_alive() && process.client.is_retired());
        // Each call comes here, and few find a process that is retired.
        if let Some(retired) = retired {
            lock(&self.state).draining.push(retired);
        }
        let mut inner = lock(&slot.inner);
        inner.drop_exited(self.clock.now());
        inner.process.as_ref().map(|process| self.lease_process(Arc::clone(process))).ok_or(inner.attempts)
    }

    fn lease_process(&self, process: Arc<PooledProcess>) -> Lease {
        *lock(&process.used) = self.clock.now();
        Lease { process: Some(process), released: Arc::clone(&self.released), places: Arc::clone(&self.places) }
    }

    /// Waits for the back-off.
    async fn wait(&self, slot: &Slot) -> Result<(), PluginError> {
        let pause = {
            let inner = lock(&slot.inner);
            let pause = inner.backoff.delay(self.clock.now());
            if pause > self.options.max_wait {
                return Err(inner.backoff.error());
            }
            pause
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Whether a process must get no new calls.
    fn should_retire(&self, process: &Arc<PooledProcess>, now: Timestamp) -> bool {
        if !process.is_unused() {
            *lock(&process.used) = now;
        }
        let client = &process.client;
        let limits = client.limits();
        let idle = match client.is_last() {
            true => LAST_IDLE,
            false => limits.idle.unwrap_or(self.options.idle_timeout),
        };
        // The memory of a process elsewhere is limited there.
        let memory = limits.memory.or_else(|| (!client.is_remote()).then_some(self.options.max_memory));
        client.is_retired()
            || has_passed(*lock(&process.used), idle, now)
            || has_passed(process.started, self.options.max_age, now)
            || client.memory().zip(memory).is_some_and(|(bytes, limit)| bytes > limit)
    }
}

impl SlotState {
    /// Drops a process that has exited, and records its failure.
    fn drop_exited(&mut self, now: Timestamp) {
        if let Some(process) = self.process.take_if(|process| !process.client.is_alive()) {
            process.client.report_crash();
            let error = process.client.last_error();
            self.failed = Some(error.clone());
            self.backoff.exited(process.started, now, error);
        }
    }
}

impl PooledProcess {
    /// Whether no lease exists and no detached call runs.
    fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.client.is_idle()
    }
}

fn has_passed(since: Timestamp, limit: Duration, now: Timestamp) -> bool {
    SignedDuration::try_from(limit).is_ok_and(|limit| now.duration_since(since) >= limit)
}

async fn close(tenants: Vec<Arc<PooledProcess>>) {
    futures::future::join_all(tenants.iter().map(|tenant| tenant.client.close())).await;
}
