//! The planning machine.

use super::{Ask, AskId, Plan, PlanOptions, Reply};
use crate::load::Config;
use crate::model::Recorded;
use crate::plan::ask::Types;

/// Plans one namespace, or some of its components.
pub struct Planner<'a> {
    _situation: (&'a Config, &'a Recorded, &'a PlanOptions, &'a dyn Types),
}

impl<'a> Planner<'a> {
    /// Starts planning. Nothing is asked yet.
    pub fn new(config: &'a Config, recorded: &'a Recorded, options: &'a PlanOptions, types: &'a dyn Types) -> Self {
        Self { _situation: (config, recorded, options, types) }
    }

    /// The questions that can be asked now and were not given out before. Empty while every open question waits for
    /// a reply, and when there is nothing left to ask.
    pub fn ready(&mut self) -> Vec<Ask> {
        Vec::new()
    }

    /// Takes the reply to a question; more questions may be ready then.
    pub fn answer(&mut self, _id: AskId, _reply: Reply) {}

    /// The plan. Call it when `ready` gives nothing and no question is open.
    pub fn finish(self) -> Plan {
        Plan::default()
    }
}
