//! Running providers: one process for each configuration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::mask::{LateMask, ProcessMask};
use super::program::program;
use super::reattach::Reattach;
use super::served::Served;
use super::spares::Spares;
use super::told;
use crate::cty::{self, msgpack};
use crate::driver::ProviderFacts;
use crate::install::{Installed, Installer};
use crate::model::{self, Diagnostics, DriverError, ErrorKind, Package, Provider, ProviderUse, Secrets};
use crate::plugin::{
    Client, Confine, Diagnostic, Key, Launch, Lease, Msgpack, PluginError, Pool, PoolSettings, Protocol, RUNNING,
};
use crate::process::{Clock, lock};

/// How providers are run.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// Where they run; `None`: each in a folder of its own.
    pub working_folder: Option<PathBuf>,
    /// Where their programs come from.
    pub installer: Arc<Installer>,
    /// What is done with their settings.
    pub settings: SettingsUse,
    /// What of the file system they can reach, besides what their Providers give to them; `None`: whatever we can.
    pub confine: Option<Confine>,
    /// Those that somebody else has started.
    pub reattach: Reattach,
    /// The program that becomes theirs: this one.
    pub launcher: PathBuf,
    /// How long one that was asked to give up its calls is waited for before it is killed; `None`: ten minutes.
    pub kill_after: Option<Duration>,
}

/// `PURLIN_PROVIDER_KILL_AFTER`, in seconds; what is no number counts for nothing.
fn kill_after() -> Option<Duration> {
    std::env::var("PURLIN_PROVIDER_KILL_AFTER").ok()?.parse().ok().map(Duration::from_secs)
}

/// What is done with the settings of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SettingsUse {
    /// The provider is configured with them.
    #[default]
    Configure,
    /// They are checked. The provider can be asked what it thinks of configurations, and nothing that needs settings.
    Check,
    /// Nothing: nobody knows them. The provider can be asked the same, and to upgrade states.
    Ignore,
}

impl ProviderOptions {
    /// Each in a folder of its own, reaching whatever we can.
    pub fn new(installer: Arc<Installer>) -> Self {
        let (reattach, launcher) = (Reattach::default(), RUNNING.into());
        let settings = SettingsUse::Configure;
        Self { working_folder: None, installer, settings, confine: None, reattach, launcher, kill_after: kill_after() }
    }
}

/// The running providers.
pub(super) struct Sessions {
    options: ProviderOptions,
    pool: Arc<Pool>,
    /// What must not come out of each process.
    masks: Mutex<HashMap<Key, Weak<ProcessMask>>>,
    /// What each has warned of when it was configured last.
    warned: Mutex<HashMap<Key, Diagnostics>>,
    spares: Arc<Spares>,
    /// Ends with the sessions.
    _upkeep: JoinSet<()>,
}

impl Sessions {
    /// Nothing runs yet. Must be called where tasks can be spawned.
    pub fn new(options: ProviderOptions, clock: Arc<dyn Clock>) -> Self {
        let settings = PoolSettings::default();
        let spares = Arc::new(Spares::new(settings.idle, clock.clone()));
        let pool = Arc::new(Pool::new(settings, clock));
        let (kept, spared) = (Arc::clone(&pool), Arc::clone(&spares));
        let mut upkeep = JoinSet::new();
        upkeep.spawn(async move { kept.maintain().await });
        upkeep.spawn(async move { spared.maintain().await });
        Self { options, pool, masks: Mutex::default(), warned: Mutex::default(), spares, _upkeep: upkeep }
    }

    /// What a provider serves. It needs no settings for that, so its process is kept for the first who has some.
    pub async fn describe(&self, provider: &Arc<Provider>) -> Result<Served, DriverError> {
        let mask = LateMask::default();
        let (client, installed) = self.start(provider, &mask).await?;
        let asked = async {
            let (schema, said) = client.schema().await.map_err(|error| told::failed(&error))?;
            if let Some(error) = told::error(&said) {
                return Err(error);
            }
            // Providers of before identities do not know the call.
            let identities = client.identity_schemas().await.ok().flatten().map(|(schemas, _)| schemas);
            let facts = ProviderFacts {
                version: installed.as_ref().and_then(|installed| Some(installed.version.as_ref()?.to_string())),
                protocol: match client.protocol() {
                    Protocol::V5 => 5,
                    Protocol::V6 => 6,
                },
                resource_types: schema.resource_types().count(),
                locked: installed.as_ref().and_then(|installed| installed.locked(provider)),
            };
            Served::new(schema, identities.unwrap_or_default(), facts)
        };
        let served = asked.await;
        match &served {
            Ok(_) => self.spares.keep(Arc::clone(provider), client, mask).await,
            Err(_) => client.close().await,
        }
        served
    }

