//! The command-line arguments as clap parses them. `options` validates and interprets them. Doc comments here are help
//! texts.

mod configuration;
mod controller;
mod examples;
mod plugin;
mod provider;
mod resources;
mod single_dash;
mod state;
mod variables;

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use configuration::{
    BackendArgs, ConsoleArgs, FmtArgs, InitArgs, LockFileMode, MigrateArgs, OutputArgs, RootArgs, ShowArgs,
};
pub use controller::{ControllerArgs, Listening, LogFormat};
pub use plugin::{LaunchHookArgs, LaunchPluginArgs, RunnerArgs};
pub use provider::{
    ExplainTypeArgs, ProviderCommand, ProviderDocsArgs, ProviderInstallArgs, ProviderListArgs, ProviderLockArgs,
    ProviderNameArgs, TypeFormat,
};
pub use resources::{ChoiceArgs, DecisionArgs, ReconcileArgs, ResourceArgs};
pub use single_dash::with_two_dashes;
pub use state::{
    ADDRESS_FORMS, HistoryArgs, StateCommand, StateEditArgs, StateExportArgs, StateListArgs, StateMoveArgs,
    StatePushArgs, StateRecoverArgs, StateReleaseArgs, StateRemoveArgs, StateRestoreArgs, StateShowArgs,
};
pub use variables::VariableArgs;

