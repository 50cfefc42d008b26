//! The arguments of `purlin migrate` and `purlin state export`.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The Terraform or OpenTofu state file (format version 4), or `-` for standard input.
    #[arg(long, value_name = "FILE|-")]
    pub state: PathBuf,
    /// The directory of the configuration (`.tf` files), or a file with the output of `terraform show -json PLANFILE`.
    /// It is used to restore expressions; without it, all arguments are literals.
    #[arg(long, value_name = "DIR|FILE")]
    pub config: Option<PathBuf>,
    /// A file with values of variables, in addition to those in the directory of the configuration. Can be repeated.
    #[arg(long = "var-file", value_name = "FILE", requires = "config")]
    pub var_files: Vec<PathBuf>,
    /// The directory to write the manifests to. It must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The state file to write the records to. It must not contain records.
    #[arg(long, value_name = "FILE", default_value = "purlin.db")]
    pub records: PathBuf,
    /// A directory or file with manifests of kind Provider and ProviderConfig to use. Can be repeated.
    #[arg(short = 'f', long = "filename", value_name = "DIR|FILE")]
    pub filenames: Vec<PathBuf>,
    /// The name for a resource. ADDRESS is as in `terraform state list`, without the instance key. Can be repeated.
    #[arg(long = "name", value_name = "ADDRESS=NAME", value_parser = renaming)]
    pub names: Vec<(String, String)>,
    /// Write the manifests even if the next plan would change objects.
    #[arg(long)]
    pub allow_changes: bool,
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
    /// The state from which the objects were migrated. The export continues it: with its addresses, outputs, data
    /// sources and lineage, and the next serial.
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,
    /// The configuration that `purlin migrate` was given, if it has `moved` blocks.
    #[arg(long, value_name = "DIR", requires = "base")]
    pub config: Option<PathBuf>,
    /// A name that `purlin migrate` was given. Can be repeated.
    #[arg(long = "name", value_name = "ADDRESS=NAME", value_parser = renaming, requires = "base")]
    pub names: Vec<(String, String)>,
    /// The lineage of the existing state, if the export continues one [default: that of --base, or a new lineage]
    #[arg(long, value_name = "UUID")]
    pub lineage: Option<String>,
    /// The serial of the state. It must be greater than that of the existing state [default: the next one after --base,
    /// or 1]
    #[arg(long, value_name = "N")]
    pub serial: Option<u64>,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    // A module key can contain `=`, a name cannot.
    let (address, name) = text.rsplit_once('=').ok_or("write ADDRESS=NAME")?;
    Ok((address.to_owned(), name.to_owned()))
}
