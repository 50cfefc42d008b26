//! Runs providers, with one process for each configuration in each namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::diagnostics;
use super::mask::{LateMask, ProcessMask};
use super::reattach::Reattach;
use super::runners::{PodRequest, RunnerPods};
use super::served_types::ServedTypes;
use super::spares::Spares;
use super::values;
use crate::ProviderInfo;
use crate::masked::redacted;
use model::{Diagnostics, DriverError, ErrorKind, Namespace, Package, PodRunner, Provider, ProviderUse, Secrets};
use process::{Clock, lock};
use tfprovider::install::{self, InstalledProvider, Installer, Requirement};
use tfprovider::plugin::{
    CURRENT_EXE, Client, Diagnostic, DynamicValue, Launch, Lease, Limits, Observer, PluginError, Pool, PoolKey,
    PoolOptions, Protocol, Sandbox, StartError, launcher, remote,
};

/// The namespace of processes that no namespace uses yet.
const NO_NAMESPACE: &str = "";

#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// The working directory; `None` for a separate directory for each provider.
    pub working_directory: Option<PathBuf>,
    pub installer: Arc<Installer>,
    /// Whether providers get all environment variables of this process, as those of Terraform do.
    pub inherits_environment: bool,
    /// How providers are configured.
    pub configuration: ConfigurationMode,
    pub confinement: Confinement,
    /// Providers that the user started separately.
    pub reattach: Reattach,
    /// The program that launches providers: Purlin itself.
    pub launcher: PathBuf,
    /// The limits of each process. Its Provider sets the number of calls, and may set the memory.
    pub limits: Limits,
    /// The limits of all processes together.
    pub pool: PoolOptions,
    pub observer: Arc<dyn Observer>,
    /// The Pods of providers with a runner; `None`: such providers run as processes.
    pub runners: Option<Arc<RunnerPods>>,
}

/// The default limits, with the time `PURLIN_PROVIDER_KILL_AFTER` in seconds between a stop request and the kill. An
/// invalid number is ignored.
fn limits() -> Limits {
    let seconds = std::env::var("PURLIN_PROVIDER_KILL_AFTER").ok().and_then(|text| text.parse().ok());
    let limits = Limits::default();
    Limits { stop_grace_period: seconds.map_or(limits.stop_grace_period, Duration::from_secs), ..limits }
}

/// What keeps providers from the files and processes of others.
#[derive(Clone, Debug, Default)]
pub enum Confinement {
    /// Nothing: providers have the rights of the user.
    #[default]
    Nothing,
    /// Providers can access these paths, and the files in their Provider.
    Sandbox(Sandbox),
    /// The sandbox is required, but the kernel does not have it. No provider starts.
    Unavailable,
}

impl Confinement {
    /// The sandbox of a controller. `allow_unconfined`: providers start also if the kernel has no sandbox.
    pub fn of_controller(allow_unconfined: bool) -> Self {
        match launcher::sandbox_available() {
            true => Self::Sandbox(Sandbox::system()),
            false if allow_unconfined => Self::Nothing,
            false => Self::Unavailable,
        }
    }

    /// The file system access of a provider; `None` for all that the user can access.
    fn sandbox(&self, provider: &Provider, program: &Path) -> Option<Sandbox> {
        match self {
            Self::Sandbox(common) => Some(reachable(common, provider, program)),
            Self::Nothing | Self::Unavailable => None,
        }
    }
}

/// How a provider is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigurationMode {
    /// Configures the provider.
    #[default]
    Configure,
    /// Validates the provider configuration only. The provider can validate resource configurations, but not plan or
    /// read.
    Check,
    /// Ignores the provider configuration, which is unknown. The provider can validate configurations and upgrade
    /// states.
    Ignore,
}

impl ProviderOptions {
    /// Separate working directories and no confinement.
    pub fn new(installer: Arc<Installer>) -> Self {
        let (reattach, launcher) = (Reattach::default(), CURRENT_EXE.into());
        let configuration = ConfigurationMode::Configure;
        Self {
            working_directory: None,
            installer,
            inherits_environment: false,
            configuration,
            confinement: Confinement::Nothing,
            reattach,
            launcher,
            limits: limits(),
            pool: PoolOptions::default(),
            observer: Arc::new(()),
            runners: None,
        }
    }
}

pub struct Sessions {
    options: ProviderOptions,
    pool: Arc<Pool>,
    /// The secrets that each process must not reveal.
    masks: Mutex<HashMap<PoolKey, Weak<ProcessMask>>>,
    /// The warnings of the last configuration of each process.
    warned: Mutex<HashMap<PoolKey, Diagnostics>>,
    spares: Arc<Spares>,
    /// Background tasks, which end with the sessions.
    _upkeep: JoinSet<()>,
}

