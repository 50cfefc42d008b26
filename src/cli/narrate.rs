//! The text of `explain`.

use std::fmt::{self, Display, Formatter, Write as _};

use petgraph::graph::NodeIndex;

use super::output::Paint;
use super::situation::{Planned, Situation};
use crate::api;
use crate::graph::{ActionGraph, Wait};
use crate::model::{Action, Address, Change, InstanceKey, Record, ReplaceOrder};
use crate::plan::options::status_word;

/// A step may be waited for by thousands; what one reads ends earlier.
pub const MOST_SHOWN: usize = 20;

/// All there is to say about one object.
pub struct Story<'a> {
    /// Which object.
    pub address: &'a Address,
    /// What is wanted and recorded.
    pub situation: &'a Situation,
    /// What will be done, when that is known.
    pub planned: Option<&'a Planned>,
    /// How headings look.
    pub paint: Paint,
}

impl Display for Story<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let record = self.situation.recorded.get(self.address).map(|stored| stored.record.as_ref());
        self.heading(f, record)?;
        state(f, record)?;
        let Some(planned) = self.planned else { return Ok(()) };
        self.lifecycle(f, planned)?;
        self.dependencies(f, planned)?;
        for change in planned.plan.changes.iter().filter(|change| change.address == *self.address) {
            next(f, change)?;
        }
        self.problems(f, planned)?;
        self.steps(f, &planned.graph)
    }
}

impl Story<'_> {
    fn heading(&self, f: &mut Formatter<'_>, record: Option<&Record>) -> fmt::Result {
        let config = self.planned.map_or(&self.situation.config, |planned| &planned.config);
        let instance = config.instances.get(self.address);
        let type_name = instance.map(|instance| &instance.type_name).or(record.map(|record| &record.type_name));
        write!(f, "{}", self.paint.strong(&self.address.to_string()))?;
        type_name.map_or(Ok(()), |type_name| write!(f, " ({type_name})"))?;
        match instance.and_then(|instance| instance.source.as_ref()) {
            Some(source) => writeln!(f, ", {source}"),
            None => writeln!(f),
        }
    }

    fn lifecycle(&self, f: &mut Formatter<'_>, planned: &Planned) -> fmt::Result {
        let Some(lifecycle) = planned.plan.lifecycle.get(self.address) else { return Ok(()) };
        let text = match (lifecycle.create_before_destroy, lifecycle.forced_by.as_slice()) {
            (false, _) => "a replacement destroys first".to_owned(),
            (true, []) => "a replacement creates first".to_owned(),
            (true, [dependent]) => format!("a replacement creates first, because `{dependent}` does and needs it"),
            (true, chain) => format!("a replacement creates first, because of {}", quoted(chain.iter())),
        };
        entry(f, "Lifecycle", &text)
    }

    fn dependencies(&self, f: &mut Formatter<'_>, planned: &Planned) -> fmt::Result {
        let wants = planned.plan.wants.get(self.address).map(AsRef::as_ref).unwrap_or_default();
        if !wants.is_empty() {
            entry(f, "Depends on", &quoted(wants.iter()))?;
        }
        // Who refers to a whole family uses each of its instances.
        let family = Address { key: InstanceKey::None, ..self.address.clone() };
        let uses =
            |wants: &[Address]| wants.binary_search(self.address).is_ok() || wants.binary_search(&family).is_ok();
        let users: Vec<&Address> =
            planned.plan.wants.iter().filter(|(_, wants)| uses(wants)).map(|(user, _)| user).collect();
        if users.is_empty() { Ok(()) } else { entry(f, "Used by", &quoted(users.into_iter())) }
    }

    fn problems(&self, f: &mut Formatter<'_>, planned: &Planned) -> fmt::Result {
        let own = planned.diagnostics.iter().filter(|found| found.address.as_ref() == Some(self.address));
        for problem in own {
            entry(f, "Problem", &format!("{problem} [{}: {}]", problem.reason, problem.reason.explanation().trim()))?;
        }
        Ok(())
    }

    fn steps(&self, f: &mut Formatter<'_>, graph: &ActionGraph) -> fmt::Result {
        for node in graph.nodes().filter(|node| graph.step(*node).address == *self.address) {
            writeln!(f, "  Step `{}`", graph.id(node))?;
            edges(f, graph, "waits for", graph.waits_for(node).into_iter().map(|(to, wait)| (to, (node, to, wait))))?;
            let others = graph.nodes().filter(|other| *other != node);
            let waiting =
                others.flat_map(|other| graph.waits_for(other).into_iter().map(move |(to, wait)| (other, to, wait)));
            let waiting = waiting.filter(|(_, to, _)| *to == node);
            edges(f, graph, "is waited for by", waiting.map(|edge| (edge.0, edge)))?;
        }
        Ok(())
    }
}

