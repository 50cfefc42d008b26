//! The processes of providers: one for each configuration of each package, started when somebody needs it, ended when
//! nobody has for a while, when it is old, or when it has grown too large.
//!
//! Configuring a provider often means a login somewhere, and a provider can be configured only once, so a process is
//! worth keeping and never given another configuration. What crashed is started again, at first at once and then with
//! growing pauses. Nothing is ended while a call runs in it.

mod backoff;

use std::collections::HashMap;
use std::fs;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::process::{Clock, lock};

use super::{Client, PluginError};
use backoff::Backoff;

/// What a process is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The package of the provider, by its checksum or path.
    pub package: String,
    /// A digest of its configuration, with every value that flowed into it, and of whatever else must not be shared.
    pub configuration: [u8; 32],
}

/// When processes are ended and started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How long a process is kept that nobody uses.
    pub idle: Duration,
    /// How old a process may become; providers leak, and some tokens do not outlive a day.
    pub age: Duration,
    /// How many bytes of memory a process may have before it gets no new calls, if it has no limit of its own.
    pub memory: u64,
    /// How long a caller waits for the next start of a process that crashed; when it would take longer, the caller gets
    /// the error.
    pub patience: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            // Longer than the pauses between the objects of one apply, shorter than intervals of drift.
            idle: Duration::from_mins(5),
            age: Duration::from_hours(24),
            // The largest provider has some hundred megabytes when it is well.
            memory: 2 * 1024 * 1024 * 1024,
            patience: Duration::from_secs(10),
        }
    }
}

/// How often processes are looked at.
const SWEEP: Duration = Duration::from_secs(5);

/// How long a process has to take in that its calls shall end.
const STOP: Duration = Duration::from_secs(5);

/// The processes of providers.
pub struct Pool {
    settings: PoolSettings,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    released: Arc<Notify>,
}

#[derive(Default)]
struct State {
    closing: bool,
    slots: HashMap<Key, Arc<Slot>>,
    /// Processes that get no new calls and end with their last one.
    draining: Vec<Arc<Tenant>>,
}

/// The place of one key.
#[derive(Default)]
struct Slot {
    /// Held while a process starts, so that there is one start for all who wait.
    starting: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    tenant: Option<Arc<Tenant>>,
    backoff: Backoff,
    /// How many starts were tried.
    attempts: u64,
}

/// One process.
struct Tenant {
    client: Client,
    started: Timestamp,
    used: Mutex<Timestamp>,
}

/// The use of a process. While it lives, the process is not ended.
pub struct Lease {
    tenant: Option<Arc<Tenant>>,
    released: Arc<Notify>,
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.tenant.as_ref().expect("only `drop` takes it").client
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tenant = None;
        self.released.notify_one();
    }
}

