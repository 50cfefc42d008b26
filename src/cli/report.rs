//! The output of `purlin explain`.

use std::fmt::{self, Display, Formatter, Write as _};

use petgraph::graph::NodeIndex;

use super::inputs::{Inputs, PlanResult};
use api::conditions::{self, ConditionType};
use engine::graph::{ActionGraph, Wait};
use engine::plan::options::state_word;
use model::text::one_line;
use model::{Action, Address, Change, InstanceKey, Record, ReplaceOrder, Text, Tone, display_id};
use runtime::store::LastFailure;

/// The maximum number of items in a list.
pub const MAX_ITEMS: usize = 20;

/// The explanation of one object, formatted by `Display` from the type on.
pub struct ObjectReport<'a> {
    pub address: &'a Address,
    pub inputs: &'a Inputs,
    /// `None` without manifests.
    pub planned: Option<&'a PlanResult>,
}

impl Display for ObjectReport<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let record = self.inputs.recorded.get(self.address).map(|stored| stored.record.as_ref());
        self.heading(f, record)?;
        match self.address.is_data() {
            true => write_entry(f, "State", self.reading())?,
            false => write_state(f, record)?,
        }
        if let Some(failure) = self.inputs.failures.get(self.address) {
            let LastFailure { at, operation, reason, message, .. } = failure;
            write_entry(f, "Failure", &format!("{operation} failed at {at:.0} ({reason}): {message}"))?;
        }
        let Some(planned) = self.planned else { return self.recorded_users(f) };
        self.lifecycle(f, planned)?;
        self.dependencies(f, planned)?;
        for change in planned.plan.objects.get(self.address).into_iter().flat_map(|object| object.changes()) {
            write_next(f, change)?;
        }
        self.problems(f, planned)?;
        self.steps(f, &planned.graph)
    }
}

