//! Shares equal texts. A hundred thousand records have a handful of type names, attribute names and dependencies;
//! without sharing, those would be most of the memory that records take.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{Address, ProviderUse};

/// At this many texts the table starts anew. More distinct names than this are data (keys of maps), and what is not
/// repeated is not worth holding on to.
const CAPACITY: usize = 1 << 18;

/// A table of texts that have been read before. One for all records that are kept together.
#[derive(Debug)]
pub struct Strings {
    known: HashSet<Arc<str>>,
    no_bytes: Arc<[u8]>,
    no_addresses: Arc<[Address]>,
    providers: HashMap<Arc<str>, Arc<ProviderUse>>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { known: HashSet::new(), no_bytes: Arc::from([]), no_addresses: Arc::from([]), providers: HashMap::new() }
    }
}

impl Strings {
    /// The shared form of a text.
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

    /// Bytes in shared form; only the empty ones are ever equal in practice.
    pub fn bytes(&self, bytes: &[u8]) -> Arc<[u8]> {
        if bytes.is_empty() { self.no_bytes.clone() } else { bytes.into() }
    }

    /// Addresses in shared form; an object without dependencies is common.
    pub fn addresses(&self, addresses: Vec<Address>) -> Arc<[Address]> {
        if addresses.is_empty() { self.no_addresses.clone() } else { addresses.into() }
    }
}

impl Strings {
    /// The shared form of a provider: all objects under one configuration name the same.
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
    fn equal_texts_share_their_memory() {
        let mut strings = Strings::default();
        let first = strings.share("input");
        assert!(Arc::ptr_eq(&first, &strings.share("input")));
        assert!(!Arc::ptr_eq(&first, &strings.share("output")));
    }
}
