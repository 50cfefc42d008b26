//! A hint at moves that a plan may miss.

use std::collections::BTreeMap;

use crate::model::{Action, Change, InstanceKey};

/// One line for each type of which the plan creates one object and destroys one: they may be the same object under a new
/// name, which a move would keep.
pub fn possible_moves(changes: &[Change]) -> Vec<String> {
    let mut pairs: BTreeMap<&str, (Vec<&Change>, Vec<&Change>)> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.deposed.is_none()) {
        let is_new = change.before.is_none() && change.because.is_none();
        let (created, destroyed) = pairs.entry(&change.type_name).or_default();
        match change.action {
            Action::Create if is_new => created.push(change),
            Action::Destroy => destroyed.push(change),
            _ => {}
        }
    }
    let pair = |(created, destroyed): &(Vec<&Change>, Vec<&Change>)| match (&created[..], &destroyed[..]) {
        ([created], [destroyed]) => Some(hint(created, destroyed)),
        _ => None,
    };
    pairs.values().filter_map(pair).collect()
}

fn hint(created: &Change, destroyed: &Change) -> String {
    let (new, old) = (&created.address, &destroyed.address);
    let to = match &new.key {
        InstanceKey::None | InstanceKey::All => String::new(),
        key => format!(", to: '{key}'"),
    };
    format!(
        "`{new}` is created and `{old}` is destroyed. If they are the same object, keep it with `spec.moved: [{{ from: \
         '{old}'{to} }}]` in `{}`.",
        new.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(changes: &[(&str, &str, Action)]) -> Vec<String> {
        let change = |(address, type_name, action): &(&str, &str, Action)| {
            Change::plain(address.parse().unwrap(), type_name, *action)
        };
        possible_moves(&changes.iter().map(change).collect::<Vec<_>>())
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
}
