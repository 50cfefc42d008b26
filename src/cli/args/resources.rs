//! The arguments of commands about objects and Plans of a cluster.

use std::time::Duration;

use clap::Args;

use super::{TargetArgs, hide_file_options};

/// Which objects of a cluster, if no names are given.
#[derive(Clone, Debug, Default, Args)]
pub struct ChoiceArgs {
    /// Only objects with these labels, as for `kubectl get -l`.
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
    /// The objects of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["names", "namespace"])]
    pub all_namespaces: bool,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_file_options))]
pub struct ResourceArgs {
    /// The names of the Resources; `data.NAME` for a DataSource.
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "selector"])]
    pub names: Vec<String>,
    /// All Resources and DataSources of the namespace, with -A of all namespaces.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_file_options))]
pub struct ReconcileArgs {
    #[command(flatten)]
    pub resources: ResourceArgs,
    /// How long to wait until the objects are ready, such as `90s` or `10m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub timeout: Duration,
    /// Do not wait for the result.
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_file_options))]
pub struct DecisionArgs {
    /// The name of the Plan, as the status of the Resource shows it.
    pub name: String,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

fn duration(text: &str) -> Result<Duration, String> {
    engine::load::duration::parse(text).ok_or_else(|| "write a duration such as `90s` or `10m`".to_owned())
}
