//! A run: the steps of one namespace that are waiting and running. Owned and driven by one task.

mod batch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use petgraph::graph::NodeIndex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use self::batch::Batch;
use super::failure::Failure;
use super::publish;
use super::step::{Fate, StepEnd};
use super::under_way::News;
use crate::execute::{Engine, JournalError, Progress, ProgressKind, Wishes};
use crate::graph::{ActionGraph, Outcome};
use crate::load::{Config, Expansion, Family, Instance};
use crate::model::{
    Address, Diagnostic, Operation, ProviderUse, Reading, Record, Recorded, RecordedObject, Step, Value,
};
use crate::plan::{Plan, RunningStep};

/// Walks graphs. Several may be under way, of components that do not touch each other.
pub struct Run {
    engine: Arc<Engine>,
    records: Recorded,
    /// What is known of data sources.
    readings: BTreeMap<Address, Arc<Reading>>,
    batches: BTreeMap<u64, Batch>,
    next_batch: u64,
    /// Steps whose turn has come, waiting for a place or for another step of their object.
    ready: VecDeque<(u64, NodeIndex)>,
    running: BTreeMap<Step, Running>,
    tasks: JoinSet<Ended>,
    /// What running steps have to say.
    news: UnboundedReceiver<(Step, News)>,
    to_us: UnboundedSender<(Step, News)>,
    events: VecDeque<Progress>,
    /// Names of objects that a plan is being made for: none of their steps starts meanwhile.
    paused: BTreeSet<Arc<str>>,
    /// What has ended of these, and was not taken in.
    held_back: Vec<Ended>,
    stopped: bool,
}

/// What a new plan covers. All of it belongs together: it was made from one view of the situation.
pub struct Adoption {
    /// The objects that the plan covers.
    pub scope: BTreeSet<Address>,
    /// What is wanted.
    pub config: Arc<Config>,
    /// What is to be done.
    pub plan: Plan,
    /// In which order.
    pub graph: ActionGraph,
    /// The value of `ns` in expressions.
    pub namespace: Value,
    /// The steps that were running when the plan was made.
    pub running: Vec<RunningStep>,
    /// The wishes that it was made for.
    pub wishes: Wishes,
}

/// The plan was made while other steps were running than are running now: plan again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// What is known of all objects and data sources.
#[derive(Clone, Copy)]
struct Known<'a> {
    records: &'a Recorded,
    readings: &'a BTreeMap<Address, Arc<Reading>>,
}

impl Known<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        if address.is_data() {
            return self.readings.get(address).map(|reading| reading.value.clone());
        }
        self.records.get(address)?.record.current.as_ref().map(|object| object.value.clone())
    }
}

struct Running {
    /// The step as a new plan sees it: what a create-first replacement destroys is a leftover by now.
    seen: Step,
    batch: Option<(u64, NodeIndex)>,
    planned: Option<Value>,
    recorded: Option<Arc<RecordedObject>>,
    /// It only waits, and holds no place.
    placeless: bool,
    only_follows: bool,
}

enum Ended {
    Step(Box<StepEnd>),
    Swept(Address, Result<(), JournalError>),
}

impl Ended {
    fn address(&self) -> &Address {
        match self {
            Self::Step(end) => &end.step.address,
            Self::Swept(address, _) => address,
        }
    }
}

impl Run {
    /// A run with nothing to do, over the records of one namespace.
    pub fn new(engine: Arc<Engine>, records: Recorded) -> Self {
        let (to_us, news) = unbounded_channel();
        Self {
            engine,
            records,
            readings: BTreeMap::new(),
            batches: BTreeMap::new(),
            next_batch: 0,
            ready: VecDeque::new(),
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            news,
            to_us,
            events: VecDeque::new(),
            paused: BTreeSet::new(),
            held_back: Vec::new(),
            stopped: false,
        }
    }

    /// Ends it in a process that ends as well: what it knew is not freed, which would take long, but the journal is
    /// let go of.
    pub fn abandon(self) {
        let Self { engine, records, readings, batches, ready, running, tasks, events, .. } = self;
        std::mem::forget((records, readings, batches, ready, running, events));
        drop((tasks, engine));
    }

