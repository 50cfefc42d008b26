//! The loop: something changes, or a wait is over; a plan is made around what is running; it is walked.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep_until;

use super::backoff::Backoff;
use super::doubts::Doubts;
use super::watch::Watch;
use crate::cli::args::RefreshChoice;
use crate::cli::drive::{REDRAW, obey};
use crate::cli::failure::Exit;
use crate::cli::local::{self, Session};
use crate::cli::options::{Files, Planning};
use crate::cli::output::Console;
use crate::cli::progress::{Reporter, elapsed};
use crate::cli::show;
use crate::cli::signals::Signals;
use crate::cli::situation::{Planned, Purpose, Situation, has_errors};
use crate::execute::{self, Engine, Progress, ProgressKind, Recovery, Run, Stale};
use crate::load::Drift;
use crate::model::{Address, Diagnostic, Diagnostics, Reason, Step};
use crate::plan::{Held, RunningStep};
use crate::store::Loaded;

/// However short the intervals of objects are, it is not looked more often which of them are due.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Replacements that may fail in a row before they are given up until the files change.
const MAX_FAILED_CREATES: u32 = 3;

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
    /// An open operation of an earlier process is settled.
    Recovered,
    /// Somebody else may have changed something.
    Drift,
    /// What could not be planned may be possible by now.
    Doubt,
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
    /// When those of them whose open operation could not be settled are tried again.
    retries: BTreeMap<Address, Instant>,
    recovering: JoinSet<Vec<local::Settled>>,
    /// The namespace that the state file serves.
    namespace: String,
    run: Run,
    watch: Watch,
    backoff: Backoff,
    doubts: Doubts,
    /// A walk is under way.
    walking: bool,
    /// Something went well in it.
    progressed: bool,
    /// The last plan held orphans only because the files had just changed.
    orphans_wait: bool,
    /// Steps that went well since the files last changed.
    done: HashSet<Step>,
    told: Diagnostics,
    /// What was said last of how everything is, if that still holds.
    rested: Option<&'static str>,
    drift_due: Instant,
}

impl Reconciler {
    /// Over an open state file.
    pub fn new(session: Session, files: Files, planning: Planning, reporter: Reporter, console: Console) -> Self {
        let Session { engine, situation, retries, state: _ } = session;
        let now = Instant::now();
        let clock = engine.clock.now();
        let retries = retries.into_iter().map(|(address, at)| (address, now + elapsed(clock, at)));
        let mut reconciler = Self {
            retries: retries.collect(),
            recovering: JoinSet::new(),
            run: Run::new(Arc::clone(&engine), situation.recorded.clone()),
            watch: Watch::new(files.sources.clone(), now),
            unusable: situation.held.clone(),
            namespace: situation.config.namespace.to_string(),
            backoff: Backoff::default(),
            doubts: Doubts::default(),
            walking: false,
            progressed: false,
            orphans_wait: false,
            done: HashSet::new(),
            told: Vec::new(),
            rested: None,
            drift_due: now,
            files,
            planning,
            console,
            reporter,
            engine,
            situation,
        };
        reconciler.look_for_drift_later(now);
        reconciler
    }

    /// At the shortest interval of any object it is looked which of them are due.
    fn look_for_drift_later(&mut self, now: Instant) {
        let intervals = self.situation.config.instances.values().map(|instance| instance.drift.interval);
        let shortest = intervals.min().unwrap_or(Drift::default().interval);
        self.drift_due = now + shortest.max(SHORTEST_INTERVAL);
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
                Some(settled) = self.recovering.join_next() => self.settled(settled),
                _ = redraw.tick(), if self.reporter.is_live() => { self.reporter.tick(); None }
                stop = signals.received() => {
                    if !obey(stop, &mut self.run, self.console).await {
                        return Ok(Exit::Aborted);
                    }
                    stopping = true;
                    None
                }
            };
            match because {
                _ if stopping && !self.walking && self.recovering.is_empty() => return Ok(self.stopped()),
                Some(because) if !stopping => self.plan(because).await?,
                _ => {}
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let quiet = self.orphans_wait.then(|| self.watch.quiet_at());
        let recovery = self.retries.values().min().copied();
        let retry = self.backoff.next(Instant::now());
        let soonest = self.watch.next_look().min(self.drift_due);
        // What a walk changes is looked at after it.
        let doubt = self.doubts.next().filter(|_| !self.walking);
        [quiet, retry, recovery, doubt].into_iter().flatten().fold(soonest, Instant::min)
    }

