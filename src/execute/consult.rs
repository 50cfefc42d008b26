//! Drives the planner: puts its questions to the drivers and gives it the replies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::engine::Call;
use super::takeover::take_over;
use super::{mask, publish};
use crate::driver::{CallContext, Driver, Preparation, Reconstructed, Registry};
use crate::execute::Engine;
use crate::load::{Config, ImportRequest, ProviderSpec, Timeouts, closest};
use crate::model::{
    Address, Diagnostic, Diagnostics, DriverError, ErrorKind, ObjectState, PlanRequest, PlanResponse, Provider,
    ProviderUse, Recorded, Schema, Secrets, Severity, Value,
};
use crate::plan::moves::{self, Move, Moves, Takeovers};
use crate::plan::{Ask, AskId, Memo, Plan, PlanOptions, Planner, Question, Reply, Types};

impl Types for Registry {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.get(type_name)?.schema(type_name, provider)
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.get(type_name)?.data_schema(type_name, provider)
    }

    fn closest(&self, type_name: &str, provider: Option<&Provider>, is_data: bool) -> Option<String> {
        let served = |name: &&Arc<str>| match is_data {
            true => self.data_schema(name, None).is_some(),
            false => self.schema(name, None).is_some(),
        };
        let own = self.types().filter(|_| provider.is_none()).filter(served).map(ToString::to_string);
        let of_providers = self.providers().map(|driver| driver.types(provider, is_data)).unwrap_or_default();
        let all: Vec<String> = own.chain(of_providers).collect();
        // What all types of a provider begin with says nothing about which one is meant.
        let begins = provider.and_then(|_| type_name.find('_')).map_or("", |end| &type_name[..=end]);
        let rest = |name: &'_ String| name.strip_prefix(begins).map(str::to_owned);
        let rests: Vec<String> = all.iter().filter_map(rest).collect();
        let meant = closest(&type_name[begins.len()..], rests.iter().map(String::as_str))?;
        Some(format!("{begins}{meant}"))
    }

    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.providers()?.fault(provider)
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = (AskId, Reply)> + Send + 'a>>;

/// A plan with what it was made from.
#[derive(Debug, Default)]
pub struct Consulted {
    /// What will be done.
    pub plan: Plan,
    /// What is wanted, with the instances of every family that an expression tells.
    pub config: Arc<Config>,
    /// The moves that come before the first step: [`super::carry_out`] writes them.
    pub moves: Vec<Move>,
    /// The records as they are after the moves; `None` when there is none.
    pub recorded: Option<Recorded>,
}

/// Makes a plan, asking drivers as parallel as dependencies and limits allow. Nothing is changed anywhere. `memo` has what
/// providers said to earlier plans, and afterwards what they said to this one.
pub async fn plan(
    engine: &Engine,
    config: &Arc<Config>,
    recorded: &Recorded,
    options: &PlanOptions,
    memo: &mut Memo,
) -> Consulted {
    prepare(engine, config, recorded).await;
    let mut config = Arc::clone(config);
    let mut takeovers = Takeovers::new();
    let mut warnings = Diagnostics::new();
    loop {
        let Moves { moves, held, diagnostics, questions } = moves::find(&config, recorded, options, &takeovers);
        if !questions.is_empty() {
            let (taken, warned) = take_over(engine, &config, questions).await;
            takeovers.extend(taken);
            warnings.extend(warned);
            continue;
        }
        let after = (!moves.is_empty()).then(|| moves::carried(recorded, &moves));
        let mut options = Cow::Borrowed(options);
        if !moves.is_empty() || !held.is_empty() {
            let options = options.to_mut();
            options.moved = moves.iter().map(|one| (one.to.clone(), one.because())).collect();
            options.held.extend(held);
        }
        let now = after.as_ref().unwrap_or(recorded);
        let mut planner = Planner::new(&config, now, &options, &engine.drivers);
        let used = drive(engine, &config, now, &mut planner, memo).await;
        if planner.expansions().is_empty() {
            memo.end_plan();
            let mut plan = planner.finish();
            plan.diagnostics.extend(diagnostics.into_iter().chain(warnings));
            plan.diagnostics.extend(used.values().flat_map(|used| warnings_of_settings(engine, used)));
            return Consulted { plan, config, moves, recorded: after };
        }
        let expanded = Arc::new(config.expanded(planner.expansions()));
        drop(planner);
        config = expanded;
    }
}

