//! A driver for `purlin validate`, which needs no cluster and no credentials: it validates configurations with the
//! wrapped driver and plans from the schema alone.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, DataPlan, DataSources, Driver};
use model::{
    Diagnostics, DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider,
    RecordedObject, Schema, Value,
};

/// Wraps a driver and uses only its schemas and validation.
pub struct Offline(Arc<dyn Driver>);

impl Offline {
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self(driver)
    }
}

/// The configured values; computed attributes are unknown.
fn planned(schema: &Schema, config: &Value) -> Value {
    let attributes = schema.attributes.iter().map(|(name, attribute)| {
        let configured = config.get(name).filter(|value| !matches!(value.unmarked(), Value::Null));
        let value = configured.cloned().unwrap_or(if attribute.computed { Value::Unknown } else { Value::Null });
        (Arc::clone(name), value)
    });
    Value::map(attributes)
}

fn offline_error() -> DriverError {
    let message = "the driver is offline and makes no calls".to_owned();
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

#[async_trait]
impl Driver for Offline {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.schema(type_name, provider)
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        self.0.validate(context, config).await
    }

    async fn read(&self, _: &CallContext, _: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        Err(offline_error())
    }

    async fn plan(&self, context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        let schema = self.0.schema(&context.type_name, context.provider()).ok_or_else(offline_error)?;
        Ok(PlanResponse { planned: planned(&schema, &request.config), ..PlanResponse::default() })
    }

    async fn apply(&self, _: &CallContext, _: ApplyRequest) -> ApplyResponse {
        ApplyResponse { error: Some(offline_error()), ..ApplyResponse::default() }
    }

    async fn import(&self, _: &CallContext, _: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        Err(offline_error())
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.0.data().map(|_| self as &dyn DataSources)
    }
}

#[async_trait]
impl DataSources for Offline {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.data()?.data_schema(type_name, provider)
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        self.0.sources(context)?.plan_data(context, config).await
    }

    async fn read_data(&self, _: &CallContext, _: &Value) -> Result<Value, DriverError> {
        Ok(Value::Unknown)
    }
}
