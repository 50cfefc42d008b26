//! Runs the driver calls of the planner, and reads existing objects for an import.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tracing::{Instrument as _, Span};

use crate::execute::engine::{Call, read_data, validate_and_plan};
use crate::execute::{Engine, publish};
use drivers::{CallContext, ReconstructedConfig};
use engine::load::{Config, Timeouts};
use engine::plan::{CallId, DriverCall, DriverRequest, DriverResponse, Planner, ResponseCache};
use model::{
    Address, DriverError, ErrorKind, ImportRequest, Namespace, ObjectState, PlanResponse, ProviderUse, Recorded,
    TypeName, Value,
};

type ResponseFuture<'a> = Pin<Box<dyn Future<Output = (CallId, DriverResponse)> + Send + 'a>>;

/// Runs driver calls until the planner needs no more. Returns the provider configurations of the calls by digest.
pub async fn run_calls(
    engine: &Engine,
    config: &Config,
    recorded: &Recorded,
    planner: &mut Planner<'_>,
    memo: &mut ResponseCache,
) -> BTreeMap<Arc<str>, Arc<ProviderUse>> {
    let mut used = BTreeMap::new();
    let caches_all = config.families.values().any(|family| family.has_expressions());
    let mut open: FuturesUnordered<ResponseFuture<'_>> = FuturesUnordered::new();
    let mut cacheable: BTreeMap<CallId, DriverCall> = BTreeMap::new();
    loop {
        let mut has_calls = false;
        let mut responses = Vec::new();
        for driver_call in planner.ready_calls() {
            has_calls = true;
            if caches_all || ResponseCache::outlives_plan(&driver_call) {
                if let Some(response) = memo.get(&driver_call) {
                    planner.handle_response(driver_call.id, response);
                    continue;
                }
                cacheable.insert(driver_call.id, driver_call.clone());
            }
            if let Some(provider) = &driver_call.provider {
                used.entry(Arc::clone(&provider.digest)).or_insert_with(|| Arc::clone(provider));
            }
            let span = span(config, &driver_call);
            let call = call_driver(engine, config, recorded, driver_call);
            let mut response: ResponseFuture<'_> = Box::pin(call.instrument(span));
            // Built-in drivers respond immediately. Only pending calls are added to the set.
            match futures::poll!(&mut response) {
                Poll::Ready(response) => responses.push(response),
                Poll::Pending => open.push(response),
            }
        }
        // An immediate response can make more calls ready.
        if !has_calls {
            match open.next().await {
                Some(response) => responses.push(response),
                None => return used,
            }
        }
        for (id, response) in responses {
            if let Some(driver_call) = cacheable.remove(&id) {
                memo.insert(driver_call, response.clone(), engine.clock.now());
            }
            planner.handle_response(id, response);
        }
    }
}

/// The fields that the log lines of a call share.
fn span(config: &Config, call: &DriverCall) -> Span {
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!(
        "plan_object",
        namespace = &*config.namespace,
        object = %call.address,
        resource_type = &*call.type_name,
    )
}