/// Makes the providers ready that objects are, or were, managed by.
async fn prepare(engine: &Engine, config: &Config, recorded: &Recorded) {
    let Some(driver) = engine.drivers.providers() else { return };
    let wanted = config.instances.values().filter_map(|instance| instance.provider.as_ref()?.provider());
    let families = config.families.values().filter_map(|family| family.shared.provider.as_ref()?.provider());
    let objects =
        recorded.values().flat_map(|stored| stored.record.current.iter().chain(stored.record.deposed.values()));
    let recorded = objects.filter_map(|object| Some(&object.provider.as_ref()?.provider));
    // Most objects share one; comparing the pointers first spares the texts.
    let mut needed: Vec<Arc<Provider>> = Vec::new();
    for provider in wanted.chain(families).chain(recorded) {
        if !needed.iter().any(|known| Arc::ptr_eq(known, provider) || known == provider) {
            needed.push(Arc::clone(provider));
        }
    }
    if needed.is_empty() {
        return;
    }
    let sound = |spec: &&Arc<ProviderSpec>| !spec.problems.iter().any(|one| one.severity == Severity::Error);
    let current: Vec<Arc<Provider>> =
        config.providers.values().filter(sound).map(|spec| Arc::clone(&spec.provider)).collect();
    let settled: Vec<Arc<ProviderUse>> = config.constant_providers().collect();
    let (namespace, version) = (Some(&config.namespace), config.settings_version);
    driver.prepare(Preparation { namespace, version, needed: &needed, current: &current, settled: &settled }).await;
}

/// What a provider warns of the settings that it was asked under: told with each plan that uses them.
fn warnings_of_settings(engine: &Engine, used: &ProviderUse) -> Diagnostics {
    let warnings = engine.drivers.providers().map(|driver| driver.warned(used)).unwrap_or_default();
    let told = |warning: Diagnostic| {
        let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
        let (provider, settings) = (&used.provider.name, &used.name);
        let summary =
            format!("the provider `{provider}` warns of the settings `{settings}`: {place}{}", warning.summary);
        Diagnostic { summary, path: None, ..warning }
    };
    warnings.into_iter().map(told).collect()
}

/// Asks until nothing is left to ask. Gives the settings of providers that were asked under, by their digests.
async fn drive(
    engine: &Engine,
    config: &Config,
    recorded: &Recorded,
    planner: &mut Planner<'_>,
    memo: &mut Memo,
) -> BTreeMap<Arc<str>, Arc<ProviderUse>> {
    let mut used = BTreeMap::new();
    let begins_anew = config.families.values().any(|family| family.is_evaluated());
    let mut open: FuturesUnordered<Answer<'_>> = FuturesUnordered::new();
    let mut kept: BTreeMap<AskId, Ask> = BTreeMap::new();
    loop {
        let mut asked = false;
        let mut replies = Vec::new();
        for ask in planner.ready() {
            asked = true;
            if begins_anew || Memo::outlives_plan(&ask) {
                if let Some(reply) = memo.recall(&ask) {
                    planner.answer(ask.id, reply);
                    continue;
                }
                kept.insert(ask.id, ask.clone());
            }
            if let Some(one) = &ask.provider {
                used.entry(Arc::clone(&one.digest)).or_insert_with(|| Arc::clone(one));
            }
            let mut answer: Answer<'_> = Box::pin(answer(engine, config, recorded, ask));
            // Built-in drivers reply at once; only what has to wait goes through the set.
            match futures::poll!(&mut answer) {
                Poll::Ready(reply) => replies.push(reply),
                Poll::Pending => open.push(answer),
            }
        }
        // A reply at once may have made more questions ready.
        if !asked {
            match open.next().await {
                Some(reply) => replies.push(reply),
                None => return used,
            }
        }
        for (id, reply) in replies {
            if let Some(ask) = kept.remove(&id) {
                memo.keep(ask, reply.clone(), engine.clock.now());
            }
            planner.answer(id, reply);
        }
    }
}