    /// The records as last read or written by us.
    pub fn records(&self) -> &Recorded {
        &self.records
    }

    /// What was read of data sources last, and is still what a plan may go by: one that a plan has yet to read, or whose
    /// reading failed, has none.
    pub fn readings(&self) -> &BTreeMap<Address, Arc<Reading>> {
        &self.readings
    }

    /// Lets go of what was read of a data source that is gone.
    pub fn forget_reading(&mut self, address: &Address) {
        self.readings.remove(address);
    }

    /// The records, to bring in what others have written. Objects with a running step must be left alone.
    pub fn records_mut(&mut self) -> &mut Recorded {
        &mut self.records
    }

    /// Every object of a graph under way (steps waiting or running) that touches one of `scope`, and `scope` itself.
    /// A new plan must cover them all.
    pub fn touching(&self, scope: &BTreeSet<Address>) -> BTreeSet<Address> {
        let mut all = scope.clone();
        // Which instances a Resource has may be known to the batch only, so it is asked for names.
        let names: BTreeSet<&Arc<str>> = scope.iter().map(|address| &address.name).collect();
        let touches = |batch: &&Batch| batch.scope.iter().any(|address| names.contains(&address.name));
        // Scopes of batches are disjoint, so one round finds every batch; what a batch adds touches no other.
        for batch in self.batches.values().filter(touches) {
            all.extend(batch.scope.iter().cloned());
        }
        all
    }

    /// The running steps of the objects that are concerned, for planning around them.
    pub fn running(&self, is_concerned: impl Fn(&Address) -> bool) -> Vec<RunningStep> {
        let in_scope = self.running.iter().filter(|(step, _)| is_concerned(&step.address));
        in_scope
            .map(|(_, running)| RunningStep {
                step: running.seen.clone(),
                planned: running.planned.clone(),
                recorded: running.recorded.clone(),
                only_follows: running.only_follows,
            })
            .collect()
    }

    /// Whether a step of the object is running.
    pub fn is_running(&self, address: &Address) -> bool {
        // Steps are ordered by address first, so those of one object stand together.
        let first = Step { address: address.clone(), deposed: None, operation: Operation::Create, replaces: false };
        self.running.range(first..).next().is_some_and(|(step, _)| step.address == *address)
    }

