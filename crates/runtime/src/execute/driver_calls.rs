//! Read-only driver calls about one object.

use drivers::{CallContext, Driver};
use model::{Diagnostics, DriverError, PlanRequest, PlanResponse, Value, has_errors};

/// Validates a configuration, and plans it when validation finds no error.
pub(crate) async fn validate_and_plan(
    driver: &dyn Driver,
    context: &CallContext,
    request: PlanRequest,
) -> (Diagnostics, Result<Option<PlanResponse>, DriverError>) {
    let written = request.ignored.as_ref().map_or(&request.config, |ignored| &ignored.written);
    match driver.validate(context, written).await {
        Err(error) => (Vec::new(), Err(error)),
        Ok(found) if has_errors(&found) => (found, Ok(None)),
        Ok(found) => {
            let answer = driver.plan(context, request).await;
            (with_warnings(found, context), answer.map(Some))
        }
    }
}

/// Validates the configuration of a data source. When validation finds no error, reads the data source if `read` is
/// set, and otherwise returns its expected value.
pub(crate) async fn read_data(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    read: bool,
) -> (Diagnostics, Result<Option<Value>, DriverError>) {
    let planned = async {
        let sources = driver.sources(context)?;
        Ok((sources, sources.plan_data(context, config).await?))
    };
    match planned.await {
        Err(error) => (Vec::new(), Err(error)),
        Ok((_, (found, _))) if has_errors(&found) => (found, Ok(None)),
        Ok((sources, (found, expected))) => {
            let value = if read { sources.read_data(context, config).await } else { Ok(expected) };
            (with_warnings(found, context), value.map(Some))
        }
    }
}

/// Adds the warnings of the calls. Providers built with SDKv2 repeat those of the validation.
fn with_warnings(mut found: Diagnostics, context: &CallContext) -> Diagnostics {
    let mut warnings = context.warnings.take();
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    found
}