/// Plan and apply infrastructure changes, in a cluster or from a directory of manifests.
#[derive(Debug, Parser)]
#[command(name = "purlin", max_term_width = 110, after_help = examples::PURLIN)]
pub struct PurlinArgs {
    /// When to use colors in the output.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    // Without it, `-no-color` of Terraform's scripts would be `-n o-color`, a namespace of a cluster.
    /// As `--color never`, for scripts of Terraform.
    #[arg(long, global = true, hide = true)]
    pub no_color: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install the modules and providers of a configuration of Terraform.
    ///
    /// Modules are installed in `.terraform/modules`, and the versions of providers are recorded in `.terraform.lock.hcl`,
    /// both as OpenTofu and Terraform do. What is installed already is not fetched again, unless -upgrade is set. Options
    /// can be written with one dash.
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Show the changes that an apply would make.
    ///
    /// Reads the recorded objects, compares them with the manifests, and prints the changes. Nothing is changed. An
    /// object is destroyed only if its manifest was in the files of -f and no longer is; objects of other files are left
    /// unchanged, unless --prune is set. With -f and -n or --context, the controller of the cluster computes what
    /// applying the manifests would change.
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Create, update and destroy objects to match the manifests.
    ///
    /// Prints the plan and asks for confirmation before it applies the changes. An object is destroyed only if its
    /// manifest was in the files of -f and no longer is; objects of other files are left unchanged, unless --prune is
    /// set. With PLANFILE, it applies a saved plan without confirmation.
    #[command(after_help = examples::APPLY)]
    Apply(ApplyArgs),
    /// Destroy all recorded objects, or those of the files of -f.
    ///
    /// Prints the plan and asks for confirmation before it destroys the objects. With -f, it destroys the objects that
    /// were created from these files, which need not exist anymore; without, all recorded objects.
    #[command(after_help = examples::DESTROY)]
    Destroy(DestroyArgs),
    /// Watch a directory and apply its changes continuously.
    ///
    /// Applies every change of the manifests without confirmation. An object whose manifest was in the files of -f and
    /// no longer is, is destroyed when the files have been unchanged for one second, unless it is protected. Press
    /// Ctrl-C to stop.
    #[command(after_help = examples::DEV)]
    Dev(DevArgs),
    /// Show the steps of a plan, and why each step waits for others.
    #[command(after_help = examples::GRAPH)]
    Graph(GraphArgs),
    /// Explain the state of an object, what it waits for, and what happens next.
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Show the last changes of an object, newest first.
    ///
    /// The record of an object has its last ten changes: when, why and how long, and how they ended. A history ends when
    /// the record is removed.
    #[command(after_help = examples::HISTORY)]
    History(HistoryArgs),
    /// Show the graph of a namespace, its objects and held plans in a browser, and keep it up to date.
    ///
    /// Serves a page on this computer, and prints its address. The page can do what you can: it uses your credentials.
    #[command(after_help = examples::UI)]
    Ui(UiArgs),
    /// List objects and their status.
    #[command(after_help = examples::GET)]
    Get(GetArgs),
    /// Show objects and their dependencies as a tree.
    #[command(after_help = examples::TREE)]
    Tree(TreeArgs),
    /// Import an existing object, or print a manifest for it.
    ///
    /// If ADDRESS has a manifest, the object is recorded, and the changes of the next apply are printed. Otherwise, the
    /// command prints a manifest that imports the object with the next apply.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Show the outputs of a Terraform configuration, as the last apply has recorded them.
    ///
    /// Nothing is evaluated. A sensitive output is shown only by its name, or as JSON.
    #[command(after_help = examples::OUTPUT)]
    Output(OutputArgs),
    /// Show a saved plan, or all recorded objects with their values.
    ///
    /// A saved plan is shown as `purlin plan` has printed it. Nothing is evaluated or read.
    #[command(after_help = examples::SHOW)]
    Show(ShowArgs),
    /// Evaluate expressions with the values of a Terraform configuration and its recorded objects.
    ///
    /// Reads expressions from standard input, one on each line, until its end or a line `exit`. Nothing is changed.
    #[command(after_help = examples::CONSOLE)]
    Console(ConsoleArgs),
    /// Take the objects of a Terraform or OpenTofu state over.
    ///
    /// Writes a record for each object of the state, at its address. The configuration stays as it is, and so does the state.
    /// No object is read or changed. The next plan is the same as that of Terraform.
    #[command(after_help = examples::MIGRATE)]
    Migrate(MigrateArgs),
    /// Suspend the reconciliation of Resources in a cluster.
    ///
    /// Sets `spec.suspend`. The controller neither reads nor changes the object until the Resource is resumed.
    #[command(after_help = examples::SUSPEND)]
    Suspend(ResourceArgs),
    /// Resume the reconciliation of suspended Resources.
    ///
    /// Removes `spec.suspend`. The controller then reads the object, and applies the changes that were made meanwhile.
    #[command(after_help = examples::RESUME)]
    Resume(ResourceArgs),
    /// Reconcile Resources in a cluster now, and wait until they are ready.
    ///
    /// The controller reads the objects and plans them, without waiting for their interval. Exits with 1 if an object is
    /// not ready when the time is over, or cannot become ready without a change.
    #[command(after_help = examples::RECONCILE)]
    Reconcile(ReconcileArgs),
    /// Approve the changes of a Plan in a cluster.
    ///
    /// Prints the changes, and lets the controller make exactly these. This needs the right `approve` on Plans, which the
    /// ClusterRole `purlin-approver` of the chart grants.
    #[command(after_help = examples::APPROVE)]
    Approve(DecisionArgs),
    /// Reject the changes of a Plan in a cluster.
    ///
    /// The objects stay as they are until their Resources change.
    #[command(after_help = examples::REJECT)]
    Reject(DecisionArgs),
    /// Inspect and edit records.
    #[command(subcommand, after_help = examples::STATE)]
    State(StateCommand),
    /// Install, lock and inspect providers.
    #[command(subcommand, after_help = examples::PROVIDER)]
    Provider(ProviderCommand),
    /// Describe a built-in type, a type of a provider, or one of its attributes.
    #[command(after_help = examples::EXPLAIN_TYPE)]
    ExplainType(ExplainTypeArgs),
    /// Show the providers that the modules of a configuration of Terraform require.
    #[command(after_help = examples::PROVIDERS)]
    Providers(RootArgs),
    /// Format the files of configurations of Terraform.
    ///
    /// Prints the names of the files that it changes. The result is that of `tofu fmt`.
    #[command(after_help = examples::FMT)]
    Fmt(FmtArgs),
    /// Check whether manifests, or a configuration of Terraform, are valid.
    ///
    /// Of a configuration, the blocks, modules and providers are checked, without the schemas of the providers.
    #[command(after_help = examples::VALIDATE)]
    Validate(ValidateArgs),
    /// Print the custom resource definitions, for `kubectl apply -f -`.
    #[command(after_help = examples::CRDS)]
    Crds,
    /// Print the version.
    #[command(after_help = examples::VERSION)]
    Version(VersionArgs),
    /// Print a shell completion script.
    #[command(after_help = examples::COMPLETION)]
    Completion(CompletionArgs),
    /// Run the controller.
    #[command(after_help = examples::CONTROLLER)]
    Controller(Box<ControllerArgs>),
    /// Run a provider plugin with resource limits and in its sandbox. Purlin runs this command itself.
    #[command(name = tfprovider::plugin::launcher::COMMAND, hide = true)]
    LaunchPlugin(LaunchPluginArgs),
    /// Run the program of a hook, and kill it when Purlin ends. Purlin runs this command itself.
    #[command(name = process::supervisor::COMMAND, hide = true)]
    LaunchHook(LaunchHookArgs),
    /// Run a provider plugin for a controller in another Pod. Purlin runs this command itself.
    #[command(hide = true)]
    Runner(RunnerArgs),
}

