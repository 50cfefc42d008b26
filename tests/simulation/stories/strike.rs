//! One fault at one place of a story: counts the requests and calls of the replicas, and lets the fault happen at the
//! given number.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::{Fate, Network, Outcome, RequestInfo, Verb, WatchFate};
use purlin::process::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::outside::{CallInterrupter, Interruption};
use crate::state_rm::USER;

/// For how long a replica that starts from an old version receives no newer state. It is longer than the lease of the
/// previous process, so that the replica acts on the old state.
const STALE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The process crashes before a request is sent, and starts again in the same Pod.
    CrashBefore,
    /// The process crashes after a request took effect and before the response. Another Pod starts.
    CrashAfter,
    /// Like `CrashAfter`, and the next process lists the state from before the story, and receives newer state much
    /// later.
    StaleStart,
    /// The connection is reset after a request took effect.
    AnswerLost,
    /// The process crashes before a driver call.
    CallCrashBefore,
    /// The process crashes after the effect of a driver call.
    CallCrashAfter,
    /// The provider process exits after the effect of a call.
    CallAnswerLost,
    /// A call fails with a transient error.
    CallFails,
    /// A read or a plan fails.
    QuestionFails,
    /// The driver panics in a read or a plan.
    QuestionPanics,
}

/// What is counted to find the place of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Requests,
    Calls,
    Questions,
}

impl Fault {
    pub(crate) const ALL: [Self; 10] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::StaleStart,
        Self::AnswerLost,
        Self::CallCrashBefore,
        Self::CallCrashAfter,
        Self::CallAnswerLost,
        Self::CallFails,
        Self::QuestionFails,
        Self::QuestionPanics,
    ];

    pub(crate) fn counted(self) -> Counted {
        match self {
            Self::CrashBefore | Self::CrashAfter | Self::StaleStart | Self::AnswerLost => Counted::Requests,
            Self::CallCrashBefore | Self::CallCrashAfter | Self::CallAnswerLost | Self::CallFails => Counted::Calls,
            Self::QuestionFails | Self::QuestionPanics => Counted::Questions,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::StaleStart => "stale-start",
            Self::AnswerLost => "answer-lost",
            Self::CallCrashBefore => "call-crash-before",
            Self::CallCrashAfter => "call-crash-after",
            Self::CallAnswerLost => "call-answer-lost",
            Self::CallFails => "call-fails",
            Self::QuestionFails => "question-fails",
            Self::QuestionPanics => "question-panics",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| format!("FAULT is one of {}", names()))
    }
}

/// A fault, and the number of the request or call at which it happens, starting with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Strike {
    pub(crate) fault: Fault,
    pub(crate) at: usize,
}

/// What happens to a process because of a request, as part of a story.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trap {
    /// It crashes after the effect of the request.
    Crash,
    /// It is paused before the request is sent.
    Pause(Duration),
}

/// A process that has crashed, and the fault that says how it restarts.
#[derive(Clone, Debug)]
pub(crate) struct Crash {
    pub(crate) replica: Arc<str>,
    pub(crate) fault: Fault,
}

#[derive(Default)]
struct State {
    strike: Option<Strike>,
    /// Whether requests and calls are counted: the story has begun and has not ended.
    counts: bool,
    /// The version of the API server when the story began.
    version: u64,
    requests: Vec<String>,
    calls: Vec<String>,
    questions: Vec<String>,
    /// Every call so far, counted or not, such as `create a`.
    called: BTreeSet<String>,
    crash: Option<Crash>,
    /// What happens to the process that sends this request, as part of the story.
    trap: Option<(String, Trap)>,
    /// The process that crashed at the trap.
    trapped: Option<Arc<str>>,
    /// Crashed processes. Their requests and calls are dropped.
    dead: BTreeSet<Arc<str>>,
    /// The replica that starts from an old version, and until when it receives nothing newer.
    stale: Option<(Arc<str>, Instant)>,
    /// A replica without a connection, and until when.
    cut_off: Option<(Arc<str>, Instant)>,
    /// A replica that does nothing, and until when.
    paused: Option<(Arc<str>, Instant)>,
}

