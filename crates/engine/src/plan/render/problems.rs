//! The problems of a plan: warnings before errors, each once, and one cause instead of a problem for each object that
//! waits for it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::plan::provider;
use model::text::counted;
use model::{Action, Address, Change, Diagnostic, Reason, Severity, Stem, Text};

/// The maximum number of names in the list of objects that wait.
const MAX_NAMED: usize = 5;

/// A problem and what it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    pub diagnostic: Cow<'a, Diagnostic>,
    /// Other objects with the same problem, in address order.
    pub others: Vec<&'a Address>,
    /// Objects that wait until it is solved, directly or not, in address order.
    pub waiting: Vec<&'a Address>,
}

/// What makes problems different: those with the same key are shown once.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    /// Something that several objects use is missing, is broken or is used up.
    Shared(Reason, &'a str),
    /// The instances of a Resource have one manifest.
    OfResource(Option<(bool, &'a Stem)>, Option<&'a model::Source>, String),
}

fn key(diagnostic: &Diagnostic) -> Key<'_> {
    match cause(diagnostic) {
        Some(cause) => Key::Shared(diagnostic.reason, cause),
        // All members of a cycle have the same problem.
        None if diagnostic.reason == Reason::DependencyCycle => Key::OfResource(None, None, diagnostic.message()),
        None => {
            let name = diagnostic.address.as_ref().map(|address| (address.is_data(), &address.stem));
            Key::OfResource(name, diagnostic.source.as_ref(), diagnostic.message())
        }
    }
}

/// The text about what is wrong outside of the object, if that is the problem.
fn cause(diagnostic: &Diagnostic) -> Option<&str> {
    match diagnostic.reason {
        Reason::ProviderNotFound | Reason::DependencyNotFound | Reason::InputNotFound | Reason::QuotaExceeded => {
            Some(&diagnostic.summary)
        }
        // A crash interrupts many operations.
        Reason::ProviderNotReady
        | Reason::SourceIncomplete
        | Reason::OperationInProgress
        | Reason::CreateOutcomeUnknown => Some(diagnostic.cause()),
        // The types of a provider that is missing differ, but not the way out.
        _ => diagnostic.hint.as_deref().filter(|_| provider::is_missing(diagnostic)),
    }
}

/// Whether the problem is that of a provider and not of the objects that use it.
fn is_of_provider(reason: Reason) -> bool {
    matches!(reason, Reason::ProviderNotReady)
}

/// Returns the problems in the order in which they are shown: errors last.
pub fn collect<'a>(changes: impl IntoIterator<Item = &'a Change>, diagnostics: &'a [Diagnostic]) -> Vec<Problem<'a>> {
    let reported: HashSet<&Address> = diagnostics.iter().filter_map(|diagnostic| diagnostic.address.as_ref()).collect();
    let mut causes = causes(changes);
    // An object whose cause is not among the diagnostics keeps its own.
    causes.retain(|_, cause| reported.contains(cause));
    let mut waiting: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
    for (address, cause) in &causes {
        waiting.entry(cause).or_default().push(address);
    }
    let mut positions = HashMap::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for diagnostic in diagnostics {
        let has_cause = diagnostic.address.as_ref().is_some_and(|address| causes.contains_key(address));
        if has_cause && is_wait(diagnostic.reason) {
            continue;
        }
        let position = *positions.entry(key(diagnostic)).or_insert(groups.len());
        if position == groups.len() {
            groups.push(Group { first: diagnostic, objects: BTreeSet::new(), held: BTreeSet::new() });
        }
        groups[position].objects.extend(&diagnostic.address);
    }
    hold_for_unreadable(&mut groups);
    groups.sort_by_key(|group| group.first.severity);
    // The last problem of an object is the most severe one.
    let mut problems: Vec<Problem<'_>> = groups.into_iter().rev().map(|group| group.problem(&mut waiting)).collect();
    problems.reverse();
    problems
}

/// Diagnostics that are one problem.
struct Group<'a> {
    first: &'a Diagnostic,
    objects: BTreeSet<&'a Address>,
    /// Objects that wait until the problem is solved, and whose own problem is not shown.
    held: BTreeSet<&'a Address>,
}

