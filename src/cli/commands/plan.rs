//! `purlin plan`: what an apply would do. Writes nothing anywhere.

use crate::cli::args::{Format, PlanArgs};
use crate::cli::failure::Exit;
use crate::cli::options::{Planning, Target};
use crate::cli::output::Console;
use crate::cli::situation::Purpose;
use crate::cli::{look, show};

/// Runs the command.
pub async fn run(args: PlanArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::new(&args.planning)?;
    let view = look::wanted(Target::decide(args.target), planning.limits, console, "plan").await?;
    let planned = view.situation.plan(&view.engine, &planning, Purpose::default()).await?;
    match args.output {
        Format::Json => console.result(|out| show::json(out, &planned))?,
        Format::Text => {
            console.diagnostics(&planned.diagnostics);
            console.result(|out| show::text(out, &planned, console.paint))?;
        }
    }
    let exit = Exit::of(planned.has_errors(), planned.has_changes(), args.detailed_exitcode);
    // The process ends here. To free a hundred thousand objects one by one would take a tenth of its time.
    std::mem::forget((view, planned));
    Ok(exit)
}
