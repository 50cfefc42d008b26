//! Interprets the command-line arguments: defaults, addresses, and the choice between files and a cluster.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::args::{
    ADDRESS_FORMS, ChoiceArgs, ClusterArgs, FileArgs, Format, PlanningArgs, RefreshArgs, RefreshChoice, SelectArgs,
    TargetArgs,
};
use super::failure::Failure;
use super::other_records;
use super::root_module::{self, Variables};
use engine::load::SourcePaths;
use jiff::Timestamp;
use model::{Address, InstanceKey};
use process::{Clock as _, SystemClock};
use runtime::execute::Limits;
use runtime::store::StateFile;

/// The default state file, in the working directory.
pub const DEFAULT_STATE: &str = "purlin.db";

/// The files or the cluster that a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Files(Files),
    Cluster(Cluster),
}

/// Manifests, with records in a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The values of `-f`; may be empty.
    pub sources: Vec<PathBuf>,
    /// The sources are everything: recorded objects of other sources are orphans.
    pub prune: bool,
    /// The state file. It may not exist.
    pub state: PathBuf,
    /// The user has named the state file, instead of using that of the working directory.
    pub is_state_named: bool,
    /// The kubeconfig for `kubernetes_object`.
    pub kubeconfig: Option<PathBuf>,
    /// Filesystem mirrors that take precedence over other installation methods; if empty, those of the environment.
    pub plugin_dirs: Vec<PathBuf>,
    /// The values of variables of a Terraform configuration.
    pub variables: Variables,
    /// Whether to ask for the values of variables that have none.
    pub asks_for_values: bool,
    /// When a Terraform configuration is planned, as it sees it.
    pub plan_time: Timestamp,
}

/// A namespace of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// `None` for the default kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// `None` for the current context.
    pub context: Option<String>,
    /// `None` for the namespace of the context.
    pub namespace: Option<String>,
    /// The namespace of the controller's records.
    pub controller_namespace: String,
}

/// Which objects of a cluster a command is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// If empty, all that the selector matches.
    pub names: Vec<String>,
    /// A label selector.
    pub selector: Option<String>,
    pub all_namespaces: bool,
}

impl Choice {
    pub fn new(names: Vec<String>, args: ChoiceArgs) -> Self {
        Self { names, selector: args.selector, all_namespaces: args.all_namespaces }
    }

    /// Whether the arguments name objects of a cluster.
    fn names_cluster(&self) -> bool {
        self.selector.is_some() || self.all_namespaces
    }
}

impl Target {
    /// As [`Target::from_args`]; -A and -l name a cluster too.
    ///
    /// # Errors
    /// When -A or -l are given with files.
    pub fn choosing(args: TargetArgs, choice: &Choice) -> anyhow::Result<Self> {
        let files_named = !args.files.filenames.is_empty() || args.files.state.is_some();
        if !choice.names_cluster() {
            return Ok(Self::from_args(args));
        }
        if files_named {
            let hint = "omit -f and --state, or -A and -l";
            return Err(Failure::hinted("-A and -l choose objects of a cluster, not of files", hint));
        }
        Ok(Self::Cluster(Cluster::new(args.cluster)))
    }

    /// Returns files for `-f` and `--state`, and if a Terraform configuration or `purlin.db` is in the working directory and neither `--context` nor
    /// `-n` is set; otherwise the cluster.
    pub fn from_args(args: TargetArgs) -> Self {
        Self::from_args_in(args, Path::new(""))
    }

    fn from_args_in(args: TargetArgs, directory: &Path) -> Self {
        let TargetArgs { mut files, cluster } = args;
        let cluster_named = cluster.context.is_some() || cluster.namespace.is_some();
        if files.filenames.is_empty() && !cluster_named && root_module::is_in(directory_or_here(directory)) {
            files.filenames.push(directory_or_here(directory).to_owned());
        }
        let files_named = !files.filenames.is_empty() || files.state.is_some();
        // With a backup alone, the command reports that the state file is missing.
        let state = directory.join(DEFAULT_STATE);
        if files_named || (!cluster_named && (state.is_file() || StateFile::backup_path(&state).is_file())) {
            Self::Files(Files::new(files, cluster.kubeconfig))
        } else {
            Self::Cluster(Cluster::new(cluster))
        }
    }

