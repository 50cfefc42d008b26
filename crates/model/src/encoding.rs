//! What the fields of recorded types need besides a derived encoding.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// Whether a field is left out, and read as its default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A field that is left out if it is `None`: null is one of its values.
pub fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Bytes, which serde would encode as a list of numbers.
pub mod bytes {
    use super::{Bytes, Deserializer, PhantomData, Serializer};

    pub fn serialize<S: Serializer, B: AsRef<[u8]>>(bytes: &B, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes.as_ref())
    }

    pub fn deserialize<'de, D, B>(deserializer: D) -> Result<B, D::Error>
    where
        D: Deserializer<'de>,
        B: for<'b> TryFrom<&'b [u8]>,
    {
        deserializer.deserialize_bytes(Bytes(PhantomData))
    }
}

struct Bytes<B>(PhantomData<B>);

impl<B: for<'b> TryFrom<&'b [u8]>> Visitor<'_> for Bytes<B> {
    type Value = B;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<B, E> {
        B::try_from(bytes).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}
