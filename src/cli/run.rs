//! Walks a run to its end, reports its progress, and handles signals.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;

use super::output::Console;
use super::progress::Reporter;
use super::signals::{ShutdownMode, Signals};
use crate::execute::{Progress, ProgressKind, Run, Workers};
use crate::model::Address;

/// The redraw interval of the live display.
pub const REDRAW: Duration = Duration::from_millis(100);

/// How many events are reported before signals are checked again.
const BURST: usize = 64;

/// Walks until all steps have ended or the third signal. Returns the last signal, if any, and adds the objects that
/// were created, updated or recorded to `applied`.
pub async fn run_to_completion(
    run: &mut Run,
    reporter: &mut Reporter,
    applied: &mut BTreeSet<Address>,
    console: Console,
) -> anyhow::Result<Option<ShutdownMode>> {
    let mut signals = Signals::listen()?;
    let mut redraw = tokio::time::interval(REDRAW);
    let mut stopped = None;
    loop {
        if !report_pending(run, reporter, applied) {
            return Ok(stopped);
        }
        tokio::select! {
            progress = run.next() => match progress {
                Some(progress) => report_event(&progress, run, reporter, applied),
                None => return Ok(stopped),
            },
            stop = signals.received() => {
                stopped = Some(stop);
                if !handle_signal(stop, run, console).await {
                    return Ok(Some(ShutdownMode::Immediate));
                }
            }
            _ = redraw.tick(), if reporter.is_live() => reporter.tick(),
        }
    }
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
fn report_pending(run: &mut Run, reporter: &mut Reporter, applied: &mut BTreeSet<Address>) -> bool {
    for _ in 0..BURST {
        match run.next().now_or_never() {
            Some(Some(progress)) => report_event(&progress, run, reporter, applied),
            Some(None) => return false,
            None => break,
        }
    }
    reporter.flush();
    true
}

fn report_event(progress: &Progress, run: &Run, reporter: &mut Reporter, applied: &mut BTreeSet<Address>) {
    if matches!(progress.kind, ProgressKind::Finished) && !progress.step.operation.removes() {
        applied.insert(progress.step.address.clone());
    }
    reporter.event(progress, run.schedule.records());
}
