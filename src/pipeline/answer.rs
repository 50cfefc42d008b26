//! Drives the planner: puts its questions to the drivers and gives it the replies.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::driver::CallContext;
use crate::execute::asking::{read_data, validate_and_plan};
use crate::execute::engine::Call;
use crate::execute::{Engine, Place, mask, publish};
use crate::load::{Config, Timeouts};
use crate::model::{Address, DriverError, ErrorKind, ObjectState, ProviderUse, Recorded, Secrets, Value};
use crate::plan::{Ask, AskId, Memo, Planner, Question, Reply};

type Answer<'a> = Pin<Box<dyn Future<Output = (AskId, Reply)> + Send + 'a>>;

/// Asks until nothing is left to ask. Gives the settings of providers that were asked under, by their digests.
pub(super) async fn drive(
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
    let _place = Place::wait(engine.slots(&ask.type_name, ask.provider.as_deref())).await;
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
                let found = driver.import(&context, &request).await;
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

/// A driver must report wholly known objects; an unknown place is reported as absent, as Terraform saves it.
pub(super) fn checked_object(object: Option<ObjectState>) -> Option<ObjectState> {
    object.map(|mut object| {
        object.value = object.value.unknown_as_null();
        object
    })
}
