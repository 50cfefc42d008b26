//! `purlin provider ...` and `purlin explain-type`: which providers there are, which of their packages are installed and
//! locked, and what they serve.
//!
//! Providers are those that the files name. Nothing is planned and nothing is recorded here.

mod command;
mod explain;
mod json_schema;
mod markdown;
mod terraform_json;

use std::sync::Arc;

pub use command::run;
pub use explain::run as explain_type;

use super::failure::Failure;
use super::local;
use super::options::Files;
use crate::install::{InstallError, Installed, Installer};
use crate::load::Config;
use crate::model::{Provider, Severity};
use crate::plugin::schema::ProviderSchema;
use crate::plugin::{Client, Launch};

/// The providers that files name, in order of their names.
fn named(files: &Files) -> anyhow::Result<Vec<Arc<Provider>>> {
    let wanted = local::read(&files.sources);
    if let Some(problem) = wanted.problems.iter().find(|problem| problem.severity == Severity::Error) {
        return Err(Failure { message: problem.to_string(), hint: problem.hint.clone() }.into());
    }
    wanted.config.providers.values().map(|spec| valid(&spec.provider, &wanted.config)).collect()
}

/// A provider as long as nothing is wrong with its document.
fn valid(provider: &Arc<Provider>, config: &Config) -> anyhow::Result<Arc<Provider>> {
    let problems = config.providers.get(&provider.name).map_or(&[][..], |spec| &spec.problems);
    match problems.iter().find(|problem| problem.severity == Severity::Error) {
        None => Ok(Arc::clone(provider)),
        Some(problem) => {
            let message = format!("the Provider `{}` is not valid: {problem}", provider.name);
            Err(Failure { message, hint: problem.hint.clone() }.into())
        }
    }
}

/// An error about one provider.
fn failed(provider: &Provider, error: InstallError) -> anyhow::Error {
    let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
    let message = format!("the provider `{}` cannot be installed: {field}{}", provider.name, error.message);
    Failure { message, hint: error.hint }.into()
}

/// What a provider serves, told by its installed program.
async fn schema(installer: &Installer, provider: &Provider) -> anyhow::Result<(Installed, ProviderSchema)> {
    let installed = installer.obtain(provider).await.map_err(|error| failed(provider, error))?;
    let client = Client::start(&Launch::new(provider.name.to_string(), installed.program.clone())).await?;
    let told = client.schema().await;
    client.close().await;
    let (schema, said) = told?;
    if let Some(error) = said.iter().find(|one| one.severity == Severity::Error) {
        anyhow::bail!(
            "the provider `{}` does not tell what it serves: {} {}",
            provider.name,
            error.summary,
            error.detail
        );
    }
    Ok((installed, schema))
}
