//! What was typed: the command line as clap reads it. What it means is in `options`.

#![expect(missing_docs, reason = "a doc comment becomes help text, and a flattened group has none of its own")]

mod controller;
mod migrate;
mod provider;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use controller::{ControllerArgs, Listening, LogFormat};
pub use migrate::{MigrateArgs, StateExportArgs};
pub use provider::{
    ExplainTypeArgs, ProviderCommand, ProviderDocsArgs, ProviderInstallArgs, ProviderListArgs, ProviderLockArgs,
    ProviderNameArgs, TypeFormat,
};

/// Plans, orders and carries out infrastructure changes, on a cluster or on a folder of files.
#[derive(Debug, Parser)]
#[command(name = "purlin", disable_help_subcommand = true, max_term_width = 110)]
pub struct PurlinArgs {
    /// When to colour text.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what an apply would do, and in which order.
    Plan(PlanArgs),
    /// Carry out what the files ask for.
    Apply(ApplyArgs),
    /// Destroy everything that is recorded.
    Destroy(DestroyArgs),
    /// Watch a folder and keep everything as its files ask for.
    Dev(DevArgs),
    /// Show the ordering graph with the reason of every edge.
    Graph(GraphArgs),
    /// Say why an object is in the state it is in, what it waits for, and what will happen next.
    Explain(ExplainArgs),
    /// List objects and whether they are ready.
    Get(GetArgs),
    /// Show objects with what they depend on below them.
    Tree(TreeArgs),
    /// Begin to manage an existing object, or print a manifest for it.
    Import(ImportArgs),
    /// Take over what Terraform or OpenTofu manages: write manifests and records for the objects of a state.
    Migrate(MigrateArgs),
    /// Leave a Resource of a cluster alone until it is resumed.
    Suspend(ResourceArgs),
    /// Care for a suspended Resource again.
    Resume(ResourceArgs),
    /// Have the controller look at a Resource now, outside of its interval.
    Reconcile(ResourceArgs),
    /// Look at records, and repair them.
    #[command(subcommand)]
    State(StateCommand),
    /// Install and lock providers, and look at what they serve.
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Describe a type of a provider, or one of its attributes.
    ExplainType(ExplainTypeArgs),
    /// Check files without planning anything.
    Validate(ValidateArgs),
    /// Print the custom resource definitions for `kubectl apply -f -`.
    Crds,
    /// Print the version.
    Version(VersionArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// Run the controller.
    Controller(Box<ControllerArgs>),
    /// Become a provider plugin. Purlin starts its plugins through this.
    #[command(name = crate::plugin::launcher::COMMAND, hide = true)]
    LaunchPlugin(LaunchPluginArgs),
}

/// Files or a cluster. Which of them is meant is decided in `options::Target`.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetArgs {
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Where local mode reads and records.
#[derive(Clone, Debug, Default, Args)]
pub struct FileArgs {
    /// A folder, a YAML or JSON file, or `-` for standard input; may be given more than once.
    #[arg(short = 'f', long = "filename", value_name = "DIR|FILE|-")]
    pub filenames: Vec<PathBuf>,
    /// The file that keeps the records [default: purlin.db]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// A folder with provider packages, laid out as Terraform's filesystem mirror, that comes before any other origin;
    /// may be given more than once [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
}

/// Which cluster, and which namespace of it.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArgs {
    /// The kubeconfig file.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Work on the cluster of this kubeconfig context.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["filenames", "state"])]
    pub context: Option<String>,
    /// Work on this namespace of a cluster.
    #[arg(short = 'n', long, value_name = "NAME", conflicts_with_all = ["filenames", "state"])]
    pub namespace: Option<String>,
    /// The namespace in which the controller keeps its records.
    #[arg(long, value_name = "NAME", default_value = "purlin-system", hide_short_help = true)]
    pub controller_namespace: String,
}

/// How to plan.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanningArgs {
    /// Replace this object though nothing requires it; may be given more than once.
    #[arg(long, value_name = "ADDRESS")]
    pub replace: Vec<String>,
    /// Change nothing: read what is recorded, and let the records follow.
    #[arg(long, conflicts_with = "replace")]
    pub refresh_only: bool,
    #[command(flatten)]
    pub selecting: SelectArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
}

/// What a plan is about.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectArgs {
    /// Only this object, or all instances of this name, with everything it needs; in `destroy` with everything that
    /// needs it. May be given more than once. All others are left exactly as they are.
    #[arg(long = "target", value_name = "ADDRESS")]
    pub targets: Vec<String>,
}

/// What is read before it is compared, and how much at once.
#[derive(Clone, Debug, Default, Args)]
pub struct RefreshArgs {
    /// Which recorded objects are read before they are compared.
    #[arg(long, value_enum, default_value_t = RefreshChoice::All)]
    pub refresh: RefreshChoice,
    /// How many calls may run at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub parallelism: Option<u32>,
}

/// `purlin launch-plugin`.
#[derive(Debug, Args)]
pub struct LaunchPluginArgs {
    /// The process that starts the plugin; the plugin ends with it.
    #[arg(long)]
    pub parent: i32,
    /// How many files the plugin may have open.
    #[arg(long)]
    pub open_files: Option<u64>,
    /// How many bytes of memory the plugin may have for itself.
    #[arg(long)]
    pub memory: Option<u64>,
    /// The plugin may read what is below this path, and nothing that is not named; may be given more than once.
    #[arg(long)]
    pub read: Vec<PathBuf>,
    /// The plugin may also write below this path; may be given more than once.
    #[arg(long)]
    pub write: Vec<PathBuf>,
    /// The plugin's program and its arguments.
    #[arg(last = true, required = true)]
    pub program: Vec<std::ffi::OsString>,
}

