//! The programs of a control plane and its clients, built from the Go modules beside us.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::programs::{Program, ensure};

/// Where the programs are.
pub(crate) struct Tools {
    /// `tests/controlplane`.
    pub(crate) controlplane: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) helm: PathBuf,
    /// The directory named by `KUBEBUILDER_ASSETS`, whose etcd, kube-apiserver, kubectl and (if it is there)
    /// kube-controller-manager are used instead of those linked in: the way to test with another Kubernetes.
    pub(crate) assets: Option<PathBuf>,
}

const CONTROLPLANE: Program = Program { module: "controlplane", package: ".", name: "controlplane" };
const KUBECTL: Program = Program { module: "controlplane", package: "k8s.io/kubernetes/cmd/kubectl", name: "kubectl" };
const HELM: Program = Program { module: "helm", package: "helm.sh/helm/v4/cmd/helm", name: "helm" };

/// Builds the programs if they are not there yet, which takes several minutes the first time.
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
