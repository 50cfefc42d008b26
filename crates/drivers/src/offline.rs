//! A driver for `purlin validate`, which needs no cluster and no credentials: it validates configurations with the
//! wrapped driver and plans from the schema alone.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

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

impl Driver for Offline {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.schema(type_name, provider)
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        self.0.validate(context, config)
    }

    fn read<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Err(offline_error()) }.boxed()
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        let schema = self.0.schema(&context.type_name, context.provider());
        let answer = schema
            .ok_or_else(offline_error)
            .map(|schema| PlanResponse { planned: planned(&schema, &request.config), ..PlanResponse::default() });
        async { answer }.boxed()
    }

    fn apply<'a>(&'a self, _: &'a CallContext, _: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        async { ApplyResponse { error: Some(offline_error()), ..ApplyResponse::default() } }.boxed()
    }

    fn import<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Err(offline_error()) }.boxed()
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.0.data().map(|_| self as &dyn DataSources)
    }
}

impl DataSources for Offline {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.data()?.data_schema(type_name, provider)
    }

    fn plan_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<DataPlan, DriverError>> {
        match self.0.data() {
            Some(data) => data.plan_data(context, config),
            None => async { Err(offline_error()) }.boxed(),
        }
    }

    fn read_data<'a>(&'a self, _: &'a CallContext, _: &'a Value) -> BoxFuture<'a, Result<Value, DriverError>> {
        async { Ok(Value::Unknown) }.boxed()
    }
}
