//! The arguments of `purlin ui`.

use clap::Args;

use super::{PruneArgs, TargetArgs};

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
