//! What was typed after `purlin migrate` and `purlin state export`.

#![expect(missing_docs, reason = "a doc comment becomes help text, and a flattened group has none of its own")]

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;

/// `purlin migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The state of Terraform or OpenTofu, version 4; `-` for standard input.
    #[arg(long, value_name = "FILE|-")]
    pub state: PathBuf,
    /// The configuration, as `terraform show -json PLANFILE` prints it: a file, or a folder with one. References come from
    /// it; without it arguments are literals.
    #[arg(long, value_name = "FILE|DIR")]
    pub config: Option<PathBuf>,
    /// The folder for the manifests, which must not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The file for the records, which must hold none.
    #[arg(long, value_name = "FILE", default_value = "purlin.db")]
    pub records: PathBuf,
    /// Documents of kind Provider and ProviderConfig to use: a folder or a file; may be given more than once.
    #[arg(short = 'f', long = "filename", value_name = "DIR|FILE")]
    pub filenames: Vec<PathBuf>,
    /// What a resource is to be called: ADDRESS=NAME, the address as in `terraform state list` without keys of instances;
    /// may be given more than once.
    #[arg(long = "name", value_name = "ADDRESS=NAME", value_parser = renaming)]
    pub names: Vec<(String, String)>,
    /// A folder with provider packages, laid out as Terraform's filesystem mirror, that comes before any other origin;
    /// may be given more than once [env: PURLIN_PLUGIN_DIR]
    #[arg(long = "plugin-dir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dirs: Vec<PathBuf>,
}

/// `purlin state export`.
#[derive(Debug, Args)]
pub struct StateExportArgs {
    /// As a state of Terraform and OpenTofu, version 4: the only form there is.
    #[arg(long, required = true)]
    pub terraform: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Write to this file, which must not exist. It holds sensitive values, and only its owner may read it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The lineage of the state that it is to follow [default: a new one]
    #[arg(long, value_name = "UUID")]
    pub lineage: Option<String>,
    /// The serial of the state: greater than that of the one that it is to follow.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub serial: u64,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    // A key of a module may hold anything, a name holds no `=`.
    let (address, name) = text.rsplit_once('=').ok_or("write ADDRESS=NAME")?;
    Ok((address.to_owned(), name.to_owned()))
}
