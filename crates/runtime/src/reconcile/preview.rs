//! Previews: the input of a plan as if proposed manifests had been applied. A preview works on a copy of the desired
//! state, and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::index::{Event, Index, InputKey};
use super::planning::fingerprints;
use super::time::Moment;
use super::{Phase, Reconciler};
use api::PreviewRefresh;
use engine::load::{Config, DataLookup, Proposal};
use engine::plan::approval::{Approvals, Digester, Guarded};
use engine::plan::{ObjectBlock, Plan, PlanOptions, Refresh};
use model::{Address, Name, Reason, Recorded};

/// The desired state with the proposed manifests.
#[derive(Debug)]
pub struct ProposedState {
    index: Index,
    /// The names that the proposal affects.
    names: BTreeSet<Name>,
}

/// The input of a preview.
#[derive(Debug)]
pub struct PreviewRequest {
    pub config: Arc<Config>,
    pub recorded: Recorded,
    pub options: PlanOptions,
    /// What is approved; `None` if nothing needs an approval.
    approvals: Option<Approvals>,
    components: Vec<BTreeSet<Name>>,
}

impl PreviewRequest {
    pub fn may_need_approval(&self) -> bool {
        self.approvals.is_some()
    }

    /// The changes of the plan that need an approval and have none, for each component.
    pub fn required_approvals(&self, salt: &[u8], plan: &Plan) -> Vec<Guarded> {
        let Some(approvals) = &self.approvals else { return Vec::new() };
        let digester = Digester::new(salt, plan, &self.config, &self.options.namespace_value);
        self.components
            .iter()
            .filter_map(|component| approvals.guarded(&digester, &self.recorded, component))
            .filter(|guarded| guarded.held().is_some())
            .collect()
    }
}

/// When a preview of a namespace can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewTime {
    Now,
    /// Changes of the namespace are being planned.
    Later,
    /// The records are not known yet.
    Unknown,
}

impl Reconciler {
    /// When to plan a preview. Plans of changes come first.
    pub fn preview_time(&self) -> PreviewTime {
        if self.index.is_empty() {
            return PreviewTime::Now;
        }
        if self.phase != Phase::Active {
            return PreviewTime::Unknown;
        }
        let is_waiting = self.planning.debounce.len() > 0 || !self.planning.is_quiet();
        if is_waiting { PreviewTime::Later } else { PreviewTime::Now }
    }

    /// Returns the input of the plan; `None` if the proposal affects nothing.
    pub fn preview(
        &self,
        proposed: &ProposedState,
        refresh: PreviewRefresh,
        seed: u64,
        now: Moment,
    ) -> Option<PreviewRequest> {
        let index = &proposed.index;
        let names = self.whole_components(index, proposed.names.iter().cloned());
        if names.is_empty() {
            return None;
        }
        let mut config = index.config(&names);
        // Drivers keep the newest provider configurations by version, and ignore those of an older one.
        config.provider_config_version = 0;
        let addresses = self.addresses(index, &names);
        let mut options = PlanOptions { preview: true, ..self.plan_options(index, &names, &addresses, seed) };
        self.add_preview_options(index, &addresses, refresh, now, &mut options);
        let recorded = self.index.records().of(&addresses);
        let approvals = Some(self.approvals()).filter(|approvals| approvals.concern(&config, &recorded));
        let mut components: Vec<BTreeSet<Name>> = Vec::new();
        let mut seen: BTreeSet<Name> = BTreeSet::new();
        for name in names.into_iter().filter(|_| approvals.is_some()) {
            if !seen.contains(&name) {
                let component = index.component([name]);
                seen.extend(component.iter().cloned());
                components.push(component);
            }
        }
        Some(PreviewRequest { config: Arc::new(config), recorded, options, approvals, components })
    }

    /// Adds which objects are blocked, which are read, and which are up to date. Unlike in a plan that is applied, an
    /// object whose last step failed is not held.
    fn add_preview_options(
        &self,
        index: &Index,
        addresses: &BTreeSet<Address>,
        refresh: PreviewRefresh,
        now: Moment,
        options: &mut PlanOptions,
    ) {
        let fingerprints = fingerprints(index, addresses);
        let mut due = BTreeSet::new();
        for address in addresses {
            let tracked = self.objects.get(address);
            if let Some(held) = index.records().unreadable().get(address).cloned().or_else(|| self.interrupted(address))
            {
                options.blocked.insert(address.clone(), held);
            } else if tracked.is_none_or(|tracked| tracked.unread || tracked.read_at.is_some_and(|at| at <= now.time)) {
                due.insert(address.clone());
            } else if tracked
                .is_some_and(|tracked| tracked.up_to_date == Some(fingerprints[address]) && !tracked.is_open())
            {
                options.up_to_date.insert(address.clone());
            }
        }
        options.refresh = match refresh {
            PreviewRefresh::Due => Refresh::Due(due),
            PreviewRefresh::None => Refresh::None,
            PreviewRefresh::All => {
                options.up_to_date.clear();
                Refresh::All
            }
        };
    }

    /// Why an object cannot be planned whose record has an open intent that no step of this process has written.
    fn interrupted(&self, address: &Address) -> Option<ObjectBlock> {
        let stored = self.index.records().get(address)?;
        if stored.record.intent.is_none() || self.schedule.is_running(address) {
            return None;
        }
        let held = self.objects.get(address).and_then(|tracked| Some(tracked.hold.as_ref()?.held.clone()));
        let message = "an operation of the object was interrupted, and Purlin is resolving it".to_owned();
        Some(held.unwrap_or(ObjectBlock { reason: Reason::OperationInProgress, message }))
    }
}

impl ProposedState {
    /// Applies a proposal to a copy of the index. `removed`: the names of Resources that count as deleted, unless the
    /// proposal contains them.
    pub fn new(mut index: Index, proposal: Proposal, removed: &BTreeSet<Name>) -> Self {
        let Proposal { instances, data, .. } = proposal;
        let mut names: BTreeSet<Name> = instances.iter().map(|instance| instance.address.name().clone()).collect();
        removed.difference(&names).for_each(|name| index.propose_deletion(name));
        instances.into_iter().for_each(|instance| index.propose_resource(instance));
        // A Resource may read a ConfigMap that is proposed too.
        let given = index.inputs().filter_map(|key| Some((key.clone(), Arc::clone(data.get(&key.object)?))));
        let given: Vec<(InputKey, _)> = given.collect();
        for (key, data) in given {
            index.apply(Event::Input(key, DataLookup::Present(data)));
        }
        names.extend(index.take_changes().names);
        Self { index, names }
    }

    /// The ConfigMaps and Secrets that the proposal reads and that are not known.
    pub fn unread_inputs(&self) -> BTreeSet<InputKey> {
        self.index.unread_inputs()
    }

    /// Adds the data of a `ConfigMap` or Secret, as the service account reads it.
    pub fn observe_input(&mut self, key: InputKey, data: DataLookup) {
        self.index.apply(Event::Input(key, data));
        self.names.extend(self.index.take_changes().names);
    }
}
