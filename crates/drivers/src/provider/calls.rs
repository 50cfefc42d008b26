//! Schema calls: one per provider, shared by all callers. A failed call is retried with back-off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use super::served_types::ServedTypes;
use model::{DriverError, Provider};
use process::{Clock, lock};

/// The back-off after the second consecutive failure, doubled by each further one. The first failure has none, so that
/// a fixed provider is used immediately.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// The responses by the name of the provider.
#[derive(Default)]
pub struct SchemaCalls {
    entries: Mutex<BTreeMap<Arc<str>, Arc<Entry>>>,
}

#[derive(Default)]
struct Entry {
    /// Held during a call, so that concurrent callers start the provider once.
    turn: tokio::sync::Mutex<()>,
    known: Mutex<Option<CachedSchema>>,
}

#[derive(Clone)]
struct CachedSchema {
    provider: Arc<Provider>,
    answer: Result<Arc<ServedTypes>, DriverError>,
    failures: u32,
    /// Counts the responses for this provider name, of all its versions.
    number: u64,
    /// A failure is cached until this time.
    until: Timestamp,
}

impl SchemaCalls {
    /// The last response of exactly this version of the provider.
    pub fn known(&self, provider: &Provider) -> Option<Result<Arc<ServedTypes>, DriverError>> {
        let place = lock(&self.entries).get(&provider.name).cloned()?;
        let known = lock(&place.known);
        known.as_ref().filter(|known| *known.provider == *provider).map(|known| known.answer.clone())
    }

    /// The last successful responses of all providers.
    pub fn all(&self) -> Vec<Arc<ServedTypes>> {
        let places: Vec<Arc<Entry>> = lock(&self.entries).values().cloned().collect();
        places.iter().filter_map(|place| lock(&place.known).as_ref()?.answer.clone().ok()).collect()
    }

    /// The cached response of a provider, or else the result of `ask`.
    pub async fn get_or_call(
        &self,
        provider: &Arc<Provider>,
        clock: &dyn Clock,
        call: impl AsyncFnOnce() -> Result<Arc<ServedTypes>, DriverError>,
    ) -> Result<Arc<ServedTypes>, DriverError> {
        let place = Arc::clone(lock(&self.entries).entry(provider.name.clone()).or_default());
        let before = place.last(provider);
        if let Some(known) = before.as_ref().filter(|known| known.is_valid(clock.now())) {
            return known.answer.clone();
        }
        let _turn = place.turn.lock().await;
        let now = place.last(provider);
        if let Some(known) = &now
            && before.is_none_or(|before| before.number != known.number)
        {
            // Another caller made the call in the meantime.
            return known.answer.clone();
        }
        let answer = call().await;
        let failures = match &answer {
            Ok(_) => 0,
            Err(_) => now.map_or(0, |known| known.failures).saturating_add(1),
        };
        let until = clock.now().checked_add(backoff(failures)).unwrap_or(Timestamp::MAX);
        let mut known = lock(&place.known);
        let number = known.as_ref().map_or(0, |known| known.number + 1);
        *known = Some(CachedSchema { provider: Arc::clone(provider), answer: answer.clone(), failures, number, until });
        answer
    }
}

impl Entry {
    fn last(&self, provider: &Provider) -> Option<CachedSchema> {
        lock(&self.known).clone().filter(|known| *known.provider == *provider)
    }
}

impl CachedSchema {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.answer.is_ok() || now < self.until
    }
}

fn backoff(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        failures => model::backoff(failures - 1, FIRST_BACKOFF, LONGEST_BACKOFF),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

    use super::*;
    use model::ErrorKind;

    #[derive(Default)]
    struct ManualClock(AtomicI64);

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap()
        }
    }

    fn provider(path: &str) -> Arc<Provider> {
        let text = serde_json::json!({"name": "cloud", "source": "registry.opentofu.org/acme/cloud", "package": {"path": path}});
        Arc::new(serde_json::from_value(text).unwrap())
    }

    fn no() -> DriverError {
        DriverError { kind: ErrorKind::Unavailable, message: "no".into(), path: None, hint: None }
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_response_and_failures_are_cached() {
        let (calls, clock, call_count) = (SchemaCalls::default(), ManualClock::default(), AtomicU32::new(0));
        let cloud = provider("a");
        let call = async || {
            call_count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err(no())
        };
        let both = tokio::join!(calls.get_or_call(&cloud, &clock, call), calls.get_or_call(&cloud, &clock, call));
        assert!(both.0.is_err() && both.1.is_err());
        assert_eq!(call_count.load(Ordering::Relaxed), 1);
        assert!(calls.known(&cloud).is_some_and(|answer| answer.is_err()));
        // Retried immediately, then after one second, two seconds and four seconds.
        let mut times = Vec::new();
        for second in 0..8 {
            clock.0.store(second, Ordering::Relaxed);
            let before = call_count.load(Ordering::Relaxed);
            assert!(calls.get_or_call(&cloud, &clock, call).await.is_err());
            if call_count.load(Ordering::Relaxed) > before {
                times.push(second);
            }
        }
        assert_eq!(times, [0, 1, 3, 7]);
    }
}
