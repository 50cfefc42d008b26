//! One copy of each text that repeats: type names, attribute names, names of Resources.

use std::sync::Arc;

use indexmap::IndexSet;

/// Texts seen so far. It lives as long as one load; what it gave out lives on.
#[derive(Debug, Default)]
pub struct Interner {
    seen: IndexSet<Arc<str>>,
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
}