// A command that works only on files or only on a cluster accepts the options of both, and its error says what to use
// instead. Its help lists only the options that it does not refuse.
fn hide_cluster_options(arg: clap::Arg) -> clap::Arg {
    let hides = ["context", "namespace", "controller_namespace"].contains(&arg.get_id().as_str());
    if hides { arg.hide(true) } else { arg }
}

fn hide_file_options(arg: clap::Arg) -> clap::Arg {
    let hides = ["filenames", "state", "plugin_dirs"].contains(&arg.get_id().as_str());
    if hides { arg.hide(true) } else { arg }
}

// `options::Target` decides between files and a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetArgs {
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub struct FileArgs {
    /// A directory, which is read with its subdirectories, a YAML or JSON file, or `-` for standard input. Can be
    /// repeated.
    #[arg(short = 'f', long = "filename", value_name = "DIR|FILE|-")]
    pub filenames: Vec<PathBuf>,
    /// The state file, which holds the records [default: purlin.db]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// A directory of provider packages in the layout of a Terraform filesystem mirror. It takes precedence over all
    /// other installation methods. Can be repeated [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
    #[command(flatten)]
    pub variables: VariableArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArgs {
    /// The path of the kubeconfig file.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig context of the cluster to use.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["filenames", "state"])]
    pub context: Option<String>,
    /// The namespace of the cluster to use.
    #[arg(short = 'n', long, value_name = "NAME", conflicts_with_all = ["filenames", "state"])]
    pub namespace: Option<String>,
    /// The namespace where the controller stores its records.
    #[arg(long, value_name = "NAME", default_value = "purlin-system", hide_short_help = true)]
    pub controller_namespace: String,
}

#[derive(Clone, Debug, Default, Args)]
pub struct PlanningArgs {
    /// Replace this object even if no change requires it. Can be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub replace: Vec<String>,
    /// Only update the records to match the existing objects. No object is changed.
    #[arg(long, conflicts_with = "replace")]
    pub refresh_only: bool,
    #[command(flatten)]
    pub pruning: PruneArgs,
    #[command(flatten)]
    pub selecting: SelectArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PruneArgs {
    /// Treat the files of -f as everything: also destroy recorded objects of other files that have no manifest in them.
    #[arg(long, requires = "filenames")]
    pub prune: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub struct SelectArgs {
    /// Limit the operation to this object, or all instances of this name, and its dependencies; for `destroy`, its
    /// dependents. Other objects and their records are not touched. Can be repeated.
    #[arg(long = "target", value_name = "ADDRESS")]
    pub targets: Vec<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub struct RefreshArgs {
    /// Which recorded objects to read before planning.
    #[arg(long, value_enum, default_value_t = RefreshChoice::All)]
    pub refresh: RefreshChoice,
    /// The maximum number of concurrent operations.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub parallelism: Option<u32>,
}

// `plan` compares files with a cluster if both are given.
fn allow_files_and_cluster(arg: clap::Arg) -> clap::Arg {
    let names_cluster = ["context", "namespace"].contains(&arg.get_id().as_str());
    if names_cluster { arg.conflicts_with(Resettable::Reset).conflicts_with("state") } else { arg }
}

#[derive(Debug, Args)]
#[command(mut_args(allow_files_and_cluster))]
pub struct PlanArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    #[command(flatten)]
    pub preview: PreviewArgs,
    /// Plan to destroy the recorded objects, as `purlin destroy` does.
    #[arg(long, conflicts_with_all = ["replace", "refresh_only", "prune"])]
    pub destroy: bool,
    /// Save the plan to a file, for `purlin apply FILE`. It contains sensitive values and is readable only by you.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = PlanFormat::Text)]
    pub output: PlanFormat,
    /// Show unchanged attributes, all attributes of destroyed objects, and long values.
    #[arg(long)]
    pub full: bool,
    /// Exit with 0 if there are no changes, 1 on errors, 2 if there are changes.
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Ignored. Accepted for symmetry with `apply`.
    #[arg(long, hide = true)]
    pub no_progress: bool,
}

// The options that a plan has only if the controller computes it.
#[derive(Clone, Debug, Args)]
pub struct PreviewArgs {
    /// In a cluster, limit --prune to objects with these labels, as `kubectl apply --prune -l` does.
    #[arg(short = 'l', long, value_name = "SELECTOR", requires = "prune")]
    pub selector: Option<String>,
    /// In a cluster, how long to wait for the controller, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_cluster_options))]
pub struct ApplyArgs {
    /// A plan file of `purlin plan --out` to apply, without confirmation.
    #[arg(value_name = "PLANFILE", conflicts_with_all =
        ["filenames", "state", "context", "namespace", "replace", "refresh_only", "prune", "targets", "refresh",
        "keep_going"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    #[command(flatten)]
    pub doing: RunArgs,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_cluster_options))]
pub struct DestroyArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub selecting: SelectArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
    #[command(flatten)]
    pub doing: RunArgs,
}

#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Skip the confirmation prompt.
    #[arg(short = 'y', long, alias = "auto-approve")]
    pub yes: bool,
    /// Apply what is possible although the plan has errors. Without this option, nothing is changed then. While a
    /// manifest has an error, no object is destroyed because its manifest is missing.
    #[arg(long)]
    pub keep_going: bool,
    /// Show unchanged attributes, all attributes of destroyed objects, and long values.
    #[arg(long)]
    pub full: bool,
    /// Exit with 0 if nothing changed, 1 on errors, 2 if there were changes.
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print plain lines instead of live progress.
    #[arg(long)]
    pub no_progress: bool,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_cluster_options))]
