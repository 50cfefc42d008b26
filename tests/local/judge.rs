//! The judge: random histories of edits, failures and crashes, checked by a slow and simple implementation that shares
//! no code with planning and ordering.
//!
//! It checks that every step waits for exactly the steps that the rules R1 to R9 require; that no object is created
//! twice, lost, or destroyed while it is healthy; that a deposed object becomes current again if its successor was not
//! created; that a moved object stays the same; that hooks run before the destroy; that preconditions and policies are
//! satisfied; that a refresh changes nothing; that an adopted object is not created again and has one owner; that a
//! saved plan is applied as saved or not at all; that events report the planned steps; that the records are correct;
//! and that in the end all objects match the desired state.
//!
//! `PURLIN_SEED=n cargo test judge` replays one history and prints its events. `PURLIN_SEEDS=from..to` runs others.

mod imports;
mod history;
mod rules;
mod saved_plans;
mod tape;
mod final_state;
mod plan_check;
mod desired_state;
mod witness;
mod fake_driver;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use history::History;

/// The seeds of every test run. They are fixed, so that failures can be reproduced.
const HISTORIES: Range<u64> = 0..550;

/// The time limit of a history, which takes milliseconds. A slower one blocks permanently, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs one history. Returns its events, and the objection if there is one.
fn judge(seed: u64) -> (Vec<String>, Result<(), String>) {
    let mut history = History::new(seed);
    let living = async {
        let outcome = tokio::time::timeout(PATIENCE, history.live()).await;
        outcome.unwrap_or_else(|_| Err("the history makes no progress".into()))
    };
    let lived = catch_unwind(AssertUnwindSafe(|| crate::kit::block_on(living)));
    let verdict = lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    });
    (history.events, verdict)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn seeds() -> Range<u64> {
    let Some(range) = variable("PURLIN_SEEDS") else { return HISTORIES };
    let (from, to) = range.split_once("..").expect("PURLIN_SEEDS has the form from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn judge_has_no_objections() {
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
                        // More failures would have the same causes.
                        is_enough.store(objections.len() >= 40, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut objections = objections.into_inner().unwrap();
    objections.sort();
    let lines: Vec<String> =
        objections.iter().map(|(seed, what)| format!("PURLIN_SEED={seed} cargo test judge   # {what}")).collect();
    assert!(lines.is_empty(), "{} histories failed:\n{}", lines.len(), lines.join("\n"));
}
