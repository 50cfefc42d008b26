//! Processes that told what they serve and have no settings yet. The first who has some takes one: so a provider that is
//! asked and then used is started once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::mask::LateMask;
use crate::model::Provider;
use crate::plugin::Client;
use crate::process::{Clock, lock};

/// How often it is looked for those that nobody wanted.
const SWEEP: Duration = Duration::from_secs(5);

/// One process at most for each provider.
pub(super) struct Spares {
    idle: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closing: bool,
    spares: Vec<Spare>,
}

struct Spare {
    provider: Arc<Provider>,
    client: Client,
    mask: LateMask,
    since: Timestamp,
}

impl Spares {
    /// None yet. Those that nobody wants for `idle` are ended, while [`Self::maintain`] runs.
    pub fn new(idle: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { idle, clock, state: Mutex::default() }
    }

    /// Keeps a process that was asked what it serves. One of an older version of the provider is ended.
    pub async fn keep(&self, provider: Arc<Provider>, client: Client, mask: LateMask) {
        let older = {
            let mut state = lock(&self.state);
            let mut older = take_if(&mut state.spares, |one| one.provider.name == provider.name);
            match state.closing {
                true => older.push((client, mask)),
                false => state.spares.push(Spare { provider, client, mask, since: self.clock.now() }),
            }
            older
        };
        close(older).await;
    }

    /// A process of this very provider that still runs, with the mask that its output gets once it has one.
    pub fn take(&self, provider: &Provider) -> Option<(Client, LateMask)> {
        let taken = take_if(&mut lock(&self.state).spares, |one| *one.provider == *provider);
        taken.into_iter().find(|(client, _)| client.is_alive())
    }

    /// Ends what nobody wanted, for as long as it is polled.
    pub async fn maintain(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            self.sweep().await;
        }
    }

    async fn sweep(&self) {
        let now = self.clock.now();
        let late =
            |since: Timestamp| SignedDuration::try_from(self.idle).is_ok_and(|idle| now.duration_since(since) >= idle);
        let unwanted = take_if(&mut lock(&self.state).spares, |one| late(one.since) || !one.client.is_alive());
        close(unwanted).await;
    }

    /// Ends all; none is kept any more.
    pub async fn close(&self) {
        let all = {
            let mut state = lock(&self.state);
            state.closing = true;
            take_if(&mut state.spares, |_| true)
        };
        close(all).await;
    }
}

fn take_if(spares: &mut Vec<Spare>, which: impl Fn(&Spare) -> bool) -> Vec<(Client, LateMask)> {
    spares.extract_if(.., |one| which(one)).map(|one| (one.client, one.mask)).collect()
}

async fn close(clients: Vec<(Client, LateMask)>) {
    futures::future::join_all(clients.iter().map(|(client, _)| client.close())).await;
}