impl Sessions {
    /// Starts no provider. Must be called in a Tokio runtime.
    pub fn new(options: ProviderOptions, clock: Arc<dyn Clock>) -> Self {
        let spares = Arc::new(Spares::new(options.pool.idle_timeout, clock.clone()));
        let pool = Arc::new(Pool::new(options.pool, clock));
        let (kept, spared, used) = (Arc::clone(&pool), Arc::clone(&spares), Arc::clone(&pool));
        let mut upkeep = JoinSet::new();
        upkeep.spawn(async move { kept.maintain().await });
        upkeep.spawn(async move { spared.maintain(&used).await });
        Self { options, pool, masks: Mutex::default(), warned: Mutex::default(), spares, _upkeep: upkeep }
    }

    pub fn options(&self) -> &ProviderOptions {
        &self.options
    }

    /// Fetches the schema of a provider. This needs no configuration, so the process is kept for the first
    /// configuration.
    pub async fn describe(&self, provider: &Arc<Provider>) -> Result<ServedTypes, DriverError> {
        let mask = LateMask::default();
        let memory = self.limits(provider).memory;
        let place = self.pool.place(&NO_NAMESPACE.into(), &provider.name, memory).await;
        let place = place.map_err(|error| unavailable(&error))?;
        let (client, installed) = self.start(provider, &mask).await?;
        let described = async {
            let (schema, diagnostics) = client.schema().await.map_err(|error| diagnostics::call_error(&error))?;
            if let Some(error) = diagnostics::first_error(&diagnostics) {
                return Err(error);
            }
            // Older providers do not implement this call.
            let identities = client.identity_schemas().await.ok().flatten().map(|(schemas, _)| schemas);
            let facts = ProviderInfo {
                version: installed.as_ref().and_then(|installed| Some(installed.version.as_ref()?.to_string())),
                protocol: match client.protocol() {
                    Protocol::V5 => 5,
                    Protocol::V6 => 6,
                },
                resource_types: schema.resource_types().count(),
                locked: installed.as_ref().and_then(|installed| installed.locked(&provider.version)),
            };
            ServedTypes::new(schema, identities.unwrap_or_default(), facts)
        };
        let served = described.await;
        match &served {
            Ok(_) => self.spares.keep(Arc::clone(provider), client, mask, place).await,
            Err(_) => client.close().await,
        }
        served
    }

    /// Leases a configured process and returns its mask.
    pub async fn lease(
        &self,
        namespace: &Namespace,
        used: &ProviderUse,
        served: &ServedTypes,
    ) -> Result<(Lease, Arc<ProcessMask>), DriverError> {
        let key = key(namespace, used);
        let mask = self.mask(&key, used, served);
        let start = async || {
            let configuration = self.configuration(used, served).map_err(|error| not_configured(&mask, error))?;
            let client = match self.runner(used) {
                Some((pods, runner)) => {
                    let request =
                        self.pod_request(used, runner, &mask).await.map_err(|error| not_configured(&mask, error))?;
                    Some(pods.start(&key, request, self.options.pool.max_wait).await?)
                }
                None => None,
            };
            self.configure(&key, used, served, &mask, (client, configuration))
                .await
                .map_err(|error| not_configured(&mask, error))
        };
        // A Pod uses the memory of its namespace.
        let memory = self.runner(used).map_or(self.limits(&used.provider).memory, |_| Some(0));
        let lease = self.pool.lease(&key, memory, start).await;
        let lease = lease.map_err(|error| match error.cause() {
            // All callers get the same error, so that it is reported once.
            PluginError::NotConfigured { hint, .. } => DriverError { hint: hint.clone(), ..unavailable(error.cause()) },
            _ => unavailable(&error),
        })?;
        Ok((lease, mask))
    }

    /// Whether providers can access all that this process can access.
    pub fn is_unconfined(&self) -> bool {
        matches!(self.options.confinement, Confinement::Nothing)
    }

    /// Whether providers are configured, so that they can plan and read.
    pub fn configures(&self) -> bool {
        self.options.configuration == ConfigurationMode::Configure
    }

    /// The warnings of the last configuration of the provider, masked.
    pub fn configuration_warnings(&self, namespace: &Namespace, used: &ProviderUse) -> Diagnostics {
        let warned = lock(&self.warned);
        // Usually there are no warnings, and the key requires a digest.
        if warned.is_empty() { Vec::new() } else { warned.get(&key(namespace, used)).cloned().unwrap_or_default() }
    }

