//! Shares equal strings. A hundred thousand records have a handful of type names, attribute names and dependencies,
//! which would otherwise use most of the memory of the records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::{Address, ProviderUse};

/// The table is cleared at this size. More distinct strings are data, such as keys of maps, and strings that do not
/// repeat are not worth storing.
const CAPACITY: usize = 1 << 18;

/// A table of shared strings, for all records that are stored together.
#[derive(Debug)]
pub struct Interner {
    known: HashSet<Arc<str>>,
    no_bytes: Arc<[u8]>,
    no_addresses: Arc<[Address]>,
    providers: HashMap<Arc<str>, Arc<ProviderUse>>,
}

impl Default for Interner {
    fn default() -> Self {
        Self { known: HashSet::new(), no_bytes: Arc::from([]), no_addresses: Arc::from([]), providers: HashMap::new() }
    }
}

impl Interner {
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        if self.known.len() >= CAPACITY {
            self.known.clear();
        }
        let new: Arc<str> = text.into();
        self.known.insert(new.clone());
        new
    }

    /// Returns shared bytes; in practice only empty ones are equal.
    pub fn bytes(&self, bytes: &[u8]) -> Arc<[u8]> {
        if bytes.is_empty() { self.no_bytes.clone() } else { bytes.into() }
    }

    /// Returns shared addresses; many objects have no dependencies.
    pub fn addresses(&self, addresses: Vec<Address>) -> Arc<[Address]> {
        if addresses.is_empty() { self.no_addresses.clone() } else { addresses.into() }
    }
}

impl Interner {
    /// Returns a shared provider: all objects with one provider configuration share it.
    pub fn provider(&mut self, used: ProviderUse) -> Arc<ProviderUse> {
        let known = self.providers.get(&used.digest).filter(|known| ***known == used);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let used = Arc::new(used);
        self.providers.insert(used.digest.clone(), Arc::clone(&used));
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_their_memory() {
        let mut strings = Interner::default();
        let first = strings.share("input");
        assert!(Arc::ptr_eq(&first, &strings.share("input")));
        assert!(!Arc::ptr_eq(&first, &strings.share("output")));
    }
}