    /// A provider with its settings, and what must not come out of it.
    pub async fn configured(
        &self,
        used: &ProviderUse,
        served: &Served,
    ) -> Result<(Lease, Arc<ProcessMask>), DriverError> {
        let key = key(used);
        let mask = self.mask(&key, used, served);
        let start = async || {
            self.configure(used, served, &mask).await.map_err(|error| {
                let DriverError { message: why, hint, .. } = mask.error(error);
                PluginError::Unconfigured { why, hint }
            })
        };
        let lease = self.pool.lease(&key, start).await;
        let lease = lease.map_err(|error| match error.cause() {
            // The same for all, whoever has tried: nobody is told twice of it.
            PluginError::Unconfigured { hint, .. } => DriverError { hint: hint.clone(), ..unavailable(error.cause()) },
            _ => unavailable(&error),
        })?;
        Ok((lease, mask))
    }

    /// What a provider has warned of when it was configured with these settings last, without what must not be told.
    pub fn warned(&self, used: &ProviderUse) -> Diagnostics {
        let warned = lock(&self.warned);
        // Most have nothing to say, and to tell them apart takes a digest.
        if warned.is_empty() { Vec::new() } else { warned.get(&key(used)).cloned().unwrap_or_default() }
    }

    /// Ends the process of settings that hold no more, once it has answered what it was asked.
    pub fn retire(&self, used: &ProviderUse) {
        self.pool.retire(&key(used));
    }

    /// The mask of the process of that key: the one that it has, as long as it runs.
    fn mask(&self, key: &Key, used: &ProviderUse, served: &Served) -> Arc<ProcessMask> {
        let mut masks = lock(&self.masks);
        if let Some(mask) = masks.get(key).and_then(Weak::upgrade) {
            return mask;
        }
        masks.retain(|_, mask| mask.strong_count() > 0);
        lock(&self.warned).retain(|key, _| masks.contains_key(key));
        // Some are told to be secret by whoever wrote them, and some by the provider.
        let (settings, _) = cty::conform(served.settings(), &used.settings);
        let marked = cty::to_engine(served.settings(), &settings);
        let mask = ProcessMask::new(Secrets::of([&used.settings, &marked]));
        masks.insert(key.clone(), Arc::downgrade(&mask));
        mask
    }

