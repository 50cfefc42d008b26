//! Terraform configurations in directories: the files, the values of variables, and what is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::init;
use super::options::Files;
use configuration::{Input, Manifest, ProviderSource, Settings, Sources, Tree};
use drivers::Providers;
use engine::load::{ProviderSpec, SourcePaths};
use jiff::Timestamp;
use model::text::counted;
use model::{Diagnostic, Name, Provider, Reason, Severity};
use modules::{Disk, ModuleError};
use programs::{AtApply, InModules, MAX_FILE, ReadFiles, cleaned, rfc3339};
use runtime::store::LoadedRecords;
use terraform::{Origin, Terraform};

/// The values of variables that the command line gives, a later one in place of an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(pub Vec<Assignment>);

/// What the command line says of variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignment {
    /// `NAME=VALUE`.
    Value(String),
    File(PathBuf),
}

impl Variables {
    /// The files that the command line names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|assignment| match assignment {
            Assignment::File(path) => Some(path.as_path()),
            Assignment::Value(_) => None,
        })
    }

    /// The same without values of these variables on the command line.
    #[must_use]
    pub fn without(mut self, names: &[Arc<str>]) -> Self {
        self.0.retain(|assignment| match assignment {
            Assignment::Value(text) => {
                let name = text.split_once('=').map_or("", |(name, _)| name.trim());
                !names.iter().any(|other| **other == *name)
            }
            Assignment::File(_) => true,
        });
        self
    }

    /// The same in another working directory.
    ///
    /// # Errors
    /// If the working directory is not there.
    pub fn absolute(&self) -> std::io::Result<Self> {
        let absolute = self.0.iter().map(|assignment| match assignment {
            Assignment::Value(text) => Ok(Assignment::Value(text.clone())),
            Assignment::File(path) => std::path::absolute(path).map(Assignment::File),
        });
        absolute.collect::<Result<_, _>>().map(Self)
    }
}

/// The configuration of a directory, as its files have it.
#[derive(Debug)]
pub struct RootModule {
    directory: PathBuf,
    tree: Arc<Tree>,
    variables: BTreeMap<String, Input>,
    plan_time: Timestamp,
    /// The providers that it requires.
    required: BTreeMap<ProviderSource, Arc<ProviderSpec>>,
    origin: Origin,
    /// What functions read while it is evaluated.
    read: Arc<ReadFiles>,
    /// The digest of everything that was read.
    pub digest: [u8; 32],
}

/// What was read of a directory.
pub struct Read {
    /// `None` if there are errors, without which nothing of it can be evaluated.
    pub module: Option<RootModule>,
    pub problems: model::Diagnostics,
}

/// Where Terraform keeps its state.
pub const STATE: &str = "terraform.tfstate";

/// Whether a directory has a Terraform configuration.
pub fn is_in(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| !kind.is_dir());
        is_file && entry.file_name().to_str().is_some_and(configuration::is_configuration)
    })
}

/// The modules of a configuration.
pub struct Loaded {
    pub tree: Tree,
    /// The values that are given for the variables of the root module.
    pub variables: BTreeMap<String, Input>,
    pub problems: model::Diagnostics,
    /// Whether modules have to be installed.
    pub lacks_modules: bool,
}

/// Reads the modules of a configuration as they are installed.
pub fn load(directory: &Path, given: &Variables) -> Loaded {
    let (variables, mut problems) = variables(directory, given);
    let installed = modules::installed(directory);
    let is_known = installed.is_ok();
    let installed = installed.unwrap_or_else(|ModuleError { message, hint }| {
        problems.push(Diagnostic { hint, ..Diagnostic::general(Reason::SourceIncomplete, message) });
        Manifest::default()
    });
    let disk = Disk { root: directory.to_owned(), within: None };
    let (tree, mut found) = configuration::load(".", &disk, &installed, &variables);
    let (missing, errors): (Vec<_>, _) = found.errors.into_iter().partition(|error| tree.is_missing(error));
    let lacks_modules = is_known && !missing.is_empty();
    found.errors = errors;
    found.errors.extend(not_installed(missing, directory).filter(|_| is_known));
    problems.extend(terraform::diagnostics(&found, &tree.sources, &prefix(directory)));
    Loaded { tree, variables, problems, lacks_modules }
}

/// One error for all modules that have to be installed, at the first of them.
fn not_installed(missing: Vec<hcl::Diagnostic>, directory: &Path) -> Option<hcl::Diagnostic> {
    let others = missing.len().saturating_sub(1);
    let mut first = missing.into_iter().next()?;
    if others > 0 {
        first.detail.push_str(&format!(" The same goes for {}.", counted(others, "other module")));
    }
    Some(first.hint(format!("run `{}`", command("init", directory))))
}

