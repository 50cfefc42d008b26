//! Keeps unconfigured processes after their schema call for the first configuration, so that a provider is started only
//! once.
//!
//! Such a process belongs to no namespace and may be given to any one, once: it has received calls without arguments only,
//! so its memory and its private directory contain no value of a tenant. A process that has received a configuration or
//! an object, even only to validate it, never changes its namespace.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::mask::LateMask;
use model::Provider;
use process::{Clock, lock};
use tfprovider::plugin::{Client, Place, Pool};

/// The interval between checks for idle processes.
const SWEEP: Duration = Duration::from_secs(5);

/// At most one process for each provider.
pub struct Spares {
    idle: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<SparePool>,
}

#[derive(Default)]
struct SparePool {
    closing: bool,
    spares: Vec<Spare>,
}

struct Spare {
    provider: Arc<Provider>,
    client: Client,
    mask: LateMask,
    since: Timestamp,
    /// Dropped after `client`, so that the process has ended.
    _place: Place,
}

impl Spares {
    /// Processes that are not used within `idle` are ended while [`Self::maintain`] runs.
    pub fn new(idle: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { idle, clock, state: Mutex::default() }
    }

    /// Keeps a process after its schema call and ends the process of an older version of the provider.
    pub async fn keep(&self, provider: Arc<Provider>, client: Client, mask: LateMask, place: Place) {
        let older = {
            let mut state = lock(&self.state);
            let mut older = take_if(&mut state.spares, |spare| spare.provider.name == provider.name);
            let spare = Spare { provider, client, mask, since: self.clock.now(), _place: place };
            match state.closing {
                true => older.push(spare),
                false => state.spares.push(spare),
            }
            older
        };
        close(older).await;
    }

    /// Takes a running process of exactly this provider, with the mask of its output.
    pub fn take(&self, provider: &Provider) -> Option<(Client, LateMask)> {
        let taken = take_if(&mut lock(&self.state).spares, |spare| *spare.provider == *provider);
        taken.into_iter().find(|spare| spare.client.is_alive()).map(|spare| (spare.client, spare.mask))
    }

    pub fn processes(&self) -> Vec<Client> {
        lock(&self.state).spares.iter().map(|spare| spare.client.clone()).collect()
    }

    /// Ends idle processes while it is polled: all of them if a process of the pool needs a place.
    pub async fn maintain(&self, pool: &Pool) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => self.sweep().await,
                () = pool.place_shortage() => {
                    let spares = take_if(&mut lock(&self.state).spares, |_| true);
                    close(spares).await;
                }
            }
        }
    }

    async fn sweep(&self) {
        let now = self.clock.now();
        let idle = SignedDuration::try_from(self.idle).unwrap_or(SignedDuration::MAX);
        let unwanted = take_if(&mut lock(&self.state).spares, |spare| {
            now.duration_since(spare.since) >= idle || !spare.client.is_alive()
        });
        close(unwanted).await;
    }

    /// Ends all processes. No process is kept afterwards.
    pub async fn close(&self) {
        let spares = {
            let mut state = lock(&self.state);
            state.closing = true;
            take_if(&mut state.spares, |_| true)
        };
        close(spares).await;
    }
}

fn take_if(spares: &mut Vec<Spare>, which: impl Fn(&Spare) -> bool) -> Vec<Spare> {
    spares.extract_if(.., |spare| which(spare)).collect()
}

async fn close(spares: Vec<Spare>) {
    futures::future::join_all(spares.iter().map(|spare| spare.client.close())).await;
}