async fn call_driver(
    engine: &Engine,
    config: &Config,
    recorded: &Recorded,
    driver_call: DriverCall,
) -> (CallId, DriverResponse) {
    let Some(driver) = engine.drivers.get(&driver_call.type_name) else {
        // The planner calls drivers only for types with a schema, so a driver exists.
        let error = missing_driver(&driver_call.type_name);
        return (driver_call.id, DriverResponse::Object(Vec::new(), Err(error), Arc::from("")));
    };
    let _place = engine.permit(&config.namespace, &driver_call.type_name, driver_call.provider.as_deref()).await;
    let read = referenced_values(config, recorded, &driver_call.address);
    let call = Call {
        type_name: &driver_call.type_name,
        namespace: &config.namespace,
        address: &driver_call.address,
        provider: driver_call.provider.as_ref(),
        service_account: &driver_call.service_account,
        read: &read,
    };
    let timeout =
        config.instances.get(&driver_call.address).map_or(Timeouts::default().read, |instance| instance.timeouts.read);
    let context = engine.call_context(&call, timeout);
    let response = match driver_call.request {
        DriverRequest::Import(request) => match driver.configuration(&context).await {
            Ok(configuration) => {
                let found = driver.import(&context, &request).await;
                object_response(&context, found, configuration)
            }
            Err(error) => DriverResponse::Object(Vec::new(), Err(error), Arc::from("")),
        },
        DriverRequest::Read(object) => match driver.configuration(&context).await {
            Ok(configuration) => {
                let read = driver.read(&context, &object).await;
                object_response(&context, read, configuration)
            }
            Err(error) => DriverResponse::Object(Vec::new(), Err(error), Arc::from("")),
        },
        DriverRequest::Copies(record) => DriverResponse::Copies(publish::has_drifted(engine, &record).await),
        DriverRequest::Plan(request) => {
            let (found, response) = validate_and_plan(driver.as_ref(), &context, request).await;
            let configuration = match &response {
                Ok(Some(PlanResponse { identity: Some(_), .. })) => driver.configuration(&context).await,
                _ => Ok(Arc::default()),
            };
            match configuration {
                Ok(configuration) => DriverResponse::Planned(found, response, configuration),
                Err(error) => DriverResponse::Planned(found, Err(error), Arc::default()),
            }
        }
        DriverRequest::Data { config: given, read } => {
            let (found, response) = read_data(driver.as_ref(), &context, &given, read).await;
            DriverResponse::Data(found, response)
        }
    };
    (driver_call.id, response)
}

/// Returns the response of a read or an import.
fn object_response(
    context: &CallContext,
    found: Result<Option<ObjectState>, DriverError>,
    configuration: Arc<str>,
) -> DriverResponse {
    DriverResponse::Object(context.warnings.take(), found.map(checked_object), configuration)
}

/// Returns the recorded values that the expressions of an object read. A message can quote a part of an evaluated
/// value, of which only the whole is marked as sensitive.
fn referenced_values<'a>(config: &'a Config, recorded: &'a Recorded, address: &Address) -> Vec<&'a Value> {
    let Some(instance) = config.instances.get(address) else { return Vec::new() };
    instance
        .references
        .iter()
        .filter_map(|reference| Some(&recorded.get(&reference.target)?.record.current.as_ref()?.value))
        .chain([instance.inputs.values()])
        .collect()
}

/// Replaces unknown values by null, as Terraform does. A driver must not return unknown values.
fn checked_object(object: Option<ObjectState>) -> Option<ObjectState> {
    object.map(|mut object| {
        object.value = object.value.unknown_as_null();
        object
    })
}

fn missing_driver(type_name: &str) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: format!("no driver serves the type `{type_name}`"),
        path: None,
        hint: None,
    }
}

/// An existing object without a manifest.
#[derive(Debug)]
pub struct ImportedObject {
    pub state: ObjectState,
    /// The configuration that the driver reconstructed; `None` if it can only be derived from the schema.
    pub config: Option<ReconstructedConfig>,
}

/// Reads an existing object with the provider of `address`. Returns `None` if it does not exist.
///
/// # Errors
/// Returns the error of the driver.
pub async fn import(
    engine: &Engine,
    namespace: &Namespace,
    address: &Address,
    type_name: &TypeName,
    provider: Option<&Arc<ProviderUse>>,
    request: &ImportRequest,
) -> Result<Option<ImportedObject>, DriverError> {
    let driver = engine.drivers.get(type_name).ok_or_else(|| missing_driver(type_name))?;
    let call = Call { type_name, namespace, address, provider, service_account: &Arc::from(""), read: &[] };
    let context = engine.call_context(&call, Timeouts::default().read);
    let Some(state) = checked_object(driver.import(&context, request).await?) else { return Ok(None) };
    let config = match engine.drivers.providers_serving(type_name) {
        Some(providers) => Some(providers.reconstruct(&context, &state.value).await?),
        None => None,
    };
    Ok(Some(ImportedObject { state, config }))
}