fn state(f: &mut Formatter<'_>, record: Option<&Record>) -> fmt::Result {
    let Some(record) = record else { return entry(f, "State", "nothing is recorded: it does not exist yet") };
    match &record.current {
        Some(object) => {
            let id = object.id().map(|id| format!(", id {id}")).unwrap_or_default();
            entry(f, "State", &format!("{}{id}", status_word(object.status)))?;
        }
        None => entry(f, "State", "no current object")?,
    }
    for (key, object) in &record.deposed {
        let id = object.id().map(|id| format!(", id {id}")).unwrap_or_default();
        entry(f, "Leftover", &format!("{key}{id}, replaced and not destroyed yet"))?;
    }
    if let Some(intent) = &record.intent {
        let text = format!("{} since {:.0}, cut or still running", intent.operation.as_str(), intent.started);
        entry(f, "Open", &text)?;
    }
    if record.replacement_pending {
        entry(f, "Replacement", "the old object is destroyed, the new one is still missing")?;
    }
    Ok(())
}

fn next(f: &mut Formatter<'_>, change: &Change) -> fmt::Result {
    let leftover = change.deposed.map(|key| format!("leftover {key}: ")).unwrap_or_default();
    let mut text = format!("{leftover}{}", what_happens(change));
    if let Some(because) = &change.because {
        let _ = write!(text, " ({because})");
    }
    if !change.replace_paths.is_empty() {
        let _ = write!(text, ", forced by {}", quoted(change.replace_paths.iter()));
    }
    if let Some(reason) = change.blocked.or(change.hold_destroy) {
        let _ = write!(text, " ({reason})");
    }
    if !change.message.is_empty() {
        let _ = write!(text, ": {}", change.message);
    }
    entry(f, "Next", &text)?;
    if change.waiting_for.is_empty() {
        return Ok(());
    }
    entry(f, "Waits for", &quoted(change.waiting_for.iter()))
}

/// A line for each edge, from the step at its other end.
fn edges(
    f: &mut Formatter<'_>,
    graph: &ActionGraph,
    verb: &str,
    edges: impl Iterator<Item = (NodeIndex, (NodeIndex, NodeIndex, Wait))>,
) -> fmt::Result {
    let line = |(other, (from, to, wait))| format!("    {verb} `{}`: {}", graph.id(other), graph.why(from, to, wait));
    let lines: Vec<String> = edges.map(line).collect();
    for line in lines.iter().take(MOST_SHOWN) {
        writeln!(f, "{line}")?;
    }
    match lines.len().saturating_sub(MOST_SHOWN) {
        0 => Ok(()),
        more => writeln!(f, "    {verb} {more} more; `purlin graph` has them all"),
    }
}

fn what_happens(change: &Change) -> &'static str {
    match (change.action, change.order) {
        (Action::NoOp, _) => "nothing, it is as it should be",
        (Action::Record, _) => "only its record is brought up to date",
        (Action::Wait, _) => "it is waited for until it is ready",
        (Action::Create, _) => "it is created",
        (Action::Update, _) => "it is updated in place",
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => "it is replaced, the new object is created first",
        (Action::Replace, _) => "it is replaced, the old object is destroyed first",
        (Action::Destroy, _) => "it is destroyed",
        (Action::Forget, _) => "it is forgotten; the object stays",
        (Action::Read, _) => "it is read, once all that it needs is done",
        (Action::Blocked, _) => "nothing for now",
    }
}

fn entry(f: &mut dyn fmt::Write, label: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {:<13}{text}", format!("{label}:"))
}

