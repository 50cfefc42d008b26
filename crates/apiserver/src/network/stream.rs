//! One watch: reads the changes, gets the fate of each event from the network, and delivers the events in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::super::read::{WatchEvent, WatchSpec};
use super::super::refusal::Refusal;
use super::super::store::ChangeKind;
use super::{RequestInfo, Shared, WatchFate};

/// A part of the response. A channel that closes without `End` was disconnected.
pub(crate) enum Piece {
    Line(Bytes),
    End,
}

/// The interval of bookmarks, as in the real server.
const BOOKMARK: Duration = Duration::from_mins(1);
/// The timeout of a watch that specifies none: the minimum of the real server.
const LONGEST: Duration = Duration::from_mins(30);

enum Next {
    Event(WatchEvent),
    Line(Bytes),
    End,
    Reset,
}

struct Stream {
    shared: Arc<Shared>,
    seen: RequestInfo,
    spec: WatchSpec,
    sender: mpsc::UnboundedSender<Piece>,
    /// The version up to which all changes are read.
    version: u64,
    events: u64,
    waiting: VecDeque<(Instant, Next)>,
    /// The time until which events are coalesced.
    gathering: Option<Instant>,
    /// No further changes are read.
    ending: bool,
}

pub(crate) async fn run(shared: Arc<Shared>, seen: RequestInfo, spec: WatchSpec, sender: mpsc::UnboundedSender<Piece>) {
    // Not a `watch` channel: the order in which it wakes its receivers does not depend on the seed.
    let changed: Arc<Notify> = shared.state().changed.entry(spec.what.clone()).or_default().clone();
    let now = Instant::now();
    let end = now + spec.timeout.map_or(LONGEST, Duration::from_secs);
    let mut bookmark = now + BOOKMARK;
    let version = spec.from;
    let mut stream = Stream {
        shared,
        seen,
        spec,
        sender,
        version,
        events: 0,
        waiting: VecDeque::new(),
        gathering: None,
        ending: false,
    };
    stream.begin();
    loop {
        let mut news = std::pin::pin!(changed.notified());
        // Changes from here on are not missed, even before the future is polled.
        news.as_mut().enable();
        stream.take_in();
        let now = Instant::now();
        if !stream.hand_over(now) {
            return;
        }
        let idle = stream.waiting.is_empty() && stream.gathering.is_none();
        if now >= end {
            if idle && stream.spec.bookmarks {
                let _ = stream.sender.send(Piece::Line(stream.spec.bookmark(stream.version)));
            }
            let _ = stream.sender.send(Piece::End);
            return;
        }
        if now >= bookmark {
            bookmark = now + BOOKMARK;
            if idle && stream.spec.bookmarks {
                let _ = stream.sender.send(Piece::Line(stream.spec.bookmark(stream.version)));
            }
        }
        let due = stream.waiting.front().map(|(due, _)| *due);
        let next = [due, stream.gathering, Some(bookmark), Some(end)].into_iter().flatten().min().unwrap_or(end);
        tokio::select! {
            biased;
            () = stream.sender.closed() => return,
            () = &mut news, if stream.gathering.is_none() && !stream.ending => {}
            () = sleep_until(next) => {}
        }
    }
}

impl Stream {
    /// Queues the initial events.
    fn begin(&mut self) {
        let now = Instant::now();
        let compacted = self.shared.state().server.check_version(self.spec.from);
        if let Some(refusal) = compacted {
            self.expire(now, &refusal);
        }
        for event in std::mem::take(&mut self.spec.initial) {
            self.waiting.push_back((now, Next::Event(event)));
        }
    }

