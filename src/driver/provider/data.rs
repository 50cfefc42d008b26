//! Data sources of providers.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::object::{Object, refuse_deferred};
use super::{Providers, told};
use crate::cty;
use crate::driver::{CallContext, DataSources, Expected};
use crate::model::{DriverError, Provider, Schema, Secrets, Value};

impl DataSources for Providers {
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let served = self.known(provider?)?.ok()?;
        Some(served.data(type_name).ok()??.outline.clone())
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        async move {
            let called = self.data_source(context).await?;
            called.hush(Some(config), None);
            let (found, expected) = called.masked(called.expect_data(config).await)?;
            Ok((found.into_iter().map(|problem| called.mask.diagnostic(problem)).collect(), expected))
        }
        .boxed()
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        async move {
            let called = self.data_source(context).await?;
            called.hush(Some(config), None);
            called.masked(called.read_data(config).await)
        }
        .boxed()
    }
}

impl Object<'_> {
    /// Checks the configuration of a data source, and says what reading it will give.
    async fn expect_data(&self, config: &Value) -> Result<Expected, DriverError> {
        let block = &self.kind.schema.block;
        let (config, found) = cty::conform(block, config);
        if !found.is_empty() {
            return Ok((found, Value::Unknown));
        }
        let said = self.client.validate_data_source_config(&self.context.type_name, self.encode(&config)?).await;
        let found = told::diagnostics(said.map_err(|error| told::failed(&error))?);
        Ok((found, cty::to_engine(block, &cty::unread(block, &config))))
    }

    /// Reads a data source.
    async fn read_data(&self, config: &Value) -> Result<Value, DriverError> {
        let block = &self.kind.schema.block;
        let config = self.encode(&self.conformed(config)?)?;
        let answer = self.client.read_data_source(&self.context.type_name, config).await;
        let answer = answer.map_err(|error| told::failed(&error))?;
        self.hear(answer.diagnostics)?;
        refuse_deferred(answer.deferred.is_some())?;
        let state = self.decode(&answer.state, "what it has read")?;
        if state.is_null() {
            return Err(told::fault("the provider read nothing and reported no error"));
        }
        if state.has_unknown() {
            return Err(told::fault("the provider left places of what it has read unknown"));
        }
        let read = cty::to_engine(block, &cty::normalized(block, &state));
        self.mask.remember(Secrets::of([&read]));
        Ok(read)
    }
}
