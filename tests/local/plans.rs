//! The plans of typical changes, as they are printed. `tests/local/plans/README.md` describes the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect_file;
use regex::Regex;

use crate::cli::sandbox::Sandbox;
use crate::providers;

/// The manifests before and after the change have the same name, so that a removed manifest counts as removed.
const MANIFESTS: &str = "files/objects.yaml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/local/plans")
}

/// Puts the paths of the test providers in.
fn with_programs(manifests: &str) -> String {
    let mark = Regex::new(r"PROGRAM-OF-(\w+)").unwrap();
    mark.replace_all(manifests, |found: &regex::Captures<'_>| providers::program(&found[1]).display().to_string())
        .into_owned()
}

/// Replaces generated identifiers, in the order of their first use.
fn with_stable_ids(text: &str) -> String {
    let id = Regex::new(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16})\b").unwrap();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    id.replace_all(text, |found: &regex::Captures<'_>| {
        let next = known.len() + 1;
        format!("id-{}", known.entry(found[0].to_owned()).or_insert(next))
    })
    .into_owned()
}

/// Prepares the state before the change, and returns the plan of the change: standard output, then the problems.
fn plan(case: &Path, flags: &[&str]) -> String {
    let sandbox = Sandbox::new();
    let manifests = |name: &str| fs::read_to_string(case.join(name)).ok().map(|text| with_programs(&text));
    // The directory of the objects of the test providers.
    fs::create_dir(sandbox.path("world")).unwrap();
    if let Some(before) = manifests("before.yaml") {
        sandbox.write(MANIFESTS, &before);
        sandbox.ok(&["apply", "-f", "files", "--yes"]);
    }
    for line in fs::read_to_string(case.join("between.txt")).unwrap_or_default().lines() {
        match line.strip_prefix('!') {
            Some(command) => {
                let status = Command::new("sh").args(["-c", command]).current_dir(sandbox.path("")).status().unwrap();
                assert!(status.success(), "{command}");
            }
            None => drop(sandbox.ok(&line.split(' ').collect::<Vec<_>>())),
        }
    }
    sandbox.write(MANIFESTS, &manifests("after.yaml").unwrap());
    let ran = sandbox.run(&[&["plan", "-f", "files"], flags].concat());
    let problems: String = ran.stderr.lines().skip(1).map(|line| format!("{line}\n")).collect();
    with_stable_ids(&(ran.stdout + &problems))
}

#[test]
fn typical_changes_are_easy_to_read() {
    let mut cases: Vec<PathBuf> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    assert!(cases.len() >= 20, "{cases:?}");
    std::thread::scope(|scope| {
        let plans: Vec<_> = cases.iter().map(|case| (case, scope.spawn(|| plan(case, &[])))).collect();
        for (case, plan) in plans {
            expect_file![case.join("purlin.txt")].assert_eq(&plan.join().unwrap());
        }
    });
}

#[test]
fn everything_is_shown_on_demand() {
    for case in ["destroy", "many_entries", "long_values"] {
        expect_file![root().join(case).join("full.txt")].assert_eq(&plan(&root().join(case), &["--full"]));
    }
}

#[test]
fn no_plan_shows_a_secret_or_a_control_character() {
    let color = Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for case in ["sensitive", "sensitive_json", "blocks", "control_characters"] {
        for flags in [&[][..], &["--full"], &["--color", "always"]] {
            let text = plan(&root().join(case), flags);
            assert!(!text.contains("swordfish"), "{text}");
            let plain = color.replace_all(&text, "").into_owned();
            assert!(!plain.contains(['\u{1b}', '\r', '\t', '\u{202e}']), "{text}");
        }
    }
}
