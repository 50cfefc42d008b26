//! Read-only driver calls about one object, with sensitive values removed from the diagnostics.

use super::mask;
use drivers::{CallContext, Driver};
use model::{Diagnostics, DriverError, PlanRequest, PlanResponse, Secrets, Value, has_errors};

/// Validates a configuration, and plans it when validation finds no error. `read_by` returns the values that the
/// object's expressions read; it is called only when there is something to report.
pub(crate) async fn validate_and_plan<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    request: PlanRequest,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<PlanResponse>, DriverError>) {
    let (config, prior) = (request.config.clone(), request.prior.clone());
    let written = request.ignored.as_ref().map_or(&config, |ignored| &ignored.written);
    // Only reported text must be masked, and most plans report nothing.
    let secrets = || mask::secrets(driver, context, &config, prior.as_deref(), &read_by());
    let mut found = match driver.validate(context, written).await {
        Ok(found) => mask::diagnostics(found, secrets),
        Err(error) => return (Vec::new(), Err(secrets().redact_error(error))),
    };
    if has_errors(&found) {
        return (found, Ok(None));
    }
    let answer = driver.plan(context, request).await;
    let mut warnings = mask::diagnostics(context.warnings.take(), secrets);
    // Providers built with SDKv2 repeat the warnings of the validation.
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, answer.map(Some).map_err(|error| secrets().redact_error(error)))
}

/// Validates the configuration of a data source. When validation finds no error, reads the data source if `read` is
/// set, and otherwise returns its expected value. `read_by` is as for [`validate_and_plan`].
pub(crate) async fn read_data<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    read: bool,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<Value>, DriverError>) {
    let secrets = || mask::secrets(driver, context, config, None, &read_by());
    let sources = match driver.sources(context) {
        Ok(sources) => sources,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let (mut found, expected) = match sources.plan_data(context, config).await {
        Ok((found, expected)) => (mask::diagnostics(found, secrets), expected),
        Err(error) => return (Vec::new(), Err(secrets().redact_error(error))),
    };
    if has_errors(&found) {
        return (found, Ok(None));
    }
    let value = if read { sources.read_data(context, config).await } else { Ok(expected) };
    let warnings = mask::diagnostics(context.warnings.take(), secrets);
    let mut warnings = mask::diagnostics(warnings, || Secrets::of(value.iter()));
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, value.map(Some).map_err(|error| secrets().redact_error(error)))
}
