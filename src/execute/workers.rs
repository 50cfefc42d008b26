//! The tasks that carry out what a schedule orders, of one namespace.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::failure::Failure;
use super::order::Order;
use super::places::{Full, Place, Places};
use super::step::{Fate, StepEnd, StepInput, StepTask};
use super::under_way::News;
use crate::driver::Warnings;
use crate::execute::{Engine, Wishes};
use crate::model::{ProviderUse, Step};

/// Something that happened to what was ordered.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A step has ended.
    Ended(Box<StepEnd>),
    /// A step goes on and has something to say.
    News(Step, News),
    /// A place is free in a pool that was full.
    PlaceFree,
}

/// Carries out orders.
pub struct Workers {
    engine: Arc<Engine>,
    wishes: Wishes,
    tasks: JoinSet<StepEnd>,
    news: UnboundedReceiver<(Step, News)>,
    to_us: UnboundedSender<(Step, News)>,
    full: Full,
    /// Ends the waits for readiness of the steps that were started with it.
    waits: watch::Sender<bool>,
}

impl Workers {
    /// Workers without an order.
    pub fn new(engine: Arc<Engine>, wishes: Wishes) -> Self {
        let (to_us, news) = unbounded_channel();
        Self {
            engine,
            wishes,
            tasks: JoinSet::new(),
            news,
            to_us,
            full: Full::default(),
            waits: watch::Sender::new(false),
        }
    }

    /// The surroundings of all steps.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Begins to carry out an order.
    pub fn carry_out(&mut self, order: Order) {
        match order {
            Order::Start(input, place) => self.start(*input, place),
            // What starts later waits on.
            Order::EndWaits => drop(std::mem::replace(&mut self.waits, watch::Sender::new(false)).send(true)),
        }
    }

    /// Whether nothing runs, and nothing waits for a place.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.full.is_empty()
    }

    /// The next report; waits for ever when idle. Cancel safe.
    pub async fn next(&mut self) -> WorkerEvent {
        tokio::select! {
            // In this order, so that the same run goes the same way each time.
            biased;
            Some(ended) = self.tasks.join_next() => match ended {
                Ok(end) => WorkerEvent::Ended(Box::new(end)),
                // Tasks catch their panics, and only the end of the process aborts them.
                Err(error) => {
                    tracing::error!(%error, "a task of a run was lost");
                    WorkerEvent::PlaceFree
                }
            },
            Some((step, news)) = self.news.recv() => WorkerEvent::News(step, news),
            () = self.full.any_free() => {
                self.full.clear();
                WorkerEvent::PlaceFree
            }
        }
    }

    /// Asks providers to give up the calls that run; they still answer, and that is recorded. Returns `false` when no
    /// provider runs any that can be asked.
    pub async fn hurry(&self) -> bool {
        match self.engine.drivers.providers() {
            Some(providers) => providers.stop().await,
            None => false,
        }
    }

    /// Forgets which pools were full: who asks for places next finds out.
    pub fn forget_full(&mut self) {
        self.full.clear();
    }

    fn start(&mut self, input: StepInput, place: Place) {
        let step = input.step.clone();
        let attendance = self.engine.under_way.begin(&input.namespace, &step, self.to_us.clone(), place);
        let task = StepTask {
            engine: Arc::clone(&self.engine),
            wishes: self.wishes.clone(),
            stop: self.waits.subscribe(),
            input,
            notes: std::sync::Mutex::default(),
            warnings: Warnings::default(),
        };
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
            end
        });
    }
}

impl Places for Workers {
    fn take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Place> {
        self.full.take(self.engine.slots(type_name, provider))
    }
}
