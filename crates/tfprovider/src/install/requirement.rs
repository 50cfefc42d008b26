//! What to install.

use std::sync::Arc;

/// A provider to install, with the acceptable versions and packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The name by which earlier installations are found without a lock file.
    pub name: Arc<str>,
    /// The address, `HOST/NAMESPACE/TYPE`.
    pub source: Arc<str>,
    /// The version constraint; empty for any version.
    pub version: Arc<str>,
    pub package: Package,
    /// Accepted checksums of the package, `zh:...` or `h1:...`; if empty, those that the origin provides.
    pub checksums: Vec<Arc<str>>,
}

/// Where the package comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Package {
    /// The registry in the address.
    #[default]
    Registry,
    /// A local executable or directory.
    Path(Arc<str>),
    /// A directory with the layout of Terraform's filesystem mirror.
    FilesystemMirror(Arc<str>),
    /// The URL of a server with Terraform's network mirror protocol.
    NetworkMirror(Arc<str>),
    /// A template for the name of an OCI repository with the layout of OpenTofu's OCI mirrors.
    OciMirror(Arc<str>),
}
