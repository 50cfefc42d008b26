//! Reads `spec.managementPolicies` and the entries of `spec.lifecycle` that have a syntax. Problems have no address.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::expression::Variable;
use super::intern::{Interner, shared_slice};
use super::tree::Tree;
use super::{Policies, Reference, Template, Trigger};
use api::ManagementPolicy;
use model::{Diagnostic, Diagnostics, IgnoredChange, Path, Reason, Severity};

/// Parses `lifecycle.ignoreChanges`: attribute paths, or `all`. Checks that need a schema are done by the planner.
pub fn ignore_changes(texts: &[String]) -> (Arc<[IgnoredChange]>, Diagnostics) {
    let mut found = Diagnostics::new();
    let mut ignored: Vec<IgnoredChange> = Vec::with_capacity(texts.len());
    let parsed: Vec<_> = texts.iter().map(|text| text.parse::<Path>()).collect();
    let covering = covering(&parsed.iter().filter_map(|path| path.as_ref().ok()).collect());
    let has_all = texts.iter().any(|text| text == "all");
    let mut seen = HashSet::new();
    for (index, (text, path)) in texts.iter().zip(&parsed).enumerate() {
        let at = ignore_changes_path(index);
        let entry = match path {
            _ if text == "all" => IgnoredChange::All,
            Ok(path) => IgnoredChange::At(path.clone()),
            Err(problem) => {
                let what = format!("`{text}` is not a valid attribute path: {problem}");
                let hint = if text == "*" {
                    "write `all` to ignore all changes"
                } else {
                    "write a path such as `tags`, `tags[\"Owner\"]` or `rule[0].port`"
                };
                found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
                continue;
            }
        };
        let is_first = seen.insert(entry.clone());
        let why = match &entry {
            IgnoredChange::At(_) if has_all => Some("`all` covers it".to_owned()),
            _ if !is_first => Some("it is a duplicate".to_owned()),
            IgnoredChange::All => None,
            IgnoredChange::At(path) => covering.get(path).map(|other| format!("`{other}` covers it")),
        };
        if let Some(why) = why {
            found.push(redundancy_warning(format!("`{text}` has no effect: {why}")).at(at));
        }
        ignored.push(entry);
    }
    (shared_slice(ignored), found)
}

/// Parses `lifecycle.replaceTriggeredBy`: references to Resources, which are also dependencies.
pub fn replace_triggered_by(
    texts: &[String],
    variables: &'static [Variable],
    references: &mut Vec<Reference>,
    interner: &mut Interner,
) -> (Arc<[Trigger]>, Diagnostics) {
    let mut found = Diagnostics::new();
    let mut triggers = Vec::with_capacity(texts.len());
    let mut seen = HashSet::new();
    for (index, text) in texts.iter().enumerate() {
        let at = replace_triggered_by_path(index);
        if text.trim().is_empty() || text.contains("${") {
            let (what, hint) = match text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(inside) => (format!("`{text}` must not be a template"), format!("write `{inside}`")),
                None => (format!("`{text}` does not reference a Resource"), TRIGGER_HINT.to_owned()),
            };
            found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
            continue;
        }
        if !seen.insert(text) {
            let what = format!("duplicate entry `{text}`");
            found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint("remove one of them"));
            continue;
        }
        let tree = Tree::string(&format!("${{{text}}}"));
        let (path, targets, faults) = Template::parse(&tree, &at, variables, interner);
        match path.depth() {
            Some(_) if targets.iter().any(|reference| reference.target.is_data()) => {
                let what = format!("`{text}` is a DataSource, but only a Resource can trigger a replacement");
                let hint =
                    "store the value in `triggers_replace` of a `terraform_data` Resource, and name that Resource here";
                found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
            }
            Some(depth) if targets.len() == 1 => {
                triggers.push(Trigger { text: interner.get(text), path, depth });
                references.extend(targets);
            }
            _ if faults.is_empty() => {
                let what = format!("`{text}` does not reference a Resource");
                found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(TRIGGER_HINT));
            }
            _ => found.extend(faults),
        }
    }
    (shared_slice(triggers), found)
}

