//! Local mode, measured as whole processes: plan, apply, and plan without changes, of `terraform_data` objects. The
//! performance budgets assume these objects: each has two random references to the fifty objects before it, and every
//! tenth is create-before-destroy. They are measured as manifests, and as a Terraform configuration in twenty modules.
//!
//! `cargo bench --bench local` measures 1,000, 10,000 and 100,000 objects; numbers as arguments select other counts. If
//! `tofu` or `terraform` is installed, it is measured with the same 1,000 objects in the same run.

#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a benchmark prints figures with two digits")]

#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod processes;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use processes::{exists, measure, references, report};

const RUNS: usize = 5;

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

/// A configuration in twenty modules. The objects of each have the same references as those of the manifests.
fn write_modules(directory: &Path, count: usize) {
    const MODULES: usize = 20;
    let calls: String =
        (0..MODULES).map(|number| format!("module \"part_{number}\" {{\n  source = \"./part\"\n}}\n")).collect();
    fs::create_dir_all(directory.join("part")).expect("a directory");
    fs::write(directory.join("main.tf"), calls).expect("a file");
    fs::write(directory.join("part/main.tf"), hcl(count / MODULES)).expect("a file");
}

/// A Terraform configuration in the same directory layout for Purlin and the others.
fn configuration(count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    write_modules(directory.path(), count);
    let program = env!("CARGO_BIN_EXE_purlin");
    let runs = if count > 10_000 { 3 } else { RUNS };
    let (mut plans, mut applies, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let file = directory.path().join(format!("{run}.db")).to_string_lossy().into_owned();
        plans.push(measure(program, &["plan", "--state", &file], directory.path()));
        applies.push(measure(program, &["apply", "--state", &file, "--yes"], directory.path()));
        nothing.push(measure(program, &["plan", "--state", &file], directory.path()));
    }
    report("purlin plan in 20 modules, all new", count, &plans);
    report("purlin apply in 20 modules, durable", count, &applies);
    report("purlin plan in 20 modules, nothing to do", count, &nothing);
}

fn purlin(count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_purlin");
    fs::create_dir(directory.path().join("objects")).expect("a directory");
    fs::write(directory.path().join("objects/all.yaml"), manifests(count)).expect("a file");
    let state = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let runs = if count > 10_000 { 3 } else { RUNS };

    let (mut plans, mut applies, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let file = state(&format!("{run}.db"));
        plans.push(measure(program, &["plan", "-f", "objects", "--state", &file], directory.path()));
        applies.push(measure(program, &["apply", "-f", "objects", "--state", &file, "--yes"], directory.path()));
        nothing.push(measure(program, &["plan", "-f", "objects", "--state", &file], directory.path()));
    }
    report("purlin plan, all new", count, &plans);
    report("purlin apply, durable", count, &applies);
    report("purlin plan, nothing to do", count, &nothing);
}

fn upstream(program: &str, count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    write_modules(directory.path(), count);
    measure(program, &["init", "-no-color"], directory.path());
    let plan = measure(program, &["plan", "-no-color"], directory.path());
    let apply = measure(program, &["apply", "-no-color", "-auto-approve"], directory.path());
    let nothing = measure(program, &["plan", "-no-color"], directory.path());
    report(&format!("{program} plan in 20 modules, all new"), count, &[plan]);
    report(&format!("{program} apply in 20 modules"), count, &[apply]);
    report(&format!("{program} plan in 20 modules, nothing to do"), count, &[nothing]);
}

fn main() {
    // `cargo bench` passes `--bench`; `cargo test --benches` does not, and then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let arguments: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if arguments.is_empty() { vec![1_000, 10_000, 100_000] } else { arguments };
    for count in counts {
        purlin(count);
        configuration(count);
    }
    for program in ["tofu", "terraform"].into_iter().filter(|program| exists(program)) {
        upstream(program, 1_000);
    }
}
