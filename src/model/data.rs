//! ConfigMaps and Secrets: from where values come in (`inputs`) and where they go (`publish`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The texts that a `ConfigMap` or Secret holds, by key.
pub type Texts = BTreeMap<Arc<str>, Arc<str>>;

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// Everything in it may be shown.
    ConfigMap,
    /// Everything in it is sensitive.
    Secret,
}

impl DataKind {
    /// The kind, as manifests have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The resource, as paths and RBAC have it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

/// One `ConfigMap` or Secret of the namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRef {
    /// Its kind.
    pub kind: DataKind,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for DataRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.as_str(), self.name)
    }
}

/// Bytes as an expression sees them: as they are when they are UTF-8, otherwise in base64.
pub fn text_of(bytes: &[u8]) -> Arc<str> {
    std::str::from_utf8(bytes).map_or_else(|_| STANDARD.encode(bytes).into(), Arc::from)
}

/// The bytes that base64 stands for, as manifests of Secrets have it: line breaks in it are allowed.
pub fn decoded(base64: &str) -> Option<Vec<u8>> {
    let packed: String = base64.split_ascii_whitespace().collect();
    STANDARD.decode(packed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_given_in_base64() {
        assert_eq!(text_of("grün".as_bytes()).as_ref(), "grün");
        assert_eq!(text_of(&[0xff, 0xfe]).as_ref(), "//4=");
        assert_eq!(decoded("//\n4=").as_deref(), Some(&[0xff, 0xfe][..]));
        assert_eq!(decoded("no-base64"), None);
    }
}
