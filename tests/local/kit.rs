//! The small things that the scenarios and the judge share: a clock that stands still, dice that always fall the same
//! way, and a point at which a process can be made to crash. All of it is deterministic.

use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::pending;
use jiff::{SignedDuration, Timestamp};
use purlin::process::{Clock, Random};
use tokio::sync::Notify;

/// A clock that moves only when it is told to.
pub(crate) struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub(crate) fn new() -> Self {
        // The moment is arbitrary; it only has to be the same in every run.
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

/// Dice that fall the same way for the same seed (SplitMix64: small, and good enough to choose among cases).
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

    /// A number below `limit`.
    pub(crate) fn below(&self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit.max(1) as u64).unwrap()
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

impl Random for Dice {
    fn draw(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.roll().to_le_bytes());
        bytes[8..].copy_from_slice(&self.roll().to_le_bytes());
        bytes
    }
}

/// Where a process dies. Everything that reaches a point of a dead process stays there for ever, so nothing of it
/// has any effect afterwards; whoever drives the process drops it then.
#[derive(Default)]
pub(crate) struct Crash {
    /// So many points are passed before the crash; `None`: it does not crash.
    countdown: Mutex<Option<usize>>,
    dead: AtomicBool,
    died: Notify,
}

impl Crash {
    /// The process lives again, and dies after so many points.
    pub(crate) fn arm(&self, countdown: Option<usize>) {
        *self.countdown.lock().unwrap() = countdown;
        self.dead.store(false, Ordering::SeqCst);
    }

    /// The process dies here and now, or at the next point that it comes to.
    pub(crate) fn strike(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_waiters();
        self.died.notify_one();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Counts one point; true when the process is dead by now.
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
            self.strike();
        }
        self.is_dead()
    }

    /// A point at which the process may die.
    pub(crate) async fn point(&self) {
        if self.tick() {
            pending::<()>().await;
        }
    }

    /// Runs something until it ends (`Some`) or the process dies (`None`).
    pub(crate) async fn survive<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let work = std::pin::pin!(work);
        let death = async {
            while !self.is_dead() {
                self.died.notified().await;
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

/// Reads manifests as `purlin` reads files.
pub(crate) fn load(yaml: &str) -> purlin::load::Loaded {
    purlin::load::source::read_texts(&[("resources.yaml", yaml)])
}
