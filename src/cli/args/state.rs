//! The arguments of `purlin state`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, TargetArgs, examples, hide_file_options};
use model::{Address, DeposedKey};

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List the recorded objects.
    #[command(after_help = examples::STATE_LIST)]
    List(StateListArgs),
    /// Show the recorded values of an object.
    #[command(after_help = examples::STATE_SHOW)]
    Show(StateShowArgs),
    /// Remove the record of an object, or of all instances of a family. The object is not destroyed.
    #[command(after_help = examples::STATE_RM)]
    Rm(StateRemoveArgs),
    /// Move the record of an object, or of all instances of a family, to another address.
    ///
    /// The object is not changed. In a cluster, the controller completes the move.
    #[command(after_help = examples::STATE_MV)]
    Mv(StateMoveArgs),
    /// Mark an object, or all instances of a family, as tainted. The next apply replaces it.
    #[command(after_help = examples::STATE_TAINT)]
    Taint(StateEditArgs),
    /// Remove the tainted mark from an object, or from all instances of a family.
    #[command(after_help = examples::STATE_UNTAINT)]
    Untaint(StateEditArgs),
    /// Remove the recorded `preventDestroy` of an object whose manifest no longer exists.
    #[command(after_help = examples::STATE_UNPROTECT)]
    Unprotect(StateEditArgs),
    /// Make a deposed object current again. The object that is current takes its place: the next apply destroys it.
    #[command(after_help = examples::STATE_RESTORE)]
    Restore(StateRestoreArgs),
    /// Remove the finalizers of Resources, so that they can be deleted without destroying objects.
    ///
    /// Objects and records are kept, and adopted when the Resources are applied again. A running controller adds the
    /// finalizer again, unless the Resource is being deleted.
    #[command(after_help = examples::STATE_RELEASE)]
    Release(StateReleaseArgs),
    /// List creates whose outcome is unknown after a crash, or say what happened to their objects.
    ///
    /// Purlin cannot know whether a create that a crash interrupted has created its object, unless the provider can find
    /// the object. Without options, this lists these creates. `--import` and `--absent` record what you know; the next
    /// apply or the controller then continues.
    #[command(after_help = examples::STATE_RECOVER)]
    Recover(StateRecoverArgs),
    /// Move the records of a state file to a cluster, so that the controller manages their objects.
    ///
    /// No object is changed. Move the records before you apply the manifests with kubectl: the controller then finds the
    /// records and creates nothing. Records of `kubernetes_object` stay in the file. The file is copied to FILE.backup.
    #[command(after_help = examples::STATE_PUSH)]
    Push(StatePushArgs),
    /// Export the records as a Terraform state.
    #[command(after_help = examples::STATE_EXPORT)]
    Export(StateExportArgs),
}

#[derive(Debug, Args)]
pub struct StateListArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct StateShowArgs {
    /// The address of the object.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Show long values.
    #[arg(long)]
    pub full: bool,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The address of the object. The name of a family shows all of its instances.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct StateMoveArgs {
    /// The current address.
    pub from: String,
    /// The new address.
    pub to: String,
    #[command(flatten)]
    pub target: TargetArgs,
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

#[derive(Debug, Args)]
pub struct StateRemoveArgs {
    /// The address of the object. A name without a key selects all instances of a family.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Skip the confirmation prompt.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Remove the record even if an operation has not finished. For an unfinished create, only the create is discarded,
    /// and an object that it was to replace becomes current again.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct StateEditArgs {
    /// The address of the object. A name without a key selects all instances of a family.
    pub address: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Debug, Args)]
pub struct StateRestoreArgs {
    /// The address of the object.
    pub address: String,
    /// The key of the deposed object, as `purlin state list` shows it.
    #[arg(value_parser = deposed_key)]
    pub key: DeposedKey,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Debug, Args)]
pub struct StateRecoverArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The object was created and has this import ID. Can be repeated.
    #[arg(long = "import", value_name = "ADDRESS=ID", value_parser = import_of_address)]
    pub imports: Vec<(Address, String)>,
    /// The object was not created. Can be repeated.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub absent: Vec<Address>,
    /// None of the listed objects was created, except those of `--import`.
    #[arg(long, conflicts_with = "absent")]
    pub all_absent: bool,
    /// Skip the confirmation prompt.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// The output format of the list.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct StatePushArgs {
    /// The state file, which holds the records [default: purlin.db]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// The namespace of the cluster.
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: String,
    /// The path of the kubeconfig file.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig context of the cluster to use.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace where the controller stores its records.
    #[arg(long, value_name = "NAME", default_value = "purlin-system", hide_short_help = true)]
    pub controller_namespace: String,
    /// Skip the confirmation prompt.
    #[arg(short = 'y', long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_file_options))]
pub struct StateReleaseArgs {
    /// The name of the Resource.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub address: Option<String>,
    /// Release all Resources in the namespace.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Skip the confirmation prompt.
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// The forms of an address, as a hint.
pub const ADDRESS_FORMS: &str = "write `name`, `name[0]` or `name[\"key\"]` (quoted for your shell)";

fn deposed_key(text: &str) -> Result<DeposedKey, String> {
    text.parse().map_err(|_| "write the key as `purlin state list` shows it, such as 8e7cdf03".to_owned())
}

fn parse_address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|_| ADDRESS_FORMS.to_owned())
}

/// A key and an ID can contain `=`; the address is the shortest valid one.
fn import_of_address(text: &str) -> Result<(Address, String), String> {
    let mut splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let found = splits.find_map(|(address, id)| Some((parse_address(address).ok()?, id.to_owned())));
    found.filter(|(_, id)| !id.is_empty()).ok_or_else(|| "write ADDRESS=ID (quoted for your shell)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ids_may_contain_an_equals_sign() {
        let parsed = |text| import_of_address(text).map(|(address, id)| format!("{address} {id}"));
        assert_eq!(parsed("web=cn=a,dc=b").unwrap(), "web cn=a,dc=b");
        assert_eq!(parsed("web[\"a=b\"]=7").unwrap(), "web[\"a=b\"] 7");
        for wrong in ["web", "web=", "=7", "We b=7"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
