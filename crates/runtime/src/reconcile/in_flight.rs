//! Plans that are computed while steps are running. The outcome of such a step is known only as planned, and the
//! changes that depend on it are planned when it has ended.

use std::collections::BTreeSet;

use super::Reconciler;
use super::plan_request::PlanPart;
use super::tracked::TrackedObject;
use model::{Address, Operation, Step};

impl Reconciler {
    /// The objects whose running first create already results in the desired state of this plan: nothing that it was
    /// planned for has changed since it started, and nothing that it depends on changes with this plan. Such an object
    /// needs no further plan: otherwise, while a thousand objects arrive and are created, each would cause a plan of
    /// all of them. `nodes`: the steps of the plan, each with whether it is running.
    pub(super) fn created_as_desired(&self, part: &PlanPart, nodes: &[(Step, bool)]) -> Vec<Address> {
        let busy: BTreeSet<&Address> = nodes.iter().map(|(step, _)| &step.address).collect();
        let changes = |address: &Address| busy.contains(address) || part.plan.read.contains(address);
        let uses_changing = |address| part.plan.dependencies.get(address).is_some_and(|used| used.iter().any(changes));
        let is_first = |address| self.index.records().get(address).is_none_or(|stored| !stored.record.has_objects());
        let is_triggered =
            |address| part.config.instances.get(address).is_none_or(|wanted| !wanted.triggers.is_empty());
        let index = &self.index;
        let is_as_begun = |step: &Step| {
            if self.objects.get(&step.address).is_none_or(|tracked| tracked.in_flight) {
                return false;
            }
            let name = &step.address.name;
            let present = (index.desired_digest(name), index.shared_fingerprint(name));
            let begun = index.records().started(&step.address).filter(|start| start.step == *step);
            begun.is_some_and(|start| (start.desired_digest, start.shared_fingerprint) == present)
        };
        let running = nodes.iter().filter(|(_, is_running)| *is_running).map(|(step, _)| step);
        let creates = running.filter(|step| step.operation == Operation::Create && !step.replaces);
        let as_wanted = creates.filter(|step| {
            let address = &step.address;
            is_first(address) && is_as_begun(step) && !is_triggered(address) && !uses_changing(address)
        });
        as_wanted.map(|step| step.address.clone()).collect()
    }

    /// Plans a component again when a step has ended that was running at planning: its outcome is known now.
    pub(super) fn replan_component(&mut self, step: &Step) {
        let planned_around = self.objects.get_mut(&step.address).is_some_and(TrackedObject::end_in_flight);
        let generation = self.index.instance(&step.address.name).map(|instance| instance.generation);
        let planned = self.resources.get(&step.address.name).map(|followed| followed.shared.generation);
        if generation.is_some() && generation != planned {
            self.touch(&step.address.name);
        }
        if !planned_around {
            return;
        }
        // The object may no longer exist and have no connections, so the plan determines the component.
        let adopted = self.planning.adopted.of(&step.address);
        for address in adopted.into_iter().flat_map(|adopted| &adopted.addresses) {
            self.planning.debounce.touch(&address.name, self.now.time);
        }
    }
}
