//! `purlin dev`: keeps everything as a watched folder asks for.

use crate::cli::args::DevArgs;
use crate::cli::dev::Dev;
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::{Planning, Target};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;

/// Runs the command until it is stopped.
pub async fn run(args: DevArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::refreshing(&args.refreshing);
    let files = Target::decide(args.target).files_only("dev")?;
    files.require_sources("dev")?;
    if files.sources.iter().any(|source| source.as_os_str() == "-") {
        return Err(Failure::hinted("standard input cannot be watched", "name a folder: `purlin dev -f DIR`"));
    }
    let locked = local::lock(&files, planning.limits, console).await?;
    let reporter = Reporter::text(console, args.no_progress);
    Dev::new(locked, files, &planning, reporter, console).run().await
}
