//! `purlin graph`: the steps of a plan, and why each waits for which.

use crate::cli::args::{GraphArgs, GraphFormat};
use crate::cli::failure::Exit;
use crate::cli::look;
use crate::cli::options::{Planning, Target};
use crate::cli::output::Console;
use crate::cli::situation::Purpose;
use crate::graph::render;

/// Runs the command. Problems go to standard error, so that the graph can be piped.
pub async fn run(args: GraphArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::new(&args.planning)?;
    let view = look::wanted(Target::decide(args.target), planning.limits, console, "graph").await?;
    let planned = view.situation.plan(&view.engine, &planning, Purpose::default()).await?;
    console.diagnostics(&planned.diagnostics);
    let graph = &planned.graph;
    if graph.is_empty() && args.output == GraphFormat::Text {
        console.notice("There are no steps: every object is as it is wanted, or blocked.");
        return Ok(Exit::of(planned.has_errors(), false, false));
    }
    let text = match args.output {
        GraphFormat::Text => render::text(graph),
        GraphFormat::Dot => render::dot(graph),
        GraphFormat::Mermaid => render::mermaid(graph),
        GraphFormat::Json => render::json(graph),
    };
    console.result(|out| writeln!(out, "{}", text.trim_end()))?;
    Ok(Exit::of(planned.has_errors(), false, false))
}
