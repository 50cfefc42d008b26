//! Runs the scenario files, `tests/scenarios/<topic>/<behavior>.txt`. Each file shows one behavior.
//!
//! A file contains a title, a trap (the mistake that the scenario guards against), and rounds. A round starts with
//! `== desired` (manifests) or `== again` (the same manifests): a new process loads them, recovers open intents, plans
//! and applies. `== applied` is applied before the first round. `== meanwhile desired` and `== meanwhile stop` happen
//! while the calls that the script holds are running; then these calls continue. `== script` contains faults and
//! `== options` the options of the run; `file.rs` documents both. All other sections are expected output, which
//! `UPDATE_EXPECT=1 cargo test scenarios` writes. Review it against `docs/ordering.md` before you commit it.

mod file;
mod render;
mod runner;
mod taped;

use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files = Vec::new();
    for topic in fs::read_dir(root).unwrap() {
        let topic = topic.unwrap().path();
        if topic.is_dir() {
            files.extend(fs::read_dir(topic).unwrap().map(|file| file.unwrap().path()));
        }
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

/// Runs a file, and returns its text with the actual output.
fn play(text: &str) -> Result<String, String> {
    let scenario = file::parse(text)?;
    crate::kit::block_on(runner::play(&scenario))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn scenarios_match_their_files() {
    let update = variable("UPDATE_EXPECT").is_some();
    let only = variable("SCENARIO");
    let mut wrong = Vec::new();
    let mut played = 0;
    for path in files() {
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&path).display().to_string();
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        played += 1;
        let text = fs::read_to_string(&path).unwrap();
        match play(&text) {
            Err(problem) => wrong.push(format!("{name}: {problem}")),
            Ok(actual) if actual == text => {}
            Ok(actual) if update => fs::write(&path, actual).unwrap(),
            Ok(actual) => {
                let diff = TextDiff::from_lines(&text, &actual);
                let diff = diff.unified_diff().context_radius(4).header("expected", "actual").to_string();
                wrong.push(format!("{name}:\n{diff}"));
            }
        }
    }
    assert!(played > 0, "no scenario was run");
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{}\n{count} of {played} scenarios failed (SCENARIO=<part of a name> runs one)",
        wrong.join("\n\n")
    );
}

#[test]
fn scenarios_show_no_secrets() {
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        for section in text.split("\n== ").skip(1) {
            let is_input =
                ["applied", "desired", "meanwhile desired", "script"].iter().any(|input| section.starts_with(input));
            assert!(is_input || !section.contains("s3cret"), "{} shows a sensitive value:\n{section}", path.display());
        }
    }
}

#[test]
fn every_scenario_has_a_unique_title_and_a_trap() {
    let mut titles = std::collections::BTreeMap::new();
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        let scenario = file::parse(&text).unwrap();
        assert!(scenario.trap.contains("Trap:"), "{} has no trap", path.display());
        let other = titles.insert(scenario.title.clone(), path.clone());
        assert!(other.is_none(), "{} and {} have the same title", path.display(), other.unwrap_or_default().display());
    }
}

#[test]
fn the_files_in_the_readme_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/scenarios/README.md")).unwrap();
    let differences = fs::read_to_string(root.join("docs/ordering.md")).unwrap();
    let cells = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("| ") || line.starts_with("- **"));
        let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        quoted.filter(|name| name.contains('/') && !name.contains(' ')).map(str::to_owned).collect()
    };
    let named = cells(&text);
    for name in named.iter().chain(&cells(&differences)) {
        let whole = name.starts_with("tests/") || name.starts_with("docs/");
        let file = if whole { root.join(name) } else { root.join("tests/scenarios").join(name) };
        let file = if file.extension().is_some() { file } else { file.with_extension("txt") };
        assert!(file.is_file(), "tests/scenarios/README.md or docs/ordering.md names {name}, which does not exist");
    }
    let numbered = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse::<u32>().ok());
    assert_eq!(numbered.collect::<Vec<_>>(), (1..=62).collect::<Vec<_>>());
    assert!(named.len() > 62, "most rows name a file");
}
