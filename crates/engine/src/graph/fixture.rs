//! Test fixtures as text: the configuration, the records and the plan.
//!
//! One line for each object: `web[0]: replace, cbd, wants db net, used db`. The action is one of `create`, `update`,
//! `record`, `replace`, `orphan` (a replacement that forgets), `destroy`, `forget`, `noop`, `blocked` and `held` (no
//! step, not desired). `wants` lists desired dependencies, `used` recorded ones. `cbd` is the object's own flag: the
//! desired one, or the recorded one of an object that is destroyed. `deposed KEY used db` adds a deposed object.
//! Effective flags are computed as in a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::{ActionGraph, build};
use crate::load::Config;
use crate::plan::inherit::{FlagNode, effective};
use crate::plan::{EffectiveLifecycle, Plan, PlannedObject, RunningStep};
use model::{Action, Address, Change, DeposedKey, Diagnostics, Record, Recorded, RecordedObject, Stored, Version};

/// A plan and its inputs.
pub struct Fixture {
    pub plan: Plan,
    pub recorded: Recorded,
    subjects: Vec<(Address, FlagNode)>,
}

/// Parses a fixture.
pub fn fixture(text: &str) -> Fixture {
    let mut situation = Fixture { plan: Plan::default(), recorded: Recorded::new(), subjects: Vec::new() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, rest) = line.split_once(": ").expect("`name: action`");
        situation.line(&name.parse().unwrap(), rest);
    }
    situation.inherit();
    situation
}

impl Fixture {
    fn line(&mut self, address: &Address, rest: &str) {
        let mut parts = rest.split(", ");
        let word = parts.next().unwrap();
        let (action, wanted, is_recorded) = match word {
            "create" => (Action::Create, true, false),
            "update" => (Action::Update, true, true),
            "record" => (Action::Record, true, true),
            "wait" => (Action::Wait, true, true),
            "replace" | "orphan" => (Action::Replace, true, true),
            "destroy" => (Action::Destroy, false, true),
            "forget" => (Action::Forget, false, true),
            "noop" => (Action::NoOp, true, true),
            "blocked" => (Action::Blocked, true, false),
            "held" => (Action::Blocked, false, true),
            other => panic!("unknown action {other}"),
        };
        let mut subject = FlagNode { desired: wanted, sets_flag: word == "orphan", ..FlagNode::default() };
        let (mut wants, mut used) = (Vec::new(), Vec::new());
        let mut planned = PlannedObject::default();
        let mut record = Record::empty("".into(), address.clone(), "".into(), "thing".into());
        for part in parts {
            let (word, list) = part.split_once(' ').unwrap_or((part, ""));
            let addresses = |list: &str| list.split(' ').map(|name| name.parse().unwrap()).collect::<Vec<Address>>();
            match word {
                "cbd" => (subject.sets_flag, subject.recorded_flag) = (wanted, !wanted),
                "wants" => wants = addresses(list),
                "used" => used = addresses(list),
                "deposed" => {
                    let (key, list) = list.split_once(" used ").unwrap_or((list, ""));
                    let key = DeposedKey(u32::from_str_radix(key, 16).unwrap());
                    let used = if list.is_empty() { Vec::new() } else { addresses(list) };
                    record.deposed.insert(key, recorded_object(&used));
                    planned.deposed.push(Change { deposed: Some(key), ..change(address, Action::Destroy, false) });
                }
                other => panic!("unknown word {other}"),
            }
        }
        planned.change = Some(Arc::new(change(address, action, word == "orphan")));
        planned.dependencies = wanted.then(|| wants.into());
        planned.deposed.sort_by_key(|change| change.deposed);
        self.plan.objects.insert(address.clone(), Box::new(planned));
        record.current = is_recorded.then(|| recorded_object(&used));
        if record.has_objects() {
            let version = Version(self.recorded.len() as u64 + 1);
            self.recorded.insert(address.clone(), Stored { record: Arc::new(record), version });
        }
        self.subjects.push((address.clone(), subject));
    }

    fn inherit(&mut self) {
        let numbers: BTreeMap<Address, usize> = self.subjects.iter().map(|(name, _)| name.clone()).zip(0..).collect();
        let number = |list: &[Address]| list.iter().filter_map(|name| numbers.get(name).copied()).collect::<Vec<_>>();
        for (name, subject) in &mut self.subjects {
            subject.dependencies = number(self.plan.dependencies_of(name));
            let Some(stored) = self.recorded.get(name) else { continue };
            subject.recorded_dependencies =
                stored.record.current.iter().flat_map(|object| number(&object.dependencies)).collect();
            subject.deposed_dependencies =
                stored.record.deposed.values().flat_map(|object| number(&object.dependencies)).collect();
        }
        let subjects: Vec<FlagNode> = self.subjects.iter().map(|(_, subject)| subject.clone()).collect();
        let found = effective(&subjects);
        for (at, (name, _)) in self.subjects.iter().enumerate() {
            let forced_by = found.forced_by(at).map(|by| self.subjects[by].0.clone()).collect();
            let lifecycle = EffectiveLifecycle { create_before_destroy: found.is_on(at), forced_by };
            self.plan.objects.entry(name.clone()).or_default().lifecycle = Some(lifecycle);
        }
    }

    pub fn graph(&self) -> (ActionGraph, Diagnostics) {
        self.graph_with_running(&[])
    }

    pub fn graph_with_running(&self, running: &[RunningStep]) -> (ActionGraph, Diagnostics) {
        build(&self.plan, &Config::default(), &self.recorded, running)
    }
}

/// Returns the graph of a fixture without warnings.
pub fn graph(text: &str) -> ActionGraph {
    let (graph, diagnostics) = fixture(text).graph();
    assert_eq!(diagnostics, []);
    graph
}

fn change(address: &Address, action: Action, forget: bool) -> Change {
    Change { forget, ..Change::plain(address.clone(), "thing", action) }
}

fn recorded_object(dependencies: &[Address]) -> Arc<RecordedObject> {
    Arc::new(RecordedObject { dependencies: dependencies.into(), ..RecordedObject::default() })
}
