//! The problems of a plan: warnings before errors, each once, and one cause instead of a problem for each object that
//! waits for it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::text::counted;
use crate::model::{Action, Address, Change, Diagnostic, Reason, Text};

/// The maximum number of names in the list of objects that wait.
const MAX_NAMED: usize = 5;

/// A problem and what waits until it is solved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    pub diagnostic: &'a Diagnostic,
    /// Objects that depend on the object of the problem, directly or not, in address order.
    pub waiting: Vec<&'a Address>,
}

/// Returns the problems in the order in which they are shown: errors last.
pub fn collect<'a>(changes: &'a [Change], diagnostics: &'a [Diagnostic]) -> Vec<Problem<'a>> {
    let reported: HashSet<&Address> = diagnostics.iter().filter_map(|one| one.address.as_ref()).collect();
    let mut causes = causes(changes);
    // An object whose cause is not among the diagnostics keeps its own.
    causes.retain(|_, cause| reported.contains(cause));
    let mut waiting: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
    for (address, cause) in &causes {
        waiting.entry(cause).or_default().push(address);
    }
    let is_consequence = |one: &Diagnostic| {
        is_wait(one.reason) && one.address.as_ref().is_some_and(|address| causes.contains_key(address))
    };
    let mut positions = HashMap::new();
    let mut found: Vec<(&Diagnostic, Vec<&Address>)> = Vec::new();
    for diagnostic in diagnostics.iter().filter(|one| !is_consequence(one)) {
        // All members of a cycle have the same problem.
        let subject =
            (diagnostic.reason != Reason::DependencyCycle).then_some((&diagnostic.address, &diagnostic.source));
        let position = *positions.entry((subject, diagnostic.message())).or_insert(found.len());
        if position == found.len() {
            found.push((diagnostic, Vec::new()));
        }
        found[position].1.extend(&diagnostic.address);
    }
    found.sort_by_key(|(diagnostic, _)| diagnostic.severity);
    // The last problem of an object is the most severe one.
    let with_waiting = |(diagnostic, addresses): (&'a Diagnostic, Vec<&Address>)| {
        let mut waiting: Vec<_> =
            addresses.into_iter().flat_map(|one| waiting.remove(one).unwrap_or_default()).collect();
        waiting.sort();
        Problem { diagnostic, waiting }
    };
    let mut problems: Vec<Problem<'_>> = found.into_iter().rev().map(with_waiting).collect();
    problems.reverse();
    problems
}

/// The objects that wait for other blocked objects, each with the blocked object at the end of the chain.
pub(super) fn causes(changes: &[Change]) -> BTreeMap<&Address, &Address> {
    let is_blocked = |change: &&Change| change.action == Action::Blocked && change.deposed.is_none();
    let blocked: BTreeMap<&Address, &Change> =
        changes.iter().filter(is_blocked).map(|change| (&change.address, change)).collect();
    let next = |change: &Change| -> Option<&Change> {
        let waits = change.blocked.is_some_and(is_wait);
        let others = change.waiting_for.iter().filter(|_| waits);
        others.filter_map(|address| blocked.get(address)).copied().next()
    };
    let mut causes: BTreeMap<&Address, &Address> = BTreeMap::new();
    for change in blocked.values() {
        let mut passed = HashSet::new();
        let mut here = *change;
        while let Some(there) = next(here).filter(|_| !causes.contains_key(&here.address)) {
            // Blocks never wait for each other in a circle. If they did, this would end.
            if !passed.insert(&here.address) {
                break;
            }
            here = there;
        }
        let cause = causes.get(&here.address).copied().unwrap_or(&here.address);
        causes.extend(passed.into_iter().filter(|address| *address != cause).map(|address| (address, cause)));
    }
    causes
}

/// Whether an object with this reason waits for another one. An object without a manifest is kept while another one has
/// an error.
fn is_wait(reason: Reason) -> bool {
    matches!(reason, Reason::DependencyNotReady | Reason::SourceIncomplete)
}

/// Writes what waits for a problem: `3 objects wait for this: a, b and c`.
pub fn write_waiting(waiting: &[&Address], text: &mut Text) {
    if waiting.is_empty() {
        return;
    }
    let (count, verb) = (counted(waiting.len(), "object"), if waiting.len() == 1 { "waits" } else { "wait" });
    let names: Vec<String> = waiting.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = match waiting.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    text.put(format_args!("  {count} {verb} for this: {}{more}", names.join(", "))).end_line();
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

    fn collected(changes: &[Change], diagnostics: &[Diagnostic]) -> Vec<String> {
        let shown = |problem: Problem<'_>| {
            let mut text = Text::new(false);
            text.put(problem.diagnostic).end_line();
            write_waiting(&problem.waiting, &mut text);
            text.as_str().to_owned()
        };
        collect(changes, diagnostics).into_iter().map(shown).collect()
    }

    #[test]
    fn objects_that_wait_are_counted_at_their_cause() {
        let waits = |name: &str, target: &str| {
            Diagnostic::error(&Address::single(name), Reason::DependencyNotReady, format!("waits for `{target}`"))
        };
        let changes = [
            blocked("a", Reason::DependencyNotReady, &["ready", "b"]),
            blocked("b", Reason::DependencyNotReady, &["c"]),
            blocked("c", Reason::InvalidConfig, &[]),
            blocked("d", Reason::DependencyNotReady, &["not-blocked"]),
        ];
        let cause = Diagnostic::error(&Address::single("c"), Reason::InvalidConfig, "wrong");
        let warning = Diagnostic::warning(&Address::single("z"), Reason::ProviderWarning, "old");
        let all = [waits("a", "b"), waits("b", "c"), cause.clone(), cause, waits("d", "not-blocked"), warning];
        assert_eq!(
            collected(&changes, &all),
            ["z: old\n", "c: wrong\n  2 objects wait for this: a, b\n", "d: waits for `not-blocked`\n"]
        );
        // A later plan may report only the objects that are new.
        assert_eq!(collected(&changes, &all[..1]), ["a: waits for `b`\n"]);
    }

    #[test]
    fn a_cycle_is_one_problem() {
        let cycle = |name: &str| Diagnostic::error(&Address::single(name), Reason::DependencyCycle, "dependency cycle");
        let changes = [
            blocked("a", Reason::DependencyCycle, &[]),
            blocked("b", Reason::DependencyCycle, &[]),
            blocked("d", Reason::DependencyNotReady, &["b"]),
            blocked("c", Reason::DependencyNotReady, &["a"]),
        ];
        assert_eq!(
            collected(&changes, &[cycle("a"), cycle("b")]),
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
