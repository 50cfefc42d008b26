//! Divides the objects that a namespace reads between a limited number of watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::DataKind;
use runtime::reconcile::index::InputKey;

/// What one task reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A watch of one object.
    Object(InputKey),
    /// A watch of all objects of a kind, as one service account.
    Kind(Arc<str>, DataKind),
    /// No watch: the objects are read one after another, at intervals.
    Poll,
}

/// The tasks that read these objects, each with its objects. At most `limit` of them, which is at least one, and as many
/// watches of single objects as possible.
pub fn scopes(desired: &BTreeSet<InputKey>, limit: usize) -> BTreeMap<Scope, BTreeSet<InputKey>> {
    let mut groups: BTreeMap<Scope, BTreeSet<InputKey>> = BTreeMap::new();
    for key in desired {
        let kind = Scope::Kind(key.service_account.clone(), key.object.kind);
        groups.entry(kind).or_default().insert(key.clone());
    }
    let polls = groups.len() > limit;
    let mut groups: Vec<_> = groups.into_iter().collect();
    // The largest groups first. The order of equally large ones is that of their scopes, as the sort is stable.
    groups.sort_by_key(|(_, keys)| std::cmp::Reverse(keys.len()));
    let mut watches = desired.len();
    let mut scopes = BTreeMap::new();
    for (position, (kind, keys)) in groups.into_iter().enumerate() {
        if polls && position + 1 >= limit {
            scopes.entry(Scope::Poll).or_insert_with(BTreeSet::new).extend(keys);
        } else if watches > limit && keys.len() > 1 {
            watches -= keys.len() - 1;
            scopes.insert(kind, keys);
        } else {
            scopes.extend(keys.into_iter().map(|key| (Scope::Object(key.clone()), BTreeSet::from([key]))));
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DataRef;

    fn keys(account: &str, kind: DataKind, count: usize) -> BTreeSet<InputKey> {
        let object = |number: usize| DataRef { kind, name: format!("{number:04}").into() };
        (0..count).map(|number| InputKey { service_account: account.into(), object: object(number) }).collect()
    }

    fn count(scopes: &BTreeMap<Scope, BTreeSet<InputKey>>) -> (usize, usize, usize) {
        let objects = scopes.keys().filter(|scope| matches!(scope, Scope::Object(_))).count();
        let kinds = scopes.keys().filter(|scope| matches!(scope, Scope::Kind(..))).count();
        (objects, kinds, scopes.get(&Scope::Poll).map_or(0, BTreeSet::len))
    }

    #[test]
    fn beyond_the_limit_the_largest_groups_have_one_watch_each() {
        let mut desired = keys("default", DataKind::Secret, 40);
        desired.extend(keys("default", DataKind::ConfigMap, 24));
        assert_eq!(count(&scopes(&desired, 64)), (64, 0, 0));
        desired.extend(keys("deployer", DataKind::ConfigMap, 1));
        let divided = scopes(&desired, 64);
        assert_eq!(count(&divided), (25, 1, 0));
        assert_eq!(divided[&Scope::Kind("default".into(), DataKind::Secret)].len(), 40);
        assert_eq!(scopes(&desired, 64), divided);
        assert_eq!(count(&scopes(&desired, 3)), (1, 2, 0));
    }

    #[test]
    fn with_more_service_accounts_than_watches_the_rest_is_polled() {
        let of = |account: usize| keys(&format!("a{account:04}"), DataKind::Secret, 1 + account % 2);
        let desired: BTreeSet<InputKey> = (0..1000).flat_map(of).collect();
        let divided = scopes(&desired, 64);
        assert_eq!(divided.len(), 64);
        assert_eq!(count(&divided), (0, 63, desired.len() - 126));
        let read: BTreeSet<InputKey> = divided.into_values().flatten().collect();
        assert_eq!(read, desired);
    }
}
