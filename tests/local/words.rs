//! Checks that the words that `docs/glossary.md` forbids are not used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files and directories that users and developers read.
const READ: [&str; 14] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benches",
    "charts",
    "crates",
    "crds",
    "docs",
    "examples",
    "src",
    "tests",
    ".ci",
    ".github",
];

/// Test data that other programs wrote: outputs of Terraform, and vectors of encodings.
const OTHERS: [&str; 5] = [
    "tests/vectors",
    "tests/local/cli/migrating",
    "tests/gitops/go.sum",
    "tests/gitops/argocd/go.sum",
    "tests/controlplane/go.sum",
];

const GLOSSARY: &str = "docs/glossary.md";

/// Returns the words of a text in lower case, with their lines. Identifiers are split into words.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut before = ' ';
        for c in line.chars().chain([' ']) {
            let begins = c.is_uppercase() && before.is_lowercase();
            if (!c.is_alphabetic() || begins) && !word.is_empty() {
                words.push((number + 1, std::mem::take(&mut word)));
            }
            if c.is_alphabetic() {
                word.extend(c.to_lowercase());
            }
            before = c;
        }
    }
    words
}

/// Returns the terms in the first column of the table of forbidden words, each as a sequence of words.
fn forbidden(glossary: &str) -> Vec<Vec<String>> {
    let table = glossary.split("| Not | Use instead |").nth(1).expect("the table");
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let terms = cells.flat_map(|cell| cell.split(", ").map(str::to_owned).collect::<Vec<_>>());
    terms.map(|term| term.split(' ').map(str::to_owned).collect()).collect()
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| files(entry, found));
    } else {
        found.push(path.to_owned());
    }
}

#[test]
fn the_glossary_is_sorted_and_has_each_term_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let glossary = fs::read_to_string(root.join(GLOSSARY)).unwrap();
    let terms: Vec<String> =
        glossary.lines().filter_map(|line| Some(line.strip_prefix("| **")?.split("**").next()?.to_owned())).collect();
    let sorted: BTreeSet<String> = terms.iter().cloned().collect();
    assert_eq!(terms, sorted.into_iter().collect::<Vec<_>>());
    assert!(terms.len() > 40);
}

#[test]
fn words_that_the_glossary_forbids_are_not_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let forbidden = forbidden(&fs::read_to_string(root.join(GLOSSARY)).unwrap());
    assert!(forbidden.iter().any(|term| term.len() == 2) && forbidden.len() > 20);
    let mut all = Vec::new();
    READ.iter().for_each(|part| files(&root.join(part), &mut all));
    let mut found = Vec::new();
    for file in all {
        let name = file.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let is_own = name != GLOSSARY && !OTHERS.iter().any(|other| name.starts_with(other));
        let Some(text) = is_own.then(|| fs::read_to_string(&file).ok()).flatten() else { continue };
        let words = words(&text);
        let plain: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
        for term in &forbidden {
            let at = plain.windows(term.len()).enumerate().filter(|(_, window)| window == term);
            found.extend(at.map(|(at, _)| format!("{name}:{}: {}", words[at].0, term.join(" "))));
        }
    }
    assert!(found.is_empty(), "{} places, see {GLOSSARY}:\n{}", found.len(), found.join("\n"));
}
