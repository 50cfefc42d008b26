//! `purlin apply` and `purlin destroy`: plan, show, ask, carry out, sum up.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::cli::args::{ApplyArgs, DestroyArgs, DoingArgs, Format, TargetArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::local::{self, Session};
use crate::cli::options::{Files, Planning, Target, limits, require_yes_for_json};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::saved::SavedPlan;
use crate::cli::signals::Stop;
use crate::cli::situation::{Planned, Purpose};
use crate::cli::{drive, show};
use crate::execute::{self, Limits, Run, Summary};
use crate::model::Address;

/// Runs `purlin apply`.
pub async fn apply(args: ApplyArgs, console: Console) -> anyhow::Result<Exit> {
    if let Some(path) = &args.plan {
        let limits = limits(args.planning.refreshing.parallelism);
        return apply_saved(path, args.target, limits, &args.doing, console).await;
    }
    let planning = Planning::new(&args.planning)?;
    let files = Target::decide(args.target).files_only("apply")?;
    files.require_sources("apply")?;
    carry_out(&files, &planning, Purpose::default(), &args.doing, console).await
}

/// Runs `purlin destroy`. Without files the records alone say what there is to destroy.
pub async fn destroy(args: DestroyArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::selecting(&args.selecting, &args.refreshing)?;
    let files = Target::decide(args.target).files_only("destroy")?;
    carry_out(&files, &planning, Purpose::destroy(), &args.doing, console).await
}

async fn carry_out(
    files: &Files,
    planning: &Planning,
    purpose: Purpose,
    doing: &DoingArgs,
    console: Console,
) -> anyhow::Result<Exit> {
    require_yes_for_json(doing.output, doing.yes)?;
    if !doing.yes && !console.can_ask {
        return Err(Failure::hinted("there is no terminal to ask for confirmation on", "add --yes"));
    }
    let session = local::open(files, planning.limits, console).await?;
    let planned = session.situation.plan(&session.engine, planning, purpose).await?;
    finish(session, planned, doing, doing.yes, console).await
}

/// Carries out a plan that was looked at before, so nobody is asked.
async fn apply_saved(
    path: &Path,
    target: TargetArgs,
    limits: Limits,
    doing: &DoingArgs,
    console: Console,
) -> anyhow::Result<Exit> {
    let saved = SavedPlan::read(path)?;
    let files = saved.files(target.cluster.kubeconfig, target.files.plugin_dirs);
    let session = local::open_as_planned(&files, limits, console, |situation| saved.check(situation)).await?;
    let planned = saved.plan(session.engine.drivers.clone(), limits, &session.situation).await?;
    finish(session, planned, doing, true, console).await
}

/// Shows a plan, asks unless that is not needed, walks it, and sums up.
async fn finish(
    session: Session,
    planned: Planned,
    doing: &DoingArgs,
    consent: bool,
    console: Console,
) -> anyhow::Result<Exit> {
    let mut reporter = match doing.output {
        Format::Json => Reporter::json(),
        Format::Text => Reporter::text(console, doing.no_progress),
    };
    reporter.diagnostics(&planned.diagnostics);
    if doing.output == Format::Text {
        console.diagnostics(&planned.diagnostics);
        console.result(|out| show::text(out, &planned, console.paint))?;
    }
    if planned.needs_consent() && !consent && !confirmed(console)? {
        return Ok(Exit::Problems);
    }
    let (problems, changes) = (planned.has_errors(), planned.has_changes());
    let (state, now) = (Arc::clone(&session.state), session.engine.clock.now());
    let (mut seen, due) = planned.looked_at();
    let over = match planned.has_steps() {
        true => walk(session, planned, &mut reporter, &mut seen, console).await?,
        false => Over::default(),
    };
    if let Err(error) = state.note_reads(&seen, &due, now) {
        // Nothing is lost by it but that objects are read once more.
        tracing::debug!(%error, "what was read could not be noted");
    }
    if over.walked || doing.output == Format::Json {
        reporter.close(&verdict(over));
    }
    if over.stopped == Some(Stop::AtOnce) {
        return Ok(Exit::Aborted);
    }
    let incomplete = over.summary.failed + over.summary.skipped > 0;
    Ok(Exit::of(problems || incomplete, changes, doing.detailed_exitcode))
}

fn confirmed(console: Console) -> anyhow::Result<bool> {
    let answer = console.ask("\nCarry out these changes? Only `yes` is taken for a yes: ")?;
    if answer != "yes" {
        console.notice("Nothing was changed.");
    }
    Ok(answer == "yes")
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default)]
struct Over {
    walked: bool,
    stopped: Option<Stop>,
    summary: Summary,
}

/// Adds to `seen` what was made, and so is known.
async fn walk(
    session: Session,
    planned: Planned,
    reporter: &mut Reporter,
    seen: &mut BTreeSet<Address>,
    console: Console,
) -> anyhow::Result<Over> {
    let Session { engine, mut situation, .. } = session;
    execute::carry_out(engine.journal.as_ref(), &mut situation.recorded, &planned.moves).await?;
    let scope = situation.addresses();
    // The run lets go of it at its end.
    let mut run = Run::new(engine, situation.recorded);
    let adoption = planned.adoption(scope, situation.namespace, Vec::new());
    // Nothing is running yet, so the plan cannot be stale.
    let _ = run.schedule.adopt(adoption);
    let stopped = drive::to_the_end(&mut run, reporter, seen, console).await?;
    // The process ends here. To free a hundred thousand objects one by one would take long.
    run.schedule.abandon();
    std::mem::forget((situation.config, situation.held));
    Ok(Over { walked: true, stopped, summary: reporter.summary() })
}

fn verdict(over: Over) -> String {
    let Summary { created, updated, destroyed, failed, skipped } = over.summary;
    let counts = format!("{created} created, {updated} updated, {destroyed} destroyed");
    match (over.stopped, failed + skipped) {
        (Some(_), _) => format!("Stopped: {counts}, {failed} failed, {skipped} skipped."),
        (None, 0) => format!("Applied: {counts}."),
        (None, _) => format!("Incomplete: {counts}, {failed} failed, {skipped} skipped."),
    }
}
