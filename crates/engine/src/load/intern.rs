//! Shares one copy of each repeated string, such as type names, attribute names and Resource names.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use indexmap::IndexSet;

/// The strings live as long as their last use, not only as long as the interner.
#[derive(Debug, Default)]
pub struct Interner {
    strings: IndexSet<Arc<str>, BuildHasherDefault<Fnv>>,
}

impl Interner {
    /// Returns the shared copy of a string.
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = text.into();
        self.strings.insert(shared.clone());
        shared
    }

    /// Returns the number of different strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

/// Converts a list to a shared slice. Empty lists, which most are, take no memory.
pub(crate) fn shared_slice<T>(items: Vec<T>) -> Arc<[T]> {
    if items.is_empty() { Arc::default() } else { items.into() }
}

/// FNV-1a is faster than the standard hasher for strings as short as names. It does not resist collision attacks, but
/// the user who writes the strings could only slow down their own load.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
