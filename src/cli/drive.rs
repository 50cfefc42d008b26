//! Drives a run to its end, telling what happens and listening for a stop.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;

use super::output::Console;
use super::progress::Reporter;
use super::signals::{Signals, Stop};
use crate::execute::{Progress, ProgressKind, Run, Workers};
use crate::model::Address;

/// How often the live picture is redrawn: often enough to look alive, seldom enough to cost nothing.
pub const REDRAW: Duration = Duration::from_millis(100);

/// How many events are told in one go before signals are looked at again.
const BURST: usize = 64;

/// Walks until nothing is left to do, or signals do not want to wait any longer. Gives how it was stopped, if it was, and adds to `made`
/// the objects that were created, updated or recorded.
pub async fn to_the_end(
    run: &mut Run,
    reporter: &mut Reporter,
    made: &mut BTreeSet<Address>,
    console: Console,
) -> anyhow::Result<Option<Stop>> {
    let mut signals = Signals::listen()?;
    let mut redraw = tokio::time::interval(REDRAW);
    let mut stopped = None;
    loop {
        if !tell_what_happened(run, reporter, made) {
            return Ok(stopped);
        }
        tokio::select! {
            progress = run.next() => match progress {
                Some(progress) => tell(&progress, run, reporter, made),
                None => return Ok(stopped),
            },
            stop = signals.received() => {
                stopped = Some(stop);
                if !obey(stop, run, console).await {
                    return Ok(Some(Stop::AtOnce));
                }
            }
            _ = redraw.tick(), if reporter.is_live() => reporter.tick(),
        }
    }
}

/// Does what a signal asks for. Gives `false` when nothing is to be awaited any more.
async fn obey(stop: Stop, run: &mut Run, console: Console) -> bool {
    match stop {
        Stop::InOrder => {
            run.stop();
            console.notice(STOPPING);
            true
        }
        Stop::Hurry => hurry(run.workers(), console).await,
        Stop::AtOnce => false,
    }
}

/// Asks providers to give up what runs. Returns `false` when no provider can be asked: then nothing is awaited.
pub async fn hurry(workers: &Workers, console: Console) -> bool {
    let asked = workers.hurry().await;
    if asked {
        console.notice(HURRYING);
    }
    asked
}

/// What the first signal is answered with.
pub const STOPPING: &str = "Stopping: no further step starts, running ones are awaited. Once more asks providers to give up \
                        what runs, and ends what runs without one.";

/// What the second signal is answered with.
const HURRYING: &str = "Providers are asked to give up what runs, and awaited. Once more ends it at once: what runs is left \
                        open, and what it has made may have to be looked for by hand.";

/// Tells what has happened already, without waiting; then lets it be seen. Gives `false` at the end.
fn tell_what_happened(run: &mut Run, reporter: &mut Reporter, made: &mut BTreeSet<Address>) -> bool {
    for _ in 0..BURST {
        match run.next().now_or_never() {
            Some(Some(progress)) => tell(&progress, run, reporter, made),
            Some(None) => return false,
            None => break,
        }
    }
    reporter.flush();
    true
}

fn tell(progress: &Progress, run: &Run, reporter: &mut Reporter, made: &mut BTreeSet<Address>) {
    if matches!(progress.kind, ProgressKind::Finished) && !progress.step.operation.removes() {
        made.insert(progress.step.address.clone());
    }
    reporter.event(progress, run.schedule.records());
}
