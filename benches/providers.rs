//! Providers: how long one takes to start, and 1,000 `random_id` objects through the real provider `random`, each with
//! references to two of the fifty before it, as whole processes.
//!
//! `cargo bench --bench providers` measures 1,000 objects; a number as an argument measures another count. Where `tofu`
//! or `terraform` is on the machine, the same objects are run through it in the same run.

#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a benchmark prints figures with two digits")]

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

/// The version that is told to programs which must be told one.
const VERSION: &str = "3.9.0";

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

/// From nothing to a connection, and to the answer of a first call.
async fn starts(program: &Path) {
    let (mut connected, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut launch = Launch::new("random", program);
        launch.launcher = PURLIN.into();
        let start = Instant::now();
        let client = Client::start(&launch).await.expect("a provider");
        connected.push(start.elapsed());
        client.schema().await.expect("a schema");
        answered.push(start.elapsed());
        client.close().await;
    }
    let told = |times: Vec<Duration>| median(times).as_secs_f64() * 1000.0;
    println!(
        "a provider starts: connected after {:.1} ms, schema told after {:.1} ms",
        told(connected),
        told(answered)
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
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("objects")).expect("a folder");
    fs::write(folder.path().join("objects/all.yaml"), manifests(program, count)).expect("a file");
    let (mut plans, mut applies, mut nothing, mut due) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let file = folder.path().join(format!("{run}.db")).to_string_lossy().into_owned();
        let plan = ["plan", "-f", "objects", "--state", &file];
        plans.push(measure(PURLIN, &plan, folder.path()));
        applies.push(measure(PURLIN, &["apply", "-f", "objects", "--state", &file, "--yes"], folder.path()));
        nothing.push(measure(PURLIN, &plan, folder.path()));
        due.push(measure(PURLIN, &[&plan[..], &["--refresh=due"]].concat(), folder.path()));
    }
    report("purlin plan, all new", count, &plans);
    report("purlin apply, durable", count, &applies);
    report("purlin plan, all read", count, &nothing);
    report("purlin plan, none due", count, &due);
}

fn hcl(count: usize) -> String {
    let mut text = format!(
        "terraform {{\n  required_providers {{\n    random = {{ source = \"hashicorp/random\", version = \"{VERSION}\" }}\n  }}\n}}\n"
    );
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

/// Terraform or OpenTofu with the very same program, from a mirror.
fn upstream(other: &str, program: &Path, count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("main.tf"), hcl(count)).expect("a file");
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let machine = if machine == "x86_64" { "amd64" } else { "arm64" };
    for host in ["registry.terraform.io", "registry.opentofu.org"] {
        let package = format!("mirror/{host}/hashicorp/random/{VERSION}/{system}_{machine}");
        let package = folder.path().join(package);
        fs::create_dir_all(&package).expect("a folder");
        fs::copy(program, package.join(format!("terraform-provider-random_v{VERSION}"))).expect("a copy");
    }
    measure(other, &["init", "-no-color", "-plugin-dir=mirror"], folder.path());
    let plan = measure(other, &["plan", "-no-color"], folder.path());
    let apply = measure(other, &["apply", "-no-color", "-auto-approve"], folder.path());
    let nothing = measure(other, &["plan", "-no-color"], folder.path());
    report(&format!("{other} plan, all new"), count, &[plan]);
    report(&format!("{other} apply"), count, &[apply]);
    report(&format!("{other} plan, nothing to do"), count, &[nothing]);
}
