//! Existing objects that are to be managed: looked at as their address would manage them.

use std::sync::Arc;

use super::answer::checked_object;
use crate::driver::Reconstructed;
use crate::execute::Engine;
use crate::execute::engine::Call;
use crate::load::Timeouts;
use crate::model::{Address, DriverError, ErrorKind, ImportRequest, ObjectState, ProviderUse};

/// An existing object that no manifest describes.
#[derive(Debug)]
pub struct Unmanaged {
    /// As it was read.
    pub state: ObjectState,
    /// The configuration that it may have come from; `None`: its type tells no more than its schema.
    pub config: Option<Reconstructed>,
}

/// Reads an existing object as `address` would manage it. `None`: there is none.
///
/// # Errors
/// Those of the driver.
pub async fn import(
    engine: &Engine,
    namespace: &Arc<str>,
    address: &Address,
    type_name: &Arc<str>,
    provider: Option<&Arc<ProviderUse>>,
    request: &ImportRequest,
) -> Result<Option<Unmanaged>, DriverError> {
    let missing = || DriverError {
        kind: ErrorKind::Terminal,
        message: format!("no driver serves the type `{type_name}`"),
        path: None,
        hint: None,
    };
    let driver = engine.drivers.get(type_name).ok_or_else(missing)?;
    let call = Call { type_name, namespace, address, provider, service_account: &Arc::from("") };
    let context = engine.call_context(&call, Timeouts::default().read);
    let Some(state) = checked_object(driver.import(&context, request).await?) else { return Ok(None) };
    let config = match engine.drivers.provider_of(type_name) {
        Some(providers) => Some(providers.reconstruct(&context, &state.value, None).await?),
        None => None,
    };
    Ok(Some(Unmanaged { state, config }))
}
