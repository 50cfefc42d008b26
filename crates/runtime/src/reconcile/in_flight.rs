//! Plans that are computed while steps are running. The outcome of such a step is known only as planned, and the
//! changes that depend on it are planned when it has ended.

use std::collections::BTreeSet;

use super::Reconciler;
use super::plan_request::PlanPart;
use super::tracked::TrackedObject;
use crate::execute::Adoption;
use model::{Address, Operation, Step};

impl Reconciler {
    /// The objects whose running first create already results in the desired state of this plan: nothing that it was
    /// planned for has changed since it started, and nothing that it depends on changes with this plan. Such an object
    /// needs no further plan: otherwise, while a thousand objects arrive and are created, each would cause a plan of
    /// all of them. `nodes`: the steps of the plan, each with whether it is running.
    pub fn created_as_desired(&self, part: &PlanPart, nodes: &[(Step, bool)]) -> Vec<Address> {
        let busy: BTreeSet<&Address> = nodes.iter().map(|(step, _)| &step.address).collect();
        let Adoption { plan, config, .. } = &*part.adoption;
        let mut created = Vec::new();
        for (step, _) in nodes.iter().filter(|(_, is_running)| *is_running) {
            let address = &step.address;
            let is_triggered = config.instances.get(address).is_none_or(|instance| !instance.triggers.is_empty());
            if is_triggered || !self.is_first_create(step) || !self.has_desired_state_of(step) {
                continue;
            }
            let uses_changing = plan
                .dependencies_of(address)
                .iter()
                .any(|used| busy.contains(used) || plan.objects.get(used).is_some_and(|planned| planned.is_read));
            if !uses_changing {
                created.push(address.clone());
            }
        }
        created
    }

    fn is_first_create(&self, step: &Step) -> bool {
        step.operation == Operation::Create && !step.replaces && !self.index.records().has_objects(&step.address)
    }

    /// Whether the desired state is the one for which a running step has started.
    fn has_desired_state_of(&self, step: &Step) -> bool {
        if self.objects.get(&step.address).is_none_or(|tracked| tracked.in_flight) {
            return false;
        }
        let name = &step.address.name;
        let present = (self.index.desired_digest(name), self.index.shared_fingerprint(name));
        let begun = self.index.records().started(&step.address).filter(|start| start.step == *step);
        begun.is_some_and(|start| (start.desired_digest, start.shared_fingerprint) == present)
    }

    /// Plans a component again when a step has ended that was running at planning: its outcome is known now.
    pub fn replan_component(&mut self, step: &Step) {
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