/// A command for the configuration of a directory.
pub fn command(name: &str, directory: &Path) -> String {
    if directory == Path::new(".") {
        return format!("purlin {name}");
    }
    format!("purlin {name} -f {}", directory.display())
}

/// Reads the configuration of a directory, with the values of its variables.
pub fn read(directory: &Path, files: &Files, paths: &SourcePaths) -> Read {
    let given = &files.variables;
    let Loaded { tree, variables, mut problems, .. } = load(directory, given);
    let prefix = prefix(directory);
    if !model::has_errors(&problems) {
        problems.extend(terraform::diagnostics(&terraform::unsupported(&tree), &tree.sources, &prefix));
    }
    let declared = &tree.root().variables;
    problems.extend(undeclared(given, &|name| declared.contains_key(name)));
    problems.extend(manifests(directory));
    if model::has_errors(&problems) {
        return Read { module: None, problems };
    }
    let variables: BTreeMap<String, Input> =
        variables.into_iter().filter(|(name, _)| declared.contains_key(name.as_str())).collect();
    let digest = digest(&tree, &variables);
    let generation = i64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default());
    let name = Name::default();
    let origin = Origin {
        name,
        source: paths.source(&source_path(directory, paths)),
        generation,
        directory: prefix,
        provider_configs: None,
        revision: None,
    };
    let required = terraform::required(&tree, &origin.directory);
    let (directory, tree) = (directory.to_owned(), Arc::new(tree));
    let plan_time = files.plan_time;
    let read = Arc::default();
    let module = RootModule { directory, tree, variables, plan_time, required, origin, read, digest };
    Read { module: Some(module), problems }
}

/// The digest of all files of a configuration, and of the values of its variables that are kept.
fn digest(tree: &Tree, variables: &BTreeMap<String, Input>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in tree.sources.iter().flat_map(|file| [file.name(), file.text()]) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let declared = &tree.root().variables;
    let kept = variables.iter().filter(|(name, _)| declared.get(name.as_str()).is_none_or(|own| !own.ephemeral));
    digest.update(format!("{:?}", kept.collect::<Vec<_>>()));
    digest.finalize().into()
}

impl RootModule {
    /// The providers that the configuration needs.
    pub fn providers(&self) -> Vec<Arc<Provider>> {
        self.required.values().map(|spec| spec.provider.clone()).collect()
    }

    /// The directories of its modules, that of the configuration first.
    pub fn directories(&self) -> Vec<PathBuf> {
        let root = std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone());
        self.tree.nodes.iter().map(|node| cleaned(&root.join(&node.module.directory))).collect()
    }

    /// The files that functions of its program read.
    pub fn files(&self) -> &Arc<ReadFiles> {
        &self.read
    }

    /// The source of its objects, as records have it.
    pub fn source(&self) -> &Arc<str> {
        &self.origin.source
    }

    /// The problem of objects that are only in a state of Terraform. Purlin has no records of them, and would create them again.
    pub fn in_state(&self, loaded: &LoadedRecords) -> Option<Diagnostic> {
        if loaded.records.values().any(|stored| stored.record.source.as_ref() == Some(&self.origin.source)) {
            return None;
        }
        let content = read_file(&self.directory.join(STATE)).ok()?;
        let state: serde_json::Value = serde_json::from_slice(&content).ok()?;
        let has_objects = state["resources"].as_array()?.iter().any(|resource| resource["mode"] == "managed");
        // The objects were taken over, and are destroyed since.
        let is_taken_over = loaded.configurations.get(&self.origin.source).is_some_and(|known| {
            state["lineage"] == *known.lineage && state["serial"].as_u64().is_some_and(|serial| serial <= known.serial)
        });
        let what = format!(
            "{}{STATE} has objects that Purlin has no records of, and would create again",
            self.origin.directory
        );
        let hint = format!("take them over with `{}`", command("migrate", &self.directory));
        (has_objects && !is_taken_over).then(|| Diagnostic::general(Reason::SourceIncomplete, what).hint(hint))
    }

    /// The configuration as a program. The providers are installed and started for their schemas.
    ///
    /// # Errors
    /// Why a provider cannot be used.
    pub async fn program(self, providers: &Arc<Providers>) -> Result<Arc<Terraform>, model::Diagnostics> {
        let problem = init::providers::not_locked(&self.tree, &self.directory, &|source| {
            self.required.get(source).is_some_and(|spec| providers.is_reattached(&spec.provider))
        });
        if let Some(problem) = problem {
            return Err(vec![problem]);
        }
        let schemas = programs::schemas(providers, &self.required).await?;
        let files = InModules::new(&self.directory, &self.tree, self.read);
        let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned());
        let settings = Settings {
            variables: self.variables,
            cwd: cwd.unwrap_or_else(|_| "/".to_owned()),
            plan_time: Some(rfc3339(self.plan_time)),
            effects: Some(Arc::new(AtApply::default())),
            ..Settings::new(Arc::new(files))
        };
        Ok(Arc::new(Terraform::new(self.tree, self.required, schemas, settings, self.origin)))
    }
}