    fn wake(&mut self) -> Option<Because> {
        let now = Instant::now();
        self.recover(now);
        if now >= self.watch.next_look() && self.watch.look() {
            return Some(Because::Files);
        }
        if self.orphans_wait && self.watch.is_quiet(now) {
            return Some(Because::Quiet);
        }
        if now >= self.drift_due {
            self.look_for_drift_later(now);
            return Some(Because::Drift);
        }
        if !self.walking && self.doubt_again(now) {
            return Some(Because::Doubt);
        }
        // A wait that is over no longer holds its object, which the plan will notice.
        self.retry_is_due(now).then_some(Because::Retry)
    }

    /// What a doubt is about is read anew, whenever it was read before.
    fn doubt_again(&mut self, now: Instant) -> bool {
        let due = self.doubts.due(now);
        self.situation.reads.retain(|address, _| !due.contains(address));
        !due.is_empty()
    }

    /// Begins to settle the open operations that have waited long enough.
    fn recover(&mut self, now: Instant) {
        let due: Vec<Address> = self.retries.extract_if(.., |_, at| *at <= now).map(|(address, _)| address).collect();
        let records = self.run.schedule.records();
        let instances = &self.situation.config.instances;
        let open: Vec<_> = due
            .iter()
            .filter_map(|address| Some((records.get(address)?.clone(), instances.get(address).cloned())))
            .collect();
        if !open.is_empty() {
            let engine = Arc::clone(&self.engine);
            self.recovering.spawn(async move { local::settle(&engine, open).await });
        }
    }

    /// Takes in what recovery came to. What is settled is planned like anything else.
    fn settled(&mut self, settled: Result<Vec<local::Settled>, JoinError>) -> Option<Because> {
        let now = Instant::now();
        let mut released = false;
        for local::Settled { address, recovery, warnings } in settled.unwrap_or_default() {
            self.warn(warnings);
            match recovery {
                Recovery::Settled(stored) => drop(self.run.schedule.records_mut().insert(address.clone(), stored)),
                Recovery::Erased => drop(self.run.schedule.records_mut().remove(&address)),
                Recovery::Held(held, until) => {
                    let clock = self.engine.clock.now();
                    self.retries.extend(until.map(|at| (address.clone(), now + elapsed(clock, at))));
                    self.unusable.insert(address, held);
                    continue;
                }
            }
            self.unusable.remove(&address);
            released = true;
        }
        released.then_some(Because::Recovered)
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
        self.reporter.event(&progress, self.run.schedule.records());
        let address = &progress.step.address;
        match progress.kind {
            ProgressKind::Finished => {
                self.progressed = true;
                self.backoff.succeeded(address);
                self.situation.reads.insert(address.clone(), self.engine.clock.now());
                self.done.insert(progress.step);
            }
            ProgressKind::Failed { reason, message, retryable } => {
                let random = self.engine.random.number();
                self.backoff.failed(address, Held { reason, message }, retryable, Instant::now(), random);
                // The plan that follows the walk holds the object, and so starts the wait.
                self.progressed = true;
            }
            ProgressKind::Started
            | ProgressKind::Hook(_)
            | ProgressKind::Warning(_)
            | ProgressKind::Withdrawn
            | ProgressKind::Delayed(_)
            | ProgressKind::Skipped { .. } => {}
        }
        None
    }

