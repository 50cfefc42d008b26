//! A network with faults, which a seed determines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::{Fate, Network, Outcome, RequestInfo, WatchFate};
use purlin::process::lock;
use tokio::time::Instant;

use crate::random::Seeded;

/// How often each fault happens, in a thousand requests or events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkFaults {
    pub(crate) loses_request: u64,
    pub(crate) loses_answer: u64,
    pub(crate) refuses: u64,
    /// A proxy rejects a write with a code for which a retry does not help.
    pub(crate) rejects_permanently: u64,
    pub(crate) is_slow: u64,
    pub(crate) lists_old: u64,
    pub(crate) watch_lags: u64,
    pub(crate) watch_coalesces: u64,
    pub(crate) watch_ends: u64,
}

impl NetworkFaults {
    /// Every fault may happen, about a few times in each history.
    pub(crate) fn random(random: &mut Seeded) -> Self {
        let mut some = |most: u64| if random.chance(500) { random.below(most) } else { 0 };
        Self {
            loses_request: some(60),
            loses_answer: some(60),
            refuses: some(60),
            rejects_permanently: some(20),
            is_slow: some(100),
            lists_old: some(300),
            watch_lags: some(200),
            watch_coalesces: some(200),
            watch_ends: some(60),
        }
    }

    pub(crate) fn faults(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("a request is lost", &mut self.loses_request),
            ("an answer is lost", &mut self.loses_answer),
            ("a request is rejected", &mut self.refuses),
            ("a write is rejected permanently", &mut self.rejects_permanently),
            ("a request is slow", &mut self.is_slow),
            ("a list is old", &mut self.lists_old),
            ("a watch lags", &mut self.watch_lags),
            ("events are merged", &mut self.watch_coalesces),
            ("a watch ends", &mut self.watch_ends),
        ]
    }
}

/// What the network does now. Histories change it while they run.
#[derive(Default)]
struct State {
    faults: NetworkFaults,
    /// Clients without a connection, and until when.
    cut_off: BTreeMap<String, Instant>,
    /// Clients that do nothing, and until when.
    paused: BTreeMap<String, Instant>,
    /// Clients whose requests to Leases and whose status writes are rejected, and until when.
    throttled: BTreeMap<String, Instant>,
}

/// A network that a history controls.
#[derive(Clone)]
pub(crate) struct FaultyNetwork {
    state: Arc<Mutex<State>>,
    seed: u64,
    /// How often each client has sent the same request. The fate of a request depends only on this number, so that a
    /// history keeps its faults when an act is left out.
    asked: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl FaultyNetwork {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: Arc::default(), seed, asked: Arc::default() }
    }

    pub(crate) fn set(&self, faults: NetworkFaults) {
        lock(&self.state).faults = faults;
    }

    /// Cuts off a client in both directions for a time.
    pub(crate) fn cut_off(&self, client: &str, time: Duration) {
        lock(&self.state).cut_off.insert(client.to_owned(), Instant::now() + time);
    }

    /// Delays everything that a client sends and receives until a time has passed, as if its process did nothing.
    pub(crate) fn pause(&self, client: &str, time: Duration) {
        lock(&self.state).paused.insert(client.to_owned(), Instant::now() + time);
    }

    /// Rejects the requests of a client to Leases and its status writes for a time, as an overloaded server does.
    pub(crate) fn throttle(&self, client: &str, time: Duration) {
        lock(&self.state).throttled.insert(client.to_owned(), Instant::now() + time);
    }

    fn random(&self, what: String) -> Seeded {
        let mut asked = lock(&self.asked);
        let number = asked.entry(what.clone()).or_default();
        *number += 1;
        Seeded::of(self.seed, &what, *number)
    }

    /// Ends all faults.
    pub(crate) fn clear(&self) {
        *lock(&self.state) = State::default();
    }
}

impl State {
    fn is_cut_off(&self, client: &str) -> Option<Duration> {
        left(*self.cut_off.get(client)?)
    }

    fn is_paused(&self, client: &str) -> Option<Duration> {
        left(*self.paused.get(client)?)
    }
}

/// The time until an instant. `None` if it has passed.
fn left(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

impl Network for FaultyNetwork {
    fn request(&mut self, client: &str, request: &RequestInfo) -> Fate {
        let state = lock(&self.state);
        let what = format!("{client} {} {} {}", request.verb.as_str(), request.path, request.subresource);
        let random = &mut self.random(what);
        let faults = state.faults;
        if let Some(left) = state.is_cut_off(client) {
            // A client detects a dead connection late.
            return Fate {
                before: left.min(Duration::from_secs(30)),
                outcome: Outcome::LoseRequest,
                after: Duration::ZERO,
            };
        }
        if let Some(left) = state.is_paused(client) {
            return Fate { before: left, ..Fate::quick() };
        }
        let longest = if random.chance(faults.is_slow) { 5_000 } else { 3 };
        let (before, after) = (random.millis(0, longest), random.millis(0, longest));
        let is_read = matches!(request.verb.as_str(), "get" | "list" | "watch");
        // The server reads a list without a version from its storage, so it is never old.
        let is_list = request.verb.as_str() == "list" && request.query.get("resourceVersion").is_some_and(|v| v == "0");
        let refuse = |code: u16, reason: &str, retry_after| Outcome::Refuse {
            code,
            reason: reason.to_owned(),
            message: "the simulated server rejected the request".to_owned(),
            retry_after,
        };
        let is_throttled = state.throttled.get(client).is_some_and(|until| *until > Instant::now())
            && (request.path.contains("/leases") || request.subresource == "status");
        let outcome = match () {
            () if is_throttled => refuse(429, "TooManyRequests", Some(1)),
            () if is_list && random.chance(faults.lists_old) => {
                Outcome::ListAt(request.version.saturating_sub(random.below(12)).max(1))
            }
            () if random.chance(faults.loses_request) => Outcome::LoseRequest,
            () if random.chance(faults.loses_answer) => Outcome::LoseAnswer,
            () if random.chance(faults.refuses) => match random.below(4) {
                0 => refuse(429, "TooManyRequests", Some(1)),
                1 => refuse(500, "InternalError", None),
                2 => refuse(503, "ServiceUnavailable", None),
                _ => refuse(504, "Timeout", None),
            },
            () if !is_read && random.chance(faults.rejects_permanently) => {
                let (code, reason) =
                    *random.pick(&[(400, "BadRequest"), (413, "RequestEntityTooLarge"), (422, "Invalid")]);
                refuse(code, reason, None)
            }
            () => Outcome::Deliver,
        };
        Fate { before, outcome, after }
    }

    fn watch_event(&mut self, client: &str, watch: &RequestInfo, _: u64) -> WatchFate {
        let state = lock(&self.state);
        let random = &mut self.random(format!("{client} event of {}", watch.path));
        let faults = state.faults;
        if let Some(left) = state.is_cut_off(client).or(state.is_paused(client)) {
            return WatchFate::Deliver(left);
        }
        match () {
            () if random.chance(faults.watch_lags) => WatchFate::Deliver(random.millis(0, 4_000)),
            () if random.chance(faults.watch_coalesces) => WatchFate::Coalesce(random.millis(0, 3_000)),
            () if random.chance(faults.watch_ends) => match random.below(3) {
                0 => WatchFate::End,
                1 => WatchFate::Expired,
                _ => WatchFate::Reset,
            },
            () => WatchFate::Deliver(random.millis(0, 3)),
        }
    }
}
