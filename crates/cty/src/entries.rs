//! What has names: the elements of a map, the attributes of an object, and their types.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Entries sorted by name, and cheap to clone. They are a sorted slice to save memory: the smallest node of a `BTreeMap` has
/// room for eleven entries, and most values have only a few.
#[derive(Clone, PartialEq, Eq)]
pub struct Entries<V>(Arc<[(Arc<str>, V)]>);

impl<V> Entries<V> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&V> {
        self.get_key_value(name).map(|(_, value)| value)
    }

    pub fn get_key_value(&self, name: &str) -> Option<(&Arc<str>, &V)> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        let (name, value) = &self.0[at];
        Some((name, value))
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries in the order of their names.
    pub fn iter(&self) -> Iter<'_, V> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> + ExactSizeIterator + Clone {
        self.0.iter().map(|(name, _)| name)
    }

    /// The values in the order of their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<V: Clone> Entries<V> {
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut V)> {
        Arc::make_mut(&mut self.0).iter_mut().map(|(name, value)| (&*name, value))
    }

    /// The entries in a form that can be changed.
    pub fn to_tree(&self) -> BTreeMap<Arc<str>, V> {
        self.0.iter().cloned().collect()
    }
}

type Iter<'e, V> = std::iter::Map<std::slice::Iter<'e, (Arc<str>, V)>, fn(&(Arc<str>, V)) -> (&Arc<str>, &V)>;

impl<'e, V> IntoIterator for &'e Entries<V> {
    type Item = (&'e Arc<str>, &'e V);
    type IntoIter = Iter<'e, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<V> Default for Entries<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V> From<BTreeMap<Arc<str>, V>> for Entries<V> {
    fn from(tree: BTreeMap<Arc<str>, V>) -> Self {
        Self(tree.into_iter().collect())
    }
}

impl<V, const N: usize> From<[(Arc<str>, V); N]> for Entries<V> {
    fn from(entries: [(Arc<str>, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

/// The last value of a name that occurs twice is used.
impl<K: Into<Arc<str>>, V> FromIterator<(K, V)> for Entries<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries: Vec<(Arc<str>, V)> = entries.into_iter().map(|(name, value)| (name.into(), value)).collect();
        match entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            true => Self(entries.into()),
            false => entries.into_iter().collect::<BTreeMap<_, _>>().into(),
        }
    }
}

impl<V: fmt::Debug> fmt::Debug for Entries<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
