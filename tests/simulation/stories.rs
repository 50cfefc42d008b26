//! Fixed stories. Each is played once without a fault. `FAULTS=all cargo test --test simulation stories::` plays each also
//! with each fault at each request of a replica and at each driver call, which takes half an hour on two cores. Without
//! `FAULTS`, one play in [`SHARE`] is played.
//!
//! `STORY=<name> cargo test --test simulation stories::` plays one story with all faults. With `FAULT=<fault>
//! K=<number>` it plays the story with this fault and prints its tape; `FAULT=none` plays it without a fault.

mod approvals;
mod catalogue;
mod changes;
mod cluster;
mod deletions;
mod families;
mod minds;
mod moves;
mod others;
mod play;
mod processes;
mod readiness;
mod replacements;
mod replicas;
mod settings;
mod shards;
mod strike;
mod troubles;
mod values;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::LocalBoxFuture;
use purlin::process::lock;
use testkit::scripted::Recovery;

use play::{Outcome, Play};
use strike::{Counted, Fault, Strike};

/// Of the plays with a fault, `cargo test` plays each story's first, second, ... and then every fifth. It is odd, so that
/// both methods of recovery have their share.
const SHARE: usize = 5;

pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) play: for<'a> fn(&'a Play) -> LocalBoxFuture<'a, ()>,
    flags: &'static [&'static str],
}

impl Story {
    /// Whether a fault may change which objects are created and destroyed, since users revert changes meanwhile.
    fn varies(&self) -> bool {
        self.flags.contains(&"varies")
    }

    /// Whether a process crashes in the story itself.
    fn crashes(&self) -> bool {
        self.flags.contains(&"crashes")
    }
}

/// A story with at most one fault.
#[derive(Clone, Copy)]
struct Item {
    story: &'static Story,
    strike: Option<Strike>,
    recovery: Recovery,
}

impl Item {
    fn play(self, with_tape: bool) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let began = Instant::now();
        let mut outcome = runtime.block_on(Play::run(self.story, self.strike, self.recovery, with_tape));
        outcome.took = began.elapsed();
        runtime.shutdown_background();
        outcome
    }

    fn name(self) -> String {
        let recovery = match self.recovery {
            Recovery::Find => "",
            Recovery::Repeat => " RECOVERY=repeat",
            Recovery::Unknown => " RECOVERY=unknown",
        };
        let Some(strike) = self.strike else { return format!("STORY={} FAULT=none{recovery}", self.story.name) };
        format!("STORY={} FAULT={} K={}{recovery}", self.story.name, strike.fault, strike.at)
    }
}

