//! Reads existing objects for an import.

use std::sync::Arc;

use super::driver_calls::checked_object;
use crate::execute::Engine;
use crate::execute::engine::Call;
use drivers::ReconstructedConfig;
use engine::load::Timeouts;
use model::{Address, DriverError, ErrorKind, ImportRequest, ObjectState, ProviderUse};

/// An existing object without a manifest.
#[derive(Debug)]
pub struct ImportedObject {
    pub state: ObjectState,
    /// The configuration that the driver reconstructed; `None` if it can only be derived from the schema.
    pub config: Option<ReconstructedConfig>,
}

/// Reads an existing object with the provider of `address`. Returns `None` if it does not exist.
///
/// # Errors
/// Returns the error of the driver.
pub async fn import(
    engine: &Engine,
    namespace: &Arc<str>,
    address: &Address,
    type_name: &Arc<str>,
    provider: Option<&Arc<ProviderUse>>,
    request: &ImportRequest,
) -> Result<Option<ImportedObject>, DriverError> {
    let missing = || DriverError {
        kind: ErrorKind::Terminal,
        message: format!("no driver serves the type `{type_name}`"),
        path: None,
        hint: None,
    };
    let driver = engine.drivers.get(type_name).ok_or_else(missing)?;
    let call = Call { type_name, namespace, address, provider, service_account: &Arc::from(""), read: &[] };
    let context = engine.call_context(&call, Timeouts::default().read);
    let Some(state) = checked_object(driver.import(&context, request).await?) else { return Ok(None) };
    let config = match engine.drivers.providers_serving(type_name) {
        Some(providers) => Some(providers.reconstruct(&context, &state.value).await?),
        None => None,
    };
    Ok(Some(ImportedObject { state, config }))
}
