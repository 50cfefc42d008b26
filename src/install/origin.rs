//! Where packages come from. Each origin tells which versions it has, and where the package of one is.

pub(super) mod filesystem;
pub(super) mod network;
pub(super) mod oci;
pub(super) mod registry;

use std::fmt;
use std::path::PathBuf;

use reqwest::Url;
use semver::Version;

use super::{Hash, InstallError};
use filesystem::FilesystemMirror;
use network::NetworkMirror;
use oci::OciMirror;
use registry::Registry;

/// Somewhere that has packages.
pub(super) enum Origin<'a> {
    /// The registry of the provider's address.
    Registry(Registry<'a>),
    /// A folder.
    Filesystem(FilesystemMirror<'a>),
    /// A network mirror.
    Network(NetworkMirror<'a>),
    /// An OCI mirror.
    Oci(OciMirror<'a>),
}

/// A package that an origin has.
#[derive(Debug)]
pub(super) struct Found {
    /// Its version.
    pub version: Version,
    /// Where it is.
    pub place: Place,
    /// What the origin says of it: it must hash to one of them. Empty: the origin says nothing.
    pub expected: Vec<Hash>,
    /// What the origin says of packages of this version for whatever platform.
    pub known: Vec<Hash>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Where a package is.
#[derive(Debug)]
pub(super) enum Place {
    /// An unpacked package, used where it is.
    Folder(PathBuf),
    /// A zip on this machine.
    Zip(PathBuf),
    /// A zip to be fetched.
    Download {
        /// Its address.
        url: Url,
        /// The value of the header `Authorization`.
        authorization: Option<String>,
        /// Where credentials for it would come from.
        credentials: String,
    },
}

impl Origin<'_> {
    /// The versions that it has, in no order.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        match self {
            Self::Registry(registry) => registry.versions().await,
            Self::Filesystem(mirror) => mirror.versions(),
            Self::Network(mirror) => mirror.versions().await,
            Self::Oci(mirror) => mirror.versions().await,
        }
    }

    /// The package of one of its versions.
    pub async fn locate(&self, version: &Version) -> Result<Found, InstallError> {
        match self {
            Self::Registry(registry) => registry.locate(version).await,
            Self::Filesystem(mirror) => mirror.locate(version),
            Self::Network(mirror) => mirror.locate(version).await,
            Self::Oci(mirror) => mirror.locate(version).await,
        }
    }

    /// Whether asking it needs the network: then what is cached comes first.
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
