//! The loop: something changes, or a wait is over; a plan is made around what is running; it is walked.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use super::backoff::Backoff;
use super::watch::Watch;
use crate::cli::args::RefreshChoice;
use crate::cli::drive::{REDRAW, STOPPING};
use crate::cli::failure::Exit;
use crate::cli::local::{self, Session};
use crate::cli::options::{Files, Planning};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::show;
use crate::cli::signals::{Signals, Stop};
use crate::cli::situation::{Planned, Purpose, Situation, has_errors};
use crate::execute::{Engine, Progress, ProgressKind, Run, Stale};
use crate::model::{Address, Diagnostic, Diagnostics, Reason, Step};
use crate::plan::{Held, RunningStep};
use crate::store::Loaded;

/// Recorded objects are read anew this often, to find what somebody else has changed.
const DRIFT_INTERVAL: Duration = Duration::from_mins(30);

/// New objects that may fail in a row before replacing is given up until the files change: the first, and three
/// replacements of it.
const MAX_FAILED_CREATES: u32 = 4;

/// Why a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Because {
    /// At the start.
    Start,
    /// The files changed.
    Files,
    /// They have not changed for a while, so what is missing was removed.
    Quiet,
    /// A walk is over, and what had to wait for it may go on.
    Walked,
    /// A wait after a failure is over.
    Retry,
    /// Somebody else may have changed something.
    Drift,
}

/// Everything the loop knows.
pub struct Reconciler {
    files: Files,
    planning: Planning,
    console: Console,
    reporter: Reporter,
    engine: Arc<Engine>,
    situation: Situation,
    /// Objects that cannot be worked on, as found when the state file was opened.
    unusable: BTreeMap<Address, Held>,
    /// The namespace that the state file serves.
    namespace: String,
    run: Run,
    watch: Watch,
    backoff: Backoff,
    /// A walk is under way.
    walking: bool,
    /// Something went well in it.
    progressed: bool,
    /// The last plan held orphans only because the files had just changed.
    orphans_wait: bool,
    /// Steps that went well since the files last changed.
    done: HashSet<Step>,
    told: Diagnostics,
    drift_due: Instant,
}

impl Reconciler {
    /// Over an open state file.
    pub fn new(session: Session, files: Files, planning: Planning, reporter: Reporter, console: Console) -> Self {
        let Session { engine, situation } = session;
        let now = Instant::now();
        Self {
            run: Run::new(Arc::clone(&engine), situation.recorded.clone()),
            watch: Watch::new(files.sources.clone(), now),
            unusable: situation.held.clone(),
            namespace: situation.config.namespace.to_string(),
            backoff: Backoff::default(),
            walking: false,
            progressed: false,
            orphans_wait: false,
            done: HashSet::new(),
            told: Vec::new(),
            drift_due: now + DRIFT_INTERVAL,
            files,
            planning,
            console,
            reporter,
            engine,
            situation,
        }
    }

