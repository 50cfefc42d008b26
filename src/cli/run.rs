//! Walks a run to its end, reports its progress, and handles signals.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use super::failures::LastFailures;
use super::output::Console;
use super::progress::Reporter;
use super::signals::{ShutdownMode, Signals};
use engine::load::Config;
use model::Address;
use runtime::execute::{Progress, ProgressKind, Run, Workers};

/// The interval of a timer that is not used.
const UNUSED: Duration = Duration::from_hours(1);

/// How many events are reported before signals are checked again.
const BURST: usize = 64;

/// The results of a run beyond its records.
pub struct RunResults {
    /// The objects that were created, updated or recorded.
    pub applied: BTreeSet<Address>,
    pub failures: LastFailures,
    /// The desired state, with the types of objects without a record.
    pub config: Arc<Config>,
}

/// Walks until all steps have ended or the third signal. Returns the last signal, if any, and adds to `results`.
pub async fn run_to_completion(
    run: &mut Run,
    reporter: &mut Reporter,
    results: &mut RunResults,
    console: Console,
) -> anyhow::Result<Option<ShutdownMode>> {
    let mut signals = Signals::listen()?;
    let mut redraw = redraw_timer(reporter);
    let mut stopped = None;
    loop {
        if !report_pending(run, reporter, results) {
            return Ok(stopped);
        }
        tokio::select! {
            progress = run.next() => match progress {
                Some(progress) => report_event(&progress, run, reporter, results),
                None => return Ok(stopped),
            },
            stop = signals.received() => {
                stopped = Some(stop);
                if !handle_signal(stop, run, console).await {
                    return Ok(Some(ShutdownMode::Immediate));
                }
            }
            _ = redraw.tick() => reporter.tick(run.workers().engine().clock.now()),
        }
    }
}

/// The timer after which `Reporter::tick` is called.
pub fn redraw_timer(reporter: &Reporter) -> tokio::time::Interval {
    tokio::time::interval(reporter.interval().unwrap_or(UNUSED))
}

/// Returns `false` if the run must end without waiting for running steps.
async fn handle_signal(stop: ShutdownMode, run: &mut Run, console: Console) -> bool {
    match stop {
        ShutdownMode::Graceful => {
            run.stop();
            console.notice(STOPPING);
            true
        }
        ShutdownMode::Interrupt => interrupt_providers(run.workers(), console).await,
        ShutdownMode::Immediate => false,
    }
}

/// Asks providers to cancel running operations. Returns `false` if no provider is running.
pub async fn interrupt_providers(workers: &Workers, console: Console) -> bool {
    let interrupted = workers.stop_calls().await;
    if interrupted {
        console.notice(INTERRUPTING);
    }
    interrupted
}

pub const STOPPING: &str = "Stopping: waiting for running steps; no new steps start. A second interrupt asks providers to \
                        cancel running operations, or exits immediately if no provider is running.";

const INTERRUPTING: &str = "Stopping: waiting for providers to cancel running operations. A third interrupt exits immediately: \
                        running operations are then left unresolved, and you may have to find created objects yourself.";

/// Reports pending events without waiting, and flushes. Returns `false` at the end of the run.
fn report_pending(run: &mut Run, reporter: &mut Reporter, results: &mut RunResults) -> bool {
    for _ in 0..BURST {
        match run.next().now_or_never() {
            Some(Some(progress)) => report_event(&progress, run, reporter, results),
            Some(None) => return false,
            None => break,
        }
    }
    reporter.flush();
    true
}

fn report_event(progress: &Progress, run: &Run, reporter: &mut Reporter, results: &mut RunResults) {
    let address = &progress.step.address;
    if matches!(progress.kind, ProgressKind::Finished) && !progress.step.operation.removes() {
        results.applied.insert(address.clone());
    }
    results.failures.event(progress, || {
        let recorded = run.records.get(address).map(|stored| &stored.record.type_name);
        recorded.or_else(|| results.config.resource(address).map(|instance| &instance.type_name)).cloned()
    });
    reporter.event(progress, &run.records);
}
