//! Deterministic helpers of the scenarios and the judge: a manual clock, seeded random numbers, and crash points.

use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::pending;
use jiff::{SignedDuration, Timestamp};
use purlin::process::{Clock, Random};
use tokio::sync::Notify;

/// A clock that only the test advances.
pub(crate) struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub(crate) fn new() -> Self {
        // Arbitrary, but the same in every run.
        Self(Mutex::new(Timestamp::from_second(1_767_225_600).unwrap()))
    }

    pub(crate) fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(SignedDuration::try_from(duration).unwrap()).unwrap();
    }

    pub(crate) fn advance_to(&self, time: Timestamp) {
        let mut now = self.0.lock().unwrap();
        *now = time.max(*now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A seeded random number generator (SplitMix64).
pub(crate) struct Dice(Mutex<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    fn roll(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit.max(1) as u64).unwrap()
    }

    /// Returns true with this probability.
    pub(crate) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

impl Random for Dice {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.roll().to_le_bytes());
        bytes[8..].copy_from_slice(&self.roll().to_le_bytes());
        bytes
    }
}

/// Simulates a crash of a process. Everything that reaches a crash point of a crashed process blocks permanently, so
/// that it has no further effect. The test then drops the process.
#[derive(Default)]
pub(crate) struct Crash {
    /// The number of points before the crash. `None`: no crash.
    countdown: Mutex<Option<usize>>,
    has_crashed: AtomicBool,
    crashed: Notify,
}

impl Crash {
    /// Starts a new process, which crashes after this number of points.
    pub(crate) fn arm(&self, countdown: Option<usize>) {
        *self.countdown.lock().unwrap() = countdown;
        self.has_crashed.store(false, Ordering::SeqCst);
    }

    /// Crashes the process now or at the next point.
    pub(crate) fn crash(&self) {
        self.has_crashed.store(true, Ordering::SeqCst);
        self.crashed.notify_waiters();
        self.crashed.notify_one();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.has_crashed.load(Ordering::SeqCst)
    }

    /// Counts one point. Returns whether the process has crashed.
    pub(crate) fn tick(&self) -> bool {
        let strikes = match self.countdown.lock().unwrap().as_mut() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if strikes {
            self.crash();
        }
        self.is_dead()
    }

    /// A point at which the process may crash.
    pub(crate) async fn point(&self) {
        if self.tick() {
            pending::<()>().await;
        }
    }

    /// Returns the result of `work`, or `None` if the process crashes first.
    pub(crate) async fn survive<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let work = std::pin::pin!(work);
        let death = async {
            while !self.is_dead() {
                self.crashed.notified().await;
            }
        };
        tokio::select! {
            biased;
            () = death => None,
            done = work => Some(done),
        }
    }
}

/// Runs on one thread, so that tasks interleave the same way every time.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(work)
}

/// Loads manifests like files.
pub(crate) fn load(yaml: &str) -> purlin::load::LoadedSource {
    purlin::load::source::read_strings(&[("resources.yaml", yaml)])
}
