//! A driver that asks nobody: it checks configurations as the driver behind it does, and plans by the schema alone.
//! For `purlin validate`, which needs no cluster and no account.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, Expected, Preparation};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, ObjectState, PlanRequest, PlanResponse, Provider, RecordedObject, Schema,
    Value,
};

/// The schema and the checks of a driver, without its calls.
pub struct Offline(Arc<dyn Driver>);

impl Offline {
    /// Of the given driver.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self(driver)
    }
}

/// As configured; what the driver sets is unknown.
fn planned(schema: &Schema, config: &Value) -> Value {
    let attributes = schema.attributes.iter().map(|(name, attribute)| {
        let configured = config.get(name).filter(|value| !matches!(value.unmarked(), Value::Null));
        let value = configured.cloned().unwrap_or(if attribute.computed { Value::Unknown } else { Value::Null });
        (Arc::clone(name), value)
    });
    Value::map(attributes)
}

fn refusal() -> DriverError {
    let message = "this driver makes no calls".to_owned();
    DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
}

impl Driver for Offline {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.schema(type_name, provider)
    }

    fn types(&self, provider: Option<&Provider>, is_data: bool) -> Vec<String> {
        self.0.types(provider, is_data)
    }

    fn prepare<'a>(&'a self, preparation: Preparation<'a>) -> BoxFuture<'a, ()> {
        self.0.prepare(preparation)
    }

    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.0.fault(provider)
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
        async { Err(refusal()) }.boxed()
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        let schema = self.0.schema(&context.type_name, context.provider());
        let answer = schema
            .ok_or_else(refusal)
            .map(|schema| PlanResponse { planned: planned(&schema, &request.config), ..PlanResponse::default() });
        async { answer }.boxed()
    }

    fn apply<'a>(&'a self, _: &'a CallContext, _: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        async { ApplyResponse { error: Some(refusal()), ..ApplyResponse::default() } }.boxed()
    }

    fn import<'a>(&'a self, _: &'a CallContext, _: &'a str) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Err(refusal()) }.boxed()
    }

    fn create_recovery(&self) -> CreateRecovery {
        self.0.create_recovery()
    }

    fn find_created<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Err(refusal()) }.boxed()
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.data_schema(type_name, provider)
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        self.0.expect_data(context, config)
    }

    /// Nobody knows what is there, so all of it is unknown.
    fn read_data<'a>(&'a self, _: &'a CallContext, _: &'a Value) -> BoxFuture<'a, Result<Value, DriverError>> {
        async { Ok(Value::Unknown) }.boxed()
    }

    fn concurrency(&self) -> Option<usize> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}
