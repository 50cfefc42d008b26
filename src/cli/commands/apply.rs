//! `purlin apply` and `purlin destroy`: plan, show, confirm, apply and summarize.

use std::path::Path;
use std::sync::Arc;

use crate::cli::args::{ApplyArgs, DestroyArgs, Format, RunArgs, TargetArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::failures::LastFailures;
use crate::cli::inputs::{Inputs, PlanParameters, PlanResult};
use crate::cli::json::{self, OutputsEvent};
use crate::cli::local::{self, Session};
use crate::cli::options::{Files, Planning, Target, limits, require_yes_for_json};
use crate::cli::output::Console;
use crate::cli::outputs::{self, Readings};
use crate::cli::progress::Reporter;
use crate::cli::run::RunResults;
use crate::cli::saved::SavedPlan;
use crate::cli::signals::ShutdownMode;
use crate::cli::{init, run, show};
use engine::load::{Config, Output};
use engine::plan::Mode;
use engine::plan::render::Detail;
use engine::plan::render::summary::Counts;
use runtime::execute::{self, Limits, Run, Summary};
use runtime::store::StateFile;

pub async fn apply(args: ApplyArgs, console: Console) -> anyhow::Result<Exit> {
    if let Some(path) = &args.plan {
        let limits = limits(args.planning.refreshing.parallelism);
        return apply_saved(path, args.target, limits, &args.doing, console).await;
    }
    let planning = Planning::new(&args.planning)?;
    let files = Target::from_args(args.target).files_only("apply")?.pruning(args.planning.pruning.prune);
    files.require_sources("apply")?;
    carry_out(files, &planning, PlanParameters::default(), &args.doing, console).await
}

/// Runs `purlin destroy`. Manifests are optional: without, it destroys all recorded objects.
pub async fn destroy(args: DestroyArgs, console: Console) -> anyhow::Result<Exit> {
    let planning = Planning::selecting(&args.selecting, &args.refreshing)?;
    let files = Target::from_args(args.target).files_only("destroy")?;
    carry_out(files, &planning, PlanParameters::destroy(), &args.doing, console).await
}

async fn carry_out(
    mut files: Files,
    planning: &Planning,
    purpose: PlanParameters,
    doing: &RunArgs,
    console: Console,
) -> anyhow::Result<Exit> {
    require_yes_for_json(doing.output, doing.yes)?;
    if !doing.yes && !console.can_ask {
        return Err(Failure::hinted("cannot ask for confirmation without a terminal", "add --yes"));
    }
    if purpose.mode == Mode::Destroy {
        local::require_state_file(&files)?;
    }
    if !init::prepare(&mut files, console).await? {
        return Ok(Exit::Problems);
    }
    let Some(mut session) = local::open_and_recover(&files, planning.limits, doing.yes, console).await? else {
        return Ok(Exit::Problems);
    };
    loop {
        let planned = session.inputs.plan(&session.engine, planning, purpose.clone()).await?;
        if planned.config.modules.is_empty() || planned.destroys {
            return without_outputs(session, planned, doing, doing.yes, console).await;
        }
        let (config, inputs) = (Arc::clone(&planned.config), session.inputs.clone());
        let mut readings: Readings = planned.plan.readings().collect();
        let (engine, state) = (Arc::clone(&session.engine), Arc::clone(&session.state));
        let goes_on = planned.has_steps() && planned.plan.is_deferred();
        let exit = confirm_and_apply(session, planned, doing, doing.yes, &mut readings, console).await?;
        if goes_on && matches!(exit, Exit::Success | Exit::Changes) {
            console.notice("Planning again: what some objects waited for is known now.");
            let recorded = state.load_all()?.records;
            session = Session { engine, inputs: Inputs { recorded, ..inputs }, state };
            continue;
        }
        finish(&state, &config, &inputs, &readings, doing, console)?;
        return Ok(exit);
    }
}

/// Carries a plan out after which there are no outputs: the outputs that it removes are no longer recorded.
async fn without_outputs(
    session: Session,
    planned: PlanResult,
    doing: &RunArgs,
    consent: bool,
    console: Console,
) -> anyhow::Result<Exit> {
    let removes = planned.destroys && !planned.outputs.is_empty();
    let removed = removes.then(|| (session.inputs.clone(), Arc::clone(&session.state)));
    let exit = confirm_and_apply(session, planned, doing, consent, &mut Readings::new(), console).await?;
    if let Some((inputs, state)) = removed.filter(|_| matches!(exit, Exit::Success | Exit::Changes)) {
        record_outputs(&state, &inputs, &[])?;
    }
    Ok(exit)
}

/// Records the outputs of a Terraform configuration for `purlin output`, unless they are the same.
fn record_outputs(state: &StateFile, inputs: &Inputs, outputs: &[Output]) -> anyhow::Result<()> {
    let Some(source) = &inputs.module else { return Ok(()) };
    let before = inputs.configurations.get(source).cloned().unwrap_or_default();
    outputs::record(state, source, &before, outputs)?;
    Ok(())
}

/// Applies a saved plan without confirmation, because the user has already seen it.
async fn apply_saved(
    path: &Path,
    target: TargetArgs,
    limits: Limits,
    doing: &RunArgs,
    console: Console,
) -> anyhow::Result<Exit> {
    let saved = SavedPlan::read(path)?;
    let mut files = saved.files(target.cluster.kubeconfig, target.files.plugin_dirs);
    // The plan does not have the values of ephemeral variables.
    files.variables.0.extend(target.files.variables.given.0);
    let session = local::open_for_saved_plan(&files, limits, console, |inputs| saved.check(inputs)).await?;
    let planned = saved.restore(&session.engine, &session.inputs).await?;
    if planned.config.modules.is_empty() || planned.destroys {
        return without_outputs(session, planned, doing, true, console).await;
    }
    let (config, inputs, state) = (Arc::clone(&planned.config), session.inputs.clone(), Arc::clone(&session.state));
    let mut readings: Readings = planned.plan.readings().collect();
    let exit = confirm_and_apply(session, planned, doing, true, &mut readings, console).await?;
    finish(&state, &config, &inputs, &readings, doing, console)?;
    Ok(exit)
}

/// Records the outputs after an apply, and shows them.
fn finish(
    state: &StateFile,
    config: &Config,
    inputs: &Inputs,
    readings: &Readings,
    doing: &RunArgs,
    console: Console,
) -> anyhow::Result<()> {
    let recorded = state.load_all()?.records;
    let outputs = outputs::recorded(config, &recorded, readings, &inputs.namespace);
    record_outputs(state, inputs, &outputs)?;
    match doing.output {
        Format::Text => {
            let mut text = console.text();
            outputs::write(&outputs, &mut text);
            console.print(&text)
        }
        Format::Json => {
            // While one of them is not known, none is recorded.
            let Some(known) = outputs::to_state(&outputs) else { return Ok(()) };
            let stored = outputs::from_state(&known).map_err(anyhow::Error::msg)?;
            let event = OutputsEvent::new(&stored)?;
            console.result(|out| json::write_line(out, &event))
        }
    }
}

/// Shows a plan, asks for confirmation if needed, and walks it. What steps read of data sources is added to `readings`.
async fn confirm_and_apply(
    session: Session,
    planned: PlanResult,
    doing: &RunArgs,
    consent: bool,
    readings: &mut Readings,
    console: Console,
) -> anyhow::Result<Exit> {
    let mut reporter = match doing.output {
        Format::Json => Reporter::json(),
        Format::Text => Reporter::text(console, doing.no_progress),
    };
    reporter.diagnostics(&planned.diagnostics);
    if doing.output == Format::Text {
        show::plan(&planned, Detail { full: doing.full }, console)?;
    }
    if planned.stops_at_errors() && !doing.keep_going {
        if doing.output == Format::Json {
            reporter.close("", planned.other_sources);
        } else if planned.has_steps() {
            console.notice("Nothing was changed, because the plan has errors. --keep-going applies the rest of it.");
        }
        return Ok(Exit::Problems);
    }
    if planned.needs_confirmation() && !consent && !confirmed(&planned, console)? {
        return Ok(Exit::Problems);
    }
    let (problems, changes) = (planned.has_errors(), planned.has_changes());
    let (state, now) = (Arc::clone(&session.state), session.engine.clock.now());
    let (up_to_date, due) = planned.read_objects();
    let failures = last_failures(&session.inputs, &planned);
    let mut results = RunResults { applied: up_to_date, failures, config: Arc::clone(&planned.config) };
    let (new_sources, other_sources) = (planned.new_sources.clone(), planned.other_sources);
    let given = (!planned.destroys && !planned.refresh_only).then(|| session.inputs.coverage.names());
    let result = match planned.has_steps() {
        true => walk(session, planned, &mut reporter, &mut results, readings, console).await?,
        false => WalkResult::default(),
    };
    results.failures.store(&state);
    state.record_sources(&new_sources)?;
    given.map_or(Ok(()), |given| state.record_given(&given))?;
    if let Err(error) = state.record_reads(&results.applied, &due, now) {
        // The only effect is that objects are read again.
        tracing::debug!(%error, "the read times could not be recorded");
    }
    if result.is_reported || doing.output == Format::Json {
        reporter.close(&summary_line(result), other_sources);
        let mut failures = console.error_text();
        reporter.write_failures(&mut failures);
        console.print_error(&failures);
    }
    if result.stopped == Some(ShutdownMode::Immediate) {
        return Ok(Exit::Aborted);
    }
    let incomplete = result.summary.failed + result.summary.skipped > 0;
    Ok(Exit::of(problems || incomplete, changes, doing.detailed_exitcode))
}

/// The failures of earlier runs that are still relevant after a plan.
fn last_failures(inputs: &Inputs, planned: &PlanResult) -> LastFailures {
    let mut failures = LastFailures::new(inputs.failures.clone());
    if !planned.refresh_only {
        failures
            .planned(planned.plan.changes(), |address, is_listed| is_listed || !inputs.recorded.contains_key(address));
    }
    failures
}

fn confirmed(planned: &PlanResult, console: Console) -> anyhow::Result<bool> {
    let is_confirmed = console.confirms(&format!("\n{} ", question(planned)))?;
    if !is_confirmed {
        console.notice("Nothing was changed.");
    }
    Ok(is_confirmed)
}

/// The question before a plan is applied, which says what the plan leaves out.
fn question(planned: &PlanResult) -> String {
    let question = "Do you want to apply these changes?";
    match Counts::of(planned.plan.changes(), &planned.diagnostics).left_out() {
        Some(left_out) => format!("The plan is partial: {left_out}. {question}"),
        None => question.to_owned(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WalkResult {
    /// Whether the run did anything that the output shows.
    is_reported: bool,
    stopped: Option<ShutdownMode>,
    summary: Summary,
}

async fn walk(
    session: Session,
    planned: PlanResult,
    reporter: &mut Reporter,
    results: &mut RunResults,
    readings: &mut Readings,
    console: Console,
) -> anyhow::Result<WalkResult> {
    let Session { engine, mut inputs, .. } = session;
    execute::apply_moves(engine.journal.as_ref(), &mut inputs.recorded, &planned.moves).await?;
    let scope = inputs.addresses();
    // The run is abandoned at the end.
    let mut run = Run::new(engine, inputs.config.namespace.clone(), inputs.recorded);
    reporter.planned(planned.plan.changes());
    let shown = reporter.expect_steps(planned.graph.len()) + planned.moves.len();
    let adoption = planned.adoption(scope, inputs.namespace, Vec::new());
    // Nothing is running yet, so the plan cannot be stale.
    let _ = run.schedule.adopt(adoption);
    let stopped = run::run_to_completion(&mut run, reporter, results, console).await?;
    readings.extend(run.schedule.readings().iter().map(|(address, reading)| (address.clone(), Arc::clone(reading))));
    // The process exits after this. Freeing a hundred thousand objects one by one would take long.
    run.schedule.abandon();
    std::mem::forget((inputs.config, inputs.held));
    let summary = reporter.summary();
    let is_reported = shown > 0 || stopped.is_some() || summary.failed > 0;
    Ok(WalkResult { is_reported, stopped, summary })
}

fn summary_line(result: WalkResult) -> String {
    let Summary { imported, created, updated, destroyed, failed, skipped } = result.summary;
    let imported = if imported == 0 { String::new() } else { format!("{imported} imported, ") };
    let counts = format!("{imported}{created} created, {updated} updated, {destroyed} destroyed");
    match (result.stopped, failed + skipped) {
        (Some(_), _) => format!("Stopped: {counts}, {failed} failed, {skipped} skipped."),
        (None, 0) => format!("Applied: {counts}."),
        (None, _) => format!("Incomplete: {counts}, {failed} failed, {skipped} skipped."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Action, Address, Change, Diagnostic, Reason};

    #[test]
    fn the_question_says_what_a_partial_plan_leaves_out() {
        let [a, b, c] = ["a", "b", "c"].map(Address::single);
        let blocked = |address: &Address, reason, waiting_for| Change {
            blocked: Some(reason),
            waiting_for,
            ..Change::plain(address.clone(), "t", Action::Blocked)
        };
        let error = blocked(&a, Reason::InvalidManifest, Vec::new());
        let waits = blocked(&b, Reason::DependencyNotReady, vec![a.clone()]);
        let changes = vec![error, waits, Change::plain(c, "t", Action::Create)];
        let diagnostics = vec![Diagnostic::error(&a, Reason::InvalidManifest, "broken")];
        let partial = PlanResult::of_changes(changes, diagnostics);
        let asked = "The plan is partial: 1 object has errors, 1 object waits for others. Do you want to apply these \
                     changes?";
        assert_eq!(question(&partial), asked);
        assert_eq!(question(&PlanResult::default()), "Do you want to apply these changes?");
    }
}
