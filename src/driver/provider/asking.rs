//! What each provider serves. It is asked once, whoever wants to know; one that fails is asked again, after pauses that
//! grow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};

use super::served::Served;
use crate::model::{DriverError, Provider};
use crate::process::{Clock, lock};

/// The pause after the second failure in a row; each further one doubles it. After the first there is none, since a
/// provider that is mended shall not make anybody wait.
const FIRST: SignedDuration = SignedDuration::from_secs(1);

/// The longest pause.
const LONGEST: SignedDuration = SignedDuration::from_mins(1);

/// The answers, by the name of the provider.
#[derive(Default)]
pub(super) struct Asking {
    places: Mutex<BTreeMap<Arc<str>, Arc<Place>>>,
}

#[derive(Default)]
struct Place {
    /// Held while a provider is asked, so that it is started once for all who want to know.
    turn: tokio::sync::Mutex<()>,
    known: Mutex<Option<Known>>,
}

#[derive(Clone)]
struct Known {
    provider: Arc<Provider>,
    answer: Result<Arc<Served>, DriverError>,
    failures: u32,
    /// How many answers came before, of this version of the provider or another.
    number: u64,
    /// Until then a failure is believed.
    until: Timestamp,
}

impl Asking {
    /// The last answer of exactly this provider.
    pub fn known(&self, provider: &Provider) -> Option<Result<Arc<Served>, DriverError>> {
        let place = lock(&self.places).get(&provider.name).cloned()?;
        let known = lock(&place.known);
        known.as_ref().filter(|known| *known.provider == *provider).map(|known| known.answer.clone())
    }

    /// The last answers of all providers that have answered.
    pub fn all(&self) -> Vec<Arc<Served>> {
        let places: Vec<Arc<Place>> = lock(&self.places).values().cloned().collect();
        places.iter().filter_map(|place| lock(&place.known).as_ref()?.answer.clone().ok()).collect()
    }

    /// The answer of a provider: what it said before, or what `ask` comes to.
    pub async fn ask(
        &self,
        provider: &Arc<Provider>,
        clock: &dyn Clock,
        ask: impl AsyncFnOnce() -> Result<Arc<Served>, DriverError>,
    ) -> Result<Arc<Served>, DriverError> {
        let place = Arc::clone(lock(&self.places).entry(provider.name.clone()).or_default());
        let before = place.last(provider);
        if let Some(known) = before.as_ref().filter(|known| known.holds(clock.now())) {
            return known.answer.clone();
        }
        let _turn = place.turn.lock().await;
        let now = place.last(provider);
        let number = |known: &Option<Known>| known.as_ref().map(|known| known.number);
        if let Some(known) = now.as_ref().filter(|_| number(&now) != number(&before)) {
            // Whoever had the turn before has asked for us, too.
            return known.answer.clone();
        }
        let answer = ask().await;
        let failures = match &answer {
            Ok(_) => 0,
            Err(_) => now.map_or(0, |known| known.failures).saturating_add(1),
        };
        let until = clock.now().checked_add(pause(failures)).unwrap_or(Timestamp::MAX);
        let mut known = lock(&place.known);
        let number = known.as_ref().map_or(0, |known| known.number + 1);
        *known = Some(Known { provider: Arc::clone(provider), answer: answer.clone(), failures, number, until });
        answer
    }
}

impl Place {
    fn last(&self, provider: &Provider) -> Option<Known> {
        lock(&self.known).clone().filter(|known| *known.provider == *provider)
    }
}

impl Known {
    fn holds(&self, now: Timestamp) -> bool {
        self.answer.is_ok() || now < self.until
    }
}

fn pause(failures: u32) -> SignedDuration {
    match failures {
        0 | 1 => SignedDuration::ZERO,
        failures => FIRST.saturating_mul(1 << (failures - 2).min(16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

    use super::*;
    use crate::model::ErrorKind;

    #[derive(Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
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
    async fn all_who_ask_at_once_share_one_answer_and_failures_are_believed_for_a_while() {
        let (asking, clock, asked) = (Asking::default(), Hand::default(), AtomicU32::new(0));
        let cloud = provider("a");
        let ask = async || {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err(no())
        };
        let both = tokio::join!(asking.ask(&cloud, &clock, ask), asking.ask(&cloud, &clock, ask));
        assert!(both.0.is_err() && both.1.is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(asking.known(&cloud).is_some_and(|answer| answer.is_err()));
        // At once again, then after a second, then after two.
        let mut times = Vec::new();
        for second in 0..8 {
            clock.0.store(second, Ordering::Relaxed);
            let before = asked.load(Ordering::Relaxed);
            assert!(asking.ask(&cloud, &clock, ask).await.is_err());
            if asked.load(Ordering::Relaxed) > before {
                times.push(second);
            }
        }
        assert_eq!(times, [0, 1, 3, 7]);
    }
}
