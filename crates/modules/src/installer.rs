//! One installation: reads the configuration, fetches what is missing, and reads it again until nothing is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use configuration::{Diagnostics, Input, Installed, Manifest, Missing, ModuleSource, RemoteModule, Tree, load};
use fetch::{Credentials, Http};
use hcl::{Diagnostic, Range};
use version::{Version, VersionConstraint};

use crate::disk::Disk;
use crate::error::ModuleError;
use crate::git::Git;
use crate::package::{Fetcher, blocking, copy_directory, subdirectory};
use crate::registry::Registries;

/// Where installed modules are, from the root module.
const DIRECTORY: &str = ".terraform/modules";

/// What to install.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory of the root module.
    pub root: PathBuf,
    /// Fetch installed modules again, in their newest versions.
    pub upgrade: bool,
    /// The values of the variables of the root module, of which sources can be made.
    pub inputs: BTreeMap<String, Input>,
    /// For registries.
    pub credentials: Credentials,
    /// CA certificates (PEM) in addition to those of the system.
    pub roots: Vec<Vec<u8>>,
    /// What runs programs so that they end with this process; see [`process::command::Command::launcher`].
    pub launcher: Option<PathBuf>,
    /// Where all modules have to be, which come from other machines only. `None`: they can be anywhere on this machine.
    pub within: Option<PathBuf>,
}

/// Follows an installation.
pub trait Progress: Send + Sync {
    /// A package is fetched for a module, which is named by the names of its calls with dots between them.
    fn fetching(&self, module: &str, source: &str, version: Option<&Version>);
    /// A module is in a directory now, which is relative to the root module.
    fn installed(&self, module: &str, directory: &str);
}

/// What is there after an installation.
#[derive(Debug)]
pub struct Installation {
    /// The whole configuration. With errors, what could be read of it.
    pub tree: Tree,
    /// All problems. Without errors, everything is installed.
    pub diagnostics: Diagnostics,
}

/// Installs the modules of one configuration.
#[derive(Debug)]
pub struct Installer {
    options: Options,
    http: Http,
}

/// The modules that are installed in the directory of a root module.
///
/// # Errors
/// If the list of them is there and cannot be read.
pub fn installed(root: &Path) -> Result<Manifest, ModuleError> {
    read_manifest(root).map(|manifest| existing(root, manifest))
}

fn read_manifest(root: &Path) -> Result<Manifest, ModuleError> {
    let path = manifest_path(root);
    match fs::read_to_string(&path) {
        Ok(text) if text.is_empty() => Ok(Manifest::default()),
        Ok(text) => Manifest::parse(&text)
            .map_err(|error| ModuleError::file(&path, error).hint("delete the file; `purlin init` writes it again")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Manifest::default()),
        Err(error) => Err(ModuleError::file(&path, error)),
    }
}

fn manifest_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join("modules.json")
}

impl Installer {
    /// Prepares an installation.
    pub fn new(options: Options) -> Self {
        let http = Http::new(options.roots.clone());
        Self { options, http }
    }

    /// Installs what is missing, and records it. Problems with modules are diagnostics at their calls. With an error in the
    /// configuration, nothing more is fetched.
    ///
    /// # Errors
    /// If the list of installed modules cannot be read or written.
    pub async fn install(&self, progress: &dyn Progress) -> Result<Installation, ModuleError> {
        let root = &self.options.root;
        let recorded = read_manifest(root)?;
        let known = if self.options.upgrade { Manifest::default() } else { existing(root, recorded.clone()) };
        let mut run = self.run(known, recorded, progress);
        let disk = Disk { root: root.clone(), within: self.options.within.clone() };
        loop {
            let (tree, mut diagnostics) = load(".", &disk, &run.known, &self.options.inputs);
            diagnostics.errors.retain(|error| !tree.is_missing(error));
            let open: Vec<Missing> =
                tree.missing.iter().filter(|missing| !run.failed.contains_key(&missing.key)).cloned().collect();
            if open.is_empty() || !diagnostics.errors.is_empty() {
                let failures = tree.missing.iter().filter_map(|missing| Some((missing, run.failed.get(&missing.key)?)));
                diagnostics.errors.extend(failures.map(|(missing, error)| failure(missing, error)));
                if diagnostics.errors.is_empty() {
                    run.record(&tree)?;
                }
                return Ok(Installation { tree, diagnostics });
            }
            for missing in open {
                if let Err(error) = run.install(&missing).await {
                    run.failed.insert(missing.key, error);
                }
            }
            write(root, &run.recorded)?;
        }
    }
}