impl<'a> Group<'a> {
    fn problem(self, waiting: &mut BTreeMap<&'a Address, Vec<&'a Address>>) -> Problem<'a> {
        let Self { first, mut objects, held } = self;
        let mut waits: BTreeSet<&Address> =
            objects.union(&held).flat_map(|address| waiting.remove(*address).unwrap_or_default()).collect();
        waits.extend(held);
        // What is wrong with a file or a provider is not wrong with the objects.
        if first.address.is_none() || is_of_provider(first.reason) {
            waits.append(&mut objects);
            let diagnostic = match is_of_provider(first.reason) {
                true => Cow::Owned(of_provider(first)),
                false => Cow::Borrowed(first),
            };
            return Problem { diagnostic, others: Vec::new(), waiting: waits.into_iter().collect() };
        }
        let others: Vec<&Address> = objects
            .into_iter()
            .filter(|address| first.reason != Reason::DependencyCycle && first.address.as_ref() != Some(address))
            .collect();
        waits.retain(|address| !others.contains(address));
        Problem { diagnostic: Cow::Borrowed(first), others, waiting: waits.into_iter().collect() }
    }
}

fn of_provider(diagnostic: &Diagnostic) -> Diagnostic {
    let summary = cause(diagnostic).unwrap_or(&diagnostic.summary).to_owned();
    Diagnostic { address: None, summary, detail: String::new(), ..diagnostic.clone() }
}

/// Objects that wait for a file that cannot be read, because it may contain their manifest or what they refer to, wait for
/// its error.
fn hold_for_unreadable(groups: &mut Vec<Group<'_>>) {
    let held: Vec<Group<'_>> = groups
        .extract_if(.., |group| group.first.address.is_some() && group.first.reason == Reason::SourceIncomplete)
        .collect();
    for group in held {
        match unreadable(groups, group.first) {
            Some(error) => groups[error].held.extend(group.objects),
            None => groups.push(group),
        }
    }
}

/// The position of the error that holds an object: the one that it names, or else the first that is about no object.
fn unreadable(groups: &[Group<'_>], held: &Diagnostic) -> Option<usize> {
    let named = groups
        .iter()
        .position(|group| group.first.severity == Severity::Error && cause(held) == Some(&group.first.to_string()));
    named.or_else(|| {
        groups.iter().position(|group| group.first.severity == Severity::Error && group.first.address.is_none())
    })
}

/// The objects that wait for other blocked objects, each with the blocked object at the end of the chain.
pub(crate) fn causes<'a>(changes: impl IntoIterator<Item = &'a Change>) -> BTreeMap<&'a Address, &'a Address> {
    let blocked: BTreeMap<&Address, &Change> = changes
        .into_iter()
        .filter(|change| change.action == Action::Blocked && change.deposed.is_none())
        .map(|change| (&change.address, change))
        .collect();
    let mut causes: BTreeMap<&Address, &Address> = BTreeMap::new();
    for change in blocked.values() {
        let mut passed = HashSet::new();
        let mut here = *change;
        let mut is_circle = false;
        while let Some(there) = waits_for(here, &blocked).filter(|_| !causes.contains_key(&here.address)) {
            // Objects that wait for each other have no cause outside of the circle.
            if !passed.insert(&here.address) {
                is_circle = true;
                break;
            }
            here = there;
        }
        if is_circle {
            continue;
        }
        let cause = causes.get(&here.address).copied().unwrap_or(&here.address);
        causes.extend(passed.into_iter().filter(|address| *address != cause).map(|address| (address, cause)));
    }
    causes
}

/// The first blocked object that a blocked object waits for.
fn waits_for<'a>(change: &Change, blocked: &BTreeMap<&Address, &'a Change>) -> Option<&'a Change> {
    if !change.blocked.is_some_and(is_wait) {
        return None;
    }
    change.waiting_for.iter().filter_map(|address| blocked.get(address)).copied().find(|other| {
        // An object that is in use waits for its user, unless that is blocked for a reason that is no error.
        let is_error = !matches!(other.blocked, Some(Reason::NotSelected | Reason::ApprovalRequired));
        is_error || change.blocked != Some(Reason::InUse)
    })
}

/// Whether an object with this reason waits for another one. An object without a manifest is kept while another one has
/// an error.
fn is_wait(reason: Reason) -> bool {
    matches!(reason, Reason::DependencyNotReady | Reason::InUse | Reason::SourceIncomplete)
}

