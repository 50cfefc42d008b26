//! `purlin plan`: shows what an apply would do. Read-only.

use std::mem::ManuallyDrop;

use crate::cli::args::{PlanArgs, PlanFormat};
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::PlanParameters;
use crate::cli::options::{Files, Planning, Target};
use crate::cli::output::Console;
use crate::cli::preview::{self, PreviewRequest};
use crate::cli::saved::SavedPlan;
use crate::cli::view::View;
use crate::cli::{init, local, show};
use engine::graph::render::{GraphJson, published};
use engine::plan::render::Detail;

pub async fn run(args: PlanArgs, console: Console) -> anyhow::Result<Exit> {
    if let Some(request) = PreviewRequest::of_plan(&args)? {
        return preview::run(&request, console).await;
    }
    if args.preview.selector.is_some() {
        return Err(Failure::hinted("--selector works only in a cluster", "name it with -n NAMESPACE"));
    }
    let planning = Planning::new(&args.planning)?;
    let target = Target::from_args(args.target);
    let mut target = match args.destroy {
        true => {
            let files = target.files_only("plan --destroy")?;
            local::require_state_file(&files)?;
            Target::Files(files)
        }
        false => target.pruning(args.planning.pruning.prune),
    };
    if let Target::Files(files) = &mut target
        && !init::prepare(files, console).await?
    {
        return Ok(Exit::Problems);
    }
    let saving = args.out.as_deref().map(|_| require_savable(&target)).transpose()?;
    // The records alone determine what is destroyed.
    let view = match args.destroy {
        true => View::open(target, planning.limits, console).await?,
        false => View::with_sources(target, planning.limits, console, "plan").await?,
    };
    let purpose = if args.destroy { PlanParameters::destroy() } else { PlanParameters::default() };
    let planned = view.inputs.plan(&view.engine, &planning, purpose).await?;
    match args.output {
        PlanFormat::Json => console.result(|out| show::json(out, &planned, &GraphJson(&planned.graph)))?,
        PlanFormat::Approval => {
            let hint = "add -n NAMESPACE to preview the change of a cluster";
            return Err(Failure::hinted("on files, no change needs an approval", hint));
        }
        PlanFormat::Markdown => show::markdown(&planned, &published(&planned.graph), console)?,
        PlanFormat::Text => show::plan(&planned, Detail { full: args.full }, console)?,
    }
    let exit = Exit::of(planned.has_errors(), planned.has_changes_with_outputs(), args.detailed_exitcode);
    // The process exits after this. Freeing a hundred thousand objects one by one would take a tenth of its time.
    let (view, planned) = (ManuallyDrop::new(view), ManuallyDrop::new(planned));
    let (Some(files), Some(out)) = (saving, &args.out) else { return Ok(exit) };
    if planned.stops_at_errors() {
        console.notice("The plan was not saved, because it has errors.");
        return Ok(exit);
    }
    let saved = SavedPlan::new(&files, &planning, &view.inputs, ManuallyDrop::into_inner(planned))?;
    ManuallyDrop::new(saved).write(out)?;
    console.notice(&format!("Saved the plan. To apply exactly these changes: purlin apply {}", out.display()));
    Ok(exit)
}

/// Applying a saved plan reads its files again.
fn require_savable(target: &Target) -> anyhow::Result<Files> {
    match target {
        Target::Cluster(_) => Err(Failure::hinted(
            "a plan for a cluster cannot be saved: the controller makes its own plans",
            "omit --out, or specify files with -f",
        )),
        Target::Files(files) if files.sources.iter().any(|source| source.as_os_str() == "-") => Err(Failure::hinted(
            "a plan from standard input cannot be saved: the manifests could not be compared when it is applied",
            "write the manifests to a file, and specify it with -f",
        )),
        Target::Files(files) => Ok(files.clone()),
    }
}