impl Pool {
    /// A pool without processes. [`Self::maintain`] has to run beside it.
    pub fn new(settings: PoolSettings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock, state: Mutex::default(), released: Arc::default() }
    }

    /// A running, configured provider. `start` starts and configures it, when there is none yet; those who come
    /// meanwhile get the same process, or the same error.
    pub async fn lease(
        &self,
        key: &Key,
        start: impl AsyncFnOnce() -> Result<Client, PluginError>,
    ) -> Result<Lease, PluginError> {
        let slot = self.slot(key)?;
        let seen = match self.running(&slot) {
            Ok(lease) => return Ok(lease),
            Err(attempts) => attempts,
        };
        let _starting = slot.starting.lock().await;
        match self.running(&slot) {
            Ok(lease) => return Ok(lease),
            Err(attempts) if attempts != seen => {
                if let Some(error) = lock(&slot.inner).backoff.last() {
                    return Err(error.clone());
                }
            }
            Err(_) => {}
        }
        self.wait(&slot).await?;
        let started = start().await;
        let now = self.clock.now();
        let mut inner = lock(&slot.inner);
        inner.attempts += 1;
        match started {
            Ok(client) => {
                let tenant = Arc::new(Tenant { client, started: now, used: Mutex::new(now) });
                inner.tenant = Some(Arc::clone(&tenant));
                Ok(self.hand_out(tenant))
            }
            Err(error) => {
                inner.backoff.failed(now, error.clone());
                Err(error)
            }
        }
    }

    /// Gives a process no new calls, and ends it after its last one: its configuration is no longer the present one.
    pub fn retire(&self, key: &Key) {
        let mut state = lock(&self.state);
        let tenant = state.slots.remove(key).and_then(|slot| lock(&slot.inner).tenant.take());
        state.draining.extend(tenant);
        self.released.notify_one();
    }

    /// Ends what nobody uses, for as long as it is polled.
    pub async fn maintain(&self) {
        let mut sweeps = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                _ = sweeps.tick() => self.sweep().await,
                // After each call, so it must cost next to nothing.
                () = self.released.notified() => self.end_drained().await,
            }
        }
    }

    /// Ends what is idle for too long, too old, too large, or retired, and forgets what has crashed long ago.
    pub async fn sweep(&self) {
        let now = self.clock.now();
        {
            let mut state = lock(&self.state);
            let mut leaving = Vec::new();
            state.slots.retain(|_, slot| {
                let mut inner = lock(&slot.inner);
                if let Some(tenant) = inner.tenant.take_if(|tenant| self.is_due(tenant, now)) {
                    leaving.push(tenant);
                }
                // Somebody who starts a process in it holds it, too.
                inner.tenant.is_some() || !inner.backoff.is_over(now) || Arc::strong_count(slot) > 1
            });
            state.draining.append(&mut leaving);
        }
        self.end_drained().await;
    }

    /// Ends the processes that get no new calls and have ended their last one.
    async fn end_drained(&self) {
        let mut ended = Vec::new();
        {
            let mut state = lock(&self.state);
            let (unused, used) = std::mem::take(&mut state.draining).into_iter().partition(Tenant::is_unused);
            state.draining = used;
            ended.extend::<Vec<_>>(unused);
        }
        close(ended).await;
    }

    /// Asks all processes with calls under way to give those up; the calls still answer. Gives how many were asked.
    pub async fn stop(&self) -> usize {
        let busy: Vec<Client> = {
            let state = lock(&self.state);
            let tenants = state.slots.values().filter_map(|slot| lock(&slot.inner).tenant.clone());
            let all = tenants.chain(state.draining.iter().cloned()).map(|tenant| tenant.client.clone());
            all.filter(|client| client.is_alive() && !client.is_idle()).collect()
        };
        let asked = busy.iter().map(|client| async {
            // A process that does not even take this in has nobody who could stop.
            client.within(STOP).stop().await.inspect_err(|error| tracing::warn!("{error}")).is_ok()
        });
        futures::future::join_all(asked).await.into_iter().filter(|asked| *asked).count()
    }

    /// Ends all processes, also those with calls under way; nothing starts any more.
    pub async fn close(&self) {
        let all: Vec<_> = {
            let mut state = lock(&self.state);
            state.closing = true;
            let slots = std::mem::take(&mut state.slots);
            let tenants = slots.into_values().filter_map(|slot| lock(&slot.inner).tenant.take());
            tenants.chain(std::mem::take(&mut state.draining)).collect()
        };
        close(all).await;
    }

    /// How many processes run.
    pub fn len(&self) -> usize {
        let state = lock(&self.state);
        let tenants = state.slots.values().filter(|slot| lock(&slot.inner).tenant.is_some()).count();
        tenants + state.draining.len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, key: &Key) -> Result<Arc<Slot>, PluginError> {
        let mut state = lock(&self.state);
        if state.closing {
            return Err(PluginError::Closing { provider: key.package.clone() });
        }
        Ok(Arc::clone(state.slots.entry(key.clone()).or_default()))
    }

    /// The process of a slot, or how many were tried so far when none runs.
    fn running(&self, slot: &Slot) -> Result<Lease, u64> {
        let leaving = lock(&slot.inner).tenant.take_if(|tenant| tenant.client.is_alive() && tenant.client.is_retired());
        lock(&self.state).draining.extend(leaving);
        let mut inner = lock(&slot.inner);
        if let Some(tenant) = inner.tenant.take_if(|tenant| !tenant.client.is_alive()) {
            let error = tenant.client.last_error();
            inner.backoff.ended(tenant.started, self.clock.now(), error);
        }
        inner.tenant.as_ref().map(|tenant| self.hand_out(Arc::clone(tenant))).ok_or(inner.attempts)
    }

    fn hand_out(&self, tenant: Arc<Tenant>) -> Lease {
        *lock(&tenant.used) = self.clock.now();
        Lease { tenant: Some(tenant), released: Arc::clone(&self.released) }
    }

    /// Waits until the next start is allowed.
    async fn wait(&self, slot: &Slot) -> Result<(), PluginError> {
        let pause = {
            let inner = lock(&slot.inner);
            let pause = inner.backoff.pause(self.clock.now());
            if pause > self.settings.patience {
                return Err(inner.backoff.refusal());
            }
            pause
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Whether a process shall get no new calls.
    fn is_due(&self, tenant: &Arc<Tenant>, now: Timestamp) -> bool {
        if !tenant.is_unused() {
            *lock(&tenant.used) = now;
        }
        let since = |time: Timestamp, limit: Duration| {
            SignedDuration::try_from(limit).is_ok_and(|limit| now.duration_since(time) >= limit)
        };
        let memory = tenant.client.limits().memory.unwrap_or(self.settings.memory);
        since(*lock(&tenant.used), self.settings.idle)
            || since(tenant.started, self.settings.age)
            || tenant.client.process_id().and_then(resident).is_some_and(|bytes| bytes > memory)
    }
}

impl Tenant {
    /// Whether the pool alone has it, and no call goes on in it that nobody waits for.
    fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.client.is_idle()
    }
}

async fn close(tenants: Vec<Arc<Tenant>>) {
    futures::future::join_all(tenants.iter().map(|tenant| tenant.client.close())).await;
}

/// The memory of a process that is in use, in bytes.
fn resident(process: u32) -> Option<u64> {
    // `status` tells the same, and the kernel takes ten times as long to write it.
    let pages = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let resident: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    Some(resident * rustix::param::page_size() as u64)
}
