//! `purlin explain NAME`: why an object is in the state it is in, what it waits for, and what will happen next.

use std::collections::BTreeSet;

use crate::api;
use crate::cli::args::ExplainArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::narrate::{self, Story};
use crate::cli::options::{Planning, Target, names};
use crate::cli::output::Console;
use crate::cli::situation::{Planned, Purpose, Situation};
use crate::cli::{cluster, look};
use crate::model::{Action, Address, InstanceKey, Reason};

/// Runs the command.
pub async fn run(args: ExplainArgs, console: Console) -> anyhow::Result<Exit> {
    match Target::decide(args.target) {
        Target::Cluster(target) => {
            let found = cluster::resource(&target, &args.name, console).await?;
            let instance = args.name.parse::<Address>().ok().filter(|address| address.key != InstanceKey::None);
            if let Some(address) = &instance {
                require_instance(&found, address)?;
            }
            let text = narrate::from_status(&found, instance.as_ref(), console.paint);
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

/// An instance that there cannot be. Of a `forEach` family the status does not tell the keys.
fn require_instance(resource: &api::Resource, address: &Address) -> anyhow::Result<()> {
    let instances = resource.status.as_ref().and_then(|status| status.instances.as_ref());
    let hint = match instances {
        None => format!("`{}` is no family", address.name),
        Some(instances) => format!("`{}` has {} instances", address.name, instances.desired.unwrap_or_default()),
    };
    let is_known = instances.is_some_and(|instances| {
        let told = instances.troubled.iter().any(|one| one.address == address.to_string());
        let within = match (&address.key, instances.desired) {
            (InstanceKey::Index(index), Some(desired)) => *index < desired,
            _ => true,
        };
        told || within
    });
    if is_known { Ok(()) } else { Err(Failure::hinted(format!("there is no object `{address}`"), hint)) }
}

fn tell(name: &str, situation: &Situation, planned: Option<&Planned>, console: Console) -> anyhow::Result<()> {
    let config = planned.map_or(&situation.config, |planned| &planned.config);
    // A family itself is none of its instances, unless it cannot be told which ones there are: then the plan has it.
    let changes = planned.iter().flat_map(|planned| planned.plan.changes.iter().map(|change| &change.address));
    let objects = config.instances.keys().chain(situation.recorded.keys()).chain(changes);
    let all: BTreeSet<Address> = objects.cloned().collect();
    let meant: Vec<Address> = all.into_iter().filter(|address| names(name, address)).collect();
    if let Some(family) = config.families.get(name).filter(|_| meant.is_empty()) {
        let why = if family.is_disabled() { Reason::Disabled } else { Reason::NoInstances };
        let heading = console.paint.strong(name);
        let text =
            format!("{heading} ({})\n  State:      {why}: {}\n", family.shared.type_name, why.explanation().trim());
        return console.result(|out| out.write_all(text.as_bytes()));
    }
    if meant.is_empty() {
        let hint = "`purlin get` lists all of them; explain needs the same -f and --state as apply";
        return Err(Failure::hinted(format!("there is no object `{name}`"), hint));
    }
    let story = |address: &Address| Story { address, situation, planned, paint: console.paint }.to_string();
    // Of a large family those come first that something is to be done about.
    let settled = |address: &&Address| planned.is_some_and(|planned| is_settled(planned, address));
    let (rest, mut shown): (Vec<&Address>, Vec<&Address>) =
        meant.iter().partition(|address| meant.len() > narrate::MOST_SHOWN && settled(address));
    let room = narrate::MOST_SHOWN.saturating_sub(shown.len());
    shown.extend(rest.iter().take(room));
    shown.truncate(narrate::MOST_SHOWN);
    let mut stories: Vec<String> = shown.iter().map(|address| story(address)).collect();
    if meant.len() > shown.len() {
        let unsettled = meant.len() - rest.len();
        let more = meant.len() - shown.len();
        let of_note =
            if planned.is_some() { format!(", of which {unsettled} are to change or blocked") } else { String::new() };
        stories.push(format!("`{name}` has {} instances{of_note}; {more} are not shown.\n", meant.len()));
    }
    if planned.is_none() {
        console.notice("What will happen next needs to know what is wanted: add -f.");
    }
    console.result(|out| out.write_all(stories.join("\n").as_bytes()))
}

/// Whether nothing is to be done about an object, nor about a leftover of it.
fn is_settled(planned: &Planned, address: &Address) -> bool {
    let mut own = planned.plan.changes.iter().filter(|change| change.address == *address);
    own.all(|change| change.action == Action::NoOp)
}
