//! `purlin plan`: what an apply would do. Writes nothing anywhere.

use crate::cli::args::{Format, PlanArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Files, Planning, Target};
use crate::cli::output::Console;
use crate::cli::saved::Recorder;
use crate::cli::situation::Purpose;
use crate::cli::{look, show};

/// Runs the command.
pub async fn run(args: PlanArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::new(&args.planning)?;
    let target = Target::decide(args.target);
    let target = if args.destroy { Target::Files(target.files_only("plan --destroy")?) } else { target };
    let saving = args.out.as_deref().map(|_| can_be_saved(&target)).transpose()?;
    // What is to go is told by the records alone.
    let mut view = match args.destroy {
        true => look::view(target, planning.limits, console).await?,
        false => look::wanted(target, planning.limits, console, "plan").await?,
    };
    let recorder = saving.is_some().then(|| {
        let (recorder, engine) = Recorder::new(view.engine.drivers.clone(), planning.limits);
        view.engine = engine;
        recorder
    });
    let purpose = if args.destroy { Purpose::destroy() } else { Purpose::default() };
    let planned = view.situation.plan(&view.engine, &planning, purpose).await?;
    match args.output {
        Format::Json => console.result(|out| show::json(out, &planned))?,
        Format::Text => {
            console.diagnostics(&planned.diagnostics);
            console.result(|out| show::text(out, &planned, console.paint))?;
        }
    }
    if let (Some(recorder), Some(files), Some(out)) = (recorder, saving, &args.out) {
        recorder.save(&files, &planning, args.destroy, &view.situation, &planned)?.write(out)?;
        console.notice(&format!("Saved; to carry out exactly this: purlin apply {}", out.display()));
    }
    let exit = Exit::of(planned.has_errors(), planned.has_changes(), args.detailed_exitcode);
    // The process ends here. To free a hundred thousand objects one by one would take a tenth of its time.
    std::mem::forget((view, planned));
    Ok(exit)
}

/// A saved plan reads its files once more when it is applied.
fn can_be_saved(target: &Target) -> anyhow::Result<Files> {
    match target {
        Target::Cluster(_) => Err(Failure::hinted(
            "a plan for a cluster cannot be saved: the controller makes its own",
            "leave --out away, or name files with -f",
        )),
        Target::Files(files) if files.sources.iter().any(|source| source.as_os_str() == "-") => Err(Failure::hinted(
            "a plan from standard input cannot be saved: it could not be compared when it is applied",
            "write the manifests to a file, and name that with -f",
        )),
        Target::Files(files) => Ok(files.clone()),
    }
}