/// `purlin plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    /// Plan what `purlin destroy` would do.
    #[arg(long, conflicts_with_all = ["replace", "refresh_only"])]
    pub destroy: bool,
    /// Save the plan, for `purlin apply FILE`. The file holds sensitive values, and only its owner may read it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Exit with 0 when there is nothing to do, 1 on errors, 2 when there are changes.
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Accepted for symmetry with `apply`; a plan shows no progress.
    #[arg(long, hide = true)]
    pub no_progress: bool,
}

/// `purlin apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A plan that `purlin plan --out` has saved: exactly that is carried out, without a question.
    #[arg(value_name = "PLANFILE", conflicts_with_all =
        ["filenames", "state", "context", "namespace", "replace", "refresh_only", "targets", "refresh"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    #[command(flatten)]
    pub doing: DoingArgs,
}

/// `purlin destroy`.
#[derive(Debug, Args)]
pub struct DestroyArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub selecting: SelectArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
    #[command(flatten)]
    pub doing: DoingArgs,
}

/// How changes are confirmed and shown.
#[derive(Clone, Debug, Args)]
pub struct DoingArgs {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Exit with 0 when there was nothing to do, 1 on errors, 2 when something was changed.
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Plain lines instead of live progress.
    #[arg(long)]
    pub no_progress: bool,
}

/// `purlin dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
    /// Plain lines instead of live progress.
    #[arg(long)]
    pub no_progress: bool,
}

/// `purlin graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = GraphFormat::Text)]
    pub output: GraphFormat,
}

/// `purlin explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A name, or the address of one instance.
    pub name: String,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
}

/// `purlin get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Only this name, or the address of one instance.
    pub name: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Only this name, or the address of one instance, with what it depends on.
    pub name: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Where the object is to be recorded: the address of a manifest, or a name for a new one.
    pub address: String,
    /// The id of the object, as its type has it: `v1/ConfigMap/shop/site` for `kubernetes_object`.
    #[arg(required_unless_present = "identity")]
    pub id: Option<String>,
    /// What the provider identifies the object by, instead of an id: a JSON object, for types that have an identity.
    #[arg(long, value_name = "JSON", conflicts_with = "id", value_parser = identity)]
    pub identity: Option<serde_json::Value>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// The type, when there is no manifest yet: then one is printed.
    #[arg(long = "type", value_name = "TYPE")]
    pub type_name: Option<String>,
    /// Write the printed manifest to this file, which must not exist.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `purlin suspend`, `resume`, `reconcile`.
#[derive(Debug, Args)]
pub struct ResourceArgs {
    /// The name of the Resource.
    pub name: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// `purlin state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List all recorded objects.
    List(StateListArgs),
    /// Show what is recorded about one address.
    Show(StateShowArgs),
    /// Forget an object, or all instances of a family: the record goes, the object stays.
    Rm(StateRemoveArgs),
    /// Give an object, or all instances of a family, another address, without touching it.
    Mv(StateMoveArgs),
    /// Have the next apply replace an object, or all instances of a family.
    Taint(StateEditArgs),
    /// Take an object for complete again.
    Untaint(StateEditArgs),
    /// Lift the recorded `preventDestroy` of an object whose manifest is gone.
    Unprotect(StateEditArgs),
    /// Let go of Resources: finalizers are removed, objects and records stay.
    Release(StateReleaseArgs),
    /// Write what is recorded as a state of Terraform and OpenTofu.
    Export(StateExportArgs),
}

/// `purlin state list`.
#[derive(Debug, Args)]
pub struct StateListArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin state show`.
#[derive(Debug, Args)]
pub struct StateShowArgs {
    /// The address.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin state mv`.
#[derive(Debug, Args)]
pub struct StateMoveArgs {
    /// The address that is recorded.
    pub from: String,
    /// The address that the object gets.
    pub to: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// `purlin state rm`.
#[derive(Debug, Args)]
pub struct StateRemoveArgs {
    /// The address; a name without a key means all instances of a family, unless there is an object without a key.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Also while an operation is open. An open create is declared never to have happened: what it was to replace
    /// becomes current again. After any other open operation the whole record is forgotten.
    #[arg(long)]
    pub force: bool,
}

/// `purlin state taint`, `untaint`, `unprotect`.
#[derive(Debug, Args)]
pub struct StateEditArgs {
    /// The address; a name without a key means all instances of a family, unless there is an object without a key.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// `purlin state release`.
#[derive(Debug, Args)]
pub struct StateReleaseArgs {
    /// The address.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub address: Option<String>,
    /// Every Resource of the namespace.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// `purlin validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// Which shell.
    pub shell: clap_complete::Shell,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// `-o` of `graph`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// For people.
    Text,
    /// Graphviz.
    Dot,
    /// Mermaid flowchart.
    Mermaid,
    /// For programs.
    Json,
}

/// `--refresh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RefreshChoice {
    /// Those whose drift interval has passed.
    Due,
    /// All.
    #[default]
    All,
    /// None.
    None,
}

fn identity(text: &str) -> Result<serde_json::Value, String> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(map)) if !map.is_empty() => Ok(map.into()),
        Ok(_) => Err("write a JSON object with the attributes of the identity".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
