//! Local mode, as whole processes: plan, apply, and plan with nothing to do, of `terraform_data` objects in the shape
//! that the budgets are written for. Each object has two references drawn from the fifty before it; every tenth is
//! create-before-destroy.
//!
//! `cargo bench --bench local` measures 1,000, 10,000 and 100,000 objects; numbers as arguments measure others.
//! Where `tofu` or `terraform` is on the machine, the same 1,000 objects are run through it in the same run.

#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a benchmark prints figures with two digits")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 5;

/// A generator of numbers that every run draws alike.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// The two earlier objects that each object refers to; fewer for the first ones.
fn references(count: usize) -> Vec<Vec<usize>> {
    let mut numbers = Numbers(7);
    (0..count)
        .map(|object| {
            let first = object.saturating_sub(50);
            (0..2).filter(|_| object > 0).map(|_| first + numbers.below(object - first)).collect()
        })
        .collect()
}

fn manifests(count: usize) -> String {
    let mut text = String::new();
    for (object, references) in references(count).into_iter().enumerate() {
        let input: Vec<String> = references.iter().map(|other| format!("${{item_{other}.id}}")).collect();
        let _ = write!(
            text,
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: item-{object}\nspec:\n  type: \
             terraform_data\n  config:\n    input:\n      name: item-{object}\n      after: \"{}\"\n",
            input.join(" ")
        );
        if object % 10 == 0 {
            text.push_str("  lifecycle:\n    createBeforeDestroy: true\n");
        }
    }
    text
}

fn hcl(count: usize) -> String {
    let mut text = String::new();
    for (object, references) in references(count).into_iter().enumerate() {
        let input: Vec<String> =
            references.iter().map(|other| format!("${{terraform_data.item_{other}.id}}")).collect();
        let lifecycle = if object % 10 == 0 { "\n  lifecycle {\n    create_before_destroy = true\n  }" } else { "" };
        let _ = writeln!(
            text,
            "resource \"terraform_data\" \"item_{object}\" {{\n  input = {{\n    name  = \"item-{object}\"\n    after = \
             \"{}\"\n  }}{lifecycle}\n}}",
            input.join(" ")
        );
    }
    text
}

/// Runs a program to its end; gives the wall time and the peak resident memory in bytes.
fn measure(program: &str, arguments: &[&str], folder: &Path) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let code = loop {
        // The high-water mark of a process that has ended cannot be read any more, so the last one before counts.
        if let Ok(text) = fs::read_to_string(&status) {
            let kib = text
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
            peak = kib.map_or(peak, |kib: u64| kib * 1024);
        }
        if let Some(code) = child.try_wait().expect("a child") {
            break code;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(code.success(), "{program} {arguments:?}: {code}");
    (start.elapsed(), peak)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn report(what: &str, count: usize, runs: &[(Duration, u64)]) {
    let time = median(runs.iter().map(|(time, _)| *time).collect());
    let slowest = runs.iter().map(|(time, _)| *time).max().unwrap_or_default();
    let peak = runs.iter().map(|(_, peak)| *peak).max().unwrap_or_default();
    println!(
        "{what:<28} {count:>7} objects  median {:>9.1} ms  slowest {:>9.1} ms  peak {:>7.1} MiB",
        time.as_secs_f64() * 1000.0,
        slowest.as_secs_f64() * 1000.0,
        peak as f64 / f64::from(1 << 20)
    );
}

fn purlin(count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_purlin");
    fs::create_dir(folder.path().join("objects")).expect("a folder");
    fs::write(folder.path().join("objects/all.yaml"), manifests(count)).expect("a file");
    let state = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let runs = if count > 10_000 { 3 } else { RUNS };

    let (mut plans, mut applies, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let file = state(&format!("{run}.db"));
        plans.push(measure(program, &["plan", "-f", "objects", "--state", &file], folder.path()));
        applies.push(measure(program, &["apply", "-f", "objects", "--state", &file, "--yes"], folder.path()));
        nothing.push(measure(program, &["plan", "-f", "objects", "--state", &file], folder.path()));
    }
    report("purlin plan, all new", count, &plans);
    report("purlin apply, durable", count, &applies);
    report("purlin plan, nothing to do", count, &nothing);
}

fn upstream(program: &str, count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("main.tf"), hcl(count)).expect("a file");
    measure(program, &["init", "-no-color"], folder.path());
    let plan = measure(program, &["plan", "-no-color"], folder.path());
    let apply = measure(program, &["apply", "-no-color", "-auto-approve"], folder.path());
    let nothing = measure(program, &["plan", "-no-color"], folder.path());
    report(&format!("{program} plan, all new"), count, &[plan]);
    report(&format!("{program} apply"), count, &[apply]);
    report(&format!("{program} plan, nothing to do"), count, &[nothing]);
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn main() {
    // `cargo bench` passes `--bench`; `cargo test --benches` does not, and then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let given: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if given.is_empty() { vec![1_000, 10_000, 100_000] } else { given };
    for count in counts {
        purlin(count);
    }
    for program in ["tofu", "terraform"].into_iter().filter(|program| exists(program)) {
        upstream(program, 1_000);
    }
}
