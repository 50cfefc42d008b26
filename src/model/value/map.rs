//! Maps of values: the attributes of an object, and every map inside of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Value;

/// A map of values, in the order of its keys; cheap to clone. It is a list, since most maps have a handful of entries and
/// there are many of them: a tree has room for eleven entries in its smallest form, which is most of the memory that an
/// object takes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Map(Arc<[(Arc<str>, Value)]>);

impl Map {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Whether there is such a key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &Value)> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The entries in a form that can be changed.
    pub fn to_tree(&self) -> BTreeMap<Arc<str>, Value> {
        self.0.iter().cloned().collect()
    }

    /// Whether both are one and the same in memory, so that nothing needs to be compared.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<BTreeMap<Arc<str>, Value>> for Map {
    fn from(tree: BTreeMap<Arc<str>, Value>) -> Self {
        if tree.is_empty() { Self::default() } else { Self(tree.into_iter().collect()) }
    }
}

/// Of a key that comes twice the last value counts.
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
    fn entries_are_in_order_and_the_last_of_a_key_counts() {
        let map: Map =
            [("b", Value::from("1")), ("a", Value::from("2")), ("b", Value::from("3"))].into_iter().collect();
        assert_eq!(map.keys().map(AsRef::as_ref).collect::<Vec<&str>>(), ["a", "b"]);
        assert_eq!((map.get("b"), map.get("c")), (Some(&Value::from("3")), None));
        assert_eq!(Map::from(map.to_tree()), map);
    }
}