/// Injects the fault of a story into the network and the driver calls.
#[derive(Clone, Default)]
pub(crate) struct Strikes {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

impl Strikes {
    pub(crate) fn new(strike: Option<Strike>) -> Self {
        let strikes = Self::default();
        lock(&strikes.state).strike = strike;
        strikes
    }

    /// Starts to count requests and calls.
    pub(crate) fn begin(&self, version: u64) {
        let state = &mut *lock(&self.state);
        (state.counts, state.version) = (true, version);
    }

    /// Stops counting.
    pub(crate) fn end(&self) {
        lock(&self.state).counts = false;
    }

    pub(crate) fn counted(&self, what: Counted) -> Vec<String> {
        let state = lock(&self.state);
        match what {
            Counted::Requests => state.requests.clone(),
            Counted::Calls => state.calls.clone(),
            Counted::Questions => state.questions.clone(),
        }
    }

    /// Whether a driver was ever called like this: `create a`.
    pub(crate) fn was_called(&self, call: &str) -> bool {
        lock(&self.state).called.contains(call)
    }

    /// Sets a trap for the process that sends the next such request: `create /api/v1/...`. A process that crashes is not
    /// restarted.
    pub(crate) fn trap(&self, request: &str, trap: Trap) {
        lock(&self.state).trap = Some((request.to_owned(), trap));
    }

    pub(crate) fn trapped(&self) -> Option<Arc<str>> {
        lock(&self.state).trapped.clone()
    }

    /// Waits for a process to crash.
    pub(crate) async fn crash(&self) -> Crash {
        loop {
            let news = self.news.notified();
            if let Some(crash) = lock(&self.state).crash.take() {
                return crash;
            }
            news.await;
        }
    }

    /// Lets a replica see the state from before the story for a while.
    pub(crate) fn make_stale(&self, replica: &str) {
        lock(&self.state).stale = Some((replica.into(), Instant::now() + STALE));
    }

    /// Cuts off a replica in both directions for a time.
    pub(crate) fn cut_off(&self, replica: &str, time: Duration) {
        lock(&self.state).cut_off = Some((replica.into(), Instant::now() + time));
    }

    /// Delays everything that a replica sends and receives until a time has passed.
    pub(crate) fn pause(&self, replica: &str, time: Duration) {
        lock(&self.state).paused = Some((replica.into(), Instant::now() + time));
    }
}

impl State {
    /// Counts a request or a call, and returns its fault.
    fn struck(&mut self, counted: Counted, what: String) -> Option<Fault> {
        if !self.counts {
            return None;
        }
        let all = match counted {
            Counted::Requests => &mut self.requests,
            Counted::Calls => &mut self.calls,
            Counted::Questions => &mut self.questions,
        };
        all.push(what);
        let number = all.len();
        self.strike.filter(|strike| strike.fault.counted() == counted && strike.at == number).map(|strike| strike.fault)
    }

    fn is_cut_off(&self, replica: &str) -> Option<Duration> {
        left(self.cut_off.as_ref(), replica)
    }

    fn is_paused(&self, replica: &str) -> Option<Duration> {
        left(self.paused.as_ref(), replica)
    }

