//! `purlin explain NAME`: why an object is in the state it is in, what it waits for, and what will happen next.

use crate::cli::args::ExplainArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::narrate::{self, Story};
use crate::cli::options::{Planning, Target, names};
use crate::cli::output::Console;
use crate::cli::situation::{Planned, Purpose, Situation};
use crate::cli::{cluster, look};
use crate::model::Address;

/// Runs the command.
pub async fn run(args: ExplainArgs, console: Console) -> anyhow::Result<Exit> {
    match Target::decide(args.target) {
        Target::Cluster(target) => {
            let found = cluster::resource(&target, &args.name, console).await?;
            let text = narrate::from_status(&found, console.paint);
            console.result(|out| out.write_all(text.as_bytes()))?;
        }
        Target::Files(files) => {
            let planning = Planning::refreshing(&args.refreshing);
            let sources_given = !files.sources.is_empty();
            let view = look::view(Target::Files(files), planning.limits, console).await?;
            let planned = if sources_given {
                Some(view.situation.plan(&view.engine, &planning, Purpose::default()).await?)
            } else {
                None
            };
            tell(&args.name, &view.situation, planned.as_ref(), console)?;
        }
    }
    Ok(Exit::Success)
}

fn tell(name: &str, situation: &Situation, planned: Option<&Planned>, console: Console) -> anyhow::Result<()> {
    let meant: Vec<Address> = situation.addresses().into_iter().filter(|address| names(name, address)).collect();
    if meant.is_empty() {
        let hint = "`purlin get` lists all of them; explain needs the same -f and --state as apply";
        return Err(Failure::hinted(format!("there is no object `{name}`"), hint));
    }
    let stories: Vec<String> =
        meant.iter().map(|address| Story { address, situation, planned, paint: console.paint }.to_string()).collect();
    if planned.is_none() {
        console.notice("What will happen next needs to know what is wanted: add -f.");
    }
    console.result(|out| out.write_all(stories.join("\n").as_bytes()))
}
