//! Connects to the API server.

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::options::Options;
use drivers::kubernetes_object::{client, inference_problem, kubeconfig_problem};

/// Connects to the API server of the options.
///
/// # Errors
/// Why the API server cannot be configured.
pub async fn connect(options: &Options) -> Result<Client, String> {
    client(config(options).await?).map_err(|error| error.to_string())
}

/// The same without any credentials, for requests that have those of a user.
///
/// # Errors
/// Why the API server cannot be configured.
pub async fn connect_without_credentials(options: &Options) -> Result<Client, String> {
    let mut config = config(options).await?;
    config.auth_info = AuthInfo::default();
    process::client(config).map_err(|error| error.to_string())
}

async fn config(options: &Options) -> Result<Config, String> {
    let unusable = |error: KubeconfigError| kubeconfig_problem(&error);
    let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    Ok(match (&options.kubeconfig, &options.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
            Config::from_custom_kubeconfig(kubeconfig, &choice).await.map_err(unusable)?
        }
        (None, Some(_)) => Config::from_kubeconfig(&choice).await.map_err(unusable)?,
        (None, None) => Config::infer().await.map_err(|error| inference_problem(&error))?,
    })
}