    /// Waits until a process can start in namespaces in which one could not, and returns them.
    pub async fn process_available(&self) -> BTreeSet<Namespace> {
        let in_pool = async { self.pool.process_available().await.into_iter().map(Namespace::from).collect() };
        let Some(pods) = &self.options.runners else { return in_pool.await };
        tokio::select! {
            available = in_pool => available,
            ready = pods.ready() => ready,
        }
    }

    /// Whether this process runs providers in Pods.
    pub fn has_runners(&self) -> bool {
        self.options.runners.is_some()
    }

    /// Where a provider runs, if not as a process.
    fn runner<'a>(&'a self, used: &'a ProviderUse) -> Option<(&'a Arc<RunnerPods>, &'a Arc<PodRunner>)> {
        self.options.runners.as_ref().zip(used.runner.as_ref())
    }

    /// Ends the process of an outdated configuration after its running calls.
    pub fn retire(&self, namespace: &Namespace, used: &ProviderUse) {
        let key = key(namespace, used);
        self.pool.retire(&key);
        if let Some(pods) = &self.options.runners {
            pods.abandon(&key);
        }
    }

    /// The mask of the process with that key; created if no process is running.
    fn mask(&self, key: &PoolKey, used: &ProviderUse, served: &ServedTypes) -> Arc<ProcessMask> {
        let mut masks = lock(&self.masks);
        if let Some(mask) = masks.get(key).and_then(Weak::upgrade) {
            return mask;
        }
        masks.retain(|_, mask| mask.strong_count() > 0);
        lock(&self.warned).retain(|key, _| masks.contains_key(key));
        // Values are sensitive because of their expression or because of the schema.
        let (conformed, _) = values::coerce_config(served.configuration(), used.given());
        let marked = values::to_model(served.configuration(), &conformed);
        let mask = ProcessMask::new(Secrets::of([used.given(), &marked]));
        masks.insert(key.clone(), Arc::downgrade(&mask));
        mask
    }

    /// The provider configuration in the form in which the provider gets it.
    fn configuration(&self, used: &ProviderUse, served: &ServedTypes) -> Result<DynamicValue, DriverError> {
        let (configuration, mut problems) = match self.options.configuration {
            ConfigurationMode::Ignore => (served.configuration().empty(), Vec::new()),
            ConfigurationMode::Configure | ConfigurationMode::Check => {
                values::coerce_config(served.configuration(), used.given())
            }
        };
        if !problems.is_empty() {
            let first = problems.swap_remove(0);
            let place = path_prefix(first.path.as_ref());
            let message = format!("the provider configuration `{}` is not valid: {place}{}", used.name, first.summary);
            return Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: first.hint });
        }
        let encoded = DynamicValue::of(&configuration, served.configuration().ty());
        encoded.map_err(|error| diagnostics::decode_error("the provider configuration", &error))
    }

    /// Configures a process: the given one, or else one of this machine.
    async fn configure(
        &self,
        key: &PoolKey,
        used: &ProviderUse,
        served: &ServedTypes,
        mask: &Arc<ProcessMask>,
        (client, configuration): (Option<Client>, DynamicValue),
    ) -> Result<Client, DriverError> {
        let spare = if client.is_none() { self.spares.take(&used.provider) } else { None };
        let (client, schema_was_called) = match (client, spare) {
            (Some(client), _) => (client, false),
            (None, Some((client, late))) => {
                late.set(mask);
                (client, true)
            }
            (None, None) => {
                let late = LateMask::default();
                late.set(mask);
                (self.start(&used.provider, &late).await?.0, false)
            }
        };
        let configured = async {
            if served.requires_schema_call() && !schema_was_called {
                client.initialize().await.map_err(|error| diagnostics::call_error(&error))?;
            }
            let set_up = match self.options.configuration {
                ConfigurationMode::Configure => client.validate_and_configure(configuration).await,
                ConfigurationMode::Check => client.validate_provider_config(configuration).await,
                ConfigurationMode::Ignore => Ok(Vec::new()),
            };
            let diagnostics = match set_up {
                Ok(diagnostics) | Err(PluginError::ConfigurationRejected { diagnostics, .. }) => diagnostics,
                Err(error) => return Err(diagnostics::call_error(&error)),
            };
            let (configuration, provider) = (&used.name, &used.provider.name);
            if let Some(error) = diagnostics::first_error(&diagnostics) {
                let rejected =
                    format!("the provider `{provider}` rejected the provider configuration `{configuration}`");
                let message = format!("{rejected}: {}{}", path_prefix(error.path.as_ref()), error.message);
                return Err(DriverError { kind: ErrorKind::Unavailable, message, path: None, ..error });
            }
            Ok(diagnostics)
        };
        match configured.await {
            Ok(diagnostics) => {
                self.store_warnings(key, mask, diagnostics);
                Ok(client)
            }
            Err(error) => {
                client.close().await;
                Err(error)
            }
        }
    }

    fn store_warnings(&self, key: &PoolKey, mask: &ProcessMask, diagnostics: Vec<Diagnostic>) {
        let warnings = redacted(&mask.secrets(), diagnostics::warnings(diagnostics));
        let mut warned = lock(&self.warned);
        match warnings.is_empty() {
            true => drop(warned.remove(key)),
            false => drop(warned.insert(key.clone(), warnings)),
        }
    }

    fn limits(&self, provider: &Provider) -> Limits {
        let memory = provider.max_memory.or(self.options.limits.memory);
        Limits { in_flight: provider.max_calls as usize, memory, ..self.options.limits }
    }

    pub fn is_reattached(&self, provider: &Provider) -> bool {
        self.options.reattach.target(provider).is_some()
    }

    /// Starts a process without configuring it. Returns its package too, unless the user started the provider.
    async fn start(
        &self,
        provider: &Provider,
        mask: &LateMask,
    ) -> Result<(Client, Option<InstalledProvider>), DriverError> {
        if let Some(target) = self.options.reattach.target(provider) {
            let mut launch = Launch::new(provider.name.to_string(), "");
            launch.limits = self.limits(provider);
            launch.mask = mask.output_mask();
            launch.observer = Arc::clone(&self.options.observer);
            let client = Client::reattach(&launch, target).await.map_err(|error| unavailable(&error))?;
            return Ok((client, None));
        }
        if matches!(self.options.confinement, Confinement::Unavailable) {
            return Err(no_sandbox(provider));
        }
        let installed = program(&self.options.installer, provider).await?;
        let mut launch = Launch::new(provider.name.to_string(), installed.program.clone());
        launch.launcher.clone_from(&self.options.launcher);
        launch.sandbox = self.options.confinement.sandbox(provider, &launch.program);
        launch.working_dir.clone_from(&self.options.working_directory);
        launch.limits = self.limits(provider);
        launch.mask = mask.output_mask();
        launch.observer = Arc::clone(&self.options.observer);
        launch.environment = self.environment(provider);
        let client = Client::start(&launch).await.map_err(|error| unavailable(&error))?;
        Ok((client, Some(installed)))
    }

    /// The variables of a process, besides those that every provider gets.
    fn environment(&self, provider: &Provider) -> BTreeMap<String, String> {
        let inherited = std::env::vars_os()
            .filter(|_| self.options.inherits_environment)
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let declared = provider.environment.iter().filter_map(|(name, value)| {
            let value = value.as_deref().map(str::to_owned).or_else(|| std::env::var(&**name).ok())?;
            Some((name.to_string(), value))
        });
        inherited.chain(declared).collect()
    }

    /// What a Pod of the provider runs.
    async fn pod_request(
        &self,
        used: &ProviderUse,
        runner: &Arc<PodRunner>,
        mask: &Arc<ProcessMask>,
    ) -> Result<PodRequest, DriverError> {
        let provider = &used.provider;
        let installed = program(&self.options.installer, provider).await?;
        let is_whole = matches!(&provider.package, Package::Path(path) if Path::new(&**path) == installed.program);
        let root = match installed.program.parent() {
            Some(directory) if !is_whole => directory.to_owned(),
            _ => installed.program.clone(),
        };
        let hash = installed.hashes.iter().find(|hash| hash.is_of_files()).map(ToString::to_string);
        let mut launch = Launch::new(provider.name.to_string(), installed.program.clone());
        let (memory, idle) = (provider.max_memory, runner.idle_timeout);
        launch.limits = Limits { memory, idle, ..self.limits(provider) };
        let late = LateMask::default();
        late.set(mask);
        launch.mask = late.output_mask();
        launch.observer = Arc::clone(&self.options.observer);
        // A variable without a value is that of the Pod.
        let variables = provider.environment.iter();
        let environment = variables.filter_map(|(name, value)| Some((name.to_string(), value.as_deref()?.to_owned())));
        Ok(PodRequest {
            runner: Arc::clone(runner),
            configuration: used.name.clone(),
            launch,
            package: remote::Package { root, program: installed.program },
            hash: hash.unwrap_or_default(),
            environment: environment.collect(),
            memory,
        })
    }

    /// All processes.
    pub fn processes(&self) -> Vec<Client> {
        self.pool.processes().into_iter().chain(self.spares.processes()).collect()
    }

    /// Sends stop requests to all processes. `false` if none is running.
    pub async fn stop(&self) -> bool {
        self.pool.stop().await > 0
    }

    pub async fn close(&self) {
        tokio::join!(self.pool.close(), self.spares.close());
        if let Some(pods) = &self.options.runners {
            pods.close().await;
        }
    }
}