    async fn plan(&mut self, because: Because) -> anyhow::Result<()> {
        if because == Because::Files {
            self.backoff.forget_all();
            self.doubts.forget_all();
            self.done.clear();
            // An import may be the way out of an operation that nobody could settle.
            let now = Instant::now();
            self.retries.extend(self.unusable.keys().map(|address| (address.clone(), now)));
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
            self.doubts.note(&planned.plan, &self.situation.held, Instant::now(), self.engine.random.number());
            let text = self.text(&planned, because)?;
            let (news, steps) = (std::mem::take(&mut planned.diagnostics), planned.has_steps());
            let at_rest = (!steps).then(|| self.at_rest(&news)).filter(|said| match because {
                Because::Retry | Because::Doubt => false,
                // Nobody has asked.
                Because::Drift => self.rested != Some(*said),
                _ => true,
            });
            execute::carry_out(self.engine.journal.as_ref(), self.run.schedule.records_mut(), &planned.moves).await?;
            // A step that ended meanwhile made the plan stale; the next one sees its result.
            if self.adopt(planned, running).is_ok() {
                self.walking |= steps;
                self.rested = if steps { None } else { at_rest.or(self.rested) };
                self.tell(news, text.as_deref(), at_rest);
                return Ok(());
            }
        }
    }

    fn read_files(&mut self) -> anyhow::Result<()> {
        let wanted = local::read(&self.files.sources);
        let wanted = local::in_namespace(wanted, Some(self.namespace.clone()), &self.files)?;
        let reads = std::mem::take(&mut self.situation.reads);
        self.situation = Situation { reads, ..local::situation(wanted, Loaded::default()) };
        self.look_for_drift_later(Instant::now());
        Ok(())
    }

    /// Plans around what is running. While the files are changing, orphans are held like those of an unreadable file.
    async fn make_plan(&mut self, because: Because) -> anyhow::Result<(Planned, Vec<RunningStep>)> {
        let now = Instant::now();
        let mut situation = self.situation.clone();
        situation.recorded = self.run.schedule.records().clone();
        situation.held = self.backoff.held(now);
        situation.held.extend(self.unusable.clone());
        let noisy = !self.watch.is_quiet(now);
        if noisy {
            Arc::make_mut(&mut situation.config).incomplete.push(just_changed());
        }
        let refresh = match because {
            Because::Start => self.planning.refresh,
            Because::Drift | Because::Doubt => RefreshChoice::Due,
            _ => RefreshChoice::None,
        };
        let touching = self.run.schedule.touching(&situation.addresses());
        let running = self.run.schedule.running(|address| touching.contains(address));
        let purpose =
            Purpose { running: running.clone(), max_failed_creates: Some(MAX_FAILED_CREATES), ..Purpose::default() };
        let mut planned = situation.plan(&self.engine, &Planning { refresh, ..self.planning.clone() }, purpose).await?;
        let blocked = planned.plan.changes.iter().any(|change| change.blocked == Some(Reason::SourceIncomplete));
        self.orphans_wait = noisy && blocked;
        if noisy && self.situation.config.incomplete.is_empty() {
            planned.diagnostics.retain(|found| found.reason != Reason::SourceIncomplete);
        }
        self.situation.held = situation.held;
        let (seen, due) = planned.looked_at();
        let at = self.engine.clock.now();
        self.situation.reads.extend(seen.into_iter().map(|address| (address, at)));
        self.situation.reads.retain(|address, _| !due.contains(address));
        Ok((planned, running))
    }

    /// Objects whose step went well since the files last changed, and is planned once more.
    fn restless(&self, planned: &Planned) -> BTreeSet<Address> {
        let steps = planned.graph.nodes().map(|node| planned.graph.step(node));
        steps.filter(|step| self.done.contains(step)).map(|step| step.address.clone()).collect()
    }

    /// A plan is shown when a person, or somebody else's change, has caused it.
    fn text(&self, planned: &Planned, because: Because) -> anyhow::Result<Option<String>> {
        let caused =
            matches!(because, Because::Start | Because::Files | Because::Quiet | Because::Drift | Because::Doubt);
        if !caused || !planned.has_changes() {
            return Ok(None);
        }
        let mut text = Vec::new();
        show::text(&mut text, planned, self.console.paint)?;
        Ok(Some(String::from_utf8_lossy(&text).trim_end().to_owned()))
    }

