//! The same objects from files: `purlin apply` and OpenTofu, as whole processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::processes::measure;
use crate::{opentofu, providers};

const PURLIN: &str = env!("CARGO_BIN_EXE_purlin");

/// The types that are measured.
pub(crate) const KINDS: [&str; 2] = ["terraform_data", "random_id"];

pub(crate) struct Files {
    pub(crate) program: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) objects: usize,
    pub(crate) apply: Duration,
    /// A plan without changes after the apply, which reads every object.
    pub(crate) plan: Duration,
    /// The peak memory of the program, without its providers, in bytes.
    pub(crate) memory: u64,
}

pub(crate) fn purlin(kind: &'static str, objects: usize) -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("objects")).expect("a directory");
    let provider = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: random }}\nspec: {{ package: {{ path: \
         '{}' }} }}\n",
        providers::program("random").display()
    );
    let one = |number: usize| {
        let config = if kind == "random_id" {
            format!("{{ byte_length: 8, keepers: {{ name: item-{number} }} }}")
        } else {
            format!("{{ input: item-{number} }}")
        };
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: item-{number} }}\nspec: {{ type: \
             {kind}, config: {config} }}\n"
        )
    };
    let text: String = std::iter::once(provider).chain((0..objects).map(one)).collect();
    fs::write(directory.path().join("objects/all.yaml"), text).expect("a file");
    let files = ["-f", "objects", "--state", "purlin.db"];
    let run = |command: &[&str]| measure(PURLIN, &[command, &files].concat(), directory.path());
    files_of("Purlin", kind, objects, run(&["apply", "--yes"]), run(&["plan"]))
}

/// `tofu`: the program.
pub(crate) fn opentofu(tofu: &Path, kind: &'static str, objects: usize) -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    let one = |number: usize| {
        let config = if kind == "random_id" {
            format!("byte_length = 8\n  keepers = {{ name = \"item-{number}\" }}")
        } else {
            format!("input = \"item-{number}\"")
        };
        format!("resource \"{kind}\" \"item_{number}\" {{\n  {config}\n}}\n")
    };
    let configuration: String = (0..objects).map(one).collect();
    let tofu = tofu.to_str().expect("UTF-8");
    opentofu::initialize(tofu, &providers::program("random"), directory.path(), &configuration);
    let run = |command: &[&str]| measure(tofu, &[command, &["-no-color"]].concat(), directory.path());
    files_of("OpenTofu 1.12.6", kind, objects, run(&["apply", "-auto-approve"]), run(&["plan"]))
}

fn files_of(
    program: &'static str,
    kind: &'static str,
    objects: usize,
    apply: (Duration, u64),
    plan: (Duration, u64),
) -> Files {
    Files { program, kind, objects, apply: apply.0, plan: plan.0, memory: apply.1.max(plan.1) }
}
