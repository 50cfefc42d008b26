//! The programs of a control plane and its clients, built from the Go modules in `tests`.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::programs::{Program, ensure};

/// The paths of the programs.
pub(crate) struct Tools {
    /// `tests/controlplane`.
    pub(crate) controlplane: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) helm: PathBuf,
    /// The directory in `KUBEBUILDER_ASSETS`. Its etcd, kube-apiserver, kubectl and (if it exists)
    /// kube-controller-manager replace the linked ones, to test with another version of Kubernetes.
    pub(crate) assets: Option<PathBuf>,
}

const CONTROLPLANE: Program = Program { module: "controlplane", package: ".", name: "controlplane" };
const KUBECTL: Program = Program { module: "controlplane", package: "k8s.io/kubernetes/cmd/kubectl", name: "kubectl" };
const HELM: Program = Program { module: "gitops", package: "helm.sh/helm/v4/cmd/helm", name: "helm" };

/// Builds the programs if they do not exist yet, which takes several minutes the first time.
///
/// # Panics
/// If Go is missing, or cannot build them.
pub(crate) fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
        let provided = assets.as_ref().map(|assets| assets.join("kubectl")).filter(|kubectl| kubectl.is_file());
        Tools {
            controlplane: ensure(&CONTROLPLANE),
            kubectl: provided.unwrap_or_else(|| ensure(&KUBECTL)),
            helm: ensure(&HELM),
            assets,
        }
    })
}
