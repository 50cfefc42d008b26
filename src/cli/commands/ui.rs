//! `purlin ui`: the live view in a browser.

use std::sync::Arc;

use crate::cli::args::UiArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Target;
use crate::cli::output::Console;
use crate::cli::ui::{self, FilesSession, Follower};
use controller::ui::cluster::ClusterSession;

/// Serves until a signal.
pub async fn run(args: UiArgs, console: Console) -> anyhow::Result<Exit> {
    match Target::from_args(args.target).pruning(args.pruning.prune) {
        Target::Files(files) => {
            files.require_sources("ui")?;
            if files.sources.iter().any(|source| source.as_os_str() == "-") {
                return Err(Failure::hinted(
                    "standard input cannot be watched",
                    "specify a directory: `purlin ui -f DIR`",
                ));
            }
            let session = Arc::new(FilesSession::new(files));
            // The first plan, so that its errors are on the page when it opens.
            let follower = Follower::new(session.clone()).await;
            let namespace = session.namespace();
            tokio::select! {
                served = ui::serve(session.clone(), args.port, &namespace, console) => served?,
                () = follower.follow() => {}
            }
        }
        Target::Cluster(target) => {
            let (client, namespace) = cluster::client(&target, console).await?;
            let session = ClusterSession::new(client, target.controller_namespace.as_str(), &namespace);
            ui::serve(Arc::new(session), args.port, &namespace, console).await?;
        }
    }
    Ok(Exit::Success)
}
