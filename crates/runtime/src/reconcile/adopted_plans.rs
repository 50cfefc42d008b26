//! Plans with open steps. There can be one for each object of a large namespace, so they are found by their objects.

use std::collections::{BTreeMap, BTreeSet};

use model::Address;

/// A plan that is being executed.
#[derive(Debug)]
pub struct AdoptedPlan {
    /// The objects of the plan, except those that a newer plan covers: this one may have been planned for other
    /// components, whose steps are still running.
    pub addresses: BTreeSet<Address>,
    /// Those with open steps.
    pub open: BTreeSet<Address>,
    /// Whether it has steps, whose results others may wait for.
    pub had_steps: bool,
}

#[derive(Debug, Default)]
pub struct AdoptedPlans {
    plans: BTreeMap<u64, AdoptedPlan>,
    next: u64,
    /// The newest plan of each object.
    of: BTreeMap<Address, u64>,
    /// The plans without open steps.
    finished: BTreeSet<u64>,
}

impl AdoptedPlans {
    /// Adds a plan, which replaces older ones of the same objects.
    pub fn add(&mut self, plan: AdoptedPlan) {
        let id = self.next;
        self.next += 1;
        for address in &plan.addresses {
            let Some(older) = self.of.insert(address.clone(), id) else { continue };
            let Some(left) = self.plans.get_mut(&older) else { continue };
            left.addresses.remove(address);
            left.open.remove(address);
            if left.open.is_empty() {
                self.finished.insert(older);
            }
            if left.addresses.is_empty() {
                self.finished.remove(&older);
                self.plans.remove(&older);
            }
        }
        if plan.open.is_empty() {
            self.finished.insert(id);
        }
        self.plans.insert(id, plan);
    }

    pub fn of(&self, address: &Address) -> Option<&AdoptedPlan> {
        self.plans.get(self.of.get(address)?)
    }

    /// An object has no open step any more.
    pub fn close(&mut self, address: &Address) {
        let Some(id) = self.of.get(address) else { return };
        let Some(plan) = self.plans.get_mut(id) else { return };
        plan.open.remove(address);
        if plan.open.is_empty() {
            self.finished.insert(*id);
        }
    }

    /// Removes and returns the plans without open steps, oldest first.
    pub fn take_finished(&mut self) -> Vec<AdoptedPlan> {
        let finished = std::mem::take(&mut self.finished);
        let plans: Vec<AdoptedPlan> = finished.iter().filter_map(|id| self.plans.remove(id)).collect();
        plans.iter().flat_map(|plan| &plan.addresses).for_each(|address| _ = self.of.remove(address));
        plans
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty() && self.of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[&str]) -> AdoptedPlan {
        let addresses: BTreeSet<Address> = names.iter().map(|name| Address::single(*name)).collect();
        AdoptedPlan { open: addresses.clone(), addresses, had_steps: true }
    }

    fn finished(plans: &mut AdoptedPlans) -> Vec<String> {
        let finished = plans.take_finished();
        finished
            .iter()
            .map(|plan| plan.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_newer_plan_of_another_component_leaves_the_running_steps_of_the_older_one() {
        let mut plans = AdoptedPlans::default();
        plans.add(plan(&["a", "b"]));
        plans.add(plan(&["b"]));
        let older = plans.of(&Address::single("a")).map(|plan| (plan.addresses.len(), plan.open.len()));
        assert_eq!(older, Some((1, 1)), "the end of its step plans it again");
        plans.close(&Address::single("b"));
        assert_eq!(finished(&mut plans), ["b"]);
        plans.add(plan(&["a"]));
        assert!(finished(&mut plans).is_empty(), "nothing is left of the older plan");
        plans.close(&Address::single("a"));
        assert_eq!(finished(&mut plans), ["a"]);
        assert!(plans.is_empty());
    }

    #[test]
    fn a_plan_is_finished_when_a_newer_one_has_taken_its_last_open_step() {
        let mut plans = AdoptedPlans::default();
        plans.add(plan(&["a", "b"]));
        plans.close(&Address::single("a"));
        plans.add(plan(&["b"]));
        assert_eq!(finished(&mut plans), ["a"]);
        plans.add(AdoptedPlan { open: BTreeSet::new(), ..plan(&["c"]) });
        assert_eq!(finished(&mut plans), ["c"], "it never had a step");
    }
}
