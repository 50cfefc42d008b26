//! The arguments of the commands for configurations of Terraform: `init`, `output`, `show`, `console`, `fmt`,
//! `providers` and `migrate`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::{FileArgs, Format, TargetArgs, VariableArgs};

#[derive(Debug, Args)]
pub struct InitArgs {
    #[command(flatten)]
    pub root: RootArgs,
    /// Fetch installed modules again, and select the newest versions of modules and providers that the constraints allow.
    #[arg(long)]
    pub upgrade: bool,
    /// Whether the lock file is written.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = LockFileMode::Write, conflicts_with = "upgrade")]
    pub lockfile: LockFileMode,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// A directory of provider packages in the layout of a Terraform filesystem mirror. It takes precedence over all
    /// other installation methods. Can be repeated [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArgs,
}

#[derive(Debug, Args)]
pub struct RootArgs {
    /// The directory of the root module [default: the working directory]
    #[arg(short = 'f', long = "filename", value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// What Terraform has for the place of its state. There is none here: `init` says so.
#[derive(Debug, Args)]
pub struct BackendArgs {
    /// Ignored. Accepted for scripts of Terraform: records are kept in a state file or in a cluster.
    #[arg(long, value_name = "BOOL", hide = true, action = ArgAction::Set)]
    pub backend: Option<bool>,
    /// Ignored, as --backend.
    #[arg(long, value_name = "FILE|NAME=VALUE", hide = true)]
    pub backend_config: Vec<String>,
    /// Ignored, as --backend.
    #[arg(long, hide = true)]
    pub reconfigure: bool,
    /// Ignored, as --backend.
    #[arg(long, hide = true)]
    pub migrate_state: bool,
    /// Ignored, as --backend.
    #[arg(long, hide = true)]
    pub force_copy: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LockFileMode {
    /// The selected versions and their checksums are recorded.
    #[default]
    Write,
    /// The file must have the versions already, and is not changed.
    Readonly,
}

#[derive(Debug, Args)]
pub struct OutputArgs {
    /// The output to show [default: all]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub root: RootArgs,
    /// The state file, which holds the records.
    #[arg(long, value_name = "FILE", default_value = "purlin.db")]
    pub state: PathBuf,
    /// Print JSON: the value of NAME, or an object of all outputs with their types.
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// Print the text, number or boolean of NAME without quotes and line end.
    #[arg(long, requires = "name")]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A plan file of `purlin plan --out` [default: the recorded objects are shown]
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["filenames", "state", "context", "namespace"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Show unchanged attributes, all attributes of destroyed objects, and long values.
    #[arg(long)]
    pub full: bool,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// As `-o json`.
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ConsoleArgs {
    #[command(flatten)]
    pub files: FileArgs,
}

#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files and directories, or `-` for standard input [default: the working directory]
    #[arg(value_name = "FILE|DIR|-")]
    pub targets: Vec<PathBuf>,
    /// Change nothing, and exit with 3 if a file is not formatted.
    #[arg(long)]
    pub check: bool,
    /// Show the changes.
    #[arg(long)]
    pub diff: bool,
    /// Also format the files in subdirectories.
    #[arg(long)]
    pub recursive: bool,
    /// Whether the files are written.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, default_value_t = true)]
    pub write: bool,
    /// Whether the names of the files that are not formatted are printed.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, default_value_t = true)]
    pub list: bool,
}

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The directory of the configuration [default: the working directory]
    #[arg(short = 'f', long = "filename", visible_alias = "config", value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// The Terraform or OpenTofu state (format version 4), or `-` for standard input [default: `terraform.tfstate` in the
    /// directory]
    #[arg(long, value_name = "FILE|-")]
    pub state: Option<PathBuf>,
    /// The state file to write the records to.
    #[arg(long, value_name = "FILE", default_value = "purlin.db")]
    pub records: PathBuf,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// A directory of provider packages in the layout of a Terraform filesystem mirror. It takes precedence over all
    /// other installation methods. Can be repeated [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
}
