//! Reads a target without changing anything, for commands such as `plan`, `graph`, `explain` and `get`.

use super::options::Target;
use super::output::Console;
use super::view::View;
use super::{cluster, local};
use runtime::execute::Limits;

/// Reads a target, and rejects a state file without manifests.
pub async fn view_with_sources(
    target: Target,
    limits: Limits,
    console: Console,
    command: &str,
) -> anyhow::Result<View> {
    if let Target::Files(files) = &target {
        files.require_sources(command)?;
    }
    view(target, limits, console).await
}

pub async fn view(target: Target, limits: Limits, console: Console) -> anyhow::Result<View> {
    match target {
        Target::Files(files) => local::inspect(&files, limits, console).await,
        Target::Cluster(cluster) => cluster::inspect(&cluster, limits, console).await,
    }
}
