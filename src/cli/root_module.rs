//! Terraform configurations in directories: the files, the values of variables, and what is installed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::init;
use super::provider::terraform_json;
use configuration::schema::Block;
use configuration::{Input, Manifest, ProviderSource, Settings, Sources, Tree};
use drivers::{Preparation, Providers};
use engine::load::{Config, ProviderSpec, SourcePaths};
use language::{FileError, Files as ModuleFiles};
use model::text::counted;
use model::{Diagnostic, DriverError, Provider, Reason, Severity, Stored};
use modules::{Disk, ModuleError};
use runtime::store::LoadedRecords;
use terraform::{Origin, Schemas, Terraform};

/// The values of variables that the command line gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// `NAME=VALUE`.
    pub values: Vec<String>,
    pub files: Vec<PathBuf>,
}

/// The configuration of a directory, as its files have it.
#[derive(Debug)]
pub struct RootModule {
    directory: PathBuf,
    tree: Arc<Tree>,
    variables: BTreeMap<String, Input>,
    /// The providers that it requires.
    required: BTreeMap<ProviderSource, Arc<ProviderSpec>>,
    origin: Origin,
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

/// A file is not longer than that.
const MAX_FILE: u64 = 64 << 20;

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
    let disk = Disk { root: directory.to_owned() };
    let (tree, mut found) = configuration::load(".", &disk, &installed, &variables);
    let (missing, errors) = found.errors.into_iter().partition(|error| tree.is_missing(error));
    found.errors = errors;
    found.errors.extend(not_installed(missing, directory).filter(|_| is_known));
    problems.extend(terraform::diagnostics(&found, &tree.sources, &prefix(directory)));
    Loaded { tree, variables, problems }
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
pub fn read(directory: &Path, given: &Variables, paths: &SourcePaths) -> Read {
    let Loaded { tree, variables, mut problems } = load(directory, given);
    let prefix = prefix(directory);
    if !model::has_errors(&problems) {
        problems.extend(terraform::diagnostics(&terraform::unsupported(&tree), &tree.sources, &prefix));
    }
    let is_declared = |name: &str| tree.root().variables.contains_key(name);
    problems.extend(undeclared(given, &is_declared));
    problems.extend(manifests(directory));
    if model::has_errors(&problems) {
        return Read { module: None, problems };
    }
    let variables: BTreeMap<String, Input> = variables.into_iter().filter(|(name, _)| is_declared(name)).collect();
    let digest = digest(&tree, &variables);
    let generation = i64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default());
    let origin = Origin { source: paths.source(&source_path(directory, paths)), generation, directory: prefix };
    let required = terraform::required(&tree, &origin.directory);
    let (directory, tree) = (directory.to_owned(), Arc::new(tree));
    let module = RootModule { directory, tree, variables, required, origin, digest };
    Read { module: Some(module), problems }
}

/// The digest of all files of a configuration, and of the values of its variables.
fn digest(tree: &Tree, variables: &BTreeMap<String, Input>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in tree.sources.iter().flat_map(|file| [file.name(), file.text()]) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.update(format!("{variables:?}"));
    digest.finalize().into()
}

impl RootModule {
    /// The providers that the configuration needs.
    pub fn providers(&self) -> Vec<Arc<Provider>> {
        self.required.values().map(|spec| spec.provider.clone()).collect()
    }

    /// The source of its objects, as records have it.
    pub fn source(&self) -> &Arc<str> {
        &self.origin.source
    }