    /// Goes on until a signal comes.
    pub async fn run(mut self) -> anyhow::Result<Exit> {
        let mut signals = Signals::listen()?;
        let mut redraw = tokio::time::interval(REDRAW);
        self.plan(Because::Start).await?;
        let mut stopping = false;
        loop {
            self.reporter.flush();
            let wake = self.next_wake();
            let because = tokio::select! {
                progress = self.run.next(), if self.walking => self.happened(progress),
                () = sleep_until(wake.into()), if !stopping => self.wake(),
                _ = redraw.tick(), if self.reporter.is_live() => { self.reporter.tick(); None }
                stop = signals.received() => {
                    if stop == Stop::AtOnce {
                        return Ok(Exit::Aborted);
                    }
                    stopping = true;
                    self.run.stop();
                    self.console.notice(STOPPING);
                    None
                }
            };
            match because {
                _ if stopping && !self.walking => return Ok(self.stopped()),
                Some(because) if !stopping => self.plan(because).await?,
                _ => {}
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let quiet = self.orphans_wait.then(|| self.watch.quiet_at());
        let retry = self.backoff.next(Instant::now());
        let soonest = self.watch.next_look().min(self.drift_due);
        [quiet, retry].into_iter().flatten().fold(soonest, Instant::min)
    }

    fn wake(&mut self) -> Option<Because> {
        let now = Instant::now();
        if now >= self.watch.next_look() && self.watch.look() {
            return Some(Because::Files);
        }
        if self.orphans_wait && self.watch.is_quiet(now) {
            return Some(Because::Quiet);
        }
        if now >= self.drift_due {
            self.drift_due = now + DRIFT_INTERVAL;
            return Some(Because::Drift);
        }
        // A wait that is over no longer holds its object, which the plan will notice.
        self.retry_is_due(now).then_some(Because::Retry)
    }

    fn retry_is_due(&mut self, now: Instant) -> bool {
        let waiting = self.backoff.held(now);
        let released = self
            .situation
            .held
            .keys()
            .any(|address| !waiting.contains_key(address) && !self.unusable.contains_key(address));
        released && !self.walking
    }

    /// Takes an event; at the end of a walk in which something went well, what waited for that is planned.
    fn happened(&mut self, progress: Option<Progress>) -> Option<Because> {
        let Some(progress) = progress else {
            self.walking = false;
            return std::mem::take(&mut self.progressed).then_some(Because::Walked);
        };
        self.reporter.event(&progress, self.run.records());
        let address = &progress.step.address;
        match progress.kind {
            ProgressKind::Finished => {
                self.progressed = true;
                self.backoff.succeeded(address);
                self.done.insert(progress.step);
            }
            ProgressKind::Failed { reason, message, retryable } => {
                let random = self.engine.random.number();
                self.backoff.failed(address, Held { reason, message }, retryable, Instant::now(), random);
                // The plan that follows the walk holds the object, and so starts the wait.
                self.progressed = true;
            }
            ProgressKind::Started | ProgressKind::Skipped { .. } => {}
        }
        None
    }

    async fn plan(&mut self, because: Because) -> anyhow::Result<()> {
        if because == Because::Files {
            self.backoff.forget_all();
            self.done.clear();
            if let Err(error) = self.read_files() {
                self.console.failure(&error);
                return Ok(());
            }
        }
        loop {
            let (mut planned, mut running) = self.make_plan(because).await?;
            let restless = self.restless(&planned);
            if !restless.is_empty() {
                self.backoff.restless(&restless, Instant::now(), self.engine.random.number());
                (planned, running) = self.make_plan(because).await?;
            }
            let text = self.text(&planned, because)?;
            let (news, steps) = (std::mem::take(&mut planned.diagnostics), planned.has_steps());
            let at_rest = (!steps && because != Because::Retry).then(|| self.at_rest(&news));
            // A step that ended meanwhile made the plan stale; the next one sees its result.
            if self.adopt(planned, running).is_ok() {
                self.walking |= steps;
                self.tell(news, text.as_deref(), at_rest);
                return Ok(());
            }
        }
    }

    fn read_files(&mut self) -> anyhow::Result<()> {
        let wanted = local::read(&self.files.sources);
        let wanted = local::in_namespace(wanted, Some(self.namespace.clone()), &self.files)?;
        self.situation = local::situation(wanted, Loaded::default());
        Ok(())
    }

    /// Plans around what is running. While the files are changing, orphans are held like those of an unreadable file.
    async fn make_plan(&mut self, because: Because) -> anyhow::Result<(Planned, Vec<RunningStep>)> {
        let now = Instant::now();
        let mut situation = self.situation.clone();
        situation.recorded = self.run.records().clone();
        situation.held = self.backoff.held(now);
        situation.held.extend(self.unusable.clone());
        let noisy = !self.watch.is_quiet(now);
        if noisy {
            Arc::make_mut(&mut situation.config).incomplete.push(just_changed());
        }
        let refresh = match because {
            Because::Start => self.planning.refresh,
            Because::Drift => RefreshChoice::All,
            _ => RefreshChoice::None,
        };
        let running = self.run.running(&self.run.touching(&situation.addresses()));
        let purpose =
            Purpose { running: running.clone(), max_failed_creates: Some(MAX_FAILED_CREATES), ..Purpose::default() };
        let mut planned = situation.plan(&self.engine, &Planning { refresh, ..self.planning.clone() }, purpose).await?;
        let blocked = planned.plan.changes.iter().any(|change| change.blocked == Some(Reason::SourceIncomplete));
        self.orphans_wait = noisy && blocked;
        if noisy && self.situation.config.incomplete.is_empty() {
            planned.diagnostics.retain(|found| found.reason != Reason::SourceIncomplete);
        }
        self.situation.held = situation.held;
        Ok((planned, running))
    }

    /// Objects whose step went well since the files last changed, and is planned once more.
    fn restless(&self, planned: &Planned) -> BTreeSet<Address> {
        let steps = planned.graph.nodes().map(|node| planned.graph.step(node));
        steps.filter(|step| self.done.contains(step)).map(|step| step.address.clone()).collect()
    }

    /// A plan is shown when a person, or somebody else's change, has caused it.
    fn text(&self, planned: &Planned, because: Because) -> anyhow::Result<Option<String>> {
        let caused = matches!(because, Because::Start | Because::Files | Because::Quiet | Because::Drift);
        if !caused || !planned.has_changes() {
            return Ok(None);
        }
        let mut text = Vec::new();
        show::text(&mut text, planned, self.console.paint)?;
        Ok(Some(String::from_utf8_lossy(&text).trim_end().to_owned()))
    }

    /// Problems are told once, not with every plan.
    fn tell(&mut self, diagnostics: Diagnostics, text: Option<&str>, at_rest: Option<&str>) {
        let news: Diagnostics = diagnostics.iter().filter(|found| !self.told.contains(found)).cloned().collect();
        self.console.diagnostics(&news);
        self.told = diagnostics;
        for note in text.into_iter().chain(at_rest) {
            self.reporter.note(note);
        }
    }

    fn at_rest(&self, diagnostics: &[Diagnostic]) -> &'static str {
        if self.orphans_wait {
            "Something is missing from the files; it is destroyed once they have not changed for a second."
        } else if has_errors(diagnostics) || !self.situation.held.is_empty() {
            "All that can be done is done. Watching."
        } else {
            "Everything is as the files ask for. Watching."
        }
    }

    fn adopt(&mut self, planned: Planned, running: Vec<RunningStep>) -> Result<(), Stale> {
        let mut scope = self.situation.addresses();
        scope.extend(self.run.records().keys().cloned());
        scope.extend(running.iter().map(|running| running.step.address.clone()));
        let namespace = self.situation.namespace.clone();
        self.run.adopt(planned.adoption(scope, &self.situation.config, namespace, running))
    }

    fn stopped(&mut self) -> Exit {
        self.reporter.close("Stopped.");
        Exit::Success
    }
}

fn just_changed() -> Diagnostic {
    Diagnostic::general(Reason::SourceIncomplete, "the files have just changed")
}