impl ObjectReport<'_> {
    fn heading(&self, f: &mut Formatter<'_>, record: Option<&Record>) -> fmt::Result {
        let config = self.planned.map_or(&self.inputs.config, |planned| &planned.config);
        let instance = config.instances.get(self.address);
        let type_name = instance.map(|instance| &instance.type_name).or(record.map(|record| &record.type_name));
        type_name.map_or(Ok(()), |type_name| write!(f, " ({type_name})"))?;
        match instance.and_then(|instance| instance.source.as_ref()) {
            Some(source) => writeln!(f, ", {source}"),
            None => writeln!(f),
        }
    }

    /// Whether a data source could be read. Its values are not recorded.
    fn reading(&self) -> &'static str {
        match self.planned {
            Some(planned) if planned.plan.objects.get(self.address).is_some_and(|object| object.reading.is_some()) => {
                "read, with each plan"
            }
            _ => "read with each plan, and not recorded",
        }
    }

    fn lifecycle(&self, f: &mut Formatter<'_>, planned: &PlanResult) -> fmt::Result {
        let object = planned.plan.objects.get(self.address).filter(|_| !self.address.is_data());
        let lifecycle = object.and_then(|object| object.lifecycle.as_ref());
        let Some(lifecycle) = lifecycle else { return Ok(()) };
        let text = match (lifecycle.create_before_destroy, lifecycle.forced_by.as_slice()) {
            (false, _) => "destroy before create".to_owned(),
            (true, []) => "create before destroy".to_owned(),
            (true, [dependent]) => format!("create before destroy, required by its dependent `{dependent}`"),
            (true, chain) => format!("create before destroy, required by its dependents {}", quoted(chain.iter())),
        };
        write_entry(f, "Lifecycle", &text)
    }

    fn dependencies(&self, f: &mut Formatter<'_>, planned: &PlanResult) -> fmt::Result {
        let dependencies = planned.plan.dependencies_of(self.address);
        if !dependencies.is_empty() {
            write_entry(f, "Depends on", &quoted(dependencies.iter()))?;
        }
        // A reference to a whole family is a dependency on each of its instances.
        let family = Address { key: InstanceKey::None, ..self.address.clone() };
        let dependents = planned
            .plan
            .dependencies()
            .filter(|(_, wants)| wants.binary_search(self.address).is_ok() || wants.binary_search(&family).is_ok());
        let dependents: Vec<&Address> = dependents.map(|(user, _)| user).collect();
        if dependents.is_empty() { Ok(()) } else { write_entry(f, "Used by", &quoted(dependents.into_iter())) }
    }

    /// Who uses the object, according to the records.
    fn recorded_users(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut users = Vec::new();
        for (user, stored) in &self.inputs.recorded {
            let mut dependencies = stored.record.current.iter().flat_map(|object| object.dependencies.iter());
            if dependencies.any(|used| used == self.address || (!used.is_instance() && used.stem == self.address.stem))
            {
                users.push(user);
            }
        }
        if users.is_empty() { Ok(()) } else { write_entry(f, "Used by", &quoted(users.into_iter())) }
    }

    fn problems(&self, f: &mut Formatter<'_>, planned: &PlanResult) -> fmt::Result {
        let problems = planned.diagnostics.iter().filter(|problem| problem.address.as_ref() == Some(self.address));
        for problem in problems {
            write_entry(
                f,
                "Problem",
                &format!("{problem} [{}: {}]", problem.reason, problem.reason.explanation().trim()),
            )?;
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

fn write_state(f: &mut Formatter<'_>, record: Option<&Record>) -> fmt::Result {
    let Some(record) = record else { return write_entry(f, "State", "not created yet") };
    match &record.current {
        Some(object) => {
            let id = display_id(&object.value).map(|id| format!(", id {id}")).unwrap_or_default();
            write_entry(f, "State", &format!("{}{id}", state_word(object)))?;
        }
        None => write_entry(f, "State", "no current object")?,
    }
    for (key, object) in &record.deposed {
        let id = display_id(&object.value).map(|id| format!(", id {id}")).unwrap_or_default();
        write_entry(f, "Deposed", &format!("{key}{id}, replaced but not destroyed yet"))?;
    }
    if let Some(intent) = &record.intent {
        let text = format!("{} since {:.0}, running or interrupted", intent.operation.as_str(), intent.started);
        write_entry(f, "Operation", &text)?;
    }
    if record.replacement_pending {
        write_entry(f, "Replacement", "the old object was destroyed, the new object is not created yet")?;
    }
    Ok(())
}

fn write_next(f: &mut Formatter<'_>, change: &Change) -> fmt::Result {
    let deposed = change.deposed.map(|key| format!("deposed {key}: ")).unwrap_or_default();
    let mut text = format!("{deposed}{}", action_text(change));
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
    write_entry(f, "Next", &text)?;
    if change.waiting_for.is_empty() {
        return Ok(());
    }
    write_entry(f, "Waits for", &quoted(change.waiting_for.iter()))
}

/// Writes a line for each edge, with the step at its other end.
fn edges(
    f: &mut Formatter<'_>,
    graph: &ActionGraph,
    verb: &str,
    edges: impl Iterator<Item = (NodeIndex, (NodeIndex, NodeIndex, Wait))>,
) -> fmt::Result {
    let lines: Vec<String> = edges
        .map(|(other, (from, to, wait))| format!("    {verb} `{}`: {}", graph.id(other), graph.explain(from, to, wait)))
        .collect();
    for line in lines.iter().take(MAX_ITEMS) {
        writeln!(f, "{line}")?;
    }
    match lines.len().saturating_sub(MAX_ITEMS) {
        0 => Ok(()),
        more => writeln!(f, "    {verb} {more} more; `purlin graph` shows all of them"),
    }
}

fn action_text(change: &Change) -> &'static str {
    match (change.action, change.order) {
        (Action::NoOp, _) => "no changes, it is up to date",
        (Action::Record, _) => "only its record is updated",
        (Action::Wait, _) => "Purlin waits until it is ready",
        (Action::Create, _) => "it is created",
        (Action::Update, _) => "it is updated in place",
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => "it is replaced (create before destroy)",
        (Action::Replace, _) => "it is replaced (destroy before create)",
        (Action::Destroy, _) => "it is destroyed",
        (Action::Forget, _) => "it is forgotten; the object is not destroyed",
        (Action::Read, _) => "it is read after its dependencies are ready",
        (Action::Blocked, _) => "blocked",
    }
}

fn write_entry(f: &mut dyn fmt::Write, label: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {:<12} {}", format!("{label}:"), one_line(text))
}

fn quoted<T: Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(MAX_ITEMS);
    let shown: Vec<String> = items.take(MAX_ITEMS).map(|item| format!("`{item}`")).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

/// Writes the status that the controller wrote, and that of one instance if `instance` is set.
/// `users`: the names of the Resources that use it.
pub fn status_report(resource: &api::Resource, users: &[String], instance: Option<&Address>, text: &mut Text) {
    // Writing to a `Text` cannot fail.
    let _ = write_status(text, resource, users);
    if let Some(address) = instance {
        let _ = write_instance(text, resource, address);
    }
}

fn write_instance(text: &mut Text, resource: &api::Resource, address: &Address) -> fmt::Result {
    let instances = resource.status.as_ref().and_then(|status| status.instances.as_ref());
    let mut troubled = instances.into_iter().flat_map(|instances| &instances.troubled);
    text.tone(Tone::Strong, address).end_line();
    let troubled_instance = troubled.find(|instance| instance.address == address.to_string());
    let state = troubled_instance
        .map_or("no problem is reported".to_owned(), |instance| format!("{}: {}", instance.reason, instance.message));
    write_entry(text, "State", &state)?;
    write_entry(text, "More", &format!("`purlin state show '{address}'` shows its record"))
}

fn write_status(text: &mut Text, resource: &api::Resource, users: &[String]) -> fmt::Result {
    let name = resource.metadata.name.as_deref().unwrap_or_default();
    text.tone(Tone::Strong, name);
    writeln!(text, " ({})", resource.spec.type_name)?;
    let Some(status) = &resource.status else {
        return write_entry(text, "State", "not yet observed by the controller");
    };
    if Some(status.observed_generation) != resource.metadata.generation {
        write_entry(text, "State", "the controller has not observed the latest change yet; the following is outdated")?;
    }
    match (&status.id, &status.display_id) {
        (Some(id), Some(shown)) if id != shown => write_entry(text, "Id", &format!("{shown} ({id})"))?,
        (Some(id), _) | (None, Some(id)) => write_entry(text, "Id", id)?,
        (None, None) => {}
    }
    let mut previous_message = "";
    for condition in &status.conditions {
        // Several conditions often have the same message.
        let is_new = !condition.message.is_empty() && condition.message != previous_message;
        let message = if is_new { format!(": {}", condition.message) } else { String::new() };
        previous_message = &condition.message;
        write_entry(text, &condition.type_, &format!("{} ({}){message}", condition.status, condition.reason))?;
    }
    if let Some(lifecycle) = &status.lifecycle {
        let order = if lifecycle.create_before_destroy { "create before destroy" } else { "destroy before create" };
        let because = if lifecycle.because.is_empty() { String::new() } else { format!(", {}", lifecycle.because) };
        write_entry(text, "Lifecycle", &format!("{order}{because}"))?;
    }
    if !status.dependencies.is_empty() {
        write_entry(text, "Depends on", &quoted(status.dependencies.iter()))?;
    }
    if !users.is_empty() {
        write_entry(text, "Used by", &quoted(users.iter()))?;
    }
    if let Some(instances) = &status.instances {
        write_instances(text, instances)?;
    }
    for deposed in &status.deposed {
        let waits = match deposed.waiting_for.as_slice() {
            [] => String::new(),
            waiting => format!(", waits for {}", quoted(waiting.iter())),
        };
        let of = if deposed.instance.is_empty() { String::new() } else { format!(" of {name}{}", deposed.instance) };
        write_entry(text, "Deposed", &format!("{}{of} (id {}){waits}", deposed.key, deposed.id))?;
    }
    write_next_step(text, status)
}

fn write_next_step(text: &mut Text, status: &api::ResourceStatus) -> fmt::Result {
    let ready = conditions::find(&status.conditions, ConditionType::Ready);
    let is_ready = ready.is_some_and(|ready| ready.status == "True");
    let Some(pending) = &status.pending else {
        return write_entry(text, "Next", if is_ready { "nothing to do" } else { "nothing for now" });
    };
    let paths = match pending.paths.as_slice() {
        [] => String::new(),
        paths => format!(" ({})", quoted(paths.iter())),
    };
    write_entry(text, "Next", &format!("{}{paths}", pending.action))?;
    if pending.waiting_for.is_empty() {
        Ok(())
    } else {
        write_entry(text, "Waits for", &quoted(pending.waiting_for.iter()))
    }
}

fn write_instances(text: &mut Text, instances: &api::Instances) -> fmt::Result {
    let desired = instances.desired.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
    let deposed = if instances.deposed == 0 { String::new() } else { format!(", {} deposed", instances.deposed) };
    write_entry(text, "Instances", &format!("{} of {desired} ready{deposed}", instances.ready))?;
    for api::TroubledInstance { address, reason, message } in &instances.troubled {
        writeln!(text, "    {address} ({reason}): {}", one_line(message))?;
    }
    Ok(())
}
