//! Shares equal strings while records are decoded. A hundred thousand records have a handful of type names, attribute
//! names and dependencies, which would otherwise use most of the memory of the records.
//!
//! serde passes no context to the fields of a type. [`sharing`] therefore keeps the table of the records that are being
//! decoded for the current thread; the functions that fields name in `deserialize_with` find it there.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::ProviderUse;

/// The table is cleared at this size. More distinct strings are data, such as keys of maps, and strings that do not
/// repeat are not worth storing.
const CAPACITY: usize = 1 << 18;

/// A table of shared strings, for all records that are stored together.
#[derive(Debug, Default)]
pub struct Interner {
    known: HashSet<Arc<str>>,
    providers: HashMap<Arc<str>, Arc<ProviderUse>>,
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

    /// Returns a shared provider: all objects with one provider configuration share it.
    fn provider(&mut self, used: ProviderUse) -> Arc<ProviderUse> {
        let known = self.providers.get(&used.digest).filter(|known| ***known == used);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let used = Arc::new(used);
        self.providers.insert(used.digest.clone(), Arc::clone(&used));
        used
    }
}

thread_local! {
    static TABLE: RefCell<Option<Interner>> = const { RefCell::new(None) };
}

/// Decodes with a table of shared strings.
pub fn sharing<T>(strings: &mut Interner, decode: impl FnOnce() -> T) -> T {
    TABLE.set(Some(std::mem::take(strings)));
    let decoded = decode();
    *strings = TABLE.take().unwrap_or_default();
    decoded
}

/// For fields whose strings other records are likely to contain as well.
pub fn text<'de, T: From<Arc<str>>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(SharedText).map(T::from)
}

/// A list of such strings.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[Arc<str>]>, D::Error> {
    let texts = Vec::<Text>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|Text(text)| text).collect())
}

pub fn provider<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<ProviderUse>>, D::Error> {
    let used = ProviderUse::deserialize(deserializer)?;
    TABLE.with_borrow_mut(|table| match table {
        Some(table) => Ok(Some(table.provider(used))),
        None => Ok(Some(Arc::new(used))),
    })
}

/// A string that is shared.
pub struct Text(pub Arc<str>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer).map(Self)
    }
}

pub(crate) fn share(text: &str) -> Arc<str> {
    TABLE.with_borrow_mut(|table| table.as_mut().map_or_else(|| text.into(), |table| table.share(text)))
}

struct SharedText;

impl Visitor<'_> for SharedText {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(share(text))
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
        let decoded = sharing(&mut strings, || serde_json::from_str::<Text>("\"input\"").unwrap());
        assert!(Arc::ptr_eq(&first, &decoded.0));
        assert!(Arc::ptr_eq(&first, &strings.share("input")), "the table is returned");
    }
}