fn not_configured(mask: &ProcessMask, error: DriverError) -> PluginError {
    let DriverError { message: why, hint, .. } = redacted(&mask.secrets(), error);
    PluginError::NotConfigured { why, hint }
}

/// The file system access of a confined provider: the common files, its own package, and the files in its Provider.
fn reachable(confine: &Sandbox, provider: &Provider, program: &Path) -> Sandbox {
    let mut sandbox = confine.clone();
    if !matches!(&provider.package, Package::Path(path) if Path::new(&**path) == program) {
        sandbox.read.extend(program.parent().map(Path::to_owned));
    }
    let certificates = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(std::env::var_os);
    sandbox.read.extend(certificates.map(PathBuf::from));
    sandbox.read.extend(provider.files.read.iter().map(|path| PathBuf::from(&**path)));
    sandbox.write.extend(provider.files.write.iter().map(|path| PathBuf::from(&**path)));
    sandbox
}

fn no_sandbox(provider: &Provider) -> DriverError {
    let name = &provider.name;
    let message =
        format!("the provider `{name}` does not start: the kernel has no Landlock, which separates providers");
    let hint = "run the controller on nodes with Landlock (Linux 5.13 or later, enabled), or, if all tenants trust each \
                other, set --allow-unconfined-providers";
    DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: Some(hint.to_owned()) }
}

