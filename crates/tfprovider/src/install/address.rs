//! Provider addresses and platforms.

use std::fmt;
use std::str::FromStr;

use super::InstallError;

/// `HOST/NAMESPACE/TYPE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The host of the registry.
    pub host: String,
    pub namespace: String,
    /// The type of the provider, which is the prefix of its resource types.
    pub name: String,
}

impl Source {
    /// Parses a full address.
    pub fn parse(address: &str) -> Result<Self, InstallError> {
        let parts: Vec<&str> = address.split('/').collect();
        match parts[..] {
            [host, namespace, name] if parts.iter().all(|part| is_directory_name(part)) => {
                Ok(Self { host: host.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(InstallError::new(format!("`{address}` is not a provider address"))
                .at("spec.source")
                .hint("write HOST/NAMESPACE/TYPE")),
        }
    }
}

/// Whether the part of an address can be the name of a directory.
fn is_directory_name(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0'])
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.namespace, self.name)
    }
}

/// An operating system and an architecture with Go's names: `linux_amd64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
}

impl Platform {
    /// The platform of this process.
    pub fn current() -> Self {
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            other => other,
        };
        Self { os: os.to_owned(), architecture: architecture.to_owned() }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.os, self.architecture)
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('_') {
            Some((os, architecture)) if is_word(os) && is_word(architecture) => {
                Ok(Self { os: os.to_owned(), architecture: architecture.to_owned() })
            }
            _ => Err(format!("`{text}` is not a platform; write OS_ARCH, such as linux_amd64")),
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
