//! What providers understand, and what of it is built in.

use std::sync::Arc;

use configuration::schema::Block;
use configuration::{Mode, ProviderSource};
use cty::Value;
use language::Failure;

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
}

/// What the evaluation asks: the types that are built in, and the others.
pub struct World(pub Arc<dyn Schemas>);

impl configuration::World for World {
    fn resource_schema(&self, provider: &ProviderSource, mode: Mode, kind: &str) -> Result<Arc<Block>, String> {
        match mode {
            _ if provider.is_built_in() => built_in(mode, kind),
            Mode::Managed | Mode::Data => self.0.resource(provider, mode == Mode::Data, kind),
            Mode::Ephemeral => Err("Purlin cannot open ephemeral resources yet.".to_owned()),
        }
    }

    fn provider_schema(&self, provider: &ProviderSource) -> Result<Arc<Block>, String> {
        if provider.is_built_in() { Ok(Arc::default()) } else { self.0.provider(provider) }
    }

    // The blocks are checked, and not sent: they only say to the makers of a provider which module uses it.
    fn provider_meta_schema(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        if provider.is_built_in() { Ok(None) } else { self.0.provider_meta(provider) }
    }

    fn call(&self, _: &ProviderSource, _: &str, _: &[Value]) -> Option<Result<Value, Failure>> {
        None
    }
}

/// The only block that needs no provider. Its values have any type.
pub const BUILT_IN: (Mode, &str) = (Mode::Managed, "terraform_data");

fn built_in(mode: Mode, kind: &str) -> Result<Arc<Block>, String> {
    if (mode, kind) != BUILT_IN {
        return Err(format!(
            "Purlin has no {} \"{kind}\" of its own, only the resource \"terraform_data\".",
            mode.block()
        ));
    }
    let json = serde_json::json!({ "attributes": {
        "id": { "type": "string", "computed": true },
        "input": { "type": "dynamic", "optional": true },
        "output": { "type": "dynamic", "computed": true },
        "triggers_replace": { "type": "dynamic", "optional": true },
    } });
    Block::from_json(&json).map(Arc::new).ok_or_else(|| "its schema is not valid".to_owned())
}
