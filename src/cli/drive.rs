//! Drives a run to its end, telling what happens and listening for a stop.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;

use super::output::Console;
use super::progress::Reporter;
use super::signals::{Signals, Stop};
use crate::execute::{Progress, ProgressKind, Run};
use crate::model::Address;

/// How often the live picture is redrawn: often enough to look alive, seldom enough to cost nothing.
pub const REDRAW: Duration = Duration::from_millis(100);

/// How many events are told in one go before signals are looked at again.
const BURST: usize = 64;

/// Walks until nothing is left to do, or a second signal comes. Gives how it was stopped, if it was, and adds to `made`
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
                if stop == Stop::AtOnce {
                    return Ok(stopped);
                }
                run.stop();
                console.notice(STOPPING);
            }
            _ = redraw.tick(), if reporter.is_live() => reporter.tick(),
        }
    }
}

/// What the first signal is answered with.
pub const STOPPING: &str =
    "Stopping: no further step starts, running ones are awaited. Once more ends it at once and leaves them open.";

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
    reporter.event(progress, run.records());
}
