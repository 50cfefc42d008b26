//! The failed steps of a run, each with its cause and what was skipped because of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::cli::messages::subject;
use crate::cli::output::write_problem;
use engine::plan::render::problems::{write_others, write_waiting};
use model::text::split_hint;
use model::{Address, Severity, Step, Text};
use runtime::execute::{Progress, ProgressKind};

/// Failed steps in the order of their failure.
#[derive(Debug, Default)]
pub struct Failures {
    failed: Vec<(Step, String)>,
    /// The objects whose steps were skipped, for each failed step.
    skipped: BTreeMap<Step, Vec<Address>>,
}

impl Failures {
    pub fn event(&mut self, progress: &Progress) {
        let step = &progress.step;
        match &progress.kind {
            ProgressKind::Failed { message, .. } => self.failed.push((step.clone(), message.clone())),
            ProgressKind::Skipped { because_of: Some(cause) } => {
                let addresses = self.skipped.entry(cause.clone()).or_default();
                if !addresses.contains(&step.address) && step.address != cause.address {
                    addresses.push(step.address.clone());
                }
            }
            _ => {}
        }
    }

    /// Writes each failure with its cause, the other objects that failed in the same way, and those that wait.
    pub fn write(&self, text: &mut Text) {
        for failure in self.grouped() {
            let (step, message) = failure[0];
            let (line, hint) = split_hint(message);
            let line = format!("{}: {} failed: {line}", subject(step), step.operation.as_str());
            write_problem(Severity::Error, &line, hint, text);
            let mut others: Vec<&Address> = failure[1..].iter().map(|(step, _)| &step.address).collect();
            others.sort();
            write_others(&others, text);
            let waiting: BTreeSet<&Address> = failure.iter().flat_map(|(step, _)| self.waiting(step)).collect();
            write_waiting(&waiting.into_iter().collect::<Vec<_>>(), text);
        }
    }

    /// The failed steps with the same operation and message together, such as those of a provider that crashed.
    fn grouped(&self) -> Vec<Vec<(&Step, &String)>> {
        let mut positions = HashMap::new();
        let mut groups: Vec<Vec<(&Step, &String)>> = Vec::new();
        for (step, message) in &self.failed {
            let position = *positions.entry((step.operation, step.deposed, message)).or_insert(groups.len());
            if position == groups.len() {
                groups.push(Vec::new());
            }
            groups[position].push((step, message));
        }
        groups
    }

    /// Writes what was skipped because of each failed step since the last call, one line for each of them.
    pub fn write_skipped(&mut self, text: &mut Text) {
        for cause in std::mem::take(&mut self.failed).into_iter().map(|(step, _)| step) {
            write_waiting(&self.waiting(&cause), text);
            self.skipped.remove(&cause);
        }
    }

    fn waiting(&self, cause: &Step) -> Vec<&Address> {
        let mut waiting: Vec<&Address> = self.skipped.get(cause).into_iter().flatten().collect();
        waiting.sort();
        waiting
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use model::{Operation, Reason};

    fn event(name: &str, kind: ProgressKind) -> Progress {
        let address = Address::single(name);
        let step = Step { address, deposed: None, operation: Operation::Create, replaces: false };
        Progress { step, at: Timestamp::UNIX_EPOCH, kind }
    }

    #[test]
    fn each_failure_is_written_once_with_what_waits_for_it() {
        let message = "no space (hint: buy a disk)\u{1b}[2J".to_owned();
        let failed = event("db", ProgressKind::Failed { reason: Reason::OperationFailed, message, retryable: true });
        let because_of = Some(failed.step.clone());
        let skipped = |name: &str| event(name, ProgressKind::Skipped { because_of: because_of.clone() });
        let mut failures = Failures::default();
        [skipped("web"), failed.clone(), skipped("app"), skipped("app")].iter().for_each(|one| failures.event(one));
        let mut text = Text::new(false);
        failures.write(&mut text);
        let waiting = "  2 objects wait for this: app, web\n";
        let expected = format!("error: db: create failed: no space (hint: buy a disk)\\u001b[2J\n{waiting}");
        assert_eq!(text.as_str(), expected);
        text.clear();
        failures.write_skipped(&mut text);
        failures.write_skipped(&mut text);
        assert_eq!(text.as_str(), waiting);
    }

    #[test]
    fn the_same_failure_of_several_objects_is_written_once() {
        let failed = |name: &str, message: &str| {
            let message = message.to_owned();
            event(name, ProgressKind::Failed { reason: Reason::OperationFailed, message, retryable: true })
        };
        let because_of = Some(failed("c", "").step);
        let skipped = event("user", ProgressKind::Skipped { because_of });
        let events = [failed("b", "it crashed"), failed("c", "it crashed"), failed("a", "it crashed"), skipped];
        let mut failures = Failures::default();
        events.iter().chain([&failed("d", "no")]).for_each(|event| failures.event(event));
        let mut text = Text::new(false);
        failures.write(&mut text);
        let expected = "error: b: create failed: it crashed\n  2 more objects have this problem: a, c\n  1 object waits \
                        for this: user\nerror: d: create failed: no\n";
        assert_eq!(text.as_str(), expected);
    }
}
