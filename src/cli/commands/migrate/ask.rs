//! Asks providers what the objects of a state are in their present form, and what they may have been configured with.

use std::fmt::Display;

use futures::StreamExt as _;
use futures::stream;
use jiff::SignedDuration;

use crate::driver::{CallContext, Preparation, Providers, Warnings};
use crate::migrate::{Answer, Migration, Object, Problem, Resource, without_provider};
use crate::model::{DriverError, RecordedObject, Value};
use crate::process::{Clock as _, SystemClock};

/// How many resources are looked at at once.
const AT_ONCE: usize = 16;

/// How long a provider may take over one object: it reads nothing.
const LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// The answers for the objects of each resource, in order, or what is wrong with the resource.
///
/// # Errors
/// When providers of managed objects cannot be asked at all.
pub async fn answers(
    migration: &Migration,
    providers: &Providers,
) -> Result<Vec<Result<Vec<Answer>, Problem>>, Vec<Problem>> {
    prepare(migration, providers).await?;
    let ask = async |resource: &Resource| {
        let mut answers = Vec::new();
        for object in &resource.objects {
            answers.push(answer(migration, providers, resource, object).await?);
        }
        Ok(answers)
    };
    Ok(stream::iter(migration.resources()).map(ask).buffered(AT_ONCE).collect().await)
}

/// Installs and asks each provider once, so that what is wrong with it is said once. One that only has data sources may
/// be missing.
async fn prepare(migration: &Migration, providers: &Providers) -> Result<(), Vec<Problem>> {
    let all = migration.providers();
    let needed: Vec<_> = all.keys().map(|provider| (*provider).clone()).collect();
    providers.prepare(Preparation { namespace: None, version: 0, needed: &needed, current: &[], settled: &[] }).await;
    let managed = all.iter().filter(|(_, is_managed)| **is_managed);
    let faults = managed.filter_map(|(provider, _)| Some(problem(&provider.source, providers.fault(provider)?)));
    let problems: Vec<Problem> = faults.collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn problem(what: &dyn Display, error: DriverError) -> Problem {
    let place = error.path.map_or_else(String::new, |path| format!("{path}: "));
    Problem { message: format!("`{what}`: {place}{}", error.message), hint: error.hint }
}

async fn answer(
    migration: &Migration,
    providers: &Providers,
    resource: &Resource,
    object: &Object,
) -> Result<Answer, Problem> {
    if let Some(known) = without_provider(resource, object) {
        return known;
    }
    let address = resource.instance(object);
    let context = context(migration, resource, &address);
    let written = migration.written(resource);
    let failed = |error| problem(&address, error);
    if resource.address.is_data {
        let written = written.unwrap_or_default();
        let (value, config) = providers.adopt_data(&context, &object.content, &written).await.map_err(failed)?;
        return Ok(Answer {
            object: RecordedObject { value, ..RecordedObject::default() },
            config,
            problems: Vec::new(),
        });
    }
    let adopted = providers.adopt(&context, &object.content).await.map_err(failed)?;
    let state = adopted.state;
    let (config, problems) = match object.deposed {
        Some(_) => (Value::Null, Vec::new()),
        None => {
            let made = providers.reconstruct(&context, &state.value, written.as_ref()).await;
            let made = made.map_err(failed)?;
            (made.config, made.problems)
        }
    };
    let object = RecordedObject {
        value: state.value,
        private: state.private,
        identity: state.identity,
        schema_version: adopted.schema_version,
        ..RecordedObject::default()
    };
    Ok(Answer { object, config, problems })
}

fn context(migration: &Migration, resource: &Resource, address: &str) -> CallContext {
    let now = SystemClock.now();
    CallContext {
        type_name: resource.address.type_name.as_str().into(),
        namespace: "".into(),
        address: address.into(),
        provider: migration.provider(resource).cloned(),
        service_account: "".into(),
        deadline: now.checked_add(LIMIT).unwrap_or(now),
        operation_id: "".into(),
        warnings: Warnings::default(),
    }
}
