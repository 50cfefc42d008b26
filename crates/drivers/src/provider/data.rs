//! Data sources of providers.

use std::sync::Arc;

use async_trait::async_trait;

use super::object_client::{ObjectClient, reject_deferred};
use super::{Providers, diagnostics, values};
use crate::{CallContext, DataPlan, DataSources};
use model::{DriverError, Provider, Schema, Secrets, Value};
use tfprovider::schema::{normalize, unread_data_source};

#[async_trait]
impl DataSources for Providers {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let served = self.cached_types(provider?)?.ok()?;
        Some(served.data(type_name).ok()??.outline.clone())
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        let called = self.data_source_client(context).await?;
        called.mask_values(Some(config), None);
        called.plan_data(config).await
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        let called = self.data_source_client(context).await?;
        called.mask_values(Some(config), None);
        called.read_data(config).await
    }
}

impl ObjectClient<'_> {
    async fn plan_data(&self, config: &Value) -> Result<DataPlan, DriverError> {
        let block = &self.kind.schema.block;
        let (config, diagnostics) = values::coerce_config(block, config);
        if !diagnostics.is_empty() {
            return Ok((diagnostics, Value::Unknown));
        }
        let response = self.client.validate_data_source_config(&self.context.type_name, self.encode(&config)?).await;
        let diagnostics = diagnostics::diagnostics(response.map_err(|error| diagnostics::call_error(&error))?);
        Ok((diagnostics, values::to_model(block, &unread_data_source(block, &config))))
    }

    async fn read_data(&self, config: &Value) -> Result<Value, DriverError> {
        let block = &self.kind.schema.block;
        let config = self.encode(&self.conform_config(config)?)?;
        let answer = self.client.read_data_source(&self.context.type_name, config).await;
        let answer = answer.map_err(|error| diagnostics::call_error(&error))?;
        self.check_diagnostics(answer.diagnostics)?;
        reject_deferred(answer.deferred.is_some())?;
        let state = self.decode(&answer.state, "the value of the data source")?;
        if state.is_null() {
            return Err(diagnostics::protocol_error("the provider returned no value and reported no error"));
        }
        if !state.is_wholly_known() {
            return Err(diagnostics::protocol_error("the provider returned unknown values for the data source"));
        }
        let read = values::to_model(block, &normalize(block, &state));
        self.mask.add(Secrets::of([&read]));
        Ok(read)
    }
}
