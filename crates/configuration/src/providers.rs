//! Providers and their configurations, as modules name them and pass them on.

use std::fmt;
use std::sync::Arc;

use hcl::Range;

use crate::address::{Key, ModulePath};
use crate::source::DEFAULT_REGISTRY;

/// Where a provider comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderSource {
    /// The registry, `None` for the default one.
    pub host: Option<Arc<str>>,
    /// The namespace in it.
    pub namespace: Arc<str>,
    /// The name of the provider.
    pub name: Arc<str>,
}

impl ProviderSource {
    /// The provider that a local name means without `required_providers`.
    pub fn implied(name: &str) -> Self {
        match name {
            "terraform" => Self { host: Some("terraform.io".into()), namespace: "builtin".into(), name: name.into() },
            _ => Self { host: None, namespace: "hashicorp".into(), name: name.into() },
        }
    }

    /// Whether the provider is a part of the program, and not installed.
    pub fn is_built_in(&self) -> bool {
        self.host.as_deref() == Some("terraform.io") && &*self.namespace == "builtin"
    }

    /// The address with its registry, also if it is the default one.
    ///
    /// ```
    /// let source = configuration::ProviderSource::parse("acme/cloud").unwrap();
    /// assert_eq!(source.full(), "registry.opentofu.org/acme/cloud");
    /// ```
    pub fn full(&self) -> String {
        let host = self.host.as_deref().unwrap_or(DEFAULT_REGISTRY);
        format!("{host}/{}/{}", self.namespace, self.name)
    }

    /// Reads `name`, `namespace/name` or `host/namespace/name`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [name] => Some(Self { host: None, namespace: "hashicorp".into(), name: part(name)? }),
            [namespace, name] => Some(Self { host: None, namespace: part(namespace)?, name: part(name)? }),
            [registry, namespace, name] if registry.contains(['.', ':']) => {
                let registry: Arc<str> = registry.to_lowercase().into();
                let is_default = ["registry.opentofu.org", "registry.terraform.io"].contains(&&*registry);
                let host = (!is_default).then_some(registry);
                Some(Self { host, namespace: part(namespace)?, name: part(name)? })
            }
            _ => None,
        }
    }
}

/// A part of the address of a provider.
fn part(text: &str) -> Option<Arc<str>> {
    let fits =
        !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_');
    fits.then(|| text.to_lowercase().into())
}

impl fmt::Display for ProviderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.iter().try_for_each(|host| write!(f, "{host}/"))?;
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A provider configuration by the names of a module, such as `aws` or `aws.west`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalProvider {
    /// The provider's name in the module.
    pub name: Arc<str>,
    /// The alias.
    pub alias: Option<Arc<str>>,
}

impl fmt::Display for LocalProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.alias.iter().try_for_each(|alias| write!(f, ".{alias}"))
    }
}

/// An item of `required_providers`.
#[derive(Clone, Debug)]
pub struct RequiredProvider {
    /// Where it comes from.
    pub source: ProviderSource,
    /// The constraints on its version.
    pub version: Option<String>,
    /// The configurations with an alias that a caller has to pass.
    pub aliases: Vec<LocalProvider>,
    /// The place.
    pub range: Range,
}

/// A provider configuration of the whole tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderAddress {
    /// The module instance whose configuration it is.
    pub module: ModulePath,
    /// The provider.
    pub source: ProviderSource,
    /// The configuration by the names of that module. If there is no block of it, the configuration is empty.
    pub local: LocalProvider,
    /// The instance of a configuration with `for_each`.
    pub key: Option<Key>,
}
