//! Maps of values: the attributes of an object, and nested maps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Value;

/// A map of values, sorted by key and cheap to clone. It is a sorted slice to save memory: the smallest `BTreeMap` node
/// has room for eleven entries, and most maps have only a few.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Map(Arc<[(Arc<str>, Value)]>);

impl Map {
    /// Whether both are the same one in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &Value)> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// Returns the values in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the entries in a mutable form.
    pub fn to_tree(&self) -> BTreeMap<Arc<str>, Value> {
        self.0.iter().cloned().collect()
    }

    /// Whether both maps share their memory, and are therefore equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<BTreeMap<Arc<str>, Value>> for Map {
    fn from(tree: BTreeMap<Arc<str>, Value>) -> Self {
        if tree.is_empty() { Self::default() } else { Self(tree.into_iter().collect()) }
    }
}

/// The last value of a duplicate key is used.
impl<K: Into<Arc<str>>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let entries: Vec<(Arc<str>, Value)> = entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        let in_order = entries.is_sorted_by(|(one, _), (next, _)| one < next);
        match in_order && !entries.is_empty() {
            true => Self(entries.into()),
            false => entries.into_iter().collect::<BTreeMap<_, _>>().into(),
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_the_last_duplicate_is_used() {
        let map: Map =
            [("b", Value::from("1")), ("a", Value::from("2")), ("b", Value::from("3"))].into_iter().collect();
        assert_eq!(map.keys().map(AsRef::as_ref).collect::<Vec<&str>>(), ["a", "b"]);
        assert_eq!((map.get("b"), map.get("c")), (Some(&Value::from("3")), None));
        assert_eq!(Map::from(map.to_tree()), map);
    }
}
