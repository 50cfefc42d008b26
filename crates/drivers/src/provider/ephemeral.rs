//! Ephemeral resources of providers: opened for one run, renewed in time, and closed at its end. Nothing of them is recorded.

use std::sync::Arc;
use std::time::Duration;

use cty::{Marks, Value};
use jiff::Timestamp;

use super::mask::ProcessMask;
use super::schema::ResourceType;
use super::{Providers, diagnostics, no_such_type, values};
use model::{DriverError, ProviderUse, Secrets, TypeName};
use process::Clock;
use tfprovider::plugin::{self, Diagnostic, DynamicValue, Lease};
use tfprovider::schema::{Block, normalize};

/// What is opened.
pub struct EphemeralRequest {
    /// The provider with its configuration.
    pub used: ProviderUse,
    pub type_name: TypeName,
    /// The configuration by the schema, without unknown values.
    pub config: Value,
}

/// An ephemeral resource that is open. It keeps its provider running.
pub(super) struct OpenedResource {
    type_name: TypeName,
    lease: Lease,
    mask: Arc<ProcessMask>,
    private: Vec<u8>,
    renew_at: Option<Timestamp>,
}

impl Providers {
    /// The schema of an ephemeral resource of a provider that is prepared. `None` if it has none of this name.
    ///
    /// # Errors
    /// If the provider cannot be used, or its schema is not valid.
    pub fn ephemeral_block(&self, provider: &model::Provider, type_name: &str) -> Result<Option<Block>, DriverError> {
        let Some(served) = self.cached_types(provider).transpose()? else { return Ok(None) };
        Ok(served.ephemeral(type_name)?.map(|kind| kind.schema.block.clone()))
    }

    /// Has the provider check the configuration of an ephemeral resource, and opens it if providers are configured. Returns its
    /// value.
    pub(super) async fn open(
        &self,
        request: &EphemeralRequest,
    ) -> Result<Option<(Value, OpenedResource)>, DriverError> {
        let EphemeralRequest { used, type_name, config } = request;
        let served = self.served_types(&used.provider).await?;
        let kind = served
            .ephemeral(type_name)?
            .ok_or_else(|| no_such_type(&used.provider, "ephemeral resource", type_name))?;
        let (lease, mask) = self.sessions.lease(&"".into(), used, &served).await?;
        let block = &kind.schema.block;
        let plain = config.unmarked_deep(&mut Marks::default());
        mask.add(Secrets::of([&values::to_model(block, &plain)]));
        let encoded = DynamicValue::of(&plain, kind.schema.ty());
        let encoded = encoded.map_err(|error| diagnostics::decode_error("the configuration", &error))?;
        let said = lease.validate_ephemeral_resource_config(type_name, encoded.clone()).await;
        check(said.map_err(|error| diagnostics::call_error(&error))?)?;
        if !self.sessions.configures() {
            return Ok(None);
        }
        let answer = lease.open_ephemeral_resource(type_name, encoded).await;
        let answer = answer.map_err(|error| diagnostics::call_error(&error))?;
        let failed = check(answer.diagnostics).err();
        let opened = OpenedResource {
            type_name: type_name.clone(),
            lease,
            mask,
            private: answer.private,
            renew_at: answer.renew_at.and_then(time),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        match result(&kind, &answer.result) {
            Ok(value) => {
                opened.mask.add(Secrets::of([&values::to_model(block, &value)]));
                Ok(Some((value, opened)))
            }
            Err(error) => {
                opened.close().await;
                Err(error)
            }
        }
    }
}

impl OpenedResource {
    /// How long until it must be renewed. `None`: it never must.
    pub fn due_in(&self, clock: &dyn Clock) -> Option<Duration> {
        let left = self.renew_at?.duration_since(clock.now());
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Renews it if it is due. A failure is a warning: what the value is used for says itself if it is not valid any more.
    pub async fn renew_if_due(&mut self, clock: &dyn Clock) {
        if self.due_in(clock).is_none_or(|left| !left.is_zero()) {
            return;
        }
        self.renew_at = None;
        let type_name = &*self.type_name;
        match self.lease.renew_ephemeral_resource(type_name, self.private.clone()).await {
            Ok(answer) => {
                self.warn_of(&answer.diagnostics, "renewed");
                (self.private, self.renew_at) = (answer.private, answer.renew_at.and_then(time));
            }
            Err(error) => tracing::warn!(type_name, %error, "an ephemeral resource was not renewed"),
        }
    }

    pub async fn close(self) {
        let type_name = &*self.type_name;
        match self.lease.close_ephemeral_resource(type_name, self.private.clone()).await {
            Ok(said) => self.warn_of(&said, "closed"),
            Err(error) => tracing::warn!(type_name, %error, "an ephemeral resource was not closed"),
        }
    }

    fn warn_of(&self, said: &[Diagnostic], what: &str) {
        if let Some(error) = diagnostics::first_error(said) {
            let (type_name, error) = (&*self.type_name, self.mask.secrets().redact(error.message));
            tracing::warn!(type_name, error, "an ephemeral resource was not {what}");
        }
    }
}

fn check(said: Vec<Diagnostic>) -> Result<(), DriverError> {
    diagnostics::first_error(&said).map_or(Ok(()), Err)
}

/// The value that a provider gives.
fn result(kind: &ResourceType, answered: &DynamicValue) -> Result<Value, DriverError> {
    let value = answered.value(kind.schema.ty());
    let value = value.map_err(|error| diagnostics::decode_error("the value of the ephemeral resource", &error))?;
    if value.is_null() || !value.is_wholly_known() {
        return Err(diagnostics::protocol_error("the provider returned no known value for the ephemeral resource"));
    }
    Ok(normalize(&kind.schema.block, &value))
}

/// A time that a provider means. Providers in Go send the year 1 for none.
fn time(at: plugin::Timestamp) -> Option<Timestamp> {
    Timestamp::new(at.seconds, at.nanos).ok().filter(|at| *at > Timestamp::UNIX_EPOCH)
}