    /// Sets whether the files are everything. In a cluster, the flag is rejected with the arguments.
    #[must_use]
    pub fn pruning(self, prune: bool) -> Self {
        match self {
            Self::Files(files) => Self::Files(files.pruning(prune)),
            Self::Cluster(_) => self,
        }
    }

    /// Returns the files, or an error if the target is a cluster.
    pub fn files_only(self, command: &str) -> anyhow::Result<Files> {
        match self {
            Self::Files(files) => Ok(files),
            Self::Cluster(cluster) => {
                let destroys = command.contains("destroy");
                let hint = match cluster.records_above().filter(|_| destroys) {
                    Some(records) => records,
                    None => {
                        let verb = if destroys { "delete" } else { "apply" };
                        format!("specify files with `purlin {command} -f DIR`, or use `kubectl {verb} -f DIR`")
                    }
                };
                let what = format!("`purlin {command}` works only on files; in a cluster, the controller does this");
                Err(Failure::hinted(what, hint))
            }
        }
    }
}

fn directory_or_here(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// The directory of the published outputs of all state files in the directory of this one.
fn published_root(state: &Path) -> PathBuf {
    state.with_file_name("published")
}

/// The paths of sources, as the records of a state file have them.
pub fn source_paths(state: &Path) -> SourcePaths {
    SourcePaths::new(state, &published_root(state))
}

impl Files {
    pub fn new(files: FileArgs, kubeconfig: Option<PathBuf>) -> Self {
        let is_state_named = files.state.is_some();
        let state = files.state.unwrap_or_else(|| PathBuf::from(DEFAULT_STATE));
        let plugin_dirs = files.plugin_dirs;
        let asks_for_values = files.variables.asks();
        let variables = files.variables.given;
        Self {
            sources: files.filenames,
            prune: false,
            state,
            is_state_named,
            kubeconfig,
            plugin_dirs,
            variables,
            asks_for_values,
            plan_time: SystemClock.now(),
        }
    }

    /// With the Terraform configuration of the working directory, if no source is named.
    #[must_use]
    pub fn or_here(mut self) -> Self {
        if self.sources.is_empty() && root_module::is_in(Path::new(".")) {
            self.sources.push(PathBuf::from("."));
        }
        self
    }

    /// The directory of the Terraform configuration.
    pub fn root_module(&self) -> Option<&Path> {
        self.sources.iter().map(PathBuf::as_path).find(|source| root_module::is_in(source))
    }

    #[must_use]
    pub fn pruning(self, prune: bool) -> Self {
        Self { prune, ..self }
    }

    /// Returns the directory of published outputs: `published`, and a directory in it for a state file with another name
    /// than the default one, because several environments can have their state files in one directory.
    pub fn published(&self) -> PathBuf {
        let published = published_root(&self.state);
        match self.state.file_name() == Some(OsStr::new(DEFAULT_STATE)) {
            true => published,
            false => self.state.file_stem().map_or_else(|| published.clone(), |name| published.join(name)),
        }
    }

    /// Returns an error without `-f`. Otherwise, an omitted flag would mean an empty desired state.
    pub fn require_sources(&self, command: &str) -> anyhow::Result<()> {
        if self.sources.is_empty() {
            return Err(Failure::hinted(
                "no files are specified",
                format!("specify them with `purlin {command} -f DIR`"),
            ));
        }
        Ok(())
    }
}

impl Cluster {
    fn new(args: ClusterArgs) -> Self {
        let ClusterArgs { kubeconfig, context, namespace, controller_namespace } = args;
        Self { kubeconfig, context, namespace, controller_namespace }
    }

    /// A hint at the records of a directory above, if the cluster is the target only because none are in the working directory.
    pub fn records_above(&self) -> Option<String> {
        let is_implied = self.context.is_none() && self.namespace.is_none();
        let state = is_implied.then(other_records::above)??;
        Some(format!("for the records of the directory above, use `--state {}`", state.display()))
    }
}

/// The planning flags.
#[derive(Clone, Debug, Default)]
pub struct Planning {
    /// Only these objects and their dependencies; if empty, all objects.
    pub targets: BTreeSet<Address>,
    /// Objects to replace even if no change requires it.
    pub replace: BTreeSet<Address>,
    /// Only update the records to match the existing objects.
    pub refresh_only: bool,
    pub refresh: RefreshChoice,
    pub limits: Limits,
}

impl Planning {
    /// The flags of `plan`, `apply` and `graph`.
    pub fn new(args: &PlanningArgs) -> anyhow::Result<Self> {
        if args.refresh_only && args.refreshing.refresh == RefreshChoice::None {
            let hint = "omit --refresh: --refresh-only reads all recorded objects";
            return Err(Failure::hinted("--refresh-only and --refresh=none cannot be combined", hint));
        }
        Ok(Self {
            replace: addresses(&args.replace)?,
            refresh_only: args.refresh_only,
            ..Self::selecting(&args.selecting, &args.refreshing)?
        })
    }

    /// The flags of `destroy`.
    pub fn selecting(selecting: &SelectArgs, refreshing: &RefreshArgs) -> anyhow::Result<Self> {
        Ok(Self { targets: addresses(&selecting.targets)?, ..Self::refreshing(refreshing) })
    }

    /// The flags of commands without object selection.
    pub fn refreshing(args: &RefreshArgs) -> Self {
        Self { refresh: args.refresh, limits: limits(args.parallelism), ..Self::default() }
    }

    /// Planning without reading objects, for read-only commands.
    pub fn without_refresh() -> Self {
        Self { refresh: RefreshChoice::None, ..Self::default() }
    }
}

pub fn limits(parallelism: Option<u32>) -> Limits {
    let mut limits = Limits::default();
    if let Some(parallelism) = parallelism {
        let parallelism = parallelism as usize;
        limits.total = parallelism;
        limits.per_namespace = parallelism;
    }
    limits
}

fn addresses(texts: &[String]) -> anyhow::Result<BTreeSet<Address>> {
    texts.iter().map(|text| address(text)).collect()
}

pub fn address(text: &str) -> anyhow::Result<Address> {
    text.parse().map_err(|_| Failure::hinted(format!("`{text}` is not a valid address"), ADDRESS_FORMS))
}

/// Whether `text` is the name of the object or its family, or its address.
pub fn matches_name(text: &str, candidate: &Address) -> bool {
    **candidate.name() == *text
        || text.parse::<Address>().is_ok_and(|address| {
            address == *candidate || (address.key == InstanceKey::None && address.stem == candidate.stem)
        })
}

/// JSON output cannot contain a prompt, so it requires `--yes`.
pub fn require_yes_for_json(format: Format, yes: bool) -> anyhow::Result<()> {
    if format == Format::Json && !yes {
        return Err(Failure::hinted("`-o json` cannot ask for confirmation", "add --yes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(files: FileArgs, cluster: ClusterArgs, state_present: bool) -> &'static str {
        let directory = tempfile::tempdir().unwrap();
        if state_present {
            std::fs::write(directory.path().join(DEFAULT_STATE), "").unwrap();
        }
        match Target::from_args_in(TargetArgs { files, cluster }, directory.path()) {
            Target::Files(_) => "files",
            Target::Cluster(_) => "cluster",
        }
    }

    #[test]
    fn files_or_cluster() {
        let sources = || FileArgs { filenames: vec!["dir".into()], ..FileArgs::default() };
        let state = || FileArgs { state: Some("x.db".into()), ..FileArgs::default() };
        let namespace = || ClusterArgs { namespace: Some("shop".into()), ..ClusterArgs::default() };
        let none = ClusterArgs::default;
        assert_eq!(decide(sources(), none(), false), "files");
        assert_eq!(decide(state(), none(), false), "files");
        assert_eq!(decide(FileArgs::default(), none(), true), "files");
        assert_eq!(decide(FileArgs::default(), none(), false), "cluster");
        assert_eq!(decide(FileArgs::default(), namespace(), true), "cluster");
    }

    #[test]
    fn a_name_matches_all_of_its_instances() {
        let instance: Address = "web[0]".parse().unwrap();
        assert!(matches_name("web", &instance) && matches_name("web[0]", &instance));
        assert!(!matches_name("web[1]", &instance) && !matches_name("we", &instance));
    }
}