pub struct DevArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub pruning: PruneArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
    /// Print plain lines instead of live progress.
    #[arg(long)]
    pub no_progress: bool,
}

#[derive(Debug, Args)]
pub struct UiArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub pruning: PruneArgs,
    /// The port to listen on, only on this computer; 0 for a free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
}

#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub planning: PlanningArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = GraphFormat::Text)]
    pub output: GraphFormat,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The name of an object, or the address of one instance.
    pub name: String,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub refreshing: RefreshArgs,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// Show only these objects, or these instances.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Show only this object, or this instance, and its dependencies.
    pub name: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_cluster_options))]
pub struct ImportArgs {
    /// The address to import the object to: that of a manifest, or the name for a new manifest.
    pub address: String,
    /// The import ID of the object, whose form depends on the type; `v1/ConfigMap/shop/site` for `kubernetes_object`.
    #[arg(required_unless_present = "identity")]
    pub id: Option<String>,
    /// The resource identity of the object as JSON, instead of an ID, for types that support it.
    #[arg(long, value_name = "JSON", conflicts_with = "id", value_parser = identity)]
    pub identity: Option<serde_json::Value>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// The resource type, if no manifest exists yet. The command then prints a manifest.
    #[arg(long = "type", value_name = "TYPE")]
    pub type_name: Option<String>,
    /// Write the manifest to this file instead of standard output. The file must not exist.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct VersionArgs {
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell to generate the script for.
    pub shell: clap_complete::Shell,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// If the output is a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Human-readable text.
    #[default]
    Text,
    /// Machine-readable JSON.
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// Machine-readable JSON.
    Json,
    /// Markdown for the comment of a pull request.
    Markdown,
    /// Plans that approve the changes that need an approval, as manifests for Git. Only with a cluster.
    Approval,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Human-readable text.
    Text,
    /// Graphviz DOT.
    Dot,
    /// A Mermaid flowchart.
    Mermaid,
    /// Machine-readable JSON.
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RefreshChoice {
    /// Objects whose drift interval has elapsed.
    Due,
    /// All objects.
    #[default]
    All,
    /// No objects.
    None,
}

fn identity(text: &str) -> Result<serde_json::Value, String> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(map)) if !map.is_empty() => Ok(map.into()),
        Ok(_) => Err("the identity must be a non-empty JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
