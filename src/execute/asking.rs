//! Questions about one object to its driver, with sensitive values taken out of the answers. Nothing is changed anywhere.

use super::mask;
use crate::driver::{CallContext, Driver};
use crate::model::{Diagnostics, DriverError, ErrorKind, PlanRequest, PlanResponse, Secrets, Severity, Value};

/// Checks a configuration and plans it when the check finds no error. `read_by` gives what the expressions of the object
/// read, which is asked for only when there is something to tell.
pub(crate) async fn validate_and_plan<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    request: PlanRequest,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<PlanResponse>, DriverError>) {
    let (config, prior) = (request.config.clone(), request.prior.clone());
    // Only what is told needs to be masked, and most plans tell nothing.
    let secrets = || mask::secrets(driver, context, &config, prior.as_deref(), &read_by());
    let mut found = match driver.validate(context, &config).await {
        Ok(found) => mask::diagnostics(found, secrets),
        Err(error) => return (Vec::new(), Err(secrets().error(error))),
    };
    if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return (found, Ok(None));
    }
    let answer = driver.plan(context, request).await;
    let mut warnings = mask::diagnostics(context.warnings.take(), secrets);
    // Providers of the second SDK say the same of a configuration once more.
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, answer.map(Some).map_err(|error| secrets().error(error)))
}

/// Checks the configuration of a data source, and when that finds no error reads with it if it shall: otherwise it says
/// what reading will give. `read_by` is as for [`validate_and_plan`].
pub(crate) async fn read_data<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    read: bool,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<Value>, DriverError>) {
    let secrets = || mask::secrets(driver, context, config, None, &read_by());
    let Some(sources) = driver.data() else { return (Vec::new(), Err(no_data(context))) };
    let (mut found, expected) = match sources.expect_data(context, config).await {
        Ok((found, expected)) => (mask::diagnostics(found, secrets), expected),
        Err(error) => return (Vec::new(), Err(secrets().error(error))),
    };
    if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return (found, Ok(None));
    }
    let value = if read { sources.read_data(context, config).await } else { Ok(expected) };
    let warnings = mask::diagnostics(context.warnings.take(), secrets);
    let mut warnings = mask::diagnostics(warnings, || Secrets::of(value.iter()));
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, value.map(Some).map_err(|error| secrets().error(error)))
}

fn no_data(context: &CallContext) -> DriverError {
    let message = format!("there is no data source `{}`", context.type_name);
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}