    fn warn(&mut self, mut found: Diagnostics) {
        found.retain(|one| self.reporter.is_news(one));
        self.console.diagnostics(&found);
    }

    /// Problems are told once, not with every plan.
    fn tell(&mut self, diagnostics: Diagnostics, text: Option<&str>, at_rest: Option<&str>) {
        let news: Diagnostics = diagnostics.iter().filter(|found| !self.told.contains(found)).cloned().collect();
        self.warn(news);
        self.told = diagnostics;
        for note in text.into_iter().chain(at_rest) {
            self.reporter.note(note);
        }
    }

    fn at_rest(&self, diagnostics: &[Diagnostic]) -> &'static str {
        let is_readable = self.situation.config.incomplete.is_empty();
        if self.orphans_wait && is_readable {
            "Something is missing from the files; it is destroyed once they have not changed for a second, unless it is \
             protected."
        } else if self.orphans_wait {
            "Something is missing from the files; it stays until they can be read."
        } else if has_errors(diagnostics) || !self.situation.held.is_empty() {
            "All that can be done is done; the errors above say what to do about the rest. Watching."
        } else {
            "Everything is as the files ask for. Watching."
        }
    }

    fn adopt(&mut self, planned: Planned, running: Vec<RunningStep>) -> Result<(), Stale> {
        let mut scope = self.situation.addresses();
        scope.extend(self.run.schedule.records().keys().cloned());
        scope.extend(running.iter().map(|running| running.step.address.clone()));
        let namespace = self.situation.namespace.clone();
        self.run.schedule.adopt(planned.adoption(scope, namespace, running))
    }

    fn stopped(&mut self) -> Exit {
        self.reporter.close("Stopped.");
        Exit::Success
    }
}

