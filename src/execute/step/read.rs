//! Reading a data source whose turn has come: all that it depends on is done by now. Nothing is recorded of it.

use std::sync::Arc;

use super::finalize::first;
use super::{Fate, StepTask, Unfinished, conditions};
use crate::execute::asking::read_data;
use crate::execute::failure::Failure;
use crate::model::Reading;
use crate::plan::finalize::{data_config, recorded_value};

pub(super) async fn run(task: &StepTask) -> Result<Fate, Unfinished> {
    let (driver, prepared) = (task.driver()?, task.prepared()?);
    let instance = task.instance.as_deref();
    let instance = instance.ok_or_else(|| Failure::internal("a data source is to be read that nobody wants"))?;
    conditions::before(task)?;
    let context = task.context(&prepared.recorded, task.timeouts().read, None);
    let missing = || Failure::internal(format!("the driver has no data source `{}`", task.type_name));
    let schema = driver.schema_of(&context).ok_or_else(missing)?;
    let config = data_config(instance, &schema, &task.scope).map_err(first)?;
    let (found, answer) = read_data(driver.as_ref(), &context, &config, true, &|| task.read()).await;
    task.hear(found)?;
    let value = answer.map_err(Failure::from)?.filter(|value| !value.has_unknown());
    let value = value.ok_or_else(|| Failure::driver("the driver did not say all that it has read"))?;
    Ok(Fate::Read(Arc::new(Reading {
        value: recorded_value(&config, value, &schema),
        config,
        provider: prepared.recorded.provider.clone(),
        service_account: Arc::clone(&prepared.recorded.service_account),
    })))
}