/// Without the modules whose directories are gone.
fn existing(root: &Path, manifest: Manifest) -> Manifest {
    let gone: Vec<String> = manifest
        .iter()
        .filter(|(key, installed)| !key.is_empty() && !root.join(&installed.directory).is_dir())
        .map(|(key, _)| key.to_owned())
        .collect();
    let mut manifest = manifest;
    gone.iter().for_each(|key| manifest.remove(key));
    manifest
}

fn failure(missing: &Missing, error: &ModuleError) -> Diagnostic {
    let detail = format!("{}.", error.message);
    let diagnostic = Diagnostic::new("Module cannot be installed", detail, missing.range);
    match &error.hint {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    }
}

struct Run<'a> {
    installer: &'a Installer,
    registries: Registries<'a>,
    fetcher: Fetcher<'a>,
    progress: &'a dyn Progress,
    /// Where packages are that this run has fetched.
    packages: BTreeMap<String, PathBuf>,
    /// The modules that are up to date.
    known: Manifest,
    /// The modules of the list on disk.
    recorded: Manifest,
    /// Why modules could not be installed.
    failed: BTreeMap<String, ModuleError>,
}

impl Installer {
    /// Fetches a module that no configuration calls. It is installed below the root, like one of this name.
    ///
    /// # Errors
    /// Why it cannot be fetched.
    pub async fn fetch(
        &self,
        name: &str,
        source: ModuleSource,
        version: VersionConstraint,
        progress: &dyn Progress,
    ) -> Result<Installed, ModuleError> {
        let mut run = self.run(Manifest::default(), Manifest::default(), progress);
        let missing = Missing { key: name.to_owned(), source, version, range: Range::default() };
        run.install(&missing).await?;
        run.known.get(name).cloned().ok_or_else(|| ModuleError::new(format!("{name} was not installed")))
    }

    fn run<'a>(&'a self, known: Manifest, recorded: Manifest, progress: &'a dyn Progress) -> Run<'a> {
        Run {
            installer: self,
            registries: Registries::new(&self.http, &self.options.credentials),
            fetcher: Fetcher {
                http: &self.http,
                credentials: &self.options.credentials,
                git: Git { launcher: self.options.launcher.clone() },
                takes_local: self.options.within.is_none(),
            },
            progress,
            packages: BTreeMap::new(),
            known,
            recorded,
            failed: BTreeMap::new(),
        }
    }
}

