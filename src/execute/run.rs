//! A run: a schedule together with the workers that carry it out. Owned and driven by one task.

use std::sync::Arc;

use super::order::Order;
use super::schedule::Schedule;
use super::workers::{WorkerEvent, Workers};
use crate::execute::{Engine, Progress, Wishes};
use crate::model::Recorded;

/// Carries out plans whose wishes do not change meanwhile.
pub struct Run {
    /// What waits and what runs.
    pub schedule: Schedule,
    workers: Workers,
}

impl Run {
    /// A run with nothing to do, over the records of one namespace.
    pub fn new(engine: Arc<Engine>, records: Recorded) -> Self {
        let schedule = Schedule::new(engine.limits.per_namespace, records);
        Self { schedule, workers: Workers::new(engine, Wishes::default()) }
    }

    /// The next thing that happened; `None` once nothing runs and nothing can start. Cancel safe: a dropped call
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            if let Some((step, kind)) = self.schedule.event() {
                return Some(Progress { step, at: self.workers.engine().clock.now(), kind });
            }
            self.workers.forget_full();
            for order in self.schedule.orders(&mut self.workers, &|_, _| true) {
                self.workers.carry_out(order);
            }
            if self.schedule.has_events() {
                continue;
            }
            if self.workers.is_idle() {
                return None;
            }
            match self.workers.next().await {
                WorkerEvent::Ended(end) => self.schedule.ended(*end),
                WorkerEvent::News(step, news) => self.schedule.news(step, news),
                WorkerEvent::PlaceFree => {}
            }
        }
    }

    /// No step starts from now on, and nothing is waited for any longer until it is ready. Running calls go on.
    pub fn stop(&mut self) {
        self.schedule.stop();
        self.workers.carry_out(Order::EndWaits);
    }

    /// What carries the schedule out.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}
