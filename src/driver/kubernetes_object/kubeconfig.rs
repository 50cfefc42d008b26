//! The errors of a kubeconfig, as one plain sentence.

use std::error::Error as _;
use std::io::ErrorKind;

use kube::config::{InferConfigError, KubeconfigError};

/// Says why a kubeconfig cannot be used.
pub fn problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) if error.kind() == ErrorKind::NotFound => {
            format!("there is no kubeconfig at `{}`", path.display())
        }
        KubeconfigError::FindPath => "there is no kubeconfig".to_owned(),
        KubeconfigError::CurrentContextNotSet => "the kubeconfig sets no current context".to_owned(),
        KubeconfigError::LoadContext(name) if name.is_empty() => "the kubeconfig sets no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context `{name}`"),
        error => format!("the kubeconfig cannot be used: {error}"),
    }
}

/// The same, for a process that is not in a Pod either.
pub fn inference_problem(error: &InferConfigError) -> String {
    let kubeconfig = error.source().and_then(|source| source.downcast_ref());
    kubeconfig.map_or_else(|| error.to_string(), problem)
}
