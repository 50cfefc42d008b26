//! The outputs of the watched Terraform configuration: recorded when its objects are applied, and printed when they differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::DevReporter;
use crate::cli::local::DesiredState;
use crate::cli::outputs::{self, Readings};
use engine::load::Config;
use model::{Recorded, Value};
use runtime::execute::Adoption;
use runtime::store::{RecordedConfiguration, StateFile};

pub struct RecordedOutputs {
    state: Arc<StateFile>,
    /// What is recorded of Terraform configurations, by source.
    pub configurations: BTreeMap<Arc<str>, RecordedConfiguration>,
    /// The source of the watched configuration, unless it cannot be read.
    source: Option<Arc<str>>,
    /// The configuration as it was last planned, with all its objects, and the variable `ns` of expressions.
    planned: Option<(Arc<Config>, Value)>,
}

impl RecordedOutputs {
    pub fn new(state: Arc<StateFile>, configurations: BTreeMap<Arc<str>, RecordedConfiguration>) -> Self {
        Self { state, configurations, source: None, planned: None }
    }

    /// Takes what was read of the files.
    pub fn read(&mut self, desired: &DesiredState) {
        self.source = desired.module.clone().filter(|_| desired.terraform.is_some());
    }

    pub fn adopted(&mut self, adoption: &Adoption) {
        if !adoption.config.modules.is_empty() {
            self.planned = Some((adoption.config.clone(), adoption.namespace.clone()));
        }
    }

    /// Records the outputs if they differ, and are all known.
    pub fn record(&mut self, recorded: &Recorded, readings: &Readings, reporter: &mut DevReporter) {
        let (Some(source), Some((config, namespace))) = (&self.source, &self.planned) else { return };
        let before = self.configurations.get(source).cloned().unwrap_or_default();
        let outputs = outputs::recorded(config, recorded, readings, namespace);
        match outputs::record(&self.state, source, &before, &outputs) {
            Ok(Some(after)) => {
                reporter.outputs(&before.outputs, &after.outputs);
                self.configurations.insert(source.clone(), after);
            }
            Ok(None) => {}
            // The next step, or the next apply, records them.
            Err(error) => tracing::warn!(%error, "the outputs could not be recorded"),
        }
    }
}
