//! One data source of a provider.

use super::object::{Object, refuse_deferred};
use super::told;
use crate::cty;
use crate::driver::Expected;
use crate::model::{DriverError, Secrets, Value};

impl Object<'_> {
    /// Checks the configuration of a data source, and says what reading it will give.
    pub async fn expect_data(&self, config: &Value) -> Result<Expected, DriverError> {
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
    pub async fn read_data(&self, config: &Value) -> Result<Value, DriverError> {
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
