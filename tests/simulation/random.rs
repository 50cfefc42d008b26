//! Random numbers and clocks that a seed determines.

use std::sync::Mutex;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use purlin::process::{Clock, Random, lock};
use tokio::time::Instant;

/// A stream of numbers (SplitMix64): small, fast, and the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Seeded(u64);

impl Seeded {
    /// The stream of a seed and a purpose. One more number from one stream does not change the streams of other
    /// purposes.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        });
        let mut stream = Self(mixed);
        stream.next();
        stream
    }

    /// The stream of one of several similar things, independent of their order.
    pub(crate) fn of(seed: u64, what: &str, number: u64) -> Self {
        Self::new(seed ^ number.wrapping_mul(0xff51_afd7_ed55_8ccd), what)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Returns true `in_a_thousand` times out of 1000, on average.
    pub(crate) fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        &all[index]
    }

    /// A time between two, in milliseconds. Short times are more likely than long ones.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        let span = to.saturating_sub(from) + 1;
        let bits = 64 - span.leading_zeros();
        let scale = 1u64 << self.below(u64::from(bits) + 1);
        Duration::from_millis(from + self.below(span.min(scale)))
    }
}

/// The random numbers of a replica.
pub(crate) struct SeededRandom(Mutex<Seeded>);

impl SeededRandom {
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        Self(Mutex::new(Seeded::new(seed, purpose)))
    }
}

impl Random for SeededRandom {
    fn bytes(&self) -> [u8; 16] {
        let mut stream = lock(&self.0);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&stream.next().to_le_bytes());
        bytes[8..].copy_from_slice(&stream.next().to_le_bytes());
        bytes
    }
}

/// The wall clock of a replica or of the API server: the paused clock of the runtime with a skew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedClock {
    began: Instant,
    skew: SignedDuration,
}

/// When every simulation begins.
const EPOCH: i64 = 1_800_000_000;

impl SimulatedClock {
    pub(crate) fn new(began: Instant, skew: SignedDuration) -> Self {
        Self { began, skew }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::ZERO);
        let start = Timestamp::from_second(EPOCH).unwrap_or(Timestamp::UNIX_EPOCH);
        start.saturating_add(passed + self.skew).unwrap_or(Timestamp::MAX)
    }
}
