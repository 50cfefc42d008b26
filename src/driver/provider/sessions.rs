//! Running providers: one process for each configuration.

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::program::program;
use super::served::Served;
use super::told;
use crate::cty::{self, msgpack};
use crate::install::Installer;
use crate::model::{DriverError, ErrorKind, Provider, ProviderUse};
use crate::plugin::{Client, Key, Launch, Lease, Msgpack, PluginError, Pool, PoolSettings};
use crate::process::Clock;

/// How providers are run.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// Where they run; `None`: each in a folder of its own.
    pub working_folder: Option<PathBuf>,
    /// Where their programs come from.
    pub installer: Arc<Installer>,
    /// They are asked only what they can tell of a configuration: their settings are checked, and not used.
    pub checks_only: bool,
}

/// The running providers.
pub(super) struct Sessions {
    options: ProviderOptions,
    pool: Arc<Pool>,
    /// Ends with the sessions.
    _upkeep: JoinSet<()>,
}

impl Sessions {
    /// Nothing runs yet. Must be called where tasks can be spawned.
    pub fn new(options: ProviderOptions, clock: Arc<dyn Clock>) -> Self {
        let pool = Arc::new(Pool::new(PoolSettings::default(), clock));
        let kept = Arc::clone(&pool);
        let mut upkeep = JoinSet::new();
        upkeep.spawn(async move { kept.maintain().await });
        Self { options, pool, _upkeep: upkeep }
    }

    /// What a provider serves. It needs no settings for that.
    pub async fn describe(&self, provider: &Provider) -> Result<Served, DriverError> {
        let client = self.start(provider).await?;
        let asked = async {
            let (schema, said) = client.schema().await.map_err(|error| told::failed(&error))?;
            if let Some(error) = told::error(&said, &provider.name) {
                return Err(error);
            }
            // Providers of before identities do not know the call.
            let identities = client.identity_schemas().await.ok().flatten().map(|(schemas, _)| schemas);
            Served::new(schema, identities.unwrap_or_default())
        };
        let served = asked.await;
        client.close().await;
        served
    }

    /// A provider with its settings.
    pub async fn configured(&self, used: &ProviderUse, served: &Served) -> Result<Lease, DriverError> {
        let mut refusal = None;
        let start = async || {
            self.configure(used, served).await.map_err(|error| {
                let why = error.message.clone();
                refusal = Some(error);
                PluginError::Failed { provider: used.provider.name.to_string(), call: "ConfigureProvider", why }
            })
        };
        let lease = self.pool.lease(&key(used), start).await;
        lease.map_err(|error| refusal.unwrap_or_else(|| unavailable(&error)))
    }

    async fn configure(&self, used: &ProviderUse, served: &Served) -> Result<Client, DriverError> {
        let (settings, mut found) = cty::conform(served.settings(), &used.settings);
        if !found.is_empty() {
            let first = found.swap_remove(0);
            let place = first.path.map_or_else(String::new, |path| format!("spec.config.{path}: "));
            let message = format!("the settings `{}` are not valid: {place}{}", used.name, first.summary);
            return Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: first.hint });
        }
        let settings = msgpack::encode(&settings, served.settings().ty());
        let settings = Msgpack(settings.map_err(|error| told::unreadable("the settings", &error))?);
        let client = self.start(&used.provider).await?;
        let configured = async {
            if served.wants_to_be_asked() {
                client.schema().await.map_err(|error| told::failed(&error))?;
            }
            let set_up = match self.options.checks_only {
                true => client.validate_provider_config(settings).await,
                false => client.set_up(settings).await,
            };
            let said = match set_up {
                Ok(said) => said,
                Err(PluginError::Refused { diagnostics, .. }) => diagnostics,
                Err(error) => return Err(told::failed(&error)),
            };
            match told::error(&said, &used.name) {
                Some(error) => {
                    let message = format!("the provider `{}` cannot be configured: {}", used.name, error.message);
                    Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, ..error })
                }
                None => Ok(()),
            }
        };
        match configured.await {
            Ok(()) => Ok(client),
            Err(error) => {
                client.close().await;
                Err(error)
            }
        }
    }

    async fn start(&self, provider: &Provider) -> Result<Client, DriverError> {
        let mut launch = Launch::new(provider.name.to_string(), program(&self.options.installer, provider).await?);
        launch.working_folder.clone_from(&self.options.working_folder);
        launch.limits.in_flight = provider.max_calls as usize;
        launch.environment = provider
            .environment
            .iter()
            .filter_map(|(name, value)| {
                let value = value.as_deref().map(str::to_owned).or_else(|| std::env::var(&**name).ok())?;
                Some((name.to_string(), value))
            })
            .collect();
        Client::start(&launch).await.map_err(|error| unavailable(&error))
    }

    /// Ends them all.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// What must not be shared by two processes: the program, its environment and limits, and the settings.
fn key(used: &ProviderUse) -> Key {
    let mut hasher = Sha256::new();
    hasher.update(&*used.digest);
    hasher.update(serde_json::to_vec(&*used.provider).unwrap_or_default());
    Key { package: used.provider.name.to_string(), configuration: hasher.finalize().into() }
}

fn unavailable(error: &PluginError) -> DriverError {
    DriverError { kind: ErrorKind::Unavailable, ..told::failed(error) }
}
