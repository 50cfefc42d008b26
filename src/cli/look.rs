//! Looks at a target without changing anything: what `plan`, `graph`, `explain` and `get` start from.

use super::options::Target;
use super::output::Console;
use super::view::View;
use super::{cluster, local};
use crate::execute::Limits;

/// Looks at a target that must say what is wanted.
pub async fn wanted(target: Target, limits: Limits, console: Console, command: &str) -> anyhow::Result<View> {
    if let Target::Files(files) = &target {
        files.require_sources(command)?;
    }
    view(target, limits, console).await
}

/// Looks at a target.
pub async fn view(target: Target, limits: Limits, console: Console) -> anyhow::Result<View> {
    match target {
        Target::Files(files) => local::look(&files, limits, console).await,
        Target::Cluster(cluster) => cluster::look(&cluster, limits, console).await,
    }
}
