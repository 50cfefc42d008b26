//! Compares outputs, apart from what differs in every run.

use std::sync::LazyLock;

use regex::Regex;

/// What differs in every run, and what a page shows instead.
static VOLATILE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // Printed to standard error by every command on files.
        (r"(?m)^Working on .*\n", ""),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "5b6f0c1e-8a3d-4f27-9c4e-d1b2a3f4e5c6"),
        (r"\(deposed [0-9a-f]{8}\)", "(deposed 8e7cdf03)"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-11-23T08:15:30Z"),
    ];
    rules.map(|(pattern, shown)| (Regex::new(pattern).unwrap(), shown)).to_vec()
});

/// What is compared without being replaced: durations, the suffixes of generated names, digests, and the widths of columns.
static LOOSE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b(\d+m)?\d+(\.\d+)?(ms|s|m|h)\b", "TIME"),
        (r"\b(site|web)(-[a-z0-9]+)?-[a-z0-9]{5}\b", "GENERATED"),
        (r"\bpreview-[a-z0-9]{5}\b", "GENERATED"),
        // Digests of changes, and the names of their Plans, depend on the salt of the installation.
        (r"\b(app|database|store)-[0-9a-f]{10}\b", "PLAN"),
        (r"\b[0-9a-f]{64}\b", "DIGEST"),
        (r"\b10(\.\d+){3}\b", "IP"),
        (r"(\S) {2,}", "$1 "),
        (r" +\n", "\n"),
    ];
    rules.map(|(pattern, shown)| (Regex::new(pattern).unwrap(), shown)).to_vec()
});

/// The output of a run as a page shows it.
pub(crate) fn presentable(output: &str) -> String {
    let text = VOLATILE.iter().fold(output.to_owned(), |text, (rule, shown)| rule.replace_all(&text, *shown).into());
    text.trim_end().trim_start_matches('\n').to_owned() + "\n"
}

fn comparable(output: &str) -> String {
    LOOSE.iter().fold(presentable(output), |text, (rule, shown)| rule.replace_all(&text, *shown).into())
}

/// Whether the output of a run is the one that a page shows.
pub(super) fn is_same(shown: &str, actual: &str) -> bool {
    let (shown, actual) = (comparable(shown), comparable(actual));
    matches(&shown.lines().collect::<Vec<_>>(), &actual.lines().collect::<Vec<_>>())
}

/// As [`is_same`], for steps that run in parallel.
pub(super) fn has_the_same_lines(shown: &str, actual: &str) -> bool {
    let (shown, actual) = (comparable(shown), comparable(actual));
    let (mut shown, mut actual): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), actual.lines().collect());
    if shown.contains(&"...") {
        shown.retain(|line| !matches!(*line, "" | "..."));
        actual.retain(|line| shown.contains(line));
    }
    shown.sort_unstable();
    actual.sort_unstable();
    shown == actual
}

/// A line `...` stands for any number of lines.
fn matches(shown: &[&str], actual: &[&str]) -> bool {
    match shown {
        [] => actual.is_empty(),
        [first, rest @ ..] if first.trim() == "..." => (0..=actual.len()).any(|skip| matches(rest, &actual[skip..])),
        [first, rest @ ..] => actual.first() == Some(first) && matches(rest, &actual[1..]),
    }
}
