//! A driver for the check of a migration: it plans with the wrapped driver, reads no objects, and returns the data
//! sources of the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use drivers::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver};
use model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Value,
};

pub struct AsRecorded {
    driver: Arc<dyn Driver>,
    /// The values of data sources by address.
    readings: Arc<BTreeMap<String, Value>>,
}

impl AsRecorded {
    pub fn new(driver: Arc<dyn Driver>, readings: Arc<BTreeMap<String, Value>>) -> Self {
        Self { driver, readings }
    }
}

fn no_call() -> DriverError {
    let message = "the check of a migration reads and changes no objects".to_owned();
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

#[async_trait]
impl Driver for AsRecorded {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.driver.schema(type_name, provider)
    }

    fn wrapped(&self) -> Option<&dyn Driver> {
        Some(self.driver.as_ref())
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        self.driver.validate(context, config).await
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        self.driver.plan(context, request).await
    }

    async fn read(&self, _: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        Ok(Some(object.into()))
    }

    async fn apply(&self, _: &CallContext, _: ApplyRequest) -> ApplyResponse {
        ApplyResponse { error: Some(no_call()), ..ApplyResponse::default() }
    }

    async fn import(&self, _: &CallContext, _: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        Err(no_call())
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    async fn configuration(&self, context: &CallContext) -> Result<Arc<str>, DriverError> {
        self.driver.configuration(context).await
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.driver.data().map(|_| self as &dyn DataSources)
    }
}

#[async_trait]
impl DataSources for AsRecorded {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.driver.data()?.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        self.driver.sources(context)?.plan_data(context, config).await
    }

    async fn read_data(&self, context: &CallContext, _: &Value) -> Result<Value, DriverError> {
        self.readings.get(&*context.address).cloned().ok_or_else(no_call)
    }
}
