//! The origins of packages. Each origin lists versions and locates the package of a version.

pub mod filesystem;
pub mod network;
pub mod oci;
pub mod registry;

use std::fmt;
use std::path::PathBuf;

use reqwest::Url;
use semver::Version;

use super::{Hash, InstallError};
use filesystem::FilesystemMirror;
use network::NetworkMirror;
use oci::OciMirror;
use registry::Registry;

pub enum Origin<'a> {
    /// The registry in the provider address.
    Registry(Registry<'a>),
    Filesystem(FilesystemMirror<'a>),
    Network(NetworkMirror<'a>),
    Oci(OciMirror<'a>),
}

/// The package of a version at an origin.
#[derive(Debug)]
pub struct LocatedPackage {
    pub version: Version,
    pub location: PackageLocation,
    /// The package must match one of these checksums. Empty if the origin provides none.
    pub expected: Vec<Hash>,
    /// The checksums of the packages of this version for all platforms.
    pub known: Vec<Hash>,
    /// Messages for the user.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub enum PackageLocation {
    /// An unpacked package that is used in place.
    Directory(PathBuf),
    /// A local zip file.
    Zip(PathBuf),
    /// A zip file to download.
    Download {
        url: Url,
        /// The value of the `Authorization` header.
        authorization: Option<String>,
        /// The source of credentials, for hints.
        credentials: String,
    },
}

impl Origin<'_> {
    /// Lists the available versions in any order.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        match self {
            Self::Registry(registry) => registry.versions().await,
            Self::Filesystem(mirror) => mirror.versions(),
            Self::Network(mirror) => mirror.versions().await,
            Self::Oci(mirror) => mirror.versions().await,
        }
    }

    /// Locates the package of an available version.
    pub async fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        match self {
            Self::Registry(registry) => registry.locate(version).await,
            Self::Filesystem(mirror) => mirror.locate(version),
            Self::Network(mirror) => mirror.locate(version).await,
            Self::Oci(mirror) => mirror.locate(version).await,
        }
    }

    /// Whether the origin needs the network. If so, the cache is checked first.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Filesystem(_))
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(registry) => write!(f, "the registry {}", registry.source.host),
            Self::Filesystem(mirror) => write!(f, "the mirror {}", mirror.root.display()),
            Self::Network(mirror) => write!(f, "the mirror {}", mirror.base),
            Self::Oci(mirror) => write!(f, "the repository {}", mirror.name()),
        }
    }
}
