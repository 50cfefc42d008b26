//! `purlin explain NAME`: explains the state of an object, what it waits for, and what happens next.

use crate::cli::args::ExplainArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::{Inputs, PlanParameters, PlanResult};
use crate::cli::options::{Planning, Target, matches_name};
use crate::cli::output::Console;
use crate::cli::report::{self, ObjectReport};
use crate::cli::view::View;
use model::{Action, Address, InstanceKey, Reason, Tone};
use std::collections::BTreeSet;

pub async fn run(args: ExplainArgs, console: Console) -> anyhow::Result<Exit> {
    match Target::from_args(args.target) {
        Target::Cluster(target) => {
            let (found, users) = cluster::resource_and_users(&target, &args.name, console).await?;
            let instance = args.name.parse::<Address>().ok().filter(|address| address.key != InstanceKey::None);
            if let Some(address) = &instance {
                require_instance(&found, address)?;
            }
            let mut text = console.text();
            report::status_report(&found, &users, instance.as_ref(), &mut text);
            console.print(&text)?;
        }
        Target::Files(files) => {
            let planning = Planning::refreshing(&args.refreshing);
            let sources_given = !files.sources.is_empty();
            let view = View::open(Target::Files(files), planning.limits, console).await?;
            let planned = if sources_given {
                Some(view.inputs.plan(&view.engine, &planning, PlanParameters::default()).await?)
            } else {
                None
            };
            explain_objects(&args.name, &view.inputs, planned.as_ref(), console)?;
        }
    }
    Ok(Exit::Success)
}

/// Returns an error if the instance cannot exist. The status does not contain the keys of a `forEach` family.
fn require_instance(resource: &api::Resource, address: &Address) -> anyhow::Result<()> {
    let instances = resource.status.as_ref().and_then(|status| status.instances.as_ref());
    let hint = match instances {
        None => format!("`{}` is not a family", address.name()),
        Some(instances) => format!("`{}` has {} instances", address.name(), instances.desired.unwrap_or_default()),
    };
    let is_known = instances.is_some_and(|instances| {
        let is_troubled = instances.troubled.iter().any(|instance| instance.address == address.to_string());
        let within = match (&address.key, instances.desired) {
            (InstanceKey::Index(index), Some(desired)) => *index < desired,
            _ => true,
        };
        is_troubled || within
    });
    if is_known { Ok(()) } else { Err(Failure::hinted(format!("there is no object `{address}`"), hint)) }
}

fn explain_objects(name: &str, inputs: &Inputs, planned: Option<&PlanResult>, console: Console) -> anyhow::Result<()> {
    let config = planned.map_or(&inputs.config, |planned| &planned.config);
    // The plan contains a family itself only if its instances are unknown.
    let changes = planned.iter().flat_map(|planned| planned.plan.changes().map(|change| &change.address));
    let objects = config.instances.keys().chain(inputs.recorded.keys()).chain(inputs.failures.keys()).chain(changes);
    let addresses: BTreeSet<Address> = objects.cloned().collect();
    let selected: Vec<Address> = addresses.into_iter().filter(|address| matches_name(name, address)).collect();
    let stem = name.parse::<Address>().ok().map(|address| address.stem);
    let family = stem.and_then(|stem| config.families.get(&stem));
    if let Some(family) = family.filter(|_| selected.is_empty()) {
        let why = if family.is_disabled() { Reason::Disabled } else { Reason::NoInstances };
        let mut text = console.text();
        let (type_name, explanation) = (&family.shared.type_name, why.explanation().trim());
        text.tone(Tone::Strong, name).put(format_args!(" ({type_name})\n  State:      {why}: {explanation}\n"));
        return console.print(&text);
    }
    if selected.is_empty() {
        let hint = match name.starts_with("data.") && planned.is_none() {
            true => "data sources are not recorded: add -f",
            false => "`purlin get` lists all objects; use the same -f and --state as for apply",
        };
        return Err(Failure::hinted(format!("there is no object `{name}`"), hint));
    }
    // Of a large family, instances with changes come first.
    let (rest, mut shown): (Vec<&Address>, Vec<&Address>) = selected.iter().partition(|address| {
        selected.len() > report::MAX_ITEMS && planned.is_some_and(|planned| is_unchanged(planned, address))
    });
    let room = report::MAX_ITEMS.saturating_sub(shown.len());
    shown.extend(rest.iter().take(room));
    shown.truncate(report::MAX_ITEMS);
    let mut text = console.text();
    for (position, address) in shown.iter().copied().enumerate() {
        text.put(if position > 0 { "\n" } else { "" });
        text.tone(Tone::Strong, address).put(ObjectReport { address, inputs, planned });
    }
    if selected.len() > shown.len() {
        let changing = selected.len() - rest.len();
        let more = selected.len() - shown.len();
        let change_count =
            if planned.is_some() { format!(", {changing} with changes or blocked") } else { String::new() };
        text.put(format_args!("\n`{name}` has {} instances{change_count}; {more} are not shown.\n", selected.len()));
    }
    if planned.is_none() {
        console.notice("Add -f to show what happens next.");
    }
    console.print(&text)
}

/// Whether the plan changes neither an object nor its deposed objects.
fn is_unchanged(planned: &PlanResult, address: &Address) -> bool {
    let mut changes = planned.plan.objects.get(address).into_iter().flat_map(|object| object.changes());
    changes.all(|change| change.action == Action::NoOp)
}
