//! The arguments of `purlin migrate` and `purlin state export`.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;

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
    /// The value of a variable. Can be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", hide_short_help = true)]
    pub variables: Vec<String>,
    /// A file with values of variables. Can be repeated.
    #[arg(long = "var-file", value_name = "FILE", hide_short_help = true)]
    pub variable_files: Vec<PathBuf>,
    /// A directory of provider packages in the layout of a Terraform filesystem mirror. It takes precedence over all
    /// other installation methods. Can be repeated [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StateExportArgs {
    /// Export a Terraform and OpenTofu state (format version 4). Required, because it is the only format.
    #[arg(long, required = true)]
    pub terraform: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Write to this file, which must not exist. It contains sensitive values and is readable only by you.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The state that the export is to replace. The export continues it: with its data sources and lineage, and the next
    /// serial.
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,
    /// The lineage of the existing state, if the export continues one [default: that of --base, of the state that was taken over, or a new lineage]
    #[arg(long, value_name = "UUID")]
    pub lineage: Option<String>,
    /// The serial of the state. It must be greater than that of the existing state [default: the next one after --base,
    /// after the state that was taken over, or 1]
    #[arg(long, value_name = "N")]
    pub serial: Option<u64>,
}
