//! Reads a data source after all of its dependencies have ended. Readings are not recorded.

use std::sync::Arc;

use super::finalize::first_error;
use super::{RecordEffect, StepError, StepTask, conditions};
use crate::execute::engine::read_data;
use crate::execute::failure::Failure;
use engine::plan::finalize::{data_config, recorded_value};
use model::ReadResult;

pub async fn run(task: &StepTask) -> Result<RecordEffect, StepError> {
    let (driver, prepared) = (task.driver()?, task.prepared()?);
    let instance = task.instance.as_deref();
    let instance =
        instance.ok_or_else(|| Failure::internal("a read is planned for a data source without a Resource"))?;
    conditions::before(task)?;
    let context = task.context(&prepared.recorded, task.timeouts().read, None);
    let schema = driver
        .schema_of(&context)
        .ok_or_else(|| Failure::internal(format!("the driver has no data source `{}`", task.type_name)))?;
    let config = task.evaluate(|| data_config(instance, &schema, &task.scope)).map_err(first_error)?;
    let (found, answer) = read_data(driver.as_ref(), &context, &config, true).await;
    task.add_diagnostics(found)?;
    let value = answer.map_err(Failure::from)?.filter(|value| !value.has_unknown());
    let value = value.ok_or_else(|| Failure::driver("the driver returned unknown values for a data source"))?;
    Ok(RecordEffect::Read(Arc::new(ReadResult {
        value: recorded_value(&config, value, &schema),
        config,
        provider: prepared.recorded.provider.clone(),
        service_account: Arc::clone(&prepared.recorded.service_account),
    })))
}
