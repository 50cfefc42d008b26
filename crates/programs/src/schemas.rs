//! The schemas and functions of the providers of a configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use configuration::schema::Block;
use configuration::{EphemeralRequest, InstanceAddress, ProviderSource};
use drivers::provider::{self, WaitingCalls};
use drivers::{FunctionCall, FunctionProblem, Preparation, Providers};
use engine::load::ProviderSpec;
use language::Failure;
use language::functions::{Signature, TypedParameter};
use model::{Diagnostic, Diagnostics, DriverError, Name, Provider, ProviderUse, Reason, Secrets};
use process::lock;
use terraform::Schemas;

/// Prepares the providers that a configuration requires, and gives their schemas.
///
/// # Errors
/// Why a provider cannot be used.
pub async fn schemas(
    providers: &Arc<Providers>,
    required: &BTreeMap<ProviderSource, Arc<ProviderSpec>>,
) -> Result<Arc<dyn Schemas>, Diagnostics> {
    let needed: Vec<Arc<Provider>> = required.values().map(|spec| spec.provider.clone()).collect();
    let preparation =
        Preparation { namespace: None, version: 0, needed: &needed, current: &needed, configurations: &[] };
    providers.prepare(preparation).await;
    let unusable: Diagnostics = required
        .values()
        .filter_map(|spec| Some(unusable(spec, providers.preparation_error(&spec.provider)?)))
        .collect();
    if !unusable.is_empty() {
        return Err(unusable);
    }
    let known = required.iter().map(|(source, spec)| (source.clone(), spec.provider.clone())).collect();
    let calls = Arc::new(providers.waiting_calls());
    let mut all = lock(&CALLS);
    all.retain(|calls| calls.strong_count() > 0);
    all.push(Arc::downgrade(&calls));
    drop(all);
    let opened = Mutex::default();
    Ok(Arc::new(ProviderSchemas { providers: Arc::clone(providers), known, calls, opened }))
}

/// The calls of the configurations of this process. What they have opened is closed at its end, when nothing else is freed.
static CALLS: Mutex<Vec<Weak<WaitingCalls>>> = Mutex::new(Vec::new());

/// Closes what the configurations of this process have opened.
pub fn close_opened() {
    let all = std::mem::take(&mut *lock(&CALLS));
    all.iter().filter_map(Weak::upgrade).for_each(|calls| calls.close());
}

/// The schemas of the providers of a configuration.
struct ProviderSchemas {
    providers: Arc<Providers>,
    known: BTreeMap<ProviderSource, Arc<Provider>>,
    calls: Arc<WaitingCalls>,
    /// The ephemeral resources that are open.
    opened: Mutex<BTreeMap<InstanceAddress, OpenedValue>>,
}

/// The value of an ephemeral resource, and what it was opened with.
struct OpenedValue {
    provider: cty::Value,
    config: cty::Value,
    value: cty::Value,
}

impl ProviderSchemas {
    fn known(&self, provider: &ProviderSource) -> Result<&Arc<Provider>, String> {
        self.known.get(provider).ok_or_else(|| format!("No module requires the provider {provider}."))
    }
}

impl Schemas for ProviderSchemas {
    fn resource(&self, provider: &ProviderSource, is_data: bool, kind: &str) -> Result<Arc<Block>, String> {
        let known = self.known(provider)?;
        let schema = self.providers.type_block(known, is_data, kind).map_err(|error| error.message)?;
        let word = if is_data { "data source" } else { "resource type" };
        let schema = schema.ok_or_else(|| format!("The provider {provider} has no {word} \"{kind}\"."))?;
        block(&schema)
    }

    fn provider(&self, provider: &ProviderSource) -> Result<Arc<Block>, String> {
        let known = self.known(provider)?;
        let schema = self.providers.configuration_block(known).map_err(|error| error.message)?;
        schema.as_ref().map_or_else(|| Ok(Arc::default()), block)
    }

    fn provider_meta(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        let known = self.known(provider)?;
        let schema = self.providers.meta_block(known).map_err(|error| error.message)?;
        schema.as_ref().map(block).transpose()
    }

    fn ephemeral(&self, provider: &ProviderSource, kind: &str) -> Result<Arc<Block>, String> {
        let schema = self.providers.ephemeral_block(self.known(provider)?, kind).map_err(|error| error.message)?;
        let schema = schema.ok_or_else(|| format!("The provider {provider} has no ephemeral resource \"{kind}\"."))?;
        block(&schema)
    }

    fn open(&self, request: &EphemeralRequest<'_>) -> Result<Option<cty::Value>, Failure> {
        let EphemeralRequest { address, provider: configured, config } = *request;
        let mut opened = lock(&self.opened);
        let known = opened.get(address);
        if let Some(known) = known.filter(|known| known.provider == configured.config && known.config == *config) {
            return Ok(Some(known.value.clone()));
        }
        let provider = self.known(&configured.address.source).map_err(Failure::new)?;
        let name = terraform::config_name(&Name::default(), &configured.address).into();
        let used = ProviderUse::new(name, Arc::clone(provider), terraform::to_config(&configured.config));
        let type_name = address.resource.resource.kind.clone().into();
        let asked = provider::EphemeralRequest { used, type_name, config: config.clone() };
        let found = self.calls.open(asked).map_err(|error| Failure {
            argument: None,
            message: error.path.map_or_else(String::new, |path| format!("{path}: ")) + &error.message,
            hint: error.hint,
        })?;
        if let Some(value) = &found {
            let (provider, config) = (configured.config.clone(), config.clone());
            opened.insert(address.clone(), OpenedValue { provider, config, value: value.clone() });
        }
        Ok(found)
    }

    fn function(&self, provider: &ProviderSource, name: &str) -> Result<Option<Signature>, String> {
        let function = self.providers.function(self.known(provider)?, name).map_err(|error| error.message)?;
        Ok(function.map(signature))
    }

    fn call(
        &self,
        provider: &ProviderSource,
        name: &str,
        arguments: Vec<cty::Value>,
        secrets: &Secrets,
    ) -> Result<cty::Value, Failure> {
        let provider = self.known(provider).map_err(Failure::new)?;
        let function = self.providers.function(provider, name).map_err(|error| Failure::new(error.message))?;
        let function = function.ok_or_else(|| Failure::new(format!("the provider has no function {name}")))?;
        let call = FunctionCall {
            provider: Arc::clone(provider),
            name: name.to_owned(),
            function,
            arguments,
            secrets: secrets.clone(),
        };
        self.calls.call(call).map_err(|FunctionProblem { argument, message, hint }| Failure { argument, message, hint })
    }
}

fn signature(function: tfprovider::plugin::Function) -> Signature {
    Signature {
        parameters: function.parameters.into_iter().map(typed_parameter).collect(),
        variadic: function.variadic.map(typed_parameter),
        result: function.result,
    }
}

fn typed_parameter(parameter: tfprovider::plugin::Parameter) -> TypedParameter {
    let tfprovider::plugin::Parameter { name, ty, null, unknown } = parameter;
    TypedParameter { name, ty, null, unknown }
}

fn unusable(spec: &ProviderSpec, error: DriverError) -> Diagnostic {
    let what = format!("the provider {} cannot be used", spec.provider.source);
    let problem = Diagnostic::general(Reason::ProviderNotReady, what).because(error.message);
    Diagnostic { hint: error.hint, ..problem }.from_source(spec.source.clone())
}

fn block(of: &tfprovider::schema::Block) -> Result<Arc<Block>, String> {
    let block = Block::from_json(&of.to_json()).map(Arc::new);
    block.ok_or_else(|| "Its schema cannot be read.".to_owned())
}