    async fn configure(
        &self,
        used: &ProviderUse,
        served: &Served,
        mask: &Arc<ProcessMask>,
    ) -> Result<Client, DriverError> {
        let (settings, mut found) = match self.options.settings {
            SettingsUse::Ignore => (served.settings().empty(), Vec::new()),
            SettingsUse::Configure | SettingsUse::Check => cty::conform(served.settings(), &used.settings),
        };
        if !found.is_empty() {
            let first = found.swap_remove(0);
            let place = place(first.path.as_ref());
            let message = format!("the settings `{}` are not valid: {place}{}", used.name, first.summary);
            return Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: first.hint });
        }
        let settings = msgpack::encode(&settings, served.settings().ty());
        let settings = Msgpack(settings.map_err(|error| told::unreadable("the settings", &error))?);
        let client = match self.spares.take(&used.provider) {
            Some((client, late)) => {
                late.set(mask);
                (client, true)
            }
            None => {
                let late = LateMask::default();
                late.set(mask);
                (self.start(&used.provider, &late).await?.0, false)
            }
        };
        let (client, was_asked) = client;
        let configured = async {
            if served.wants_to_be_asked() && !was_asked {
                client.schema().await.map_err(|error| told::failed(&error))?;
            }
            let set_up = match self.options.settings {
                SettingsUse::Configure => client.set_up(settings).await,
                SettingsUse::Check => client.validate_provider_config(settings).await,
                SettingsUse::Ignore => Ok(Vec::new()),
            };
            let said = match set_up {
                Ok(said) => said,
                Err(PluginError::Refused { diagnostics, .. }) => diagnostics,
                Err(error) => return Err(told::failed(&error)),
            };
            let (settings, provider) = (&used.name, &used.provider.name);
            if let Some(error) = told::error(&said) {
                let refused = format!("the settings `{settings}` are refused by the provider `{provider}`");
                let message = format!("{refused}: {}{}", place(error.path.as_ref()), error.message);
                return Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, ..error });
            }
            Ok(said)
        };
        match configured.await {
            Ok(said) => {
                self.remember_warnings(used, mask, said);
                Ok(client)
            }
            Err(error) => {
                client.close().await;
                Err(error)
            }
        }
    }

    fn remember_warnings(&self, used: &ProviderUse, mask: &ProcessMask, said: Vec<Diagnostic>) {
        let warnings: Diagnostics = told::warnings(said).into_iter().map(|warning| mask.diagnostic(warning)).collect();
        let mut warned = lock(&self.warned);
        match warnings.is_empty() {
            true => drop(warned.remove(&key(used))),
            false => drop(warned.insert(key(used), warnings)),
        }
    }

    /// A process that is not configured yet, and the package that it is of; none for one that somebody else has started.
    async fn start(&self, provider: &Provider, mask: &LateMask) -> Result<(Client, Option<Installed>), DriverError> {
        if let Some(target) = self.options.reattach.target(provider) {
            let mut launch = Launch::new(provider.name.to_string(), "");
            launch.limits.in_flight = provider.max_calls as usize;
            launch.mask = mask.of_output();
            let client = Client::reattach(&launch, target).await.map_err(|error| unavailable(&error))?;
            return Ok((client, None));
        }
        let installed = program(&self.options.installer, provider).await?;
        let mut launch = Launch::new(provider.name.to_string(), installed.program.clone());
        launch.launcher.clone_from(&self.options.launcher);
        launch.confine = self.options.confine.as_ref().map(|confine| reachable(confine, provider, &launch.program));
        launch.working_folder.clone_from(&self.options.working_folder);
        launch.limits.in_flight = provider.max_calls as usize;
        launch.limits.memory = provider.max_memory;
        launch.limits.after_stop = self.options.kill_after.unwrap_or(launch.limits.after_stop);
        launch.mask = mask.of_output();
        launch.environment = provider
            .environment
            .iter()
            .filter_map(|(name, value)| {
                let value = value.as_deref().map(str::to_owned).or_else(|| std::env::var(&**name).ok())?;
                Some((name.to_string(), value))
            })
            .collect();
        let client = Client::start(&launch).await.map_err(|error| unavailable(&error))?;
        Ok((client, Some(installed)))
    }

    /// Asks them to give up their calls. `false` when there is none.
    pub async fn stop(&self) -> bool {
        self.pool.stop().await > 0
    }

    /// Ends them all.
    pub async fn close(&self) {
        tokio::join!(self.pool.close(), self.spares.close());
    }
}

/// What a confined provider can reach: what every program needs, the rest of its own package, and what its Provider
/// gives to it.
fn reachable(confine: &Confine, provider: &Provider, program: &Path) -> Confine {
    let mut all = confine.clone();
    let is_whole = |path: &str| Path::new(path) == program;
    if !matches!(&provider.package, Package::Path(path) if is_whole(path)) {
        all.read.extend(program.parent().map(Path::to_owned));
    }
    let ours = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(std::env::var_os);
    all.read.extend(ours.map(PathBuf::from));
    all.read.extend(provider.files.read.iter().map(|path| PathBuf::from(&**path)));
    all.write.extend(provider.files.write.iter().map(|path| PathBuf::from(&**path)));
    all
}

/// What must not be shared by two processes: the program, its environment and limits, and the settings.
fn key(used: &ProviderUse) -> Key {
    let mut hasher = Sha256::new();
    hasher.update(&*used.digest);
    hasher.update(serde_json::to_vec(&*used.provider).unwrap_or_default());
    Key { package: used.provider.name.to_string(), configuration: hasher.finalize().into() }
}

/// Where in the settings something is.
fn place(path: Option<&model::Path>) -> String {
    path.map_or_else(String::new, |path| format!("spec.config.{path}: "))
}

fn unavailable(error: &PluginError) -> DriverError {
    DriverError { kind: ErrorKind::Unavailable, ..told::failed(error) }
}
