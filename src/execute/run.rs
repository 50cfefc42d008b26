//! A run: a schedule together with the workers that carry it out. Owned and driven by one task.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::schedule::{Adoption, Schedule, Stale};
use super::workers::{Report, Workers};
use crate::execute::{Engine, Progress, Wishes};
use crate::model::{Address, Recorded};
use crate::plan::RunningStep;

/// Carries out plans whose wishes do not change meanwhile.
pub struct Run {
    schedule: Schedule,
    workers: Workers,
}

impl Run {
    /// A run with nothing to do, over the records of one namespace.
    pub fn new(engine: Arc<Engine>, records: Recorded) -> Self {
        let schedule = Schedule::new(engine.limits.per_namespace, records);
        Self { schedule, workers: Workers::new(engine, Wishes::default()) }
    }

    /// See [`Schedule::abandon`]. The journal is let go of.
    pub fn abandon(self) {
        self.schedule.abandon();
    }

    /// See [`Schedule::records`].
    pub fn records(&self) -> &Recorded {
        self.schedule.records()
    }

    /// See [`Schedule::records_mut`].
    pub fn records_mut(&mut self) -> &mut Recorded {
        self.schedule.records_mut()
    }

    /// See [`Schedule::touching`].
    pub fn touching(&self, scope: &BTreeSet<Address>) -> BTreeSet<Address> {
        self.schedule.touching(scope)
    }

    /// See [`Schedule::running`].
    pub fn running(&self, is_concerned: impl Fn(&Address) -> bool) -> Vec<RunningStep> {
        self.schedule.running(is_concerned)
    }

    /// See [`Schedule::adopt`].
    ///
    /// # Errors
    /// `Stale` when a step has ended since the plan was made; nothing is changed then.
    pub fn adopt(&mut self, adoption: Adoption) -> Result<(), Stale> {
        self.schedule.adopt(adoption)
    }

    /// See [`Schedule::stop`].
    pub fn stop(&mut self) {
        self.schedule.stop();
    }

    /// See [`Workers::hurry`].
    pub async fn hurry(&self) -> bool {
        self.workers.hurry().await
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
                Report::Ended(ended) => self.schedule.ended(ended),
                Report::News(step, news) => self.schedule.news(step, news),
                Report::PlaceFree => {}
            }
        }
    }
}
