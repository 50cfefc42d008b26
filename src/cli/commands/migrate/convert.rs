//! Calls providers to upgrade the objects of a state to their current schemas, and to reconstruct their configuration.

use std::fmt::Display;

use futures::StreamExt as _;
use futures::stream;
use jiff::SignedDuration;

use drivers::{CallContext, Preparation, Providers, ReconstructedConfig};
use migrate::{AdoptedObject, Migration, Object, Problem, Resource, without_provider};
use model::{DriverError, RecordedObject};
use process::{Clock as _, SystemClock};

/// How many resources are converted concurrently.
const MAX_CONCURRENT: usize = 16;

/// The time limit of a provider for one object.
const TIME_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// Returns the results for the objects of each resource, in order, or the problem of the resource.
///
/// # Errors
/// If a provider of managed objects cannot be started.
pub async fn convert_objects(
    migration: &Migration,
    providers: &Providers,
) -> Result<Vec<Result<Vec<AdoptedObject>, Problem>>, Vec<Problem>> {
    prepare(migration, providers).await?;
    let convert = async |resource: &Resource| {
        let mut answers = Vec::new();
        for object in &resource.objects {
            answers.push(convert_object(migration, providers, resource, object).await?);
        }
        Ok(answers)
    };
    Ok(stream::iter(migration.resources()).map(convert).buffered(MAX_CONCURRENT).collect().await)
}

/// Installs and starts each provider once, so that its problems are reported once. Problems of a provider that is used
/// only for data sources are ignored.
async fn prepare(migration: &Migration, providers: &Providers) -> Result<(), Vec<Problem>> {
    let all = migration.providers();
    let needed: Vec<_> = all.keys().map(|provider| (*provider).clone()).collect();
    providers
        .prepare(Preparation { namespace: None, version: 0, needed: &needed, current: &[], configurations: &[] })
        .await;
    let managed = all.iter().filter(|(_, is_managed)| **is_managed);
    let faults =
        managed.filter_map(|(provider, _)| Some(problem(&provider.source, providers.preparation_error(provider)?)));
    let problems: Vec<Problem> = faults.collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn problem(what: &dyn Display, error: DriverError) -> Problem {
    let place = error.path.map_or_else(String::new, |path| format!("{path}: "));
    Problem { message: format!("`{what}`: {place}{}", error.message), hint: error.hint }
}

async fn convert_object(
    migration: &Migration,
    providers: &Providers,
    resource: &Resource,
    object: &Object,
) -> Result<AdoptedObject, Problem> {
    if let Some(known) = without_provider(resource, object) {
        return known;
    }
    let address = resource.instance(object);
    let context = context(migration, resource, &address);
    let written = migration.written_arguments(resource);
    let failed = |error| problem(&address, error);
    if resource.address.is_data {
        let written = written.unwrap_or_default();
        let (value, config) = providers.adopt_data(&context, &object.content, &written).await.map_err(failed)?;
        return Ok(AdoptedObject {
            object: RecordedObject { value, ..RecordedObject::default() },
            full: config.clone(),
            config,
            problems: Vec::new(),
        });
    }
    let adopted = providers.adopt(&context, &object.content).await.map_err(failed)?;
    let state = adopted.state;
    let ReconstructedConfig { config, full, problems } = match object.deposed {
        Some(_) => ReconstructedConfig::default(),
        None => providers.reconstruct(&context, &state.value, written.as_ref()).await.map_err(failed)?,
    };
    let object = RecordedObject {
        value: state.value,
        private: state.private,
        identity: state.identity,
        schema_version: adopted.schema_version,
        ..RecordedObject::default()
    };
    Ok(AdoptedObject { object, config, full, problems })
}

fn context(migration: &Migration, resource: &Resource, address: &str) -> CallContext {
    let now = SystemClock.now();
    CallContext {
        type_name: resource.address.type_name.as_str().into(),
        address: address.into(),
        provider: migration.provider(resource).cloned(),
        deadline: now.checked_add(TIME_LIMIT).unwrap_or(now),
        ..CallContext::default()
    }
}