    /// The problem of objects that are only in a state of Terraform. Purlin has no records of them, and would create them again.
    pub fn in_state(&self, loaded: &LoadedRecords) -> Option<Diagnostic> {
        let is_own = |stored: &Stored| stored.record.source.as_ref() == Some(&self.origin.source);
        if loaded.records.values().any(is_own) {
            return None;
        }
        let content = read_file(&self.directory.join(STATE)).ok()?;
        let state: serde_json::Value = serde_json::from_slice(&content).ok()?;
        let has_objects = state["resources"].as_array()?.iter().any(|one| one["mode"] == "managed");
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

    /// Adds the objects to the desired state. Returns why they cannot be known, and then adds none.
    pub async fn add_to(self, config: &mut Config, providers: &Arc<Providers>) -> model::Diagnostics {
        match self.program(providers).await {
            Ok(program) => {
                config.add_program(program);
                Vec::new()
            }
            Err(problems) => problems,
        }
    }

    /// The configuration as a program. The providers are installed and started for their schemas.
    ///
    /// # Errors
    /// Why a provider cannot be used.
    pub async fn program(self, providers: &Arc<Providers>) -> Result<Arc<Terraform>, model::Diagnostics> {
        let is_started = |source: &ProviderSource| {
            self.required.get(source).is_some_and(|spec| providers.is_reattached(&spec.provider))
        };
        if let Some(problem) = init::providers::not_locked(&self.tree, &self.directory, &is_started) {
            return Err(vec![problem]);
        }
        let needed = self.providers();
        let preparation =
            Preparation { namespace: None, version: 0, needed: &needed, current: &needed, configurations: &[] };
        providers.prepare(preparation).await;
        let unusable: model::Diagnostics = self
            .required
            .values()
            .filter_map(|spec| Some(unusable(spec, providers.preparation_error(&spec.provider)?)))
            .collect();
        if !unusable.is_empty() {
            return Err(unusable);
        }
        let known = self.required.iter().map(|(source, spec)| (source.clone(), spec.provider.clone())).collect();
        let schemas = Arc::new(ProviderSchemas { providers: Arc::clone(providers), known });
        let files = InModules::new(&self.directory, &self.tree);
        let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned());
        let settings = Settings {
            variables: self.variables,
            cwd: cwd.unwrap_or_else(|_| "/".to_owned()),
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
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let is_manifest = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("purlin.dev/v1"));
    let mut found: Vec<PathBuf> = entries.filter(is_yaml).filter(is_manifest).collect();
    found.sort();
    let first = found.first()?;
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
/// `terraform.tfvars`, `*.auto.tfvars`, and the command line, of which a value goes before a file.
pub fn variables(directory: &Path, given: &Variables) -> (BTreeMap<String, Input>, model::Diagnostics) {
    let named = |(name, value): (String, String)| Some((name.strip_prefix("TF_VAR_")?.to_owned(), Input::Text(value)));
    let mut values: BTreeMap<String, Input> = std::env::vars_os()
        .filter_map(|(name, value)| named((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut problems = Vec::new();
    for path in variable_files(directory).iter().chain(&given.files) {
        match read_file(path) {
            Ok(content) => {
                let mut sources = Sources::default();
                let (found, problem) = configuration::values_of_file(&path.to_string_lossy(), content, &mut sources);
                values.extend(found);
                problems.extend(terraform::diagnostics(&problem, &sources, ""));
            }
            Err(error) => {
                let what = format!("{} cannot be read", path.display());
                problems.push(Diagnostic::general(Reason::SourceIncomplete, what).because(error.to_string()));
            }
        }
    }
    for text in &given.values {
        match text.split_once('=') {
            Some((name, value)) => drop(values.insert(name.trim().to_owned(), Input::Text(value.to_owned()))),
            None => {
                let what = format!("`{text}` is not the value of a variable");
                problems.push(Diagnostic::general(Reason::InvalidExpression, what).hint("write `--var NAME=VALUE`"));
            }
        }
    }
    (values, problems)
}

/// The files of variables that are read without being named.
fn variable_files(directory: &Path) -> Vec<PathBuf> {
    let own = ["terraform.tfvars", "terraform.tfvars.json"].map(|name| directory.join(name));
    let mut found: Vec<PathBuf> = own.into_iter().filter(|path| path.is_file()).collect();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_auto = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".auto.tfvars") || name.ends_with(".auto.tfvars.json")
    };
    let mut automatic: Vec<PathBuf> = entries.filter(is_auto).collect();
    automatic.sort();
    found.extend(automatic);
    found
}

/// A value on the command line is meant for a variable that there is.
fn undeclared(given: &Variables, is_declared: &dyn Fn(&str) -> bool) -> model::Diagnostics {
    let names = given.values.iter().filter_map(|text| text.split_once('=')).map(|(name, _)| name.trim());
    let unknown = names.filter(|name| !is_declared(name));
    unknown
        .map(|name| {
            let what = format!("--var assigns a value to `{name}`, which the configuration does not declare");
            let hint = format!("declare it with a block `variable \"{name}\"`, or omit the flag");
            Diagnostic { severity: Severity::Error, ..Diagnostic::general(Reason::InvalidExpression, what).hint(hint) }
        })
        .collect()
}

/// The files that functions read: those in the directories of modules.
struct InModules {
    root: PathBuf,
    /// Without symbolic links.
    directories: Vec<PathBuf>,
}

impl InModules {
    fn new(root: &Path, tree: &Tree) -> Self {
        let all = tree.nodes.iter().filter_map(|node| root.join(&node.module.directory).canonicalize().ok());
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { directories: all.collect(), root }
    }

    fn inside(&self, path: &str) -> Result<PathBuf, FileError> {
        let real = self.root.join(path).canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => FileError::Missing,
            _ => FileError::Unreadable,
        })?;
        let is_inside = self.directories.iter().any(|directory| real.starts_with(directory));
        if is_inside { Ok(real) } else { Err(FileError::Outside) }
    }
}

impl ModuleFiles for InModules {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let path = self.inside(path)?;
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(FileError::Directory),
            Ok(found) if found.len() > MAX_FILE => Err(FileError::TooLarge),
            Ok(_) => std::fs::read(path).map_err(|_| FileError::Unreadable),
            Err(_) => Err(FileError::Unreadable),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, FileError> {
        let top = self.inside(directory)?;
        let mut found = Vec::new();
        let mut open = vec![top.clone()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).map_err(|_| FileError::Unreadable)?.flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(_) if path.is_file() => {
                        let name = path.strip_prefix(&top).ok().and_then(|name| name.to_str());
                        found.extend(name.map(|name| name.replace('\\', "/")));
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    fn absolute(&self, path: &str) -> String {
        cleaned(&self.root.join(path)).to_string_lossy().into_owned()
    }

    fn home(&self) -> Option<String> {
        std::env::home_dir().map(|home| home.to_string_lossy().into_owned())
    }
}

/// A path without `.` and `..`, which are not looked up.
fn cleaned(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut found, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = found.pop(),
            other => found.push(other),
        }
        found
    })
}

