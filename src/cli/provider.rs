//! `purlin provider` and `purlin explain-type`: install, lock and inspect the providers that the manifests require.
//! Nothing is planned or recorded here.

mod built_in;
mod command;
mod explain;
mod json_schema;
mod markdown;
pub mod terraform_json;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use command::run;
pub use explain::run as explain_type;

use super::failure::Failure;
use super::local;
use super::options::Files;
use super::root_module::RootModule;
use drivers::provider::requirement;
use engine::load::Config;
use model::{Provider, errors};
use tfprovider::install::{InstallError, InstalledProvider, Installer};
use tfprovider::plugin::{Client, IdentitySchema, Launch, ProviderSchema};

/// Returns the providers that the manifests require, sorted by name.
fn required_providers(files: &Files) -> anyhow::Result<Vec<Arc<Provider>>> {
    let desired = local::read(files);
    if let Some(problem) = errors(&desired.problems).next() {
        return Err(Failure { message: problem.to_string(), hint: problem.hint.clone() }.into());
    }
    let of_modules = desired.modules.iter().flat_map(RootModule::providers);
    let of_manifests = desired.config.providers.values().map(|spec| require_valid(&spec.provider, &desired.config));
    of_manifests.chain(of_modules.map(Ok)).collect()
}

/// Returns the provider, or an error if its manifest is invalid.
fn require_valid(provider: &Arc<Provider>, config: &Config) -> anyhow::Result<Arc<Provider>> {
    let problems = config.providers.get(&provider.name).map_or(&[][..], |spec| &spec.problems);
    match errors(problems).next() {
        None => Ok(Arc::clone(provider)),
        Some(problem) => {
            let message = format!("the Provider `{}` is not valid: {problem}", provider.name);
            Err(Failure { message, hint: problem.hint.clone() }.into())
        }
    }
}

fn install_error(provider: &Provider, error: InstallError) -> anyhow::Error {
    let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
    let message = format!("the provider `{}` cannot be installed: {field}{}", provider.name, error.message);
    Failure { message, hint: error.hint }.into()
}

/// The schemas of a provider.
pub(crate) struct Schemas {
    provider: ProviderSchema,
    /// The identity schemas by resource type.
    identities: BTreeMap<String, IdentitySchema>,
}

/// Installs and starts a provider to read its schemas.
async fn schemas(installer: &Installer, provider: &Provider) -> anyhow::Result<(InstalledProvider, Schemas)> {
    let installed =
        installer.install_and_lock(&requirement(provider)).await.map_err(|error| install_error(provider, error))?;
    let client = Client::start(&Launch::new(provider.name.to_string(), installed.program.clone())).await?;
    let response = client.schema().await;
    let identities = client.identity_schemas().await;
    client.close().await;
    let (provider_schema, diagnostics) = response?;
    if let Some(error) = diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        anyhow::bail!("the provider `{}` returned no schema: {} {}", provider.name, error.summary, error.detail);
    }
    let identities = identities?.map(|(identities, _)| identities).unwrap_or_default().into_iter().collect();
    Ok((installed, Schemas { provider: provider_schema, identities }))
}
