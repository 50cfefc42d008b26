//! Providers: the start of a provider process, and 1,000 `random_id` objects with the real provider `random`, measured
//! as whole processes. Each object references two of the fifty objects before it.
//!
//! `cargo bench --bench providers` measures 1,000 objects; a number as an argument selects another count. If `tofu` or
//! `terraform` is installed, it is measured with the same objects in the same run.

#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a benchmark prints figures with two digits")]

mod opentofu;
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod processes;
#[path = "../tests/support/programs.rs"]
mod programs;
#[path = "../tests/support/providers.rs"]
mod providers;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use processes::{exists, measure, median, references, report};
use purlin::plugin::{Client, Launch};

const PURLIN: &str = env!("CARGO_BIN_EXE_purlin");
const RUNS: usize = 5;
const STARTS: usize = 20;

fn main() {
    // `cargo bench` passes `--bench`; `cargo test --benches` does not, and then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000);
    let program = providers::program("random");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(starts(&program));
    purlin(&program, count);
    for other in ["tofu", "terraform"].into_iter().filter(|program| exists(program)) {
        upstream(other, &program, count);
    }
}

/// Measures the time until a provider is connected, and until it has returned its schema.
async fn starts(program: &Path) {
    let (mut connected, mut schema_read) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut launch = Launch::new("random", program);
        launch.launcher = PURLIN.into();
        let start = Instant::now();
        let client = Client::start(&launch).await.expect("a provider");
        connected.push(start.elapsed());
        client.schema().await.expect("a schema");
        schema_read.push(start.elapsed());
        client.close().await;
    }
    let milliseconds = |times: Vec<Duration>| median(times).as_secs_f64() * 1000.0;
    println!(
        "a provider starts: connected after {:.1} ms, schema read after {:.1} ms",
        milliseconds(connected),
        milliseconds(schema_read)
    );
}

fn manifests(program: &Path, count: usize) -> String {
    let mut text = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: random }}\nspec: {{ package: {{ path: '{}' }} }}\n",
        program.display()
    );
    for (object, references) in references(count).into_iter().enumerate() {
        let _ = write!(
            text,
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: item-{object} }}\nspec:\n  type: \
             random_id\n  config:\n    byte_length: 8\n    keepers:\n      name: item-{object}\n"
        );
        for (place, other) in references.iter().enumerate() {
            let _ = writeln!(text, "      after_{place}: ${{item_{other}.id}}");
        }
    }
    text
}

fn purlin(program: &Path, count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("objects")).expect("a directory");
    fs::write(directory.path().join("objects/all.yaml"), manifests(program, count)).expect("a file");
    let (mut plans, mut applies, mut nothing, mut due) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let file = directory.path().join(format!("{run}.db")).to_string_lossy().into_owned();
        let plan = ["plan", "-f", "objects", "--state", &file];
        plans.push(measure(PURLIN, &plan, directory.path()));
        applies.push(measure(PURLIN, &["apply", "-f", "objects", "--state", &file, "--yes"], directory.path()));
        nothing.push(measure(PURLIN, &plan, directory.path()));
        due.push(measure(PURLIN, &[&plan[..], &["--refresh=due"]].concat(), directory.path()));
    }
    report("purlin plan, all new", count, &plans);
    report("purlin apply, durable", count, &applies);
    report("purlin plan, all read", count, &nothing);
    report("purlin plan, none due", count, &due);
}

fn hcl(count: usize) -> String {
    let mut text = String::new();
    for (object, references) in references(count).into_iter().enumerate() {
        let _ = write!(
            text,
            "resource \"random_id\" \"item_{object}\" {{\n  byte_length = 8\n  keepers = {{\n    name = \"item-{object}\"\n"
        );
        for (place, other) in references.iter().enumerate() {
            let _ = writeln!(text, "    after_{place} = random_id.item_{other}.id");
        }
        text.push_str("  }\n}\n");
    }
    text
}

/// Measures Terraform or OpenTofu with the same provider program, from a mirror.
fn upstream(other: &str, program: &Path, count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    opentofu::initialize(other, program, directory.path(), &hcl(count));
    let plan = measure(other, &["plan", "-no-color"], directory.path());
    let apply = measure(other, &["apply", "-no-color", "-auto-approve"], directory.path());
    let nothing = measure(other, &["plan", "-no-color"], directory.path());
    report(&format!("{other} plan, all new"), count, &[plan]);
    report(&format!("{other} apply"), count, &[apply]);
    report(&format!("{other} plan, nothing to do"), count, &[nothing]);
}