/// Writes what else a problem concerns.
pub fn write_concerned(problem: &Problem<'_>, text: &mut Text) {
    write_others(&problem.others, text);
    write_waiting(&problem.waiting, text);
}

/// Writes which other objects have a problem: `2 more objects have this problem: b, c`.
pub fn write_others(others: &[&Address], text: &mut Text) {
    match others.len() {
        0 => return,
        1 => text.put("  1 more object has this problem: "),
        count => text.put(format_args!("  {count} more objects have this problem: ")),
    };
    text.put(named(others)).end_line();
}

/// Writes what waits for a problem: `3 objects wait for this: a, b, c`.
pub fn write_waiting(waiting: &[&Address], text: &mut Text) {
    if waiting.is_empty() {
        return;
    }
    let (count, verb) = (counted(waiting.len(), "object"), if waiting.len() == 1 { "waits" } else { "wait" });
    text.put(format_args!("  {count} {verb} for this: {}", named(waiting))).end_line();
}

fn named(objects: &[&Address]) -> String {
    let names: Vec<String> = objects.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    match objects.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(name: &str, reason: Reason, waiting_for: &[&str]) -> Change {
        Change {
            blocked: Some(reason),
            waiting_for: waiting_for.iter().map(|name| Address::single(*name)).collect(),
            ..Change::plain(Address::single(name), "thing", Action::Blocked)
        }
    }

    fn error(name: &str, reason: Reason, what: &str) -> Diagnostic {
        Diagnostic::error(&Address::single(name), reason, what)
    }

    fn collected(changes: &[Change], diagnostics: &[Diagnostic]) -> Vec<String> {
        collect(changes, diagnostics)
            .into_iter()
            .map(|problem| {
                let mut text = Text::new(false);
                text.put(&problem.diagnostic).end_line();
                write_concerned(&problem, &mut text);
                text.as_str().to_owned()
            })
            .collect()
    }

    #[test]
    fn objects_that_wait_are_counted_at_their_cause() {
        let changes = [
            blocked("a", Reason::DependencyNotReady, &["ready", "b"]),
            blocked("b", Reason::DependencyNotReady, &["c"]),
            blocked("c", Reason::InvalidConfig, &[]),
            blocked("d", Reason::DependencyNotReady, &["not-blocked"]),
        ];
        let [first, second, last] = [("a", "waits for `b`"), ("b", "waits for `c`"), ("d", "waits for `not-blocked`")]
            .map(|(name, what)| error(name, Reason::DependencyNotReady, what));
        let cause = error("c", Reason::InvalidConfig, "wrong");
        let warning = Diagnostic::warning(&Address::single("z"), Reason::ProviderWarning, "old");
        let diagnostics = [first, second, cause.clone(), cause, last, warning];
        assert_eq!(
            collected(&changes, &diagnostics),
            ["z: old\n", "c: wrong\n  2 objects wait for this: a, b\n", "d: waits for `not-blocked`\n"]
        );
        // A later plan may report only the objects that are new.
        assert_eq!(collected(&changes, &diagnostics[..1]), ["a: waits for `b`\n"]);
    }

    #[test]
    fn a_provider_that_cannot_be_used_is_one_problem() {
        let changes = [
            blocked("a", Reason::ProviderNotReady, &[]),
            blocked("b", Reason::ProviderNotReady, &[]),
            blocked("c", Reason::DependencyNotReady, &["b"]),
        ];
        let why = "the provider `tls` cannot be used: no such version";
        let destroy = error("a", Reason::ProviderNotReady, "cannot be destroyed").because(why).hint("look");
        let change = error("b", Reason::ProviderNotReady, why).because("").hint("look");
        assert_eq!(
            collected(&changes, &[destroy, change]),
            [format!("{why} (hint: look)\n  3 objects wait for this: a, b, c\n")]
        );
    }

    #[test]
    fn objects_with_the_same_missing_reference_are_one_problem() {
        let changes = [
            blocked("a", Reason::DependencyNotFound, &[]),
            blocked("b", Reason::DependencyNotFound, &[]),
            blocked("c", Reason::DependencyNotReady, &["b"]),
            blocked("old", Reason::InUse, &["a"]),
        ];
        let in_use = error("old", Reason::InUse, "in use by `a`, which is blocked");
        let [first, second, other] =
            [("a", "spec.x", "db"), ("b", "spec.y", "db"), ("b", "spec.y", "x")].map(|(name, path, target)| {
                let what = format!("references `{target}`, which does not exist");
                error(name, Reason::DependencyNotFound, &what).at(path.parse().unwrap())
            });
        assert_eq!(
            collected(&changes, &[first, second, in_use, other]),
            [
                "a: spec.x: references `db`, which does not exist\n  1 more object has this problem: b\n  \
                 1 object waits for this: old\n",
                "b: spec.y: references `x`, which does not exist\n  1 object waits for this: c\n"
            ]
        );
    }

    #[test]
    fn objects_that_are_kept_because_of_an_unreadable_file_wait_for_its_error() {
        let bad = Diagnostic::general(Reason::InvalidManifest, "b.yaml is bad");
        let [a, c] =
            ["a", "c"].map(|name| error(name, Reason::SourceIncomplete, "not destroyed").because("b.yaml is bad"));
        assert_eq!(collected(&[], &[bad, a, c]), ["b.yaml is bad\n  2 objects wait for this: a, c\n"]);
        // The manifest with the error may have a name.
        let bad = error("b", Reason::InvalidManifest, "no such field");
        let [a, c] = ["a", "c"].map(|name| {
            Diagnostic::warning(&Address::single(name), Reason::SourceIncomplete, "not destroyed")
                .because(bad.to_string())
        });
        let changes = [blocked("d", Reason::DependencyNotReady, &["a"]), blocked("a", Reason::SourceIncomplete, &[])];
        assert_eq!(collected(&changes, &[a, bad, c]), ["b: no such field\n  3 objects wait for this: a, c, d\n"]);
    }

    #[test]
    fn the_same_problem_of_several_instances_is_one() {
        let mut diagnostics: Vec<Diagnostic> = ["web[0]", "web[1]", "web[2]", "web[3]", "db"]
            .map(|address| Diagnostic::error(&address.parse().unwrap(), Reason::InvalidConfig, "no such size"))
            .into();
        diagnostics[3].summary = "no such zone".to_owned();
        assert_eq!(
            collected(&[], &diagnostics),
            [
                "web[0]: no such size\n  2 more objects have this problem: web[1], web[2]\n",
                "web[3]: no such zone\n",
                "db: no such size\n"
            ]
        );
    }

    #[test]
    fn objects_that_wait_for_each_other_keep_their_problems() {
        let changes = [blocked("a", Reason::InUse, &["b"]), blocked("b", Reason::DependencyNotReady, &["a"])];
        let a = Diagnostic::error(&Address::single("a"), Reason::InUse, "in use by `b`, which waits for it");
        let b = Diagnostic::error(&Address::single("b"), Reason::DependencyNotReady, "waits for `a`");
        assert_eq!(collected(&changes, &[a, b]).len(), 2);
    }

    #[test]
    fn a_cycle_is_one_problem() {
        let changes = [
            blocked("a", Reason::DependencyCycle, &[]),
            blocked("b", Reason::DependencyCycle, &[]),
            blocked("d", Reason::DependencyNotReady, &["b"]),
            blocked("c", Reason::DependencyNotReady, &["a"]),
        ];
        assert_eq!(
            collected(&changes, &["a", "b"].map(|name| error(name, Reason::DependencyCycle, "dependency cycle"))),
            ["a: dependency cycle\n  2 objects wait for this: c, d\n"]
        );
    }

    #[test]
    fn a_long_chain_has_one_cause() {
        let name = |number: usize| format!("x{number}");
        let mut changes: Vec<Change> = (0..20_000)
            .map(|number| blocked(&name(number), Reason::DependencyNotReady, &[&name(number + 1)]))
            .collect();
        changes.push(blocked(&name(20_000), Reason::InvalidConfig, &[]));
        let cause = Diagnostic::error(&Address::single(name(20_000)), Reason::InvalidConfig, "wrong");
        let expected = "x20000: wrong\n  20,000 objects wait for this: x0, x1, x10, x100, x1000 and 19995 more\n";
        assert_eq!(collected(&changes, &[cause]), [expected]);
    }
}
