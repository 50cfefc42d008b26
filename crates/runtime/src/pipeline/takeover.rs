//! Moves of objects to another type: the driver of the new type converts the recorded objects. This writes no record
//! and changes no object.

use std::sync::Arc;

use crate::execute::Engine;
use crate::execute::engine::Call;
use crate::execute::failure::with_address;
use drivers::{CallContext, Driver, Warnings, unsupported_move};
use engine::load::{Config, Instance};
use engine::plan::ObjectBlock;
use engine::plan::moves::Takeover;
use model::{Address, Diagnostics, DriverError, ErrorKind, ProviderUse, Reason, Record, RecordedObject};

/// The converted records by the old and the new address.
type Conversions = Vec<((Address, Address), Result<Arc<Record>, ObjectBlock>)>;

/// Calls the drivers in parallel. Returns the converted records and the warnings.
pub async fn take_over(engine: &Engine, config: &Config, questions: Vec<Takeover>) -> (Conversions, Diagnostics) {
    let conversions = questions.into_iter().map(|takeover| async move {
        let warnings = Warnings::default();
        let record = match config.instances.get(&takeover.to) {
            Some(instance) => convert_record(engine, config, instance, &takeover.record, &warnings).await,
            None => Err(blocked("no Resource exists at the new address".to_owned())),
        };
        let warnings = with_address(&takeover.to, warnings.take());
        (((takeover.from, takeover.to), record.map(Arc::new)), warnings)
    });
    let converted = futures::future::join_all(conversions).await;
    let (converted, warnings): (Conversions, Vec<Diagnostics>) = converted.into_iter().unzip();
    (converted, warnings.concat())
}

/// Converts a record to the type of the instance.
async fn convert_record(
    engine: &Engine,
    config: &Config,
    instance: &Instance,
    record: &Record,
    warnings: &Warnings,
) -> Result<Record, ObjectBlock> {
    let type_name = &instance.type_name;
    let driver = engine.drivers.get(type_name).ok_or_else(|| unknown_type(type_name))?;
    let provider = provider(instance, record)?;
    let schema = driver.schema(type_name, provider.as_ref().map(|used| used.provider.as_ref()));
    let version = schema.ok_or_else(|| unknown_type(type_name))?.version;
    let _places = engine.permit(&config.namespace, type_name, provider.as_deref()).await;
    let call = Call {
        type_name,
        namespace: &config.namespace,
        address: &instance.address,
        provider: provider.as_ref(),
        service_account: &instance.service_account,
        read: &[instance.inputs.values()],
    };
    let context = CallContext { warnings: warnings.clone(), ..engine.call_context(&call, instance.timeouts.read) };
    let conversion = Conversion { driver: driver.as_ref(), context, version, provider };
    let mut after = Record { type_name: type_name.clone(), ..record.clone() };
    for object in after.current.iter_mut().chain(after.deposed.values_mut()) {
        *object = Arc::new(conversion.convert_object(&record.type_name, object).await.map_err(block_for_error)?);
    }
    Ok(after)
}

/// The conversion of objects to a type.
struct Conversion<'a> {
    driver: &'a dyn Driver,
    context: CallContext,
    /// The schema version.
    version: u64,
    provider: Option<Arc<ProviderUse>>,
}

impl Conversion<'_> {
    async fn convert_object(&self, type_name: &str, object: &RecordedObject) -> Result<RecordedObject, DriverError> {
        let converted = match self.driver.takeover() {
            Some(converter) => converter.take_over(&self.context, type_name, object).await?,
            None => return Err(unsupported_move(&self.context, type_name)),
        };
        let recorded_source = object.provider.as_ref().map(|used| &used.provider.source);
        let new_source = self.provider.as_ref().map(|used| &used.provider.source);
        // A missing object can only be detected with the provider configuration of the last read.
        let provider_config = match recorded_source == new_source {
            true => object.provider_config.clone(),
            false => self.driver.configuration(&self.context).await?,
        };
        Ok(RecordedObject {
            value: converted.value.unknown_as_null(),
            private: converted.private,
            identity: converted.identity,
            schema_version: self.version,
            provider_config,
            provider: self.provider.clone(),
            // The driver has not compared it with the configuration yet.
            matching_config: None,
            ..object.clone()
        })
    }
}

/// Returns the provider to call. If its configuration depends on other objects, the recorded configuration is used.
fn provider(instance: &Instance, record: &Record) -> Result<Option<Arc<ProviderUse>>, ObjectBlock> {
    let Some(provided) = &instance.provider else { return Ok(None) };
    if let Some(constant) = provided.constant() {
        return Ok(Some(constant));
    }
    if let Some(problem) = provided.problem() {
        return Err(ObjectBlock { reason: problem.reason, message: problem.summary });
    }
    let recorded = record.current.iter().chain(record.deposed.values()).filter_map(|object| object.provider.as_ref());
    let mut same = recorded.filter(|used| used.name == *provided.name());
    match same.next() {
        Some(used) => Ok(Some(Arc::clone(used))),
        None => Err(blocked(format!("the provider configuration `{}` depends on other objects", provided.name()))),
    }
}

fn unknown_type(type_name: &str) -> ObjectBlock {
    blocked(format!("no driver serves the type `{type_name}`"))
}

fn blocked(message: String) -> ObjectBlock {
    ObjectBlock { reason: Reason::MoveBlocked, message }
}

/// A call that failed because the driver is not available is retried later. A rejected call is not.
fn block_for_error(error: DriverError) -> ObjectBlock {
    let reason = match error.kind {
        ErrorKind::Terminal | ErrorKind::InvalidConfig | ErrorKind::AlreadyExists => Reason::MoveBlocked,
        kind => kind.reason(),
    };
    ObjectBlock { reason, message: error.message }
}
