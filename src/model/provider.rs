//! Which provider manages an object, and under which settings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Value;

/// A provider: which program it is, as a `Provider` names it. A copy goes into the record of every object, so that a
/// destroy needs nothing that can be gone first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// The name of the `Provider`.
    pub name: Arc<str>,
    /// Its address, `HOST/NAMESPACE/TYPE`.
    pub source: Arc<str>,
    /// Which versions will do, as Terraform writes constraints; empty: any.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub version: Arc<str>,
    /// Where the program comes from.
    #[serde(default)]
    pub package: Package,
    /// Checksums of the package, `zh:...` or `h1:...`; empty: those that its origin tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<Arc<str>>,
    /// Variables of its environment, besides the few that every provider gets. One without a value has ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// What of the file system it can reach where providers are confined.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
    /// How many calls may run at once under one configuration.
    #[serde(default = "Provider::default_calls")]
    pub max_calls: u32,
    /// The bytes of memory above which a process of it gets no new calls; `None`: as many as the pool says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<u64>,
}

/// Files and folders with everything in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Files {
    /// To read and execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Arc<str>>,
    /// To read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Arc<str>>,
}

impl Files {
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// Where the program of a provider comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Package {
    /// The registry that its address names.
    #[default]
    Registry,
    /// A program on the machine, or in an image that is mounted as a volume.
    Path(Arc<str>),
    /// A folder laid out as Terraform's filesystem mirror.
    FilesystemMirror(Arc<str>),
    /// A server that speaks the network mirror protocol.
    NetworkMirror(Arc<str>),
    /// A repository of an OCI registry, laid out as OpenTofu's OCI mirrors; a template of its name.
    OciMirror(Arc<str>),
}

impl Provider {
    /// How many calls may run at once under one configuration, as Terraform's `-parallelism`.
    pub const DEFAULT_CALLS: u32 = 10;

    /// The least that a limit of memory may be: what a provider needs that does nothing, and then as much again.
    pub const LEAST_MEMORY: u64 = 64 * 1024 * 1024;

    fn default_calls() -> u32 {
        Self::DEFAULT_CALLS
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

/// A provider under the settings of a `ProviderConfig`, with all expressions evaluated.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderUse {
    /// The name of the `ProviderConfig`, or of the `Provider` when it is used without settings.
    pub name: Arc<str>,
    /// The provider.
    pub provider: Arc<Provider>,
    /// The settings, wholly known. They may hold credentials.
    pub settings: Value,
    /// Tells settings apart, and one provider from another, but not its versions: objects are known to whoever has the
    /// same settings.
    pub digest: Arc<str>,
}

impl ProviderUse {
    /// The provider under these settings.
    pub fn new(name: Arc<str>, provider: Arc<Provider>, settings: Value) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(&*provider.source);
        hasher.update([0]);
        hasher.update(settings.to_json().to_string());
        let digest: String = hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name, provider, settings, digest: digest.into() }
    }
}

#[cfg(test)]
impl ProviderUse {
    /// A provider `cloud` that nobody has, for tests.
    pub fn of_cloud(settings: &str) -> Arc<Self> {
        let provider = serde_json::json!({"name": "cloud", "source": "registry.opentofu.org/acme/cloud"});
        let provider = Arc::new(serde_json::from_value(provider).unwrap());
        Arc::new(Self::new("cloud".into(), provider, settings.into()))
    }
}

// Settings hold credentials, and what is printed for debugging may end in a log.
impl fmt::Debug for ProviderUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderUse")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(version: &str) -> Arc<Provider> {
        let provider = serde_json::json!({"name": "random", "source": "registry.opentofu.org/hashicorp/random"});
        let provider: Provider = serde_json::from_value(provider).unwrap();
        Arc::new(Provider { version: version.into(), ..provider })
    }

    #[test]
    fn another_version_is_the_same_configuration_and_other_settings_are_not() {
        let used = |version, setting: &str| {
            ProviderUse::new("random".into(), random(version), Value::map([("a", Value::from(setting))]))
        };
        assert_eq!(used("1.0.0", "x").digest, used("2.0.0", "x").digest);
        assert_ne!(used("1.0.0", "x").digest, used("1.0.0", "y").digest);
    }

    #[test]
    fn settings_are_not_printed() {
        let used = ProviderUse::new("random".into(), random(""), Value::from("s3cret"));
        assert!(!format!("{used:?}").contains("s3cret"));
    }
}