    /// Whether nothing is running and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.batches.is_empty() && self.events.is_empty() && self.held_back.is_empty()
    }

    /// Stands still for some objects, so that a plan that is made now can be adopted: no step of theirs starts, and what
    /// ends is taken in later. Running calls go on, and what they come to is recorded.
    pub fn pause(&mut self, names: &BTreeSet<Arc<str>>) {
        if !self.stopped {
            self.paused.extend(names.iter().cloned());
        }
    }

    /// Goes on with these objects, and takes in what has ended meanwhile. Then `next` is to be called again.
    pub fn resume(&mut self, names: &BTreeSet<Arc<str>>) {
        self.paused.retain(|name| !names.contains(name));
        for ended in std::mem::take(&mut self.held_back) {
            self.take(Ok(ended));
        }
    }

    /// Takes a new plan for the objects of a scope (which must include all that `touching` names): steps that have
    /// not started are replaced by it, running ones go on as the fixed nodes that the new graph has for them. After
    /// `stop` its steps are skipped.
    ///
    /// # Errors
    /// `Stale` when a step has ended since the plan was made; nothing is changed then.
    pub fn adopt(&mut self, adoption: Adoption) -> Result<(), Stale> {
        let planned_around: BTreeSet<&Step> = adoption.running.iter().map(|running| &running.step).collect();
        let now = self.running.values().map(|running| &running.seen);
        let now: BTreeSet<&Step> = now.filter(|step| adoption.scope.contains(&step.address)).collect();
        if planned_around != now {
            return Err(Stale);
        }
        self.drop_batches(&adoption.scope);
        if !self.stopped {
            self.sweep(&adoption.scope, &adoption.config);
        }
        // What a data source gave before a change of what it depends on says nothing after it.
        for address in adoption.scope.iter().filter(|address| address.is_data()) {
            self.readings.remove(address);
        }
        self.readings.extend(adoption.plan.readings.iter().map(|(address, read)| (address.clone(), Arc::clone(read))));
        let id = self.next_batch;
        self.next_batch += 1;
        let (batch, ready) = Batch::start(adoption);
        for (step, running) in &mut self.running {
            if batch.scope.contains(&step.address) {
                running.batch = batch.running(&running.seen).map(|node| (id, node));
            }
        }
        self.batches.insert(id, batch);
        self.enqueue(id, ready);
        self.close_if_over(id);
        if self.stopped {
            self.stop();
        }
        Ok(())
    }

    /// The next thing that happened; `None` once nothing runs and nothing can start. Cancel safe: a dropped call
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let full = self.start_ready();
            if !self.events.is_empty() {
                continue;
            }
            if self.tasks.is_empty() && full.is_empty() {
                return None;
            }
            tokio::select! {
                // In this order, so that the same run goes the same way each time.
                biased;
                Some(ended) = self.tasks.join_next() => self.take(ended),
                Some((step, news)) = self.news.recv() => self.hear(step, news),
                // A place is free again in a pool that was full. It is taken, or lost to another run, next round.
                () = any_free(full) => {}
            }
        }
    }

    /// Takes back the plans that touch these objects: what has not started never will. Running steps go on.
    pub fn withdraw(&mut self, scope: &BTreeSet<Address>) {
        self.drop_batches(scope);
    }

    /// The same for all plans.
    pub fn withdraw_all(&mut self) {
        self.batches.clear();
        self.ready.clear();
        for running in self.running.values_mut() {
            running.batch = None;
        }
    }

    /// What an object's next waiting step waits for.
    pub fn waiting_for(&self, address: &Address) -> Vec<Step> {
        let batch = self.batches.values().find(|batch| batch.scope.contains(address));
        batch.map(|batch| batch.waiting_for(address)).unwrap_or_default()
    }

    /// No step starts from now on, whatever is adopted later; those waiting are skipped. Running calls go on.
    pub fn stop(&mut self) {
        self.stopped = true;
        let paused = std::mem::take(&mut self.paused);
        self.resume(&paused);
        let turn_came = std::mem::take(&mut self.ready);
        let mut skipped: Vec<Step> =
            turn_came.into_iter().filter_map(|(id, node)| Some(self.batches.get(&id)?.step(node).clone())).collect();
        skipped.extend(self.batches.values_mut().flat_map(Batch::skip_rest));
        for step in skipped {
            self.push(step, ProgressKind::Skipped { because_of: None });
        }
        self.batches.clear();
        for running in self.running.values_mut() {
            running.batch = None;
        }
    }

    /// After a `stop`: what is adopted from now on starts.
    pub fn go_on(&mut self) {
        self.stopped = false;
    }

    /// Asks providers to give up the calls that run; they still answer, and that is recorded. Gives `false` when nobody
    /// runs any that can be asked.
    pub async fn hurry(&self) -> bool {
        match self.engine.drivers.providers() {
            Some(providers) => providers.stop().await,
            None => false,
        }
    }

    fn drop_batches(&mut self, scope: &BTreeSet<Address>) {
        self.batches.retain(|_, batch| batch.scope.is_disjoint(scope));
        let batches = &self.batches;
        self.ready.retain(|(id, _)| batches.contains_key(id));
    }

    fn enqueue(&mut self, id: u64, nodes: Vec<NodeIndex>) {
        self.ready.extend(nodes.into_iter().map(|node| (id, node)));
    }

    /// Starts whatever has a place; gives the full pools that something waits for.
    fn start_ready(&mut self) -> Vec<Arc<Semaphore>> {
        let mut full: Vec<Arc<Semaphore>> = Vec::new();
        let mut waiting = VecDeque::new();
        while let Some((id, node)) = self.ready.pop_front() {
            if self.running.values().filter(|running| !running.placeless).count() >= self.engine.limits.per_namespace {
                waiting.push_back((id, node));
                break;
            }
            let Some(batch) = self.batches.get(&id) else { continue };
            let step = batch.step(node);
            let stands_still = self.paused.contains(&step.address.name) || !batch.may_start(step);
            if stands_still || self.is_running(&step.address) {
                waiting.push_back((id, node));
                continue;
            }
            match try_places(&self.engine, batch.type_name(step), batch.provider(step, &self.records)) {
                Ok(places) => self.start(id, node, places),
                Err(pool) => {
                    waiting.push_back((id, node));
                    if !full.iter().any(|other| Arc::ptr_eq(other, &pool)) {
                        full.push(pool);
                    }
                }
            }
        }
        waiting.append(&mut self.ready);
        self.ready = waiting;
        full
    }

    fn start(&mut self, id: u64, node: NodeIndex, places: Vec<OwnedSemaphorePermit>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        let step = batch.step(node).clone();
        let task = batch.task(&self.engine, &step, &Known { records: &self.records, readings: &self.readings });
        let (planned, recorded) = batch.outlook(&step);
        let (seen, only_follows) = (batch.seen(&step), batch.only_follows(&step));
        let running = Running { seen, batch: Some((id, node)), planned, recorded, placeless: false, only_follows };
        self.running.insert(step.clone(), running);
        self.push(step.clone(), ProgressKind::Started);
        let attendance = self.engine.under_way.begin(&task.namespace, &step, self.to_us.clone(), places);
        self.tasks.spawn(async move {
            let end = AssertUnwindSafe(task.run()).catch_unwind().await;
            // A panic leaves the intent open, so the object is held until recovery has settled it.
            let end = end.unwrap_or_else(|_| StepEnd {
                step,
                fate: Fate::Untouched,
                failure: Some(Failure::internal("the step panicked; its outcome is settled by recovery")),
                notes: Vec::new(),
                warnings: Vec::new(),
            });
            // The places are given back here, not when the end is taken: whoever takes it may be planning, and wait for one.
            drop(attendance);
            Ended::Step(Box::new(end))
        });
    }

    fn take(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        match ended {
            Ok(ended) if self.paused.contains(&ended.address().name) => self.held_back.push(ended),
            Ok(Ended::Step(end)) => self.finish(*end),
            Ok(Ended::Swept(address, Ok(()))) => drop(self.records.remove(&address)),
            // An empty record that could not be removed does no harm; the next plan tries again.
            Ok(Ended::Swept(address, Err(error))) => {
                tracing::warn!(%address, %error, "an empty record could not be removed");
            }
            Err(error) => tracing::error!(%error, "a task of a run was lost"),
        }
    }

    /// Of a step that has ended meanwhile nothing more is told.
    fn hear(&mut self, step: Step, news: News) {
        let Some(running) = self.running.get_mut(&step) else { return };
        match news {
            News::Placeless => running.placeless = true,
            News::Delayed(delay) => {
                let why = Diagnostic::warning(&step.address, delay.reason, delay.message);
                self.push(step, ProgressKind::Delayed(why));
            }
        }
    }

    fn finish(&mut self, end: StepEnd) {
        let StepEnd { step, fate, failure, notes, warnings } = end;
        for note in notes {
            self.push(step.clone(), ProgressKind::Hook(note));
        }
        for warning in warnings {
            self.push(step.clone(), ProgressKind::Warning(warning));
        }
        let running = self.running.remove(&step);
        let fate = match fate {
            Fate::Withdrawn(stored) => {
                self.records.extend(stored.map(|stored| (step.address.clone(), stored)));
                return self.withdrawn(step, running);
            }
            fate => fate,
        };
        match fate {
            Fate::Kept(stored) => drop(self.records.insert(step.address.clone(), stored)),
            Fate::Erased => drop(self.records.remove(&step.address)),
            Fate::Read(reading) => drop(self.readings.insert(step.address.clone(), reading)),
            Fate::Untouched | Fate::Withdrawn(_) => {}
        }
        let outcome = if failure.is_some() { Outcome::Failed } else { Outcome::Done };
        self.push(
            step,
            match failure {
                None => ProgressKind::Finished,
                Some(Failure { reason, message, retryable }) => ProgressKind::Failed { reason, message, retryable },
            },
        );
        if let Some((id, node)) = running.and_then(|running| running.batch) {
            self.advance(id, node, outcome);
        }
    }

    /// The step waits once more, until a newer plan takes its place. One that such a plan was made around has done nothing
    /// of what that plan expects.
    fn withdrawn(&mut self, step: Step, running: Option<Running>) {
        self.push(step, ProgressKind::Withdrawn);
        let Some((id, node)) = running.and_then(|running| running.batch) else { return };
        match self.batches.get(&id).is_some_and(|batch| batch.was_running(node)) {
            true => self.advance(id, node, Outcome::Failed),
            false => self.ready.push_back((id, node)),
        }
    }

    fn advance(&mut self, id: u64, node: NodeIndex, outcome: Outcome) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        let (ready, skipped) = batch.finish(node, outcome);
        for (step, cause) in skipped {
            self.push(step, ProgressKind::Skipped { because_of: Some(cause) });
        }
        self.enqueue(id, ready);
        self.close_if_over(id);
    }

    fn close_if_over(&mut self, id: u64) {
        if self.batches.get(&id).is_some_and(Batch::is_over) {
            self.batches.remove(&id);
        }
    }

    fn push(&mut self, step: Step, kind: ProgressKind) {
        self.events.push_back(Progress { step, at: self.engine.clock.now(), kind });
    }

    /// Removes records that hold nothing any more and that nobody wants: a first create that failed, or a
    /// replacement whose new object never came, before their Resource went.
    fn sweep(&mut self, scope: &BTreeSet<Address>, config: &Config) {
        for address in scope {
            let Some(base) = self.records.get(address) else { continue };
            let record = &base.record;
            // Of a family whose instances are not known, any may be wanted.
            let unclear =
                |family: &Arc<Family>| family.shared.is_wanted() && !matches!(family.expansion, Expansion::Known(_));
            let wanted = config.instances.get(address).is_some_and(|instance| instance.is_wanted())
                || config.families.get(&address.name).is_some_and(unclear);
            if wanted || !is_empty(record) || self.is_running(address) {
                continue;
            }
            let (mut record, base) = (Record::clone(record), base.clone());
            let (engine, address) = (Arc::clone(&self.engine), address.clone());
            self.tasks.spawn(async move {
                let swept = match publish::remove_all(&engine, &mut record).await {
                    Ok(()) => engine.journal.erase(base).await,
                    Err(Failure { message, .. }) => {
                        Err(JournalError::Unavailable { address: address.clone(), message })
                    }
                };
                Ended::Swept(address, swept)
            });
        }
    }
}

fn is_empty(record: &Record) -> bool {
    !record.has_objects() && record.intent.is_none()
}

/// A place in every pool that a call for the type needs, or the pool that is full.
fn try_places(
    engine: &Engine,
    type_name: &str,
    provider: Option<&ProviderUse>,
) -> Result<Vec<OwnedSemaphorePermit>, Arc<Semaphore>> {
    let take = |pool: Arc<Semaphore>| Arc::clone(&pool).try_acquire_owned().map_err(|_| pool);
    engine.slots(type_name, provider).into_iter().map(take).collect()
}

/// Waits until one of the pools has a free place; for ever when there is none.
async fn any_free(pools: Vec<Arc<Semaphore>>) {
    if pools.is_empty() {
        return futures::future::pending().await;
    }
    let waits = pools.into_iter().map(|pool| pool.acquire_owned().boxed());
    drop(futures::future::select_all(waits).await);
}

/// The instance of an address, when its Resource exists.
fn instance<'a>(config: &'a Config, address: &Address) -> Option<&'a Arc<Instance>> {
    config.instances.get(address)
}