impl Run<'_> {
    async fn install(&mut self, missing: &Missing) -> Result<(), ModuleError> {
        let key = &missing.key;
        if !key.split('.').all(hcl::is_identifier) {
            return Err(ModuleError::new(format!("`{key}` is not the name of a module")));
        }
        let (remote, version) = match &missing.source {
            ModuleSource::Registry(module) => {
                let version = self.registries.choose(module, &missing.version).await?;
                let shown = missing.source.to_string();
                self.progress.fetching(key, &shown, Some(&version));
                let location = self.registries.locate(module, &version).await?;
                (location.inside(module.subdir.as_deref()), Some(version))
            }
            ModuleSource::Remote(remote) => {
                self.progress.fetching(key, &shown(&remote.package), None);
                (remote.clone(), None)
            }
            ModuleSource::Local(path) => {
                return Err(ModuleError::new(format!("the local module {path} is not installed")));
            }
        };
        let directory = self.fetch(key, &remote).await?;
        self.progress.installed(key, &directory);
        let installed = Installed {
            source: missing.source.to_string(),
            version: version.map(|version| version.to_string()),
            directory,
        };
        self.known.insert(key, installed.clone());
        self.recorded.insert(key, installed);
        Ok(())
    }

    /// Fetches a package, and returns the directory of the module in it.
    async fn fetch(&mut self, key: &str, remote: &RemoteModule) -> Result<String, ModuleError> {
        let root = &self.installer.options.root;
        let modules = root.join(DIRECTORY);
        fs::create_dir_all(&modules).map_err(|error| ModuleError::file(&modules, error))?;
        let temporary = tempfile::Builder::new().prefix(".new-").tempdir_in(&modules);
        let temporary = temporary.map_err(|error| ModuleError::file(&modules, error))?;
        // `git` works in other directories than this process.
        let folder = temporary.path().canonicalize().map_err(|error| ModuleError::file(temporary.path(), error))?;
        let package = folder.join("module");
        match self.packages.get(&remote.package).cloned() {
            Some(fetched) => {
                let into = package.clone();
                blocking(move || copy_directory(&fetched, &into)).await?;
            }
            None => self.fetcher.fetch(&remote.package, &package).await?,
        }
        let inner = match &remote.subdir {
            Some(subdir) => subdirectory(&package, subdir)?,
            None => PathBuf::new(),
        };
        let place = modules.join(key);
        replace(&package, &place).map_err(|error| ModuleError::file(&place, error))?;
        self.packages.insert(remote.package.clone(), place);
        let inner = inner.to_string_lossy();
        Ok(if inner.is_empty() { format!("{DIRECTORY}/{key}") } else { format!("{DIRECTORY}/{key}/{inner}") })
    }

    /// Writes the list of all modules of a configuration, as the calls are now.
    fn record(&mut self, tree: &Tree) -> Result<(), ModuleError> {
        let root = Installed { source: String::new(), version: None, directory: ".".to_owned() };
        let mut modules = vec![(String::new(), root)];
        for node in tree.nodes.iter().skip(1) {
            let key = node.path.join(".");
            let source = node.source.as_ref().map(ToString::to_string).unwrap_or_default();
            let version = self.known.get(&key).and_then(|installed| installed.version.clone());
            let is_local = node.source.as_ref().is_some_and(|source| source.as_local().is_some());
            let directory = node.module.directory.clone();
            let installed = Installed { source, version: version.filter(|_| !is_local), directory };
            if is_local && self.recorded.get(&key) != Some(&installed) {
                self.progress.installed(&key, &installed.directory);
            }
            modules.push((key, installed));
        }
        // A configuration without modules needs no list.
        let path = manifest_path(&self.installer.options.root);
        if modules.len() == 1 && !path.exists() {
            return Ok(());
        }
        write(&self.installer.options.root, &modules.into_iter().collect())
    }
}

/// The address of a package without what can be secret.
fn shown(package: &str) -> String {
    let (forced, address) = package.split_once("::").unwrap_or(("", package));
    let address = reqwest::Url::parse(address).map_or_else(|_| address.to_owned(), |url| fetch::display_url(&url));
    if forced.is_empty() { address } else { format!("{forced}::{address}") }
}

/// Moves a directory to the place of another one.
fn replace(new: &Path, place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place)?,
        Ok(_) => fs::remove_file(place)?,
        Err(_) => {}
    }
    fs::rename(new, place)
}

/// Writes the list of installed modules atomically.
fn write(root: &Path, manifest: &Manifest) -> Result<(), ModuleError> {
    let path = manifest_path(root);
    let text = manifest.to_json();
    if fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    write_atomically(&root.join(DIRECTORY), &path, &text).map_err(|error| ModuleError::file(&path, error))
}

fn write_atomically(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    // Readable by others, within the mask of the process: it has no secrets.
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".modules-").permissions(mode).tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
