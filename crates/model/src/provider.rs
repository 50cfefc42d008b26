//! The provider of an object, and its configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::encoding::is_default;
use super::number::quantity;
use super::{Path, Value, shared};

/// The spec of a `Provider`. The record of every object has a copy, so that a destroy needs no other object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    pub name: Arc<str>,
    /// The address, `HOST/NAMESPACE/TYPE`.
    pub source: Arc<str>,
    /// The version constraint; empty for any version.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub version: Arc<str>,
    #[serde(default)]
    pub package: Package,
    /// Accepted checksums of the package, `zh:...` or `h1:...`; if empty, those that the package source provides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<Arc<str>>,
    /// Environment variables besides those that every provider gets. Without a value, the provider gets the value of
    /// Purlin's own variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Files that the provider can access if the kernel supports the sandbox.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
    /// The maximum number of concurrent calls for each configuration.
    #[serde(default = "Provider::default_calls")]
    pub max_calls: u32,
    /// The memory in bytes above which a process gets no new calls; `None` for the default of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<u64>,
}

/// Paths of files and directories. A directory includes its content.
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

/// The source of a provider's package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Package {
    /// The registry in the provider's address.
    #[default]
    Registry,
    /// A local executable or directory, such as an image that is mounted as a volume.
    Path(Arc<str>),
    /// A directory with the layout of Terraform's filesystem mirror.
    FilesystemMirror(Arc<str>),
    /// The URL of a server with Terraform's network mirror protocol.
    NetworkMirror(Arc<str>),
    /// A template for the name of an OCI repository with the layout of OpenTofu's OCI mirrors.
    OciMirror(Arc<str>),
}

impl Provider {
    /// The same default as Terraform's `-parallelism`.
    pub const DEFAULT_CALLS: u32 = 10;

    /// The minimum memory limit in bytes: twice the memory of an idle provider.
    const LEAST_MEMORY: u64 = 64 * 1024 * 1024;

    /// Parses a memory limit in bytes, as Kubernetes writes it. `None` if it is not valid, or too small.
    pub fn memory(text: &str) -> Option<u64> {
        quantity(text).filter(|bytes| *bytes >= Self::LEAST_MEMORY)
    }

    fn default_calls() -> u32 {
        Self::DEFAULT_CALLS
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

/// A provider with an evaluated configuration.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderUse {
    /// The name of the `ProviderConfig`, or of the `Provider` if it is used without a configuration.
    #[serde(rename = "n", deserialize_with = "shared::text")]
    pub name: Arc<str>,
    #[serde(rename = "p")]
    pub provider: Arc<Provider>,
    /// The evaluated configuration without unknown values, as it is recorded: without ephemeral values. It can contain
    /// credentials.
    #[serde(rename = "c")]
    pub configuration: Value,
    /// Whether the configuration has ephemeral values.
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    has_ephemeral: bool,
    /// The configuration with its ephemeral values, if it has any. It is known in this run only, and another one in each run is
    /// the same configuration.
    #[serde(skip)]
    whole: Option<Arc<Value>>,
    /// A digest of the configuration and the provider's address, but not of its version.
    #[serde(rename = "d", deserialize_with = "shared::text")]
    pub digest: Arc<str>,
    /// Where its processes run; `None`: beside the controller.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub runner: Option<Arc<PodRunner>>,
}

impl ProviderUse {
    pub fn new(name: Arc<str>, provider: Arc<Provider>, configuration: Value) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(&*provider.source);
        hasher.update([0]);
        hasher.update(configuration.to_json().to_string());
        let digest: String = hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name, provider, configuration, has_ephemeral: false, whole: None, digest: digest.into(), runner: None }
    }

    /// A configuration of which these attributes are ephemeral: they are used, and not recorded.
    pub fn with_ephemeral(name: Arc<str>, provider: Arc<Provider>, whole: Value, ephemeral: &[Path]) -> Self {
        if ephemeral.is_empty() {
            return Self::new(name, provider, whole);
        }
        let recorded = whole.without(ephemeral);
        Self { has_ephemeral: true, whole: Some(Arc::new(whole)), ..Self::new(name, provider, recorded) }
    }

    /// Whether it is a recorded configuration whose ephemeral values are not known. The provider must not get it: without
    /// credentials, it may say that an object is gone.
    pub fn is_incomplete(&self) -> bool {
        self.has_ephemeral && self.whole.is_none()
    }

    /// The configuration that the provider gets.
    pub fn given(&self) -> &Value {
        self.whole.as_deref().unwrap_or(&self.configuration)
    }

    /// Tells configurations with other ephemeral values apart, which have the same digest. Empty if there are none.
    pub fn ephemeral_digest(&self) -> Vec<u8> {
        let whole = self.whole.as_ref().map(|whole| Sha256::digest(whole.to_json().to_string()).to_vec());
        whole.unwrap_or_default()
    }

    /// Returns the same configuration of another version of the provider.
    #[must_use]
    pub fn with_provider(self, provider: Arc<Provider>) -> Self {
        Self { provider, ..self }
    }

    /// Returns the same configuration with processes that run elsewhere.
    #[must_use]
    pub fn with_runner(self, runner: Option<Arc<PodRunner>>) -> Self {
        Self { runner, ..self }
    }
}

impl PartialEq for ProviderUse {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.provider, &self.configuration, &self.digest, &self.runner)
            == (&other.name, &other.provider, &other.configuration, &other.digest, &other.runner)
    }
}

impl Eq for ProviderUse {}

// The configuration can contain credentials, and debug output can appear in a log.
impl fmt::Debug for ProviderUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderUse")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("digest", &self.digest)
            .field("runner", &self.runner)
            .finish_non_exhaustive()
    }
}

/// The prefix of the variables of the runner itself, which a provider neither gets nor sets.
pub const OWN_VARIABLES: &str = "PURLIN_";

/// A provider whose processes run in Pods of the namespace. Records have a copy, so that a destroy needs no other object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRunner {
    /// The service account of the namespace that creates the Pod; empty for the default one of the controller.
    #[serde(default)]
    pub creator: Arc<str>,
    /// The service account of the Pod, whose token the provider gets. `None`: that of `creator`, without its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<Arc<str>>,
    /// The `resources` of the container.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub resources: serde_json::Value,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The `tolerations` of the Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<serde_json::Value>,
    /// Variables of the container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How long the Pod is kept without calls; `None` for the default of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(version: &str) -> Arc<Provider> {
        let provider = serde_json::json!({"name": "random", "source": "registry.opentofu.org/hashicorp/random"});
        let provider: Provider = serde_json::from_value(provider).unwrap();
        Arc::new(Provider { version: version.into(), ..provider })
    }

    fn used(version: &str, setting: &str) -> ProviderUse {
        ProviderUse::new("random".into(), random(version), Value::map([("a", Value::from(setting))]))
    }

    #[test]
    fn the_digest_depends_on_the_configuration_but_not_on_the_version() {
        assert_eq!(used("1.0.0", "x").digest, used("2.0.0", "x").digest);
        assert_ne!(used("1.0.0", "x").digest, used("1.0.0", "y").digest);
    }

    #[test]
    fn the_configuration_is_not_printed() {
        let used = ProviderUse::new("random".into(), random(""), Value::from("s3cret"));
        assert!(!format!("{used:?}").contains("s3cret"));
    }
}
