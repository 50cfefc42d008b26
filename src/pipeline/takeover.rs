//! Objects that get another type: the driver of the new type says what they are then. Nothing is written here, and
//! nothing changes outside.

use std::sync::Arc;

use crate::driver::{CallContext, Driver, Warnings, no_way};
use crate::execute::engine::Call;
use crate::execute::failure::told;
use crate::execute::{Engine, Place};
use crate::load::{Config, Instance};
use crate::model::{
    Address, Diagnostics, DriverError, ErrorKind, ProviderUse, Reason, Record, RecordedObject, Secrets,
};
use crate::plan::Held;
use crate::plan::moves::Takeover;

/// What became of the questions, by the addresses from which and to which objects are moved.
type Taken = Vec<((Address, Address), Result<Arc<Record>, Held>)>;

/// Asks the drivers, all at once. Gives what they have warned of as well.
pub(super) async fn take_over(engine: &Engine, config: &Config, questions: Vec<Takeover>) -> (Taken, Diagnostics) {
    let ask = |asked: Takeover| async move {
        let warnings = Warnings::default();
        let answer = match config.instances.get(&asked.to) {
            Some(instance) => convert(engine, config, instance, &asked.record, &warnings).await,
            None => Err(blocked("there is no Resource for it".to_owned())),
        };
        let warned = told(&asked.to, warnings.take());
        (((asked.from, asked.to), answer.map(Arc::new)), warned)
    };
    let answers = futures::future::join_all(questions.into_iter().map(ask)).await;
    let (taken, warned): (Taken, Vec<Diagnostics>) = answers.into_iter().unzip();
    (taken, warned.concat())
}

/// The record as one of the type of the instance.
async fn convert(
    engine: &Engine,
    config: &Config,
    instance: &Instance,
    record: &Record,
    warnings: &Warnings,
) -> Result<Record, Held> {
    let type_name = &instance.type_name;
    let driver = engine.drivers.get(type_name).ok_or_else(|| unserved(type_name))?;
    let provider = provider(instance, record)?;
    let schema = driver.schema(type_name, provider.as_ref().map(|used| used.provider.as_ref()));
    let version = schema.ok_or_else(|| unserved(type_name))?.version;
    let _places = Place::wait(engine.slots(type_name, provider.as_deref())).await;
    let call = Call {
        type_name,
        namespace: &config.namespace,
        address: &instance.address,
        provider: provider.as_ref(),
        service_account: &instance.service_account,
    };
    let context = CallContext { warnings: warnings.clone(), ..engine.call_context(&call, instance.timeouts.read) };
    let becomes = Becomes { driver: driver.as_ref(), context, version, provider };
    let mut after = Record { type_name: Arc::clone(type_name), ..record.clone() };
    for object in after.current.iter_mut().chain(after.deposed.values_mut()) {
        *object = Arc::new(becomes.of(&record.type_name, object).await.map_err(refusal)?);
    }
    Ok(after)
}

/// What objects become.
struct Becomes<'a> {
    driver: &'a dyn Driver,
    context: CallContext,
    /// Of the schema.
    version: u64,
    provider: Option<Arc<ProviderUse>>,
}

impl Becomes<'_> {
    async fn of(&self, type_name: &str, object: &RecordedObject) -> Result<RecordedObject, DriverError> {
        let taken = match self.driver.takeover() {
            Some(taking) => taking.take_over(&self.context, type_name, object).await,
            None => Err(no_way(&self.context, type_name)),
        };
        self.context.warnings.mask(|| Secrets::of([&object.value]));
        let taken = taken.map_err(|error| Secrets::of([&object.value]).error(error))?;
        let source = |used: &Option<Arc<ProviderUse>>| used.as_ref().map(|used| used.provider.source.clone());
        // Whether it is gone can be told under the settings that last saw it, and no others.
        let provider_config = match source(&object.provider) == source(&self.provider) {
            true => object.provider_config.clone(),
            false => self.driver.configuration(&self.context).await?,
        };
        Ok(RecordedObject {
            value: taken.value.unknown_as_null(),
            private: taken.private,
            identity: taken.identity,
            schema_version: self.version,
            provider_config,
            provider: self.provider.clone(),
            // Nobody has said yet that it is what is wanted.
            agrees_with: None,
            ..object.clone()
        })
    }
}

/// The provider to ask. One whose settings hang on other objects is asked with those that the object had.
fn provider(instance: &Instance, record: &Record) -> Result<Option<Arc<ProviderUse>>, Held> {
    let Some(provided) = &instance.provider else { return Ok(None) };
    if let Some(constant) = provided.constant() {
        return Ok(Some(constant));
    }
    if let Some(problem) = provided.problem() {
        return Err(Held { reason: problem.reason, message: problem.summary });
    }
    let recorded = record.current.iter().chain(record.deposed.values()).filter_map(|object| object.provider.as_ref());
    let mut same = recorded.filter(|used| used.name == *provided.name());
    let unknown = || blocked(format!("the settings `{}` of its provider refer to other objects", provided.name()));
    same.next().cloned().map(Some).ok_or_else(unknown)
}

fn unserved(type_name: &str) -> Held {
    blocked(format!("nobody serves the type `{type_name}`"))
}

fn blocked(message: String) -> Held {
    Held { reason: Reason::MoveBlocked, message }
}

/// A driver that cannot be asked now may be asked later; what it refuses it refuses.
fn refusal(error: DriverError) -> Held {
    let reason = match error.kind {
        ErrorKind::Transient => Reason::OperationFailed,
        ErrorKind::Unavailable => Reason::ProviderNotReady,
        ErrorKind::Forbidden => Reason::Forbidden,
        ErrorKind::Terminal | ErrorKind::InvalidConfig | ErrorKind::AlreadyExists => Reason::MoveBlocked,
    };
    Held { reason, message: error.message }
}
