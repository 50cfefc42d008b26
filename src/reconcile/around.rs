//! Plans that are made around steps under way. The outcome of such a step is known only as planned, and what has to wait
//! for it can be planned only when it has ended.

use std::collections::BTreeSet;

use super::Reconciler;
use super::plan_request::Part;
use crate::model::{Address, Operation, Step};

impl Reconciler {
    /// The objects whose first create is under way and comes to all that this plan wants of them: since it was begun
    /// nothing that its plan was made for has changed, and nothing that it uses changes with this one. To this plan it is
    /// as if it began with that create, and nothing has to be planned beyond it: while a thousand objects arrive and are
    /// made, each would have all of them planned once more. `nodes`: the steps of the plan, each with whether it is under
    /// way.
    pub(super) fn created_as_wanted(&self, part: &Part, nodes: &[(Step, bool)]) -> Vec<Address> {
        let busy: BTreeSet<&Address> = nodes.iter().map(|(step, _)| &step.address).collect();
        let changes = |address: &Address| busy.contains(address) || part.plan.read.contains(address);
        let uses_changing = |address| part.plan.wants.get(address).is_some_and(|used| used.iter().any(changes));
        let is_first = |address| self.schedule.records().get(address).is_none_or(|stored| !stored.record.has_objects());
        let is_triggered =
            |address| part.config.instances.get(address).is_none_or(|wanted| !wanted.triggers.is_empty());
        let index = &self.index;
        let is_as_begun = |step: &Step| {
            let Some(tracked) = self.objects.get(&step.address).filter(|tracked| !tracked.is_planned_around()) else {
                return false;
            };
            let name = &step.address.name;
            let present = (index.wish(name), index.shared_fingerprint(name));
            tracked.started.get(step).is_some_and(|begun| (begun.wish, begun.situation) == present)
        };
        let running = nodes.iter().filter(|(_, is_running)| *is_running).map(|(step, _)| step);
        let creates = running.filter(|step| step.operation == Operation::Create && !step.replaces);
        let as_wanted = creates.filter(|step| {
            let address = &step.address;
            is_first(address) && is_as_begun(step) && !is_triggered(address) && !uses_changing(address)
        });
        as_wanted.map(|step| step.address.clone()).collect()
    }

    /// Plans what belongs together again, when a step has ended that the plan was made around: what had to wait for it
    /// can be planned now, and its outcome was known only as planned.
    pub(super) fn plan_what_waited(&mut self, step: &Step) {
        let planned_around = self.objects.get_mut(&step.address).is_some_and(|t| t.was_planned_around(step));
        let wanted = self.index.instance(&step.address.name).map(|instance| instance.generation);
        let planned = self.resources.get(&step.address.name).map(|followed| followed.shared.generation);
        if wanted.is_some() && wanted != planned {
            self.touch(&step.address.name);
        }
        if !planned_around {
            return;
        }
        // By now the object may be gone and connected with nothing, so the plan says what belongs together.
        let adopted = self.planning.adopted.iter().filter(|adopted| adopted.addresses.contains(&step.address));
        for address in adopted.flat_map(|adopted| &adopted.addresses) {
            self.planning.debounce.touch(&address.name, self.now.time);
        }
    }
}
