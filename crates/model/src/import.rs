//! How to find an existing object.

use std::sync::Arc;

use super::Value;

/// `spec.import`: how the driver finds the object.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ImportRequest {
    /// The import ID.
    Id(Arc<str>),
    /// The attributes of the resource identity, as a map.
    Identity(Value),
}

impl std::fmt::Display for ImportRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Identity(identity) => write!(f, "{}", identity.to_public_json()),
        }
    }
}
