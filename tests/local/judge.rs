//! The independent judge: random histories of edits, failures and crashes, watched by a slow and obvious checker that
//! shares nothing with planning and ordering.
//!
//! It holds that every step runs after everything that the rules R1 to R9 say it waits for, and after nothing else,
//! nothing is made twice, nothing is lost, nothing healthy is destroyed, what was deposed comes back when nothing was
//! made, what gets another name, a key, or loses it is the same object, a hook runs before what it is for is destroyed,
//! preconditions and policies are kept to, a plan that only reads changes nothing, what is adopted is neither made a
//! second time nor taken by two, a saved plan does what it said or nothing, events tell of the steps that the plan
//! announced, records tell the truth, and in the end everything is as it is wanted.
//!
//! `PURLIN_SEED=n cargo test judge` replays one history and tells what happened in it; `PURLIN_SEEDS=from..to` judges
//! others than the usual ones.

mod adopting;
mod history;
mod rules;
mod saving;
mod tape;
mod verdict;
mod view;
mod wish;
mod witness;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use history::History;

/// The histories of every test run. The same ones each time, so that a failure is nobody's bad luck.
const HISTORIES: Range<u64> = 0..550;

/// A history takes milliseconds; one that is not over by then waits for something that never comes. Who judges thousands
/// of them lets other work go first, and waits longer.
fn patience() -> Duration {
    let is_by_the_way = variable("PURLIN_SEEDS").is_some();
    Duration::from_secs(if is_by_the_way { 120 } else { 5 })
}

/// Lives through one history; gives what happened in it, and the objection.
fn judge(seed: u64) -> (Vec<String>, Result<(), String>) {
    let mut history = History::new(seed);
    let living = async {
        let outcome = tokio::time::timeout(patience(), history.live()).await;
        outcome.unwrap_or_else(|_| Err("nothing happens any more".into()))
    };
    let lived = catch_unwind(AssertUnwindSafe(|| crate::kit::block_on(living)));
    let verdict = lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    });
    (history.trail, verdict)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn seeds() -> Range<u64> {
    let Some(range) = variable("PURLIN_SEEDS") else { return HISTORIES };
    let (from, to) = range.split_once("..").expect("PURLIN_SEEDS is written from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn judge_finds_nothing_to_object_to() {
    if let Some(seed) = variable("PURLIN_SEED") {
        let seed = seed.parse().expect("PURLIN_SEED is a number");
        let (trail, verdict) = judge(seed);
        println!("{}", trail.join("\n"));
        verdict.unwrap();
        return;
    }
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let is_enough = AtomicBool::new(false);
    let objections: Mutex<Vec<(u64, String)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_enough.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let (_, Err(objection)) = judge(seed) {
                        let mut objections = objections.lock().unwrap();
                        objections.push((seed, objection));
                        // More would say the same again.
                        is_enough.store(objections.len() >= 40, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut objections = objections.into_inner().unwrap();
    objections.sort();
    let told: Vec<String> =
        objections.iter().map(|(seed, what)| format!("PURLIN_SEED={seed} cargo test judge   # {what}")).collect();
    assert!(told.is_empty(), "{} histories went wrong:\n{}", told.len(), told.join("\n"));
}
