//! What the command line means: defaults filled in, addresses parsed, and the decision between files and a cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::args::{ClusterArgs, FileArgs, Format, PlanningArgs, RefreshArgs, RefreshChoice, SelectArgs, TargetArgs};
use super::failure::Failure;
use crate::execute::Limits;
use crate::model::Address;

/// The state file of a working directory that says nothing else.
pub const DEFAULT_STATE: &str = "purlin.db";

/// What a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Files, with records in a state file.
    Files(Files),
    /// A cluster.
    Cluster(Cluster),
}

/// Files, with records in a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// What was given with `-f`; may be empty.
    pub sources: Vec<PathBuf>,
    /// The state file. It need not exist.
    pub state: PathBuf,
    /// The kubeconfig of `kubernetes_object`.
    pub kubeconfig: Option<PathBuf>,
    /// Filesystem mirrors of providers that come before any other origin; empty: as the environment says.
    pub plugin_dirs: Vec<PathBuf>,
}

/// A namespace of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The kubeconfig file, when it is not the usual one.
    pub kubeconfig: Option<PathBuf>,
    /// The context, when it is not the current one.
    pub context: Option<String>,
    /// The namespace, when it is not the context's.
    pub namespace: Option<String>,
    /// Where the controller keeps its records.
    pub controller_namespace: String,
}

impl Target {
    /// Files with `-f` or `--state`, or when `purlin.db` is in the working directory; otherwise, or with `--context`
    /// or `-n`, the cluster.
    pub fn decide(args: TargetArgs) -> Self {
        Self::decide_in(args, Path::new(""))
    }

    fn decide_in(args: TargetArgs, directory: &Path) -> Self {
        let TargetArgs { files, cluster } = args;
        let cluster_named = cluster.context.is_some() || cluster.namespace.is_some();
        let files_named = !files.filenames.is_empty() || files.state.is_some();
        if files_named || (!cluster_named && directory.join(DEFAULT_STATE).is_file()) {
            Self::Files(Files::new(files, cluster.kubeconfig))
        } else {
            Self::Cluster(Cluster::new(cluster))
        }
    }

    /// The files; a command for files only refuses a cluster.
    pub fn files_only(self, command: &str) -> anyhow::Result<Files> {
        match self {
            Self::Files(files) => Ok(files),
            Self::Cluster(_) => Err(Failure::hinted(
                format!("`purlin {command}` works on files only; on a cluster the controller does it"),
                format!(
                    "name the files: `purlin {command} -f DIR`, or hand them to the cluster: `kubectl apply -f DIR`"
                ),
            )),
        }
    }
}

impl Files {
    /// The meaning of what was typed.
    pub fn new(files: FileArgs, kubeconfig: Option<PathBuf>) -> Self {
        let state = files.state.unwrap_or_else(|| PathBuf::from(DEFAULT_STATE));
        Self { sources: files.filenames, state, kubeconfig, plugin_dirs: files.plugin_dirs }
    }

    /// A command that needs to know what is wanted refuses to guess it: no files would mean that nothing is wanted.
    pub fn require_sources(&self, command: &str) -> anyhow::Result<()> {
        if self.sources.is_empty() {
            return Err(Failure::hinted(
                "no files are given, so what is wanted is not known",
                format!("name them: `purlin {command} -f DIR`"),
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
}

/// How to plan.
#[derive(Clone, Debug, Default)]
pub struct Planning {
    /// Only these, with what they need; empty: everything.
    pub targets: BTreeSet<Address>,
    /// Replace these though nothing requires it.
    pub replace: BTreeSet<Address>,
    /// Change nothing, and let the records follow what is read.
    pub refresh_only: bool,
    /// What is read first.
    pub refresh: RefreshChoice,
    /// How much at once.
    pub limits: Limits,
}

impl Planning {
    /// The meaning of the flags of `plan`, `apply` and `graph`.
    pub fn new(args: &PlanningArgs) -> anyhow::Result<Self> {
        if args.refresh_only && args.refreshing.refresh == RefreshChoice::None {
            let hint = "leave --refresh out: --refresh-only reads everything that is recorded";
            return Err(Failure::hinted("--refresh-only and --refresh=none exclude each other", hint));
        }
        Ok(Self {
            replace: addresses(&args.replace)?,
            refresh_only: args.refresh_only,
            ..Self::selecting(&args.selecting, &args.refreshing)?
        })
    }

    /// The meaning of the flags of `destroy`.
    pub fn selecting(selecting: &SelectArgs, refreshing: &RefreshArgs) -> anyhow::Result<Self> {
        Ok(Self { targets: addresses(&selecting.targets)?, ..Self::refreshing(refreshing) })
    }

    /// The meaning of the flags of commands that are about everything.
    pub fn refreshing(args: &RefreshArgs) -> Self {
        Self { refresh: args.refresh, limits: limits(args.parallelism), ..Self::default() }
    }

    /// Planning without asking how the objects are: for commands that only look.
    pub fn without_refresh() -> Self {
        Self { refresh: RefreshChoice::None, ..Self::default() }
    }
}

/// How much at once.
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

/// An address as the user wrote it.
pub fn address(text: &str) -> anyhow::Result<Address> {
    text.parse().map_err(|_| {
        Failure::hinted(
            format!("`{text}` is no address"),
            "write `name`, `name[0]` or `name[\"key\"]` (quote it for your shell)",
        )
    })
}

/// What `get` and `explain` name: a Resource with all of its instances, or one instance.
pub fn names(text: &str, candidate: &Address) -> bool {
    candidate.name.as_ref() == text || text.parse::<Address>().is_ok_and(|address| address == *candidate)
}

/// JSON leaves no room for questions, so it needs `--yes`.
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
        match Target::decide_in(TargetArgs { files, cluster }, directory.path()) {
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
    fn a_name_means_all_of_its_instances() {
        let instance: Address = "web[0]".parse().unwrap();
        assert!(names("web", &instance) && names("web[0]", &instance));
        assert!(!names("web[1]", &instance) && !names("we", &instance));
    }
}