/// The key of a process: the namespace, the program, its environment and limits, and the provider configuration.
fn key(namespace: &Namespace, used: &ProviderUse) -> PoolKey {
    let mut hasher = Sha256::new();
    hasher.update(&*used.digest);
    // A process keeps the ephemeral values that it got.
    hasher.update(used.ephemeral_digest());
    hasher.update(serde_json::to_vec(&*used.provider).unwrap_or_default());
    if let Some(runner) = &used.runner {
        hasher.update(serde_json::to_vec(&**runner).unwrap_or_default());
    }
    PoolKey {
        namespace: Arc::clone(namespace.text()),
        package: used.provider.name.to_string(),
        configuration: hasher.finalize().into(),
    }
}

/// The path in the provider configuration, as a message prefix.
fn path_prefix(path: Option<&model::Path>) -> String {
    path.map_or_else(String::new, |path| format!("spec.config.{path}: "))
}

fn unavailable(error: &PluginError) -> DriverError {
    let kind = match error.cause() {
        PluginError::Start { why: StartError::Forbidden(_), .. } => ErrorKind::Forbidden,
        _ => ErrorKind::Unavailable,
    };
    DriverError { kind, ..diagnostics::call_error(error) }
}

/// What to install for a provider.
pub fn requirement(provider: &Provider) -> Requirement {
    let package = match &provider.package {
        Package::Registry => install::Package::Registry,
        Package::Path(path) => install::Package::Path(path.clone()),
        Package::FilesystemMirror(root) => install::Package::FilesystemMirror(root.clone()),
        Package::NetworkMirror(url) => install::Package::NetworkMirror(url.clone()),
        Package::OciMirror(template) => install::Package::OciMirror(template.clone()),
    };
    Requirement {
        name: provider.name.clone(),
        source: provider.source.clone(),
        version: provider.version.clone(),
        package,
        checksums: provider.checksums.clone(),
    }
}

/// Returns the package of a provider and installs it if needed.
pub async fn program(installer: &Installer, provider: &Provider) -> Result<InstalledProvider, DriverError> {
    let installed = installer.install_and_lock(&requirement(provider)).await.map_err(|error| {
        let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
        let message =
            format!("the program of the provider `{}` is not available: {field}{}", provider.name, error.message);
        // All installation errors are retried in the same way, since no object was changed.
        DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: error.hint }
    })?;
    for warning in &installed.warnings {
        tracing::warn!(provider = &*provider.name, "{warning}");
    }
    Ok(installed)
}
