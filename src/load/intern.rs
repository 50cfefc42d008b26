//! One copy of each text that repeats: type names, attribute names, names of Resources.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use indexmap::IndexSet;

/// Texts seen so far. It lives as long as one load; what it gave out lives on.
#[derive(Debug, Default)]
pub struct Interner {
    seen: IndexSet<Arc<str>, BuildHasherDefault<Fnv>>,
}

impl Interner {
    /// The shared copy of a text.
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.seen.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = text.into();
        self.seen.insert(shared.clone());
        shared
    }

    /// How many different texts it has seen.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether it has seen none.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// A list that a Resource is kept with. Most Resources leave most lists empty, and those take no memory.
pub(super) fn kept<T>(items: Vec<T>) -> Arc<[T]> {
    if items.is_empty() { Arc::default() } else { items.into() }
}

/// FNV-1a, which is faster than the standard hasher for texts as short as names. It withstands no attack, and needs
/// not: whoever writes the texts waits for the load.
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