async fn answer(engine: &Engine, config: &Config, recorded: &Recorded, ask: Ask) -> (AskId, Reply) {
    let Some(driver) = engine.drivers.get(&ask.type_name) else {
        // The planner asks only about types that have a schema, so a driver is there.
        let error = DriverError {
            kind: ErrorKind::Terminal,
            message: format!("no driver serves the type `{}`", ask.type_name),
            path: None,
            hint: None,
        };
        return (ask.id, Reply::Object(Vec::new(), Err(error), Arc::from("")));
    };
    let _places = take_places(engine, &ask.type_name, ask.provider.as_deref()).await;
    let call = Call {
        type_name: &ask.type_name,
        namespace: &config.namespace,
        address: &ask.address,
        provider: ask.provider.as_ref(),
        service_account: &ask.service_account,
    };
    let timeout =
        config.instances.get(&ask.address).map_or(Timeouts::default().read, |instance| instance.timeouts.read);
    let context = engine.call_context(&call, timeout);
    let read_by = || read_by(config, recorded, &ask.address);
    let reply = match ask.question {
        Question::Import(request) => match driver.configuration(&context).await {
            Ok(configuration) => {
                let found = found(driver.as_ref(), &context, &request).await;
                looked(&context, found, configuration, read_by)
            }
            Err(error) => Reply::Object(Vec::new(), Err(error), Arc::from("")),
        },
        Question::Read(object) => match driver.configuration(&context).await {
            Ok(configuration) => {
                let read = driver.read(&context, &object).await;
                looked(&context, read, configuration, || read_by().into_iter().chain([&object.value]).collect())
            }
            Err(error) => Reply::Object(Vec::new(), Err(error), Arc::from("")),
        },
        Question::Copies(record) => Reply::Copies(publish::has_drifted(engine, &record).await),
        Question::Plan(request) => {
            let (found, answer) = validate_and_plan(driver.as_ref(), &context, request, &read_by).await;
            Reply::Planned(found, answer)
        }
        Question::Data { config: given, read } => {
            let (found, answer) = read_data(driver.as_ref(), &context, &given, read, &read_by).await;
            Reply::Data(found, answer)
        }
    };
    (ask.id, reply)
}

/// The reply to whoever looks for an object, without what must not be told of it: what is sensitive in `known`, which is
/// asked for only when there is something to tell, and in what was found.
fn looked<'a>(
    context: &CallContext,
    found: Result<Option<ObjectState>, DriverError>,
    configuration: Arc<str>,
    known: impl Fn() -> Vec<&'a Value>,
) -> Reply {
    let found = found.map(checked_object);
    let own = found.iter().flatten().map(|object| &object.value);
    let warnings = mask::diagnostics(context.warnings.take(), || Secrets::of(known().into_iter().chain(own)));
    Reply::Object(warnings, found.map_err(|error| Secrets::of(known()).error(error)), configuration)
}

/// What the expressions of an object read, as it is recorded: a part of what they give may be quoted, and only the whole
/// is marked.
fn read_by<'a>(config: &'a Config, recorded: &'a Recorded, address: &Address) -> Vec<&'a Value> {
    let Some(instance) = config.instances.get(address) else { return Vec::new() };
    let value = |target: &Address| Some(&recorded.get(target)?.record.current.as_ref()?.value);
    let others = instance.references.iter().filter_map(|reference| value(&reference.target));
    others.chain([instance.inputs.values()]).collect()
}

/// Finds an existing object by what an import says of it.
pub(super) async fn found(
    driver: &dyn Driver,
    context: &CallContext,
    request: &ImportRequest,
) -> Result<Option<ObjectState>, DriverError> {
    match request {
        ImportRequest::Id(id) => driver.import(context, id).await,
        ImportRequest::Identity(identity) => driver.import_by_identity(context, identity).await,
    }
}

