//! Prints a plan as text or JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::inputs::{OtherSources, PlanResult};
use super::json::{Diagnostics, FORMAT_VERSION};
use super::output::Console;
use super::outputs::OutputChanges;
use api::PlanGraph;
use engine::graph::render::mermaid;
use engine::plan::render::json::Changes;
use engine::plan::render::summary::Counts;
use engine::plan::render::{Detail, is_shown, markdown, problems, write_change, write_legend};
use model::text::counted;
use model::{Text, Tone, Value};

/// Prints every object that changes and the headline, then the problems to standard error.
pub fn plan(planned: &PlanResult, detail: Detail, console: Console) -> anyhow::Result<()> {
    let mut text = console.text();
    console.result(|out| {
        write_legend(planned.plan.changes(), &mut text);
        for change in planned.plan.changes().filter(|change| is_shown(change)) {
            write_change(change, detail, &mut text);
            // A plan can be large, so it is written in parts.
            out.write_all(text.as_str().as_bytes())?;
            text.clear();
        }
        planned.outputs.write(detail, &mut text);
        write_other_sources(planned.other_sources, planned.destroys, &mut text);
        write_headline(planned, &mut text);
        out.write_all(text.as_str().as_bytes())
    })?;
    console.problems(&problems::collect(planned.plan.changes(), &planned.diagnostics));
    Ok(())
}

/// Prints the plan for the comment of a pull request.
pub fn markdown(planned: &PlanResult, graph: &PlanGraph, console: Console) -> anyhow::Result<()> {
    let text = markdown::markdown(planned.plan.changes(), &planned.diagnostics, &mermaid(graph));
    console.result(|out| out.write_all(text.as_bytes()))
}

/// Writes every object that changes, and the headline.
pub fn write_changes(planned: &PlanResult, text: &mut Text) {
    for change in planned.plan.changes().filter(|change| is_shown(change)) {
        write_change(change, Detail::default(), text);
    }
    write_headline(planned, text);
}

fn write_headline(planned: &PlanResult, text: &mut Text) {
    let counts = Counts::of(planned.plan.changes(), &planned.diagnostics);
    let headline = if planned.refresh_only { counts.of_refresh() } else { counts.to_string() };
    text.tone(Tone::Strong, headline).end_line();
    for hint in &planned.possible_moves {
        text.put(hint).end_line();
    }
}

/// Writes how many objects of sources that are not given are taken over and left unchanged, in one line each.
pub fn write_other_sources(count: OtherSources, destroys: bool, text: &mut Text) {
    if count.taken_over > 0 {
        let belong = if count.taken_over == 1 { "belongs" } else { "belong" };
        let taken_over = counted(count.taken_over, "object");
        text.put(format_args!("{taken_over} from other sources now {belong} to the given sources.")).end_line();
    }
    if count.unchanged > 0 {
        let left = if count.unchanged == 1 { "is left" } else { "are left" };
        let hint = match destroys {
            true => "`purlin destroy` without -f destroys everything",
            false => "--prune treats what is given as everything",
        };
        let unchanged = counted(count.unchanged, "object");
        text.put(format_args!("{unchanged} from other sources {left} unchanged (hint: {hint}).")).end_line();
    }
}

/// The format of `plan -o json`, written change by change to save memory. `graph`: the steps of the plan.
pub fn json(out: &mut dyn Write, planned: &PlanResult, graph: &impl Serialize) -> io::Result<()> {
    write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"changes\":")?;
    serde_json::to_writer(&mut *out, &Changes(planned.plan.changes()))?;
    out.write_all(b",\"graph\":")?;
    serde_json::to_writer(&mut *out, graph)?;
    if planned.is_terraform {
        out.write_all(b",\"outputs\":")?;
        serde_json::to_writer(&mut *out, &outputs(&planned.outputs))?;
    }
    out.write_all(b",\"otherSources\":")?;
    serde_json::to_writer(&mut *out, &planned.other_sources)?;
    out.write_all(b",\"diagnostics\":")?;
    serde_json::to_writer(&mut *out, &Diagnostics(&planned.diagnostics))?;
    out.write_all(b"}\n")
}

/// The outputs that change. One that is new has no `before`, and one that is removed no `after`.
fn outputs(changes: &OutputChanges) -> Vec<serde_json::Value> {
    let mut entries = Vec::new();
    for change in changes.changes() {
        let mut entry = serde_json::Map::from_iter([("name".to_owned(), serde_json::Value::from(&**change.name))]);
        for (name, value) in [("before", change.before), ("after", change.after)] {
            let known = value.map(|value| match value.unmarked() {
                Value::Unknown => serde_json::Value::Null,
                _ => value.to_public_json(),
            });
            entry.extend(known.map(|known| (name.to_owned(), known)));
        }
        entries.push(entry.into());
    }
    entries
}
