//! `purlin diff`: shows what applying manifests to a cluster would change. Read-only.

use crate::cli::args::DiffArgs;
use crate::cli::failure::Exit;
use crate::cli::output::Console;
use crate::cli::preview::{self, PreviewRequest};

pub async fn run(args: DiffArgs, console: Console) -> anyhow::Result<Exit> {
    preview::run(&PreviewRequest::of_diff(args), console).await
}
