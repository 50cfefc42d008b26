//! What providers understand, and what of it is built in.

use std::sync::{Arc, LazyLock};

use configuration::schema::Block;
use configuration::{EphemeralRequest, Mode, ProviderSource};
use cty::{Mark, Value};
use language::Failure;
use language::functions::{Prepared, Signature};
use model::Secrets;

use crate::functions::Function;
use crate::value;

/// The schemas of providers. Answers never change.
pub trait Schemas: Send + Sync {
    /// The schema of a resource type or data source.
    ///
    /// # Errors
    /// Why it is not known.
    fn resource(&self, provider: &ProviderSource, is_data: bool, kind: &str) -> Result<Arc<Block>, String>;

    /// The schema of the configuration of a provider.
    ///
    /// # Errors
    /// Why it is not known.
    fn provider(&self, provider: &ProviderSource) -> Result<Arc<Block>, String>;

    /// The schema of `provider_meta` blocks. `None` if the provider has no use for them.
    ///
    /// # Errors
    /// Why it is not known.
    fn provider_meta(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String>;

    /// The schema of an ephemeral resource.
    ///
    /// # Errors
    /// Why it is not known.
    fn ephemeral(&self, provider: &ProviderSource, kind: &str) -> Result<Arc<Block>, String>;

    /// Opens an ephemeral resource, which stays open until the schemas are dropped, and gives its value. The same request has the
    /// same value. `None`: nothing is opened now.
    ///
    /// # Errors
    /// If the provider refuses it, or does not work.
    fn open(&self, request: &EphemeralRequest<'_>) -> Result<Option<Value>, Failure>;

    /// What a function of a provider takes and returns. `None` if the provider has none of this name.
    ///
    /// # Errors
    /// Why it is not known.
    fn function(&self, provider: &ProviderSource, name: &str) -> Result<Option<Signature>, String>;

    /// Calls a function of a provider with arguments that its signature has prepared. No message shows the secrets.
    ///
    /// # Errors
    /// If the function refuses its arguments, or the provider does not work.
    fn call(
        &self,
        provider: &ProviderSource,
        name: &str,
        arguments: Vec<Value>,
        secrets: &Secrets,
    ) -> Result<Value, Failure>;
}

/// What the evaluation asks: the types that are built in, and the others.
pub struct World(pub Arc<dyn Schemas>);

impl configuration::World for World {
    fn resource_schema(&self, provider: &ProviderSource, mode: Mode, kind: &str) -> Result<Arc<Block>, String> {
        match mode {
            _ if provider.is_built_in() => built_in(mode, kind),
            Mode::Managed | Mode::Data => self.0.resource(provider, mode == Mode::Data, kind),
            Mode::Ephemeral => self.0.ephemeral(provider, kind),
        }
    }

    fn provider_schema(&self, provider: &ProviderSource) -> Result<Arc<Block>, String> {
        if provider.is_built_in() { Ok(Arc::default()) } else { self.0.provider(provider) }
    }

    // The blocks are checked, and not sent: they only say to the makers of a provider which module uses it.
    fn provider_meta_schema(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        if provider.is_built_in() { Ok(None) } else { self.0.provider_meta(provider) }
    }

    fn open(&self, request: &EphemeralRequest<'_>) -> Result<Option<Value>, Failure> {
        self.0.open(request)
    }

    fn call(&self, provider: &ProviderSource, function: &str, arguments: &[Value]) -> Option<Result<Value, Failure>> {
        if provider.is_built_in() {
            let built_in = Function::named(function)?;
            return Some(called(function, &built_in.signature(), arguments, |plain| built_in.call(&plain)));
        }
        let signature = match self.0.function(provider, function) {
            Ok(signature) => signature?,
            Err(why) => return Some(Err(Failure::new(why))),
        };
        let call = |plain| self.0.call(provider, function, plain, &secrets(arguments));
        Some(called(function, &signature, arguments, call))
    }
}

/// Calls a function with the arguments in the form that its signature asks for.
fn called(
    name: &str,
    signature: &Signature,
    arguments: &[Value],
    call: impl FnOnce(Vec<Value>) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    match signature.prepare(name, arguments)? {
        Prepared::Unknown(value) => Ok(value),
        Prepared::Call { arguments: plain, marks } => Ok(call(plain)?.with_marks(&marks)),
    }
}

/// The arguments that no message may show: those with a mark at any depth.
fn secrets(arguments: &[Value]) -> Secrets {
    let secrets =
        arguments.iter().filter(|value| value.contains_mark(&Mark::Sensitive) || value.contains_mark(&Mark::Ephemeral));
    Secrets::of(secrets.map(|value| value::to_model(value).into_sensitive()))
}

/// The only block that needs no provider. Its values have any type.
pub const BUILT_IN: (Mode, &str) = (Mode::Managed, "terraform_data");

fn built_in(mode: Mode, kind: &str) -> Result<Arc<Block>, String> {
    static SCHEMA: LazyLock<Arc<Block>> = LazyLock::new(|| {
        let json = serde_json::json!({ "attributes": {
            "id": { "type": "string", "computed": true },
            "input": { "type": "dynamic", "optional": true },
            "output": { "type": "dynamic", "computed": true },
            "triggers_replace": { "type": "dynamic", "optional": true },
        } });
        Arc::new(Block::from_json(&json).unwrap_or_default())
    });
    if (mode, kind) != BUILT_IN {
        return Err(format!(
            "Purlin has no {} \"{kind}\" of its own, only the resource \"terraform_data\".",
            mode.block()
        ));
    }
    Ok(SCHEMA.clone())
}