    fn take_in(&mut self) {
        let now = Instant::now();
        if self.ending {
            return;
        }
        if let Some(until) = self.gathering {
            if now < until {
                return;
            }
            self.gathering = None;
            return self.take_in_gathered(now);
        }
        let shared = self.shared.clone();
        let mut state = shared.state();
        let state = &mut *state;
        let happened = match state.server.events(&self.spec, self.version) {
            Ok(events) => events,
            Err(refusal) => return self.expire(now, &refusal),
        };
        for event in happened {
            self.events += 1;
            let fate = state.network.watch_event(&self.seen.client, &self.seen, self.events);
            let last = self.waiting.back().map_or(now, |(due, _)| *due).max(now);
            match fate {
                WatchFate::Deliver(after) => {
                    self.version = event.version;
                    self.waiting.push_back((last.max(now + after), Next::Event(event)));
                }
                WatchFate::Coalesce(time) => {
                    self.gathering = Some(last.max(now + time));
                    return;
                }
                WatchFate::End => {
                    self.waiting.push_back((last, Next::End));
                    self.ending = true;
                    return;
                }
                WatchFate::Reset => {
                    self.waiting.push_back((last, Next::Reset));
                    self.ending = true;
                    return;
                }
                WatchFate::Expired => {
                    let version = self.version;
                    let refusal = Refusal::expired(format!("too old resource version: {version} ({})", event.version));
                    return self.expire(last, &refusal);
                }
            }
        }
        self.version = self.version.max(state.server.version());
    }

    /// Queues one event with the last state of each object, and the event of its deletion, which no API server drops.
    /// Objects with the same name but different UIDs are different.
    fn take_in_gathered(&mut self, now: Instant) {
        let (events, version) = {
            let state = self.shared.state();
            (state.server.events(&self.spec, self.version), state.server.version())
        };
        let events = match events {
            Ok(events) => events,
            Err(refusal) => return self.expire(now, &refusal),
        };
        let mut last: BTreeMap<(String, String, String), [Option<WatchEvent>; 2]> = BTreeMap::new();
        for event in events {
            let object = &event.object;
            let key = (object.namespace().to_owned(), object.name().to_owned(), object.uid().to_owned());
            let [state, end] = last.entry(key).or_default();
            match (event.happened, state.as_ref().map(|state| state.happened)) {
                (ChangeKind::Deleted, _) => *end = Some(event),
                (_, Some(happened)) => *state = Some(WatchEvent { happened, ..event }),
                (_, None) => *state = Some(event),
            }
        }
        let mut events: Vec<WatchEvent> = last.into_values().flatten().flatten().collect();
        events.sort_by_key(|event| event.version);
        self.version = self.version.max(version);
        self.waiting.extend(events.into_iter().map(|event| (now, Next::Event(event))));
    }

    fn expire(&mut self, due: Instant, refusal: &Refusal) {
        self.waiting.push_back((due, Next::Line(WatchSpec::error(refusal))));
        self.waiting.push_back((due, Next::End));
        self.ending = true;
    }

    fn note(&self, text: &str) {
        self.shared.write(&format!("{} <- {}", self.seen.client, text));
    }

    /// Delivers everything that is due. Returns whether the stream continues.
    fn hand_over(&mut self, now: Instant) -> bool {
        while self.waiting.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, next)) = self.waiting.pop_front() else { break };
            let line = match next {
                Next::Event(event) => {
                    let (what, happened) = (&self.seen.resource, event.happened);
                    let (namespace, name) = (event.object.namespace(), event.object.name());
                    self.note(&format!("{what} {happened:?} {namespace}/{name} rv={}", event.version));
                    self.spec.line(&event)
                }
                Next::Line(line) => {
                    self.note(&format!("{} too old", self.seen.resource));
                    line
                }
                Next::End => {
                    self.note(&format!("{} ends", self.seen.resource));
                    let _ = self.sender.send(Piece::End);
                    return false;
                }
                Next::Reset => {
                    self.note(&format!("{} reset", self.seen.resource));
                    return false;
                }
            };
            if self.sender.send(Piece::Line(line)).is_err() {
                return false;
            }
        }
        true
    }
}
