//! Running providers: one process for each configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OnceCell};

use super::program::program;
use super::served::Served;
use super::told;
use crate::cty::{self, msgpack};
use crate::model::{DriverError, ErrorKind, Provider, ProviderUse, Severity};
use crate::plugin::{Client, Launch, Msgpack};

/// How providers are run.
#[derive(Clone, Debug, Default)]
pub struct ProviderOptions {
    /// Where they run; `None`: each in a folder of its own.
    pub working_folder: Option<PathBuf>,
}

type Session = Arc<OnceCell<Client>>;

/// One process serves one provider under one set of settings, told apart by their digest.
type Key = (Arc<Provider>, Arc<str>);

/// The running providers.
pub(super) struct Sessions {
    options: ProviderOptions,
    running: Mutex<BTreeMap<Key, Session>>,
}

impl Sessions {
    /// Nothing runs yet.
    pub fn new(options: ProviderOptions) -> Self {
        Self { options, running: Mutex::default() }
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
    pub async fn configured(&self, used: &Arc<ProviderUse>, served: &Served) -> Result<Client, DriverError> {
        let key = (Arc::clone(&used.provider), Arc::clone(&used.digest));
        let session = {
            let mut running = self.running.lock().await;
            let dead = |session: &Session| session.get().is_some_and(|client| !client.is_alive());
            if running.get(&key).is_some_and(dead) {
                running.remove(&key);
            }
            Arc::clone(running.entry(key).or_default())
        };
        session.get_or_try_init(|| self.configure(used, served)).await.cloned()
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
            let mut said =
                client.validate_provider_config(settings.clone()).await.map_err(|error| told::failed(&error))?;
            if !said.iter().any(|one| one.severity == Severity::Error) {
                said.extend(client.configure(settings).await.map_err(|error| told::failed(&error))?);
            }
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
        let mut launch = Launch::new(provider.name.to_string(), program(provider)?);
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
        Client::start(&launch)
            .await
            .map_err(|error| DriverError { kind: ErrorKind::Unavailable, ..told::failed(&error) })
    }

    /// Ends them all.
    pub async fn close(&self) {
        let running = std::mem::take(&mut *self.running.lock().await);
        let clients = running.values().filter_map(|session| session.get());
        futures::future::join_all(clients.map(Client::close)).await;
    }
}
