//! The schedule of one namespace: which steps wait, which run, and what follows when one ends. Pure: it starts nothing
//! itself. [`Schedule::orders`] says what to start, and what was started comes back through [`Schedule::ended`].

mod batch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use self::batch::Batch;
use super::failure::Failure;
use super::order::Order;
use super::places::{Place, Places};
use super::step::{Fate, StepEnd};
use super::under_way::News;
use crate::execute::ProgressKind;
use crate::graph::{ActionGraph, Outcome};
use crate::load::{Config, Instance};
use crate::model::{Address, Diagnostic, Operation, Reading, Recorded, RecordedObject, Step, Value};
use crate::plan::{Plan, RunningStep};

/// Walks graphs. Several may be under way, of components that do not touch each other.
#[derive(Default)]
pub struct Schedule {
    /// How many steps may run at once.
    limit: usize,
    records: Recorded,
    /// What is known of data sources.
    readings: BTreeMap<Address, Arc<Reading>>,
    batches: BTreeMap<u64, Batch>,
    next_batch: u64,
    /// Steps whose turn has come, waiting for a place or for another step of their object.
    ready: VecDeque<(u64, NodeIndex)>,
    running: BTreeMap<Step, Running>,
    events: VecDeque<(Step, ProgressKind)>,
    /// Names of objects that a plan is being made for: none of their steps starts meanwhile.
    paused: BTreeSet<Arc<str>>,
    /// What has ended of these, and was not taken in.
    held_back: Vec<StepEnd>,
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
    /// The wishes that it was made for, by name, where wishes can change while it is carried out.
    pub wishes: Arc<BTreeMap<Arc<str>, u64>>,
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

impl Schedule {
    /// A schedule with nothing to do, over the records of one namespace. `limit`: how many steps may run at once.
    pub fn new(limit: usize, records: Recorded) -> Self {
        Self { limit, records, ..Self::default() }
    }

    /// Ends it in a process that ends as well: what it knew is not freed, which would take long.
    pub fn abandon(self) {
        std::mem::forget(self);
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
        self.nothing_runs() && self.batches.is_empty() && self.events.is_empty() && self.held_back.is_empty()
    }

    /// Whether nothing is running.
    pub fn nothing_runs(&self) -> bool {
        self.running.is_empty()
    }

    /// Stands still for some objects, so that a plan that is made now can be adopted: no step of theirs starts, and what
    /// ends is taken in later. Running calls go on, and what they come to is recorded.
    pub fn pause(&mut self, names: &BTreeSet<Arc<str>>) {
        if !self.stopped {
            self.paused.extend(names.iter().cloned());
        }
    }

    /// Goes on with these objects, and takes in what has ended meanwhile.
    pub fn resume(&mut self, names: &BTreeSet<Arc<str>>) {
        self.paused.retain(|name| !names.contains(name));
        for ended in std::mem::take(&mut self.held_back) {
            self.ended(ended);
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

    /// What happened to a step and was not asked for yet, in order.
    pub fn event(&mut self) -> Option<(Step, ProgressKind)> {
        self.events.pop_front()
    }

    /// Whether something happened that was not asked for yet.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// What can be started now. `stands` says of a Resource, by name, whether the wish that a plan was made for is still
    /// the newest one: what gives something up starts only then.
    pub fn orders(&mut self, places: &mut dyn Places, stands: &dyn Fn(&str, Option<u64>) -> bool) -> Vec<Order> {
        let mut orders = Vec::new();
        let mut waiting = VecDeque::new();
        let mut busy = self.running.values().filter(|running| !running.placeless).count();
        while busy < self.limit
            && let Some((id, node)) = self.ready.pop_front()
        {
            let Some(batch) = self.batches.get(&id) else { continue };
            let step = batch.step(node);
            let is_wished = !step.gives_up() || stands(&step.address.name, batch.wish(step));
            if !is_wished || self.paused.contains(&step.address.name) || self.is_running(&step.address) {
                waiting.push_back((id, node));
                continue;
            }
            match places.take(batch.type_name(step), batch.provider(step, &self.records)) {
                Some(place) => {
                    orders.extend(self.start(id, node, place));
                    busy += 1;
                }
                None => waiting.push_back((id, node)),
            }
        }
        waiting.append(&mut self.ready);
        self.ready = waiting;
        orders
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

    /// No step starts from now on, whatever is adopted later; those waiting are skipped. Running steps go on.
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

    fn drop_batches(&mut self, scope: &BTreeSet<Address>) {
        self.batches.retain(|_, batch| batch.scope.is_disjoint(scope));
        let batches = &self.batches;
        self.ready.retain(|(id, _)| batches.contains_key(id));
    }

    fn enqueue(&mut self, id: u64, nodes: Vec<NodeIndex>) {
        self.ready.extend(nodes.into_iter().map(|node| (id, node)));
    }

    fn start(&mut self, id: u64, node: NodeIndex, place: Place) -> Option<Order> {
        let batch = self.batches.get_mut(&id)?;
        let step = batch.step(node).clone();
        let input = batch.input(&step, &Known { records: &self.records, readings: &self.readings });
        let (planned, recorded) = batch.outlook(&step);
        let (seen, only_follows) = (batch.seen(&step), batch.only_follows(&step));
        let running = Running { seen, batch: Some((id, node)), planned, recorded, placeless: false, only_follows };
        self.running.insert(step.clone(), running);
        self.push(step, ProgressKind::Started);
        Some(Order::Start(Box::new(input), place))
    }

    /// Takes in that a step has ended.
    pub fn ended(&mut self, end: StepEnd) {
        if self.paused.contains(&end.step.address.name) {
            return self.held_back.push(end);
        }
        self.finish(end);
    }

    /// Takes in what a step reports before it ends.
    pub fn news(&mut self, step: Step, news: News) {
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
            Fate::LetGo(stored) => {
                self.records.insert(step.address.clone(), stored);
                return self.push(step, ProgressKind::LetGo);
            }
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
            Fate::Untouched | Fate::Withdrawn(_) | Fate::LetGo(_) => {}
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
        self.events.push_back((step, kind));
    }
}

/// The instance of an address, when its Resource exists.
fn instance<'a>(config: &'a Config, address: &Address) -> Option<&'a Arc<Instance>> {
    config.instances.get(address)
}