    fn is_stale(&self, replica: &str) -> Option<Duration> {
        left(self.stale.as_ref(), replica)
    }
}

/// For how long a state of a replica lasts. `None` if it is over, or that of another replica.
fn left(state: Option<&(Arc<str>, Instant)>, replica: &str) -> Option<Duration> {
    let (_, until) = state.filter(|(name, _)| **name == *replica)?;
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

impl Strikes {
    fn kill(&self, state: &mut State, replica: &str, fault: Fault) {
        let replica: Arc<str> = replica.into();
        state.dead.insert(replica.clone());
        state.crash = Some(Crash { replica, fault });
        self.news.notify_one();
    }
}

impl Network for Strikes {
    fn request(&mut self, client: &str, request: &RequestInfo) -> Fate {
        let state = &mut *lock(&self.state);
        let never = Fate { before: Duration::ZERO, outcome: Outcome::Hang, after: Duration::ZERO };
        if client == USER {
            return Fate::quick();
        }
        if state.dead.contains(client) {
            return never;
        }
        if let Some(left) = state.is_cut_off(client) {
            let before = left.min(Duration::from_secs(30));
            return Fate { before, outcome: Outcome::LoseRequest, after: Duration::ZERO };
        }
        let name = format!("{} {} {}", request.verb.as_str(), request.path, request.subresource);
        match state.trap.take_if(|(request, _)| *request == name.trim_end()) {
            Some((_, Trap::Crash)) => {
                state.dead.insert(client.into());
                state.trapped = Some(client.into());
                return Fate { before: Duration::ZERO, outcome: Outcome::Deliver, after: Duration::from_hours(24) };
            }
            Some((_, Trap::Pause(time))) => state.paused = Some((client.into(), Instant::now() + time)),
            None => {}
        }
        match state.struck(Counted::Requests, format!("{client} {}", name.trim_end())) {
            Some(fault @ Fault::CrashBefore) => {
                self.kill(state, client, fault);
                never
            }
            Some(fault @ (Fault::CrashAfter | Fault::StaleStart)) => {
                self.kill(state, client, fault);
                Fate { before: Duration::ZERO, outcome: Outcome::Deliver, after: Duration::from_hours(24) }
            }
            Some(Fault::AnswerLost) => Fate { outcome: Outcome::LoseAnswer, ..Fate::quick() },
            _ if let Some(left) = state.is_paused(client) => Fate { before: left, ..Fate::quick() },
            _ if state.is_stale(client).is_some()
                && request.verb == Verb::List
                // The server reads a list without a version from its storage, so it is never old.
                && request.query.get("resourceVersion").is_some_and(|version| version == "0") =>
            {
                Fate { outcome: Outcome::ListAt(state.version), ..Fate::quick() }
            }
            _ => Fate::quick(),
        }
    }

    fn watch_event(&mut self, client: &str, _: &RequestInfo, _: u64) -> WatchFate {
        let state = lock(&self.state);
        let waits = state.is_cut_off(client).or(state.is_paused(client)).or(state.is_stale(client));
        WatchFate::Deliver(waits.unwrap_or(Duration::from_millis(1)))
    }
}

impl CallInterrupter for Strikes {
    fn call(&self, replica: &Arc<str>, call: &str) -> Interruption {
        let state = &mut *lock(&self.state);
        if state.dead.contains(replica) {
            return Interruption::Before;
        }
        state.called.insert(call.to_owned());
        match state.struck(Counted::Calls, format!("{replica} {call}")) {
            Some(fault @ Fault::CallCrashBefore) => {
                self.kill(state, replica, fault);
                Interruption::Before
            }
            Some(Fault::CallCrashAfter) => Interruption::After,
            Some(Fault::CallAnswerLost) => Interruption::LosesAnswer,
            Some(Fault::CallFails) => Interruption::Fails,
            _ => Interruption::No,
        }
    }

    fn question(&self, replica: &Arc<str>, question: &str) -> Interruption {
        let state = &mut *lock(&self.state);
        if state.dead.contains(replica) {
            return Interruption::Before;
        }
        match state.struck(Counted::Questions, format!("{replica} {question}")) {
            Some(Fault::QuestionPanics) => Interruption::Panics,
            Some(_) => Interruption::Fails,
            None => Interruption::No,
        }
    }

    fn crashed(&self, replica: &Arc<str>) {
        self.kill(&mut lock(&self.state), replica, Fault::CallCrashAfter);
    }
}
