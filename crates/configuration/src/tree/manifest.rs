//! `.terraform/modules/modules.json`: which modules are installed where.

use std::collections::BTreeMap;

/// A module that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The source as it was when it was installed.
    pub source: String,
    /// The version, of a module of a registry.
    pub version: Option<String>,
    /// The directory, as `path.module` shows it.
    pub directory: String,
}

/// The installed modules by their keys: the names of the calls from the root module, with dots between them.
#[derive(Clone, Debug, Default)]
pub struct Manifest(BTreeMap<String, Installed>);

impl Manifest {
    /// Reads the file.
    ///
    /// ```
    /// let json = r#"{"Modules": [{"Key": "vpc", "Source": "registry.opentofu.org/a/vpc/aws", "Version": "5.1.0", "Dir": ".terraform/modules/vpc"}]}"#;
    /// let manifest = configuration::Manifest::parse(json).unwrap();
    /// assert_eq!(manifest.get("vpc").unwrap().directory, ".terraform/modules/vpc");
    /// ```
    pub fn parse(json: &str) -> Result<Self, String> {
        let json: serde_json::Value =
            serde_json::from_str(json).map_err(|error| format!("modules.json is not valid: {error}"))?;
        let text = |entry: &serde_json::Value, name: &str| {
            entry.get(name).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        let entries = json.get("Modules").and_then(serde_json::Value::as_array).into_iter().flatten();
        let entry = |entry: &serde_json::Value| {
            let installed = Installed {
                source: text(entry, "Source").unwrap_or_default(),
                version: text(entry, "Version").filter(|version| !version.is_empty()),
                directory: text(entry, "Dir")?,
            };
            Some((text(entry, "Key")?, installed))
        };
        Ok(Self(entries.filter_map(entry).collect()))
    }

    /// A module by its key.
    pub fn get(&self, key: &str) -> Option<&Installed> {
        self.0.get(key)
    }
}

impl FromIterator<(String, Installed)> for Manifest {
    fn from_iter<T: IntoIterator<Item = (String, Installed)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

/// Whether a source that is installed is the one that is written. The address of a module of a registry is written
/// without the default registry, and kept with it.
pub(super) fn is_same_source(installed: &str, written: &str) -> bool {
    const DEFAULT: [&str; 2] = ["registry.opentofu.org/", "registry.terraform.io/"];
    let bare = |source: &str| -> String {
        DEFAULT.iter().find_map(|registry| source.strip_prefix(registry)).unwrap_or(source).to_lowercase()
    };
    let is_registry = |source: &str| {
        let package = source.split("//").next().unwrap_or(source);
        (3..=4).contains(&package.split('/').count()) && !package.contains("::") && !package.contains("github.com")
    };
    // Other sources are kept in the form of their download address.
    !is_registry(&bare(written)) || bare(installed) == bare(written)
}