fn just_changed() -> Diagnostic {
    Diagnostic::general(Reason::SourceIncomplete, "the files have just changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{ColorChoice, FileArgs, TargetArgs};
    use crate::cli::options::Target;
    use crate::driver::scripted::{Answer, Line, Operation, World};
    use crate::driver::{Registry, Scripted};
    use crate::execute::{Journal as _, Limits};
    use crate::model::{Holder, Intent, Record, RecordedObject, Stored, Value};
    use crate::process::{SystemClock, SystemRandom};
    use crate::store::{MemoryJournal, StateFile};

    /// A record with an update that an earlier process has begun, over an object that exists.
    fn cut_update(address: &Address) -> Record {
        let mut record = Record::empty("default".into(), address.clone(), "".into(), "scripted".into());
        record.current = Some(Arc::new(RecordedObject {
            value: Value::map([("id", Value::from("it")), ("value", Value::from(1))]),
            ..RecordedObject::default()
        }));
        record.intent = Some(Box::new(Intent {
            operation: crate::model::Operation::Update,
            operation_id: "op".into(),
            holder: Holder { pod: "".into(), process: "earlier".into() },
            epoch: 1,
            started: jiff::Timestamp::UNIX_EPOCH,
            deadline: jiff::Timestamp::UNIX_EPOCH,
            deposed: None,
            planned: None,
        }));
        record
    }

    #[tokio::test]
    async fn a_recovery_that_could_not_end_is_tried_again_when_its_time_has_come() {
        let address: Address = "a".parse().unwrap();
        let world = World::new(serde_json::from_str("{}").unwrap());
        world.put("it", &Value::map([("value", Value::from(1))]));
        world.script(Line {
            on: "a".to_owned(),
            operation: Operation::Read,
            answers: vec![Answer::Fail {
                kind: serde_json::from_str("\"transient\"").unwrap(),
                message: "not now".to_owned(),
            }],
        });
        let journal = MemoryJournal::default();
        let record = Arc::new(cut_update(&address));
        let version = journal.intend(record.clone(), None).await.unwrap();
        let engine = Arc::new(Engine::new(
            Registry::default().with("scripted", Arc::new(Scripted::new(world))),
            Arc::new(journal),
            Arc::new(SystemClock),
            Arc::new(SystemRandom),
            Limits::default(),
            Holder { pod: "".into(), process: "now".into() },
        ));
        let mut situation = Situation::default();
        situation.recorded.insert(address.clone(), Stored { record, version });
        let retries = local::settle_open_intents(&engine, &mut situation).await;
        assert!(retries.contains_key(&address) && situation.held.contains_key(&address));

        let console = Console::new(ColorChoice::Never);
        let files = FileArgs { filenames: vec!["files".into()], ..FileArgs::default() };
        let Target::Files(files) = Target::decide(TargetArgs { files, ..TargetArgs::default() }) else { panic!() };
        let folder = tempfile::tempdir().unwrap();
        let state = StateFile::open(&folder.path().join("purlin.db"), "default", engine.holder.clone()).unwrap();
        let session = Session { engine, situation, retries, state: Arc::new(state) };
        let mut reconciler =
            Reconciler::new(session, files, Planning::default(), Reporter::text(console, true), console);
        reconciler.recover(Instant::now());
        assert!(reconciler.recovering.is_empty(), "its time has not come");
        reconciler.recover(Instant::now() + Duration::from_hours(1));
        let settled = reconciler.recovering.join_next().await.unwrap();
        assert_eq!(reconciler.settled(settled), Some(Because::Recovered));
        assert!(reconciler.unusable.is_empty() && reconciler.retries.is_empty());
        assert!(reconciler.run.schedule.records()[&address].record.intent.is_none());
    }

    #[tokio::test]
    async fn a_precondition_that_others_make_true_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let manifests = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: a }\nspec:\n  type: scripted\n  \
                         config: { value: 1 }\n  lifecycle: { ignoreChanges: [value] }\n---\napiVersion: \
                         purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: b }\nspec:\n  type: scripted\n  config: { \
                         value: 1 }\n  lifecycle: { preconditions: [{ condition: '${a.value == 2}', errorMessage: not yet }] }\n";
        std::fs::write(folder.path().join("all.yaml"), manifests).unwrap();
        let world = World::new(serde_json::from_str("{}").unwrap());
        let engine = Arc::new(Engine::new(
            Registry::default().with("scripted", Arc::new(Scripted::new(world.clone()))),
            Arc::new(MemoryJournal::default()),
            Arc::new(SystemClock),
            Arc::new(SystemRandom),
            Limits::default(),
            Holder { pod: "".into(), process: "now".into() },
        ));
        let console = Console::new(ColorChoice::Never);
        let files = FileArgs { filenames: vec![folder.path().into()], ..FileArgs::default() };
        let Target::Files(files) = Target::decide(TargetArgs { files, ..TargetArgs::default() }) else { panic!() };
        let state = StateFile::open(&folder.path().join("purlin.db"), "default", engine.holder.clone()).unwrap();
        let situation = local::situation(local::read(&files.sources), Loaded::default());
        let session = Session { engine, situation, retries: BTreeMap::new(), state: Arc::new(state) };
        let mut reconciler =
            Reconciler::new(session, files, Planning::default(), Reporter::text(console, true), console);
        let recorded = |reconciler: &Reconciler| {
            reconciler.run.schedule.records().keys().map(ToString::to_string).collect::<Vec<_>>()
        };
        reconciler.plan(Because::Start).await.unwrap();
        while let Some(progress) = reconciler.run.next().await {
            reconciler.happened(Some(progress));
        }
        assert_eq!(reconciler.happened(None), Some(Because::Walked));
        reconciler.plan(Because::Walked).await.unwrap();
        assert_eq!(recorded(&reconciler), ["a"]);

        let made = reconciler.run.schedule.records()[&Address::single("a")].record.current.clone().unwrap();
        world.put(made.id().unwrap(), &made.value.with("value", Value::from(2)));
        assert!(!reconciler.doubt_again(Instant::now()), "its time has not come");
        assert!(reconciler.doubt_again(Instant::now() + Duration::from_hours(1)));
        reconciler.plan(Because::Doubt).await.unwrap();
        while let Some(progress) = reconciler.run.next().await {
            reconciler.happened(Some(progress));
        }
        assert_eq!(recorded(&reconciler), ["a", "b"]);
        assert_eq!(reconciler.doubts.next(), None);
    }
}
