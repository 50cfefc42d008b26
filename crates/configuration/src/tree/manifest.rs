//! `.terraform/modules/modules.json`: which modules are installed where.

use std::collections::BTreeMap;

use crate::source::ModuleSource;

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
        let entries = json.get("Modules").and_then(serde_json::Value::as_array).into_iter().flatten();
        let entries = entries.filter_map(|entry| {
            let installed = Installed {
                source: text(entry, "Source").unwrap_or_default(),
                version: text(entry, "Version").filter(|version| !version.is_empty()),
                directory: text(entry, "Dir")?,
            };
            Some((text(entry, "Key")?, installed))
        });
        Ok(Self(entries.collect()))
    }

    /// Writes the file, as upstream does: in one line, ordered by the keys.
    ///
    /// ```
    /// let json = r#"{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"./a","Dir":"a"}]}"#;
    /// assert_eq!(configuration::Manifest::parse(json).unwrap().to_json(), json);
    /// ```
    pub fn to_json(&self) -> String {
        let entries = self.0.iter().map(|(key, installed)| {
            let version = installed.version.as_ref().map(|version| format!("\"Version\":{},", quoted(version)));
            let (key, source, directory) = (quoted(key), quoted(&installed.source), quoted(&installed.directory));
            format!("{{\"Key\":{key},\"Source\":{source},{}\"Dir\":{directory}}}", version.unwrap_or_default())
        });
        format!("{{\"Modules\":[{}]}}", entries.collect::<Vec<_>>().join(","))
    }

    /// Adds a module. Those that it calls are not known any more.
    pub fn insert(&mut self, key: &str, installed: Installed) {
        self.remove(key);
        self.0.insert(key.to_owned(), installed);
    }

    /// Removes a module and those that it calls.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|other, _| other.strip_prefix(key).is_none_or(|rest| !rest.is_empty() && !rest.starts_with('.')));
    }

    /// The modules by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Installed)> {
        self.0.iter().map(|(key, installed)| (key.as_str(), installed))
    }

    /// A module by its key.
    pub fn get(&self, key: &str) -> Option<&Installed> {
        self.0.get(key)
    }
}

fn text(entry: &serde_json::Value, name: &str) -> Option<String> {
    entry.get(name).and_then(serde_json::Value::as_str).map(str::to_owned)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl FromIterator<(String, Installed)> for Manifest {
    fn from_iter<T: IntoIterator<Item = (String, Installed)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

/// Whether a source that is installed is the one that is written. Older programs have written it into the list as it was.
pub fn is_same_source(installed: &str, written: &ModuleSource) -> bool {
    ModuleSource::parse(installed).is_ok_and(|installed| installed == *written)
}
