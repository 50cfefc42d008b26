//! A driver for the check of a migration: it plans with the wrapped driver, reads no objects, and returns the data
//! sources of the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

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

impl Driver for AsRecorded {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.driver.schema(type_name, provider)
    }

    fn validate<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Diagnostics, DriverError>> {
        self.driver.validate(context, config)
    }

    fn plan<'a>(
        &'a self,
        context: &'a CallContext,
        request: PlanRequest,
    ) -> BoxFuture<'a, Result<PlanResponse, DriverError>> {
        self.driver.plan(context, request)
    }

    fn read<'a>(
        &'a self,
        _: &'a CallContext,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Ok(Some(object.into())) }.boxed()
    }

    fn apply<'a>(&'a self, _: &'a CallContext, _: ApplyRequest) -> BoxFuture<'a, ApplyResponse> {
        async { ApplyResponse { error: Some(no_call()), ..ApplyResponse::default() } }.boxed()
    }

    fn import<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a ImportRequest,
    ) -> BoxFuture<'a, Result<Option<ObjectState>, DriverError>> {
        async { Err(no_call()) }.boxed()
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Unknown
    }

    fn configuration<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<Arc<str>, DriverError>> {
        self.driver.configuration(context)
    }

    fn data(&self) -> Option<&dyn DataSources> {
        self.driver.data().map(|_| self as &dyn DataSources)
    }
}

impl DataSources for AsRecorded {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.driver.data()?.data_schema(type_name, provider)
    }

    fn plan_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<DataPlan, DriverError>> {
        match self.driver.data() {
            Some(data) => data.plan_data(context, config),
            None => async { Err(no_call()) }.boxed(),
        }
    }

    fn read_data<'a>(&'a self, context: &'a CallContext, _: &'a Value) -> BoxFuture<'a, Result<Value, DriverError>> {
        async { self.readings.get(&*context.address).cloned().ok_or_else(no_call) }.boxed()
    }
}
