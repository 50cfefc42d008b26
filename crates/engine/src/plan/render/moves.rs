//! A hint at moves that a plan may miss.

use std::collections::BTreeMap;

use model::{Action, Address, Change, Reason, Stem, Words};

/// The new objects and those that are no longer configured, of one type or Resource.
type Pair<'a> = (Vec<&'a Change>, Vec<&'a Change>);

/// One line for each type of which the plan creates one object while another one is no longer configured, and for each
/// Resource whose keys are replaced by others: they may be the same objects under new addresses, which a move would keep.
///
/// `changes`: of current objects.
pub fn possible_moves<'a>(
    changes: impl IntoIterator<Item = &'a Change> + 'a,
    is_configured: impl Fn(&Address) -> bool,
) -> Vec<String> {
    let mut of_type: BTreeMap<&str, Pair<'_>> = BTreeMap::new();
    let mut of_stem: BTreeMap<&Stem, Pair<'_>> = BTreeMap::new();
    for change in changes {
        let is_new = change.action == Action::Create && change.before.is_none() && change.because.is_none();
        // Protection, or an error of another manifest, keeps the object for now.
        let is_kept = matches!(change.blocked, Some(Reason::PreventDestroy | Reason::SourceIncomplete));
        let leaves = change.action == Action::Destroy || (is_kept && !is_configured(&change.address));
        for pair in [of_type.entry(&change.type_name).or_default(), of_stem.entry(&change.address.stem).or_default()] {
            if is_new {
                pair.0.push(change);
            } else if leaves {
                pair.1.push(change);
            }
        }
    }
    let single = of_type.values().filter(|pair| is_single(pair)).map(|pair| hint(pair.0[0], pair.1[0]));
    let other_keys = of_stem.values().filter(|pair| !is_single(pair) && !pair.0.is_empty() && !pair.1.is_empty());
    single.chain(other_keys.map(hint_at_keys)).collect()
}

fn is_single((created, leaving): &Pair<'_>) -> bool {
    created.len() == 1 && leaving.len() == 1
}

fn hint(created: &Change, leaving: &Change) -> String {
    let (new, old) = (&created.address, &leaving.address);
    let fate = if leaving.action == Action::Destroy { "is destroyed" } else { "is no longer configured" };
    format!(
        "`{new}` is created and `{old}` {fate}. If they are the same object, keep it with {}.",
        Words::moved(old, new)
    )
}

fn hint_at_keys((created, leaving): &Pair<'_>) -> String {
    let name = &created[0].address.stem;
    format!(
        "`{name}` has other keys than before. If some of its objects are the same, keep them with an entry for each, such \
         as {}.",
        Words::moved(&leaving[0].address, &created[0].address)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(changes: &[(&str, &str, Action)]) -> Vec<String> {
        let changes: Vec<Change> = changes
            .iter()
            .map(|(address, type_name, action)| Change::plain(address.parse().unwrap(), type_name, *action))
            .collect();
        possible_moves(&changes, |_| false)
    }

    #[test]
    fn one_created_and_one_destroyed_object_of_a_type_may_be_a_move() {
        let [hint] = &hints(&[("r[\"a\"]", "t", Action::Destroy), ("r[\"c\"]", "t", Action::Create)])[..] else {
            panic!()
        };
        assert!(hint.ends_with(r#"keep it with `spec.moved: [{ from: 'r["a"]', to: '["c"]' }]` in `r`."#), "{hint}");
        let several = [("a", "t", Action::Destroy), ("b", "t", Action::Destroy), ("c", "t", Action::Create)];
        assert_eq!(hints(&several), [] as [&str; 0]);
        assert_eq!(hints(&[("a", "t", Action::Destroy), ("b", "u", Action::Create)]), [] as [&str; 0]);
    }

    #[test]
    fn other_keys_of_a_resource_may_be_moves() {
        let keys = [("r[0]", Action::Destroy), ("r[1]", Action::Destroy), ("r[\"a\"]", Action::Create)];
        let changes = keys.map(|(address, action)| (address, "t", action));
        let expected = "`r` has other keys than before. If some of its objects are the same, keep them with an entry for \
                        each, such as `spec.moved: [{ from: 'r[0]', to: '[\"a\"]' }]` in `r`.";
        assert_eq!(hints(&changes), [expected]);
        assert_eq!(hints(&changes[..2]), [] as [&str; 0]);
    }

    #[test]
    fn a_protected_object_that_is_no_longer_configured_may_have_another_name() {
        let blocked = Change {
            blocked: Some(Reason::PreventDestroy),
            ..Change::plain(Address::single("database"), "t", Action::Blocked)
        };
        let changes = [blocked, Change::plain(Address::single("store"), "t", Action::Create)];
        let expected = "`store` is created and `database` is no longer configured. If they are the same object, keep it \
                        with `spec.moved: [{ from: 'database' }]` in `store`.";
        assert_eq!(possible_moves(&changes, |_| false), [expected]);
        assert_eq!(possible_moves(&changes, |_| true), [] as [&str; 0]);
    }
}
