//! `purlin graph`: shows the steps of a plan, and why they wait for each other.

use crate::cli::args::{GraphArgs, GraphFormat};
use crate::cli::failure::Exit;
use crate::cli::inputs::PlanParameters;
use crate::cli::options::{Planning, Target};
use crate::cli::output::Console;
use crate::cli::view::View;
use engine::graph::render;

/// Prints diagnostics to standard error, so that the graph can be piped.
pub async fn run(args: GraphArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::new(&args.planning)?;
    let target = Target::from_args(args.target).pruning(args.planning.pruning.prune);
    let view = View::with_sources(target, planning.limits, console, "graph").await?;
    let planned = view.inputs.plan(&view.engine, &planning, PlanParameters::default()).await?;
    console.diagnostics(&planned.diagnostics);
    let graph = &planned.graph;
    if graph.is_empty() && args.output == GraphFormat::Text {
        console.notice("No steps: all objects are up to date or blocked.");
        return Ok(Exit::of(planned.has_errors(), false, false));
    }
    let rendered = match args.output {
        GraphFormat::Text => render::text(graph),
        GraphFormat::Dot => render::dot(graph),
        GraphFormat::Mermaid => render::mermaid(&render::published(graph)),
        GraphFormat::Json => {
            console.result(|out| writeln!(out, "{}", render::json(graph)))?;
            return Ok(Exit::of(planned.has_errors(), false, false));
        }
    };
    console.lines(format_args!("{}\n", rendered.trim_end()))?;
    Ok(Exit::of(planned.has_errors(), false, false))
}