/// The path that stands for the configuration of a directory, whose other files are not a part of it.
pub fn source_path(directory: &Path, paths: &SourcePaths) -> PathBuf {
    paths.absolute(directory).join("*.tf")
}

/// The manifests beside the configuration. They would be left out without a word.
fn manifests(directory: &Path) -> Option<Diagnostic> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let first = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml"))
        .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("purlin.dev/v1")))
        .min()?;
    let what = format!("`{}` is a manifest beside a Terraform configuration", first.display());
    let hint = "move it to a directory of its own, and specify that with another -f";
    Some(Diagnostic::general(Reason::SourceIncomplete, what).hint(hint))
}

/// What stands before the names of files in messages.
pub fn prefix(directory: &Path) -> String {
    let text = directory.to_string_lossy();
    let text = text.trim_end_matches('/');
    if text == "." || text.is_empty() { String::new() } else { format!("{text}/") }
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MAX_FILE {
        return Err(std::io::Error::other(format!("the file is larger than {} MiB", MAX_FILE >> 20)));
    }
    std::fs::read(path)
}

/// The values of the root module's variables, those that come later in Terraform's order in place of others: the environment,
/// `terraform.tfvars`, `*.auto.tfvars`, and the command line.
pub fn variables(directory: &Path, given: &Variables) -> (BTreeMap<String, Input>, model::Diagnostics) {
    let mut values: BTreeMap<String, Input> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name.strip_prefix("TF_VAR_")?.to_owned(), Input::Text(value.into_string().ok()?)))
        })
        .collect();
    let mut problems = Vec::new();
    let implied = variable_files(directory).into_iter().map(Assignment::File);
    for assignment in implied.chain(given.0.iter().cloned()) {
        let (found, problem) = assignment.values();
        values.extend(found);
        problems.extend(problem);
    }
    (values, problems)
}

impl Assignment {
    fn values(&self) -> (BTreeMap<String, Input>, model::Diagnostics) {
        match self {
            Self::File(path) => match read_file(path) {
                Ok(content) => {
                    let mut sources = Sources::default();
                    let (found, problem) =
                        configuration::values_of_file(&path.to_string_lossy(), content, &mut sources);
                    (found, terraform::diagnostics(&problem, &sources, ""))
                }
                Err(error) => {
                    let what = format!("{} cannot be read", path.display());
                    let problem = Diagnostic::general(Reason::SourceIncomplete, what).because(error.to_string());
                    (BTreeMap::new(), vec![problem])
                }
            },
            Self::Value(text) => match text.split_once('=') {
                Some((name, value)) => {
                    (BTreeMap::from([(name.trim().to_owned(), Input::Text(value.to_owned()))]), Vec::new())
                }
                None => {
                    let what = format!("`{text}` is not the value of a variable");
                    let problem = Diagnostic::general(Reason::InvalidExpression, what);
                    (BTreeMap::new(), vec![problem.hint("write `--var NAME=VALUE`")])
                }
            },
        }
    }
}

/// The files of variables that are read without being named.
fn variable_files(directory: &Path) -> Vec<PathBuf> {
    let named = ["terraform.tfvars", "terraform.tfvars.json"].map(|name| directory.join(name));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let automatic: BTreeSet<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(".auto.tfvars") || name.ends_with(".auto.tfvars.json")
        })
        .collect();
    named.into_iter().filter(|path| path.is_file()).chain(automatic).collect()
}

/// A value on the command line is meant for a variable that there is.
fn undeclared(given: &Variables, is_declared: &dyn Fn(&str) -> bool) -> model::Diagnostics {
    let written = given.0.iter().filter_map(|assignment| match assignment {
        Assignment::Value(text) => text.split_once('='),
        Assignment::File(_) => None,
    });
    let names = written.map(|(name, _)| name.trim());
    let unknown = names.filter(|name| !is_declared(name));
    unknown
        .map(|name| {
            let what = format!("--var assigns a value to `{name}`, which the configuration does not declare");
            let hint = format!("declare it with a block `variable \"{name}\"`, or omit the flag");
            Diagnostic { severity: Severity::Error, ..Diagnostic::general(Reason::InvalidExpression, what).hint(hint) }
        })
        .collect()
}
