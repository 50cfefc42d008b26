//! `purlin dev`: watches a directory and applies its changes.

use std::time::Instant;

use crate::cli::args::DevArgs;
use crate::cli::dev::{DevSession, Watch};
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::{Planning, Target};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;

/// Runs until a signal is received.
pub async fn run(args: DevArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::refreshing(&args.refreshing);
    let files = Target::from_args(args.target).files_only("dev")?.pruning(args.pruning.prune);
    files.require_sources("dev")?;
    if files.sources.iter().any(|source| source.as_os_str() == "-") {
        return Err(Failure::hinted("standard input cannot be watched", "specify a directory: `purlin dev -f DIR`"));
    }
    let watch = Watch::new(&files, Instant::now());
    let locked = local::lock(&files, planning.limits, console).await?;
    let reporter = Reporter::text(console, args.no_progress);
    DevSession::new(locked, files, watch, &planning, reporter, console).run().await
}