/// An existing object that no manifest describes.
#[derive(Debug)]
pub struct Unmanaged {
    /// As it was read.
    pub state: ObjectState,
    /// The configuration that it may have come from; `None`: its type tells no more than its schema.
    pub config: Option<Reconstructed>,
}

/// Reads an existing object as `address` would manage it. `None`: there is none.
///
/// # Errors
/// Those of the driver.
pub async fn import(
    engine: &Engine,
    namespace: &Arc<str>,
    address: &Address,
    type_name: &Arc<str>,
    provider: Option<&Arc<ProviderUse>>,
    request: &ImportRequest,
) -> Result<Option<Unmanaged>, DriverError> {
    let missing = || DriverError {
        kind: ErrorKind::Terminal,
        message: format!("no driver serves the type `{type_name}`"),
        path: None,
        hint: None,
    };
    let driver = engine.drivers.get(type_name).ok_or_else(missing)?;
    let call = Call { type_name, namespace, address, provider, service_account: &Arc::from("") };
    let context = engine.call_context(&call, Timeouts::default().read);
    let Some(state) = checked_object(found(driver.as_ref(), &context, request).await?) else { return Ok(None) };
    let config = driver.reconstruct(&context, &state.value).await?;
    Ok(Some(Unmanaged { state, config }))
}

pub(super) async fn take_places(
    engine: &Engine,
    type_name: &str,
    used: Option<&ProviderUse>,
) -> Vec<tokio::sync::OwnedSemaphorePermit> {
    let mut places = Vec::with_capacity(3);
    for slots in engine.slots(type_name, used) {
        // The semaphores live as long as the engine and are never closed.
        if let Ok(place) = slots.acquire_owned().await {
            places.push(place);
        }
    }
    places
}

/// Checks a configuration and plans it when the check finds no error. `read_by` gives what the expressions of the object
/// read, which is asked for only when there is something to tell.
pub(super) async fn validate_and_plan<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    request: PlanRequest,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<PlanResponse>, DriverError>) {
    let (config, prior) = (request.config.clone(), request.prior.clone());
    // Only what is told needs to be masked, and most plans tell nothing.
    let secrets = || mask::secrets(driver, context, &config, prior.as_deref(), &read_by());
    let mut found = match driver.validate(context, &config).await {
        Ok(found) => mask::diagnostics(found, secrets),
        Err(error) => return (Vec::new(), Err(secrets().error(error))),
    };
    if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return (found, Ok(None));
    }
    let answer = driver.plan(context, request).await;
    let mut warnings = mask::diagnostics(context.warnings.take(), secrets);
    // Providers of the second SDK say the same of a configuration once more.
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, answer.map(Some).map_err(|error| secrets().error(error)))
}

/// Checks the configuration of a data source, and when that finds no error reads with it if it shall: otherwise it says
/// what reading will give. `read_by` is as for [`validate_and_plan`].
pub(super) async fn read_data<'a>(
    driver: &dyn Driver,
    context: &CallContext,
    config: &Value,
    read: bool,
    read_by: &(dyn Fn() -> Vec<&'a Value> + Sync),
) -> (Diagnostics, Result<Option<Value>, DriverError>) {
    let secrets = || mask::secrets(driver, context, config, None, &read_by());
    let (mut found, expected) = match driver.expect_data(context, config).await {
        Ok((found, expected)) => (mask::diagnostics(found, secrets), expected),
        Err(error) => return (Vec::new(), Err(secrets().error(error))),
    };
    if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return (found, Ok(None));
    }
    let value = if read { driver.read_data(context, config).await } else { Ok(expected) };
    let warnings = mask::diagnostics(context.warnings.take(), secrets);
    let mut warnings = mask::diagnostics(warnings, || Secrets::of(value.iter()));
    warnings.retain(|warning| !found.contains(warning));
    found.extend(warnings);
    (found, value.map(Some).map_err(|error| secrets().error(error)))
}

/// A driver must report wholly known objects; an unknown place is reported as absent, as Terraform saves it.
fn checked_object(object: Option<ObjectState>) -> Option<ObjectState> {
    object.map(|mut object| {
        object.value = object.value.unknown_as_null();
        object
    })
}