/// The schemas of the providers of a configuration.
struct ProviderSchemas {
    providers: Arc<Providers>,
    known: BTreeMap<ProviderSource, Arc<Provider>>,
}

impl ProviderSchemas {
    fn known(&self, provider: &ProviderSource) -> Result<&Arc<Provider>, String> {
        self.known.get(provider).ok_or_else(|| format!("No module requires the provider {provider}."))
    }
}

impl Schemas for ProviderSchemas {
    fn resource(&self, provider: &ProviderSource, is_data: bool, kind: &str) -> Result<Arc<Block>, String> {
        let known = self.known(provider)?;
        let found = self.providers.type_block(known, is_data, kind).map_err(|error| error.message)?;
        let word = if is_data { "data source" } else { "resource type" };
        let found = found.ok_or_else(|| format!("The provider {provider} has no {word} \"{kind}\"."))?;
        block(&found)
    }

    fn provider(&self, provider: &ProviderSource) -> Result<Arc<Block>, String> {
        let known = self.known(provider)?;
        let found = self.providers.configuration_block(known).map_err(|error| error.message)?;
        found.as_ref().map_or_else(|| Ok(Arc::default()), block)
    }

    fn provider_meta(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        let known = self.known(provider)?;
        let found = self.providers.meta_block(known).map_err(|error| error.message)?;
        found.as_ref().map(block).transpose()
    }
}

fn unusable(spec: &ProviderSpec, error: DriverError) -> Diagnostic {
    let what = format!("the provider {} cannot be used", spec.provider.source);
    let problem = Diagnostic::general(Reason::ProviderNotReady, what).because(error.message);
    Diagnostic { hint: error.hint, ..problem }.from_source(spec.source.clone())
}

fn block(of: &tfprovider::schema::Block) -> Result<Arc<Block>, String> {
    let found = Block::from_json(&terraform_json::block(of)).map(Arc::new);
    found.ok_or_else(|| "Its schema cannot be read.".to_owned())
}

/// The problem of a command that cannot work on a Terraform configuration.
pub fn refused(command: &str) -> Diagnostic {
    Diagnostic::general(
        Reason::SourceIncomplete,
        format!("`purlin {command}` cannot read Terraform configurations yet"),
    )
    .hint("`purlin plan` and `purlin apply` can")
}
