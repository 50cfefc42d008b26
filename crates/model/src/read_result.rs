//! The cached result of a data source.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ProviderUse, Value};

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
