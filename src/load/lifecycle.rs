//! The entries of `spec.lifecycle` that are small languages of their own.
//!
//! Takes the texts as they were given, gives what they mean and the problems found, without address.

use std::sync::Arc;

use super::IgnoredChange;
use super::decode::field;
use crate::model::{Diagnostic, Diagnostics, Path, Reason, Severity};

/// `lifecycle.ignoreChanges`: paths into the configuration, or `all`. What only a schema can tell is left to planning.
pub(super) fn ignore_changes(texts: &[Arc<str>]) -> (Arc<[IgnoredChange]>, Diagnostics) {
    let mut found = Diagnostics::new();
    let mut ignored: Vec<IgnoredChange> = Vec::with_capacity(texts.len());
    let has_all = texts.iter().any(|text| text.as_ref() == "all");
    for (index, text) in texts.iter().enumerate() {
        let at = ignore_changes_path(index);
        let entry = match text.parse::<Path>() {
            _ if text.as_ref() == "all" => IgnoredChange::All,
            Ok(path) => IgnoredChange::At(path),
            Err(problem) => {
                let what = format!("`{text}` is no path of an attribute: {problem}");
                let hint = if text.as_ref() == "*" {
                    "write `all` to ignore every difference"
                } else {
                    "write paths as `tags`, `tags[\"Owner\"]` or `rule[0].port`"
                };
                found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
                continue;
            }
        };
        if let Some(why) = redundant(&entry, &ignored, texts, has_all) {
            found.push(redundancy(format!("`{text}` has no effect: {why}")).at(at));
        }
        ignored.push(entry);
    }
    (ignored.into(), found)
}

/// The place of an entry.
pub(crate) fn ignore_changes_path(index: usize) -> Path {
    field(&["spec", "lifecycle", "ignoreChanges"]).index(index)
}

/// A warning about an entry that does nothing.
fn redundancy(what: String) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..Diagnostic::general(Reason::InvalidManifest, what) }
}

/// Why an entry does nothing, beside those before it and the texts of all.
fn redundant(entry: &IgnoredChange, before: &[IgnoredChange], texts: &[Arc<str>], has_all: bool) -> Option<String> {
    match entry {
        IgnoredChange::All if before.contains(entry) => Some("it stands there twice".to_owned()),
        IgnoredChange::All => None,
        IgnoredChange::At(_) if has_all => Some("`all` covers it".to_owned()),
        IgnoredChange::At(_) if before.contains(entry) => Some("it stands there twice".to_owned()),
        IgnoredChange::At(path) => {
            let others = texts.iter().filter_map(|text| text.parse::<Path>().ok());
            let mut covering = others.filter(|other| other != path && path.starts_with(other));
            covering.next().map(|other| format!("`{other}` covers it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(texts: &[&str], expected: &Expect) {
        let texts: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
        let (_, found) = ignore_changes(&texts);
        let lines = found.iter().map(|problem| format!("{:?}: {problem}\n", problem.severity));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn entries_are_paths_or_all() {
        let texts = ["all", "tags[\"Owner\"]"].map(Arc::from);
        let (ignored, _) = ignore_changes(&texts);
        let path = Path::default().name("tags").name("Owner");
        assert_eq!(*ignored, [IgnoredChange::All, IgnoredChange::At(path)]);
        check(
            &["*", "tags[", "a..b"],
            &expect![[r#"
                Error: spec.lifecycle.ignoreChanges[0]: `*` is no path of an attribute: the name of an attribute is missing before `*` (hint: write `all` to ignore every difference)
                Error: spec.lifecycle.ignoreChanges[1]: `tags[` is no path of an attribute: `[` at column 5 is followed by neither a number nor a quoted key and `]` (hint: write paths as `tags`, `tags["Owner"]` or `rule[0].port`)
                Error: spec.lifecycle.ignoreChanges[2]: `a..b` is no path of an attribute: the name of an attribute is missing before `.` (hint: write paths as `tags`, `tags["Owner"]` or `rule[0].port`)
            "#]],
        );
    }

    #[test]
    fn an_entry_that_does_nothing_is_a_warning() {
        check(
            &["tags.a", "tags", "rule[0]", "rule[0]"],
            &expect![[r#"
                Warning: spec.lifecycle.ignoreChanges[0]: `tags.a` has no effect: `tags` covers it
                Warning: spec.lifecycle.ignoreChanges[3]: `rule[0]` has no effect: it stands there twice
            "#]],
        );
        check(
            &["tags", "all"],
            &expect![[r#"
                Warning: spec.lifecycle.ignoreChanges[0]: `tags` has no effect: `all` covers it
            "#]],
        );
    }
}