/// Plays all items, with one thread for each processor. Returns the results in the order of the items.
fn play_all<T: Send>(items: &[Item], judge: impl Fn(Item, Outcome) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(index)
                {
                    let result = judge(*item, item.play(false));
                    lock(&results).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What happened in a story without a fault.
struct Undisturbed {
    requests: usize,
    calls: Vec<String>,
    questions: usize,
    effects: Vec<String>,
    objection: Option<String>,
}

impl Undisturbed {
    fn of(outcome: Outcome) -> Self {
        Self {
            requests: outcome.strikes.counted(Counted::Requests).len(),
            calls: outcome.strikes.counted(Counted::Calls),
            questions: outcome.strikes.counted(Counted::Questions).len(),
            effects: outcome.effects,
            objection: outcome.objection,
        }
    }

    fn count(&self, fault: Fault) -> usize {
        match fault.counted() {
            Counted::Requests => self.requests,
            Counted::Calls => self.calls.len(),
            Counted::Questions => self.questions,
        }
    }
}

/// Every fault at every place of a story, and plays without a fault with the other methods of recovery. With
/// `Recovery::Unknown`, a user must resolve every create whose result is lost, so no result may be lost.
fn disturbed(story: &'static Story, undisturbed: &Undisturbed) -> Vec<Item> {
    let mut items = vec![Item { story, strike: None, recovery: Recovery::Repeat }];
    if !story.crashes() {
        items.push(Item { story, strike: None, recovery: Recovery::Unknown });
    }
    for fault in Fault::ALL {
        for at in 1..=undisturbed.count(fault) {
            let strike = Some(Strike { fault, at });
            items.push(Item { story, strike, recovery: Recovery::Find });
            if fault.counted() == Counted::Calls {
                items.push(Item { story, strike, recovery: Recovery::Repeat });
            }
        }
    }
    items
}

/// The objection of the judge, or a difference to the play without a fault.
fn objection(item: Item, undisturbed: &Undisturbed, outcome: &Outcome) -> Option<String> {
    if let Some(objection) = &outcome.objection {
        return Some(objection.trim().to_owned());
    }
    let (found, expected) = (&outcome.effects, &undisturbed.effects);
    (!item.story.varies() && found != expected).then(|| format!("the effects are {found:?} instead of {expected:?}"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Plays one story with one fault, and prints its tape.
fn show(story: &'static Story, fault: &str) {
    let fault = (fault != "none").then(|| fault.parse::<Fault>().unwrap_or_else(|error| panic!("{error}")));
    let at = variable("K").map_or(1, |text| text.parse().expect("K is a number"));
    let strike = fault.map(|fault| Strike { fault, at });
    let recovery = match variable("RECOVERY").as_deref() {
        None => Recovery::Find,
        Some("unknown") => Recovery::Unknown,
        Some(_) => Recovery::Repeat,
    };
    let undisturbed = Undisturbed::of(Item { story, strike: None, recovery }.play(false));
    let outcome = Item { story, strike, recovery }.play(true);
    outcome.tape.iter().for_each(|line| eprintln!("{line}"));
    for what in [Counted::Requests, Counted::Calls, Counted::Questions] {
        for (index, line) in outcome.strikes.counted(what).iter().enumerate() {
            eprintln!("{what:?} {:>3}: {line}", index + 1);
        }
    }
    eprintln!("{:?}", outcome.effects);
    let objection = objection(Item { story, strike, recovery }, &undisturbed, &outcome);
    assert!(objection.is_none(), "{}", objection.unwrap_or_default());
}

#[test]
fn stories_end_well_wherever_a_fault_strikes() {
    let began = Instant::now();
    let wanted = variable("STORY");
    let chosen = |story: &&Story| wanted.as_ref().is_none_or(|name| story.name == name);
    let stories: Vec<&'static Story> = catalogue::STORIES.iter().filter(chosen).collect();
    assert!(!stories.is_empty(), "there is no such story; the stories are {:?}", catalogue::names());
    if let Some(level) = variable("RUST_LOG") {
        let _ = purlin::process::telemetry::init(purlin::process::telemetry::LogFormat::Text, Some(&level));
    }
    if let (Some(_), Some(fault)) = (&wanted, variable("FAULT")) {
        return show(stories[0], &fault);
    }
    let first: Vec<Item> = stories.iter().map(|story| Item { story, strike: None, recovery: Recovery::Find }).collect();
    let undisturbed = play_all(&first, |_, outcome| Undisturbed::of(outcome));
    let mut failed: Vec<String> = Vec::new();
    for (item, found) in first.iter().zip(&undisturbed) {
        let name = item.name();
        failed.extend(found.objection.as_ref().map(|objection| format!("{name}: {}", objection.trim())));
    }
    let share = if wanted.is_some() || variable("FAULTS").as_deref() == Some("all") { 1 } else { SHARE };
    let share_of = |(index, (story, found)): (usize, (&&'static Story, &Undisturbed))| {
        disturbed(story, found).into_iter().skip(index % share).step_by(share)
    };
    let items: Vec<Item> = stories.iter().zip(&undisturbed).enumerate().flat_map(share_of).collect();
    let of = |story: &'static Story| {
        let index = stories.iter().position(|other| other.name == story.name).expect("it is one of them");
        &undisturbed[index]
    };
    let spent: Mutex<BTreeMap<&str, Duration>> = Mutex::default();
    let objections = play_all(&items, |item, outcome| {
        *lock(&spent).entry(item.story.name).or_default() += outcome.took;
        objection(item, of(item.story), &outcome)
    });
    if variable("TIMES").is_some() {
        eprintln!("{spent:?}");
    }
    let objected = items.iter().zip(objections).filter_map(|(item, objection)| Some((item, objection?)));
    failed.extend(objected.map(|(item, objection)| format!("{}: {objection}", item.name())));
    let requests: usize = undisturbed.iter().map(|found| found.requests).sum();
    let calls: usize = undisturbed.iter().map(|found| found.calls.len()).sum();
    eprintln!(
        "{} stories with {requests} requests and {calls} calls, {} plays{} in {:.1} s, {} objections",
        stories.len(),
        first.len() + items.len(),
        if share == 1 { String::new() } else { format!(", which is one in {share} (FAULTS=all plays all),") },
        began.elapsed().as_secs_f64(),
        failed.len()
    );
    failed.iter().take(60).for_each(|line| eprintln!("{line}"));
    assert!(failed.is_empty(), "replay one with `{} cargo test --test simulation stories::`", short(&failed[0]));
}

/// The name of the play, with which a line begins.
fn short(line: &str) -> &str {
    line.split(": ").next().unwrap_or(line)
}
