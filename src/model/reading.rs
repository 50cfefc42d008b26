//! What was read of a data source.

use std::sync::Arc;

use super::{ProviderUse, Value};

/// The outcome of reading a data source, with what was asked: the same question need not be asked again before its time.
/// It is kept in memory only: nothing is lost with it, and nothing that is recorded depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The evaluated configuration.
    pub config: Value,
    /// The provider that was asked, with its settings; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// As which service account.
    pub service_account: Arc<str>,
    /// What was found, wholly known. Sensitive places are marked.
    pub value: Value,
}
