//! Data that are no objects of Purlin: ConfigMaps and Secrets, which it reads for `inputs` and writes for `publish`, and the
//! results of data sources.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{ProviderUse, Value};

/// The string values of a ConfigMap or Secret by key.
pub type StringData = BTreeMap<Arc<str>, Arc<str>>;

/// The kind of an object that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DataKind {
    /// Its values are not sensitive.
    ConfigMap,
    /// Its values are sensitive.
    Secret,
}

impl DataKind {
    /// The kind in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The resource name in API paths and RBAC rules.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

/// A reference to a ConfigMap or Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataRef {
    pub kind: DataKind,
    pub name: Arc<str>,
}

impl fmt::Display for DataRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.as_str(), self.name)
    }
}

/// Returns bytes as a string for expressions: unchanged if they are valid UTF-8, otherwise in base64.
pub fn string_from_bytes(bytes: &[u8]) -> Arc<str> {
    std::str::from_utf8(bytes).map_or_else(|_| STANDARD.encode(bytes).into(), Arc::from)
}

/// Decodes base64 as in manifests of Secrets, where whitespace is allowed.
pub fn decode_base64(base64: &str) -> Option<Vec<u8>> {
    let packed: String = base64.split_ascii_whitespace().collect();
    STANDARD.decode(packed).ok()
}

/// The result of a read of a data source and the request that it is valid for. It is only cached in memory, because no
/// record depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadResult {
    pub config: Value,
    /// The provider and its configuration; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    pub service_account: Arc<str>,
    /// The result, with known values. Sensitive values are marked.
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_encoded_in_base64() {
        assert_eq!(string_from_bytes("grün".as_bytes()).as_ref(), "grün");
        assert_eq!(string_from_bytes(&[0xff, 0xfe]).as_ref(), "//4=");
        assert_eq!(decode_base64("//\n4=").as_deref(), Some(&[0xff, 0xfe][..]));
        assert_eq!(decode_base64("no-base64"), None);
    }
}
