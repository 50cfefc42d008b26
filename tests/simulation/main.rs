//! Runs the whole controller in a simulation of the API server, the network, a service and users, on one thread with a
//! paused clock. A seed decides everything that happens: the same seed plays the same history.
//!
//! `HISTORIES=n SEED=s cargo test --release --test simulation` plays n random histories, starting with the seed s. If
//! the judge objects to a history, the test prints its seed and its tape. Fixed stories are in [`stories`].

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking and prints what it found")]

mod administrator;
mod approver;
mod course;
mod faults;
mod kubectl;
mod history;
mod judge;
mod log;
mod cluster_objects;
mod outside;
mod random;
mod replica;
mod shares;
mod state_rm;
mod convergence;
mod stories;
mod observer;
mod user;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use course::Course;
use purlin::process::lock;

/// The number of random histories that `cargo test` plays without `HISTORIES`.
const HISTORIES: u64 = 500;

/// A history that takes so long does not end.
const ENDLESS: Duration = Duration::from_mins(5);

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Ends the test if a history does not end, because something in it repeats at one moment of the simulated time. Otherwise
/// it takes less than a second. Returns when `ended` is disconnected.
#[allow(clippy::disallowed_methods, reason = "the thread of the history cannot be ended")]
fn watch(playing: &Mutex<BTreeMap<u64, Instant>>, ended: &mpsc::Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_secs(1)) {
        let endless = lock(playing).iter().find(|(_, began)| began.elapsed() > ENDLESS).map(|(seed, _)| *seed);
        if let Some(seed) = endless {
            eprintln!("seed {seed}: the history does not end");
            std::process::exit(1);
        }
    }
}

/// Prints the tape of a shortened history that still fails.
fn show_shortened(seed: u64) {
    let course = Course::of(seed).shortened(|course| history::play(course, false).objection.is_some());
    eprintln!("the shortened history:");
    history::play(&course, true).tape.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("shortened from {} acts (`WHOLE=1` shows all): {course}", Course::of(seed).acts.len());
}

#[test]
fn random_histories() {
    let (count, first) = (number("HISTORIES", HISTORIES), number("SEED", 1));
    if let Ok(level) = std::env::var("RUST_LOG") {
        purlin::process::telemetry::init(purlin::process::telemetry::LogFormat::Text, Some(&level)).unwrap();
    }
    let next = AtomicU64::new(first);
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (requests, creates, destroys) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let playing: &Mutex<BTreeMap<u64, Instant>> = &Mutex::default();
    let mut failed: Vec<u64> = std::thread::scope(|scope| {
        let (_ends, ended) = mpsc::channel::<()>();
        scope.spawn(move || watch(playing, &ended));
        let play = || {
            let mut failed = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + count {
                    return failed;
                }
                lock(playing).insert(seed, Instant::now());
                let report = history::play(&Course::of(seed), count == 1);
                lock(playing).remove(&seed);
                requests.fetch_add(report.requests, Ordering::Relaxed);
                creates.fetch_add(report.creates, Ordering::Relaxed);
                destroys.fetch_add(report.destroys, Ordering::Relaxed);
                if count == 1 && (report.objection.is_none() || std::env::var_os("WHOLE").is_some()) {
                    report.tape.iter().for_each(|line| eprintln!("{line}"));
                }
                if let Some(objection) = report.objection {
                    eprintln!("seed {seed}: {objection}");
                    failed.push(seed);
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    eprintln!(
        "{count} histories from seed {first} in {seconds:.1} s ({:.0} a second): {requests:?} requests, {creates:?} \
         objects created, {destroys:?} destroyed, {} objections",
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds,
        failed.len()
    );
    failed.sort_unstable();
    if let Some(first) = failed.first().filter(|_| std::env::var_os("WHOLE").is_none()) {
        show_shortened(*first);
    }
    assert!(failed.is_empty(), "replay one with `HISTORIES=1 SEED={} cargo test --test simulation`", failed[0]);
}

#[test]
fn a_seed_plays_the_same_history_again() {
    for course in (1..=5).map(Course::of) {
        let [first, second] = [(), ()].map(|()| history::play(&course, true).tape);
        let differs = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!((differs, first.len()), (None, second.len()), "seed {}", course.seed);
    }
}