fn quoted<T: Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(MOST_SHOWN);
    let shown: Vec<String> = items.take(MOST_SHOWN).map(|item| format!("`{item}`")).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

/// The same from what the controller has written into the status, of the instance of a family that is asked for too.
pub fn from_status(resource: &api::Resource, instance: Option<&Address>, paint: Paint) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_status(&mut text, resource, paint);
    if let Some(address) = instance {
        let _ = write_instance(&mut text, resource, address, paint);
    }
    text
}

fn write_instance(text: &mut String, resource: &api::Resource, address: &Address, paint: Paint) -> fmt::Result {
    let instances = resource.status.as_ref().and_then(|status| status.instances.as_ref());
    let mut troubled = instances.into_iter().flat_map(|instances| &instances.troubled);
    writeln!(text, "{}", paint.strong(&address.to_string()))?;
    let told = troubled.find(|one| one.address == address.to_string());
    let state = told.map_or("no trouble of it is told".to_owned(), |one| format!("{}: {}", one.reason, one.message));
    entry(text, "State", &state)?;
    entry(text, "More", &format!("`purlin state show '{address}'` shows what is recorded of it"))
}

fn write_status(text: &mut String, resource: &api::Resource, paint: Paint) -> fmt::Result {
    let name = resource.metadata.name.as_deref().unwrap_or_default();
    writeln!(text, "{} ({})", paint.strong(name), resource.spec.type_name)?;
    let Some(status) = &resource.status else { return entry(text, "State", "the controller has not seen it yet") };
    if Some(status.observed_generation) != resource.metadata.generation {
        entry(text, "State", "the controller has not seen the latest change yet; what follows is older")?;
    }
    if let Some(id) = &status.id {
        entry(text, "Id", id)?;
    }
    let mut told = "";
    for condition in &status.conditions {
        // Several conditions mostly tell the same.
        let is_news = !condition.message.is_empty() && condition.message != told;
        let message = if is_news { format!(": {}", condition.message) } else { String::new() };
        told = &condition.message;
        entry(text, &condition.type_, &format!("{} ({}){message}", condition.status, condition.reason))?;
    }
    if let Some(lifecycle) = &status.lifecycle {
        let order = if lifecycle.create_before_destroy { "creates first" } else { "destroys first" };
        let because = if lifecycle.because.is_empty() { String::new() } else { format!(", {}", lifecycle.because) };
        entry(text, "Lifecycle", &format!("a replacement {order}{because}"))?;
    }
    if !status.dependencies.is_empty() {
        entry(text, "Depends on", &quoted(status.dependencies.iter()))?;
    }
    if let Some(instances) = &status.instances {
        write_instances(text, instances)?;
    }
    for leftover in &status.deposed {
        let waits = match leftover.waiting_for.as_slice() {
            [] => String::new(),
            waiting => format!(", waits for {}", quoted(waiting.iter())),
        };
        let of = if leftover.instance.is_empty() { String::new() } else { format!(" of {name}{}", leftover.instance) };
        entry(text, "Leftover", &format!("{}{of} (id {}){waits}", leftover.key, leftover.id))?;
    }
    let is_ready = status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let Some(pending) = &status.pending else {
        return entry(text, "Next", if is_ready { "nothing is to be done" } else { "nothing for now" });
    };
    let paths = match pending.paths.as_slice() {
        [] => String::new(),
        paths => format!(" ({})", quoted(paths.iter())),
    };
    entry(text, "Next", &format!("{}{paths}", pending.action))?;
    if pending.waiting_for.is_empty() { Ok(()) } else { entry(text, "Waits for", &quoted(pending.waiting_for.iter())) }
}

fn write_instances(text: &mut String, instances: &api::Instances) -> fmt::Result {
    let desired = instances.desired.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
    let deposed = if instances.deposed == 0 { String::new() } else { format!(", {} old ones", instances.deposed) };
    entry(text, "Instances", &format!("{} of {desired} ready{deposed}", instances.ready))?;
    for api::TroubledInstance { address, reason, message } in &instances.troubled {
        writeln!(text, "    {address} ({reason}): {message}")?;
    }
    Ok(())
}
