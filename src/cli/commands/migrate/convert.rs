//! Calls providers to upgrade the objects of a state to their current schemas.

use std::fmt::Display;

use futures::StreamExt as _;
use futures::stream;
use jiff::SignedDuration;

use configuration::ProviderSource;
use drivers::{CallContext, Providers};
use engine::load::Config;
use migrate::state::{Object, Resource, State, provider_text};
use migrate::{Problem, without_provider};
use model::{DriverError, ProviderUse, RecordedObject, Value};
use process::{Clock as _, SystemClock};
use terraform::NamedProvider;

/// How many resources are converted concurrently.
const MAX_CONCURRENT: usize = 16;

/// The time limit of a provider for one object.
const TIME_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// Returns the objects of each resource, in order.
///
/// # Errors
/// All problems: one for each resource whose objects cannot be converted.
pub async fn convert_objects(
    state: &State,
    config: &Config,
    providers: &Providers,
) -> Result<Vec<Vec<RecordedObject>>, Vec<Problem>> {
    let conversions = state.resources.iter().map(|resource| convert_resource(config, providers, resource));
    let answers: Vec<Result<Vec<RecordedObject>, Problem>> =
        stream::iter(conversions).buffered(MAX_CONCURRENT).collect().await;
    let (converted, problems): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    match problems.is_empty() {
        true => Ok(converted.into_iter().filter_map(Result::ok).collect()),
        false => Err(problems.into_iter().filter_map(Result::err).collect()),
    }
}

async fn convert_resource(
    config: &Config,
    providers: &Providers,
    resource: &Resource,
) -> Result<Vec<RecordedObject>, Problem> {
    let mut converted = Vec::new();
    for object in &resource.objects {
        converted.push(convert_object(config, providers, resource, object).await?);
    }
    Ok(converted)
}

/// A provider that the configuration requires, without a configuration.
pub fn unconfigured(named: &NamedProvider, config: &Config) -> Option<ProviderUse> {
    let mut providers = config.providers.values().map(|spec| &spec.provider);
    let provider =
        providers.find(|provider| ProviderSource::parse(&provider.source).as_ref() == Some(&named.source))?.clone();
    Some(ProviderUse::new(provider.name.clone(), provider, Value::map::<&str>([])))
}

fn problem(what: &dyn Display, error: DriverError) -> Problem {
    let place = error.path.map_or_else(String::new, |path| format!("{path}: "));
    Problem { message: format!("`{what}`: {place}{}", error.message), hint: error.hint }
}

async fn convert_object(
    config: &Config,
    providers: &Providers,
    resource: &Resource,
    object: &Object,
) -> Result<RecordedObject, Problem> {
    if let Some(known) = without_provider(resource, object) {
        return known;
    }
    let address = resource.instance(object);
    let Some(provider) = unconfigured(&object.provider, config) else {
        let provider = provider_text(&object.provider, &object.provider.source.full());
        let message = format!("`{address}`: the configuration requires no {provider}");
        let hint = "name it in `required_providers` as long as there are objects of it";
        return Err(Problem::hinted(message, hint));
    };
    let now = SystemClock.now();
    let context = CallContext {
        type_name: resource.address.resource.kind.clone().into(),
        address: address.to_string().into(),
        provider: Some(provider.into()),
        deadline: now.checked_add(TIME_LIMIT).unwrap_or(now),
        ..CallContext::default()
    };
    let adopted = providers.adopt(&context, &object.content).await.map_err(|error| problem(&address, error))?;
    let state = adopted.state;
    Ok(RecordedObject {
        value: state.value,
        private: state.private,
        identity: state.identity,
        schema_version: adopted.schema_version,
        ..RecordedObject::default()
    })
}