const TRIGGER_HINT: &str = "name a Resource, an instance or an attribute, such as `app_key`, `web[0]` or `app_key.id`";

/// The path of an entry.
pub(crate) fn replace_triggered_by_path(index: usize) -> Path {
    Path::of(&["spec", "lifecycle", "replaceTriggeredBy"]).index(index)
}

/// Reads `managementPolicies`. Without it, all actions are allowed.
pub fn policies(written: Option<&[ManagementPolicy]>) -> (Policies, Diagnostics) {
    let Some(written) = written else { return (Policies::default(), Diagnostics::new()) };
    let mut found = Diagnostics::new();
    if !written.contains(&ManagementPolicy::Observe) {
        let what = "`Observe` is required: Purlin must read each object that it manages";
        let at = Path::of(&["spec", "managementPolicies"]);
        found.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint("add `Observe`"));
    }
    let policies = Policies {
        create: written.contains(&ManagementPolicy::Create),
        update: written.contains(&ManagementPolicy::Update),
        replace: written.contains(&ManagementPolicy::Replace),
        delete: written.contains(&ManagementPolicy::Delete),
    };
    (policies, found)
}

/// The path of an entry.
pub(crate) fn ignore_changes_path(index: usize) -> Path {
    Path::of(&["spec", "lifecycle", "ignoreChanges"]).index(index)
}

/// A warning about an entry without effect.
fn redundancy_warning(what: String) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..Diagnostic::general(Reason::InvalidManifest, what) }
}

/// Returns for each path below another one the longest such path.
fn covering<'a>(paths: &BTreeSet<&'a Path>) -> HashMap<&'a Path, &'a Path> {
    let mut covering = HashMap::new();
    let mut above: Vec<&Path> = Vec::new();
    for path in paths {
        // In this order, a path is directly before those below it.
        while above.last().is_some_and(|other| !path.starts_with(other)) {
            above.pop();
        }
        covering.extend(above.last().map(|other| (*path, *other)));
        above.push(path);
    }
    covering
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(texts: &[&str], expected: &Expect) {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let (_, found) = ignore_changes(&texts);
        let lines = found.iter().map(|problem| format!("{:?}: {problem}\n", problem.severity));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn entries_are_paths_or_all() {
        let texts = ["all", "tags[\"Owner\"]"].map(String::from);
        let (ignored, _) = ignore_changes(&texts);
        let path = Path::default().name("tags").name("Owner");
        assert_eq!(*ignored, [IgnoredChange::All, IgnoredChange::At(path)]);
        check(
            &["*", "tags[", "a..b"],
            &expect![[r#"
                Error: spec.lifecycle.ignoreChanges[0]: `*` is not a valid attribute path: the name of an attribute is missing before `*` (hint: write `all` to ignore all changes)
                Error: spec.lifecycle.ignoreChanges[1]: `tags[` is not a valid attribute path: `[` at column 5 must be followed by a number or a quoted key, and `]` (hint: write a path such as `tags`, `tags["Owner"]` or `rule[0].port`)
                Error: spec.lifecycle.ignoreChanges[2]: `a..b` is not a valid attribute path: the name of an attribute is missing before `.` (hint: write a path such as `tags`, `tags["Owner"]` or `rule[0].port`)
            "#]],
        );
    }

    #[test]
    fn an_entry_without_effect_is_a_warning() {
        check(
            &["tags.a", "tags", "rule[0]", "rule[0]"],
            &expect![[r#"
                Warning: spec.lifecycle.ignoreChanges[0]: `tags.a` has no effect: `tags` covers it
                Warning: spec.lifecycle.ignoreChanges[3]: `rule[0]` has no effect: it is a duplicate
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
