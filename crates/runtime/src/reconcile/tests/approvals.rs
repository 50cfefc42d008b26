//! Changes that wait for an approval.

mod cheating;

use super::*;
use crate::reconcile::index::{ApprovalPlan, PlanId};
use api::{APPROVE_DESTROYS, ApprovalState, ChangeDigest, PlanStatus, REQUIRE_APPROVAL, plan_name};
use engine::plan::approval::digest_of;
use testkit::scripted::Kind;

impl Bench {
    /// Writes a Plan as the controller does, and delivers it as the watch does.
    pub fn write_approval(&mut self, write: ApprovalWrite) -> Signal {
        let written = match &write {
            ApprovalWrite::Create { plan: held, .. } => {
                let same = self.plans.get(&*held.name).filter(|plan| plan.digest == held.digest && plan.is_open());
                if let Some(same) = same {
                    return Signal::ApprovalWritten(Box::new(write.clone()), Some(same.id.clone()));
                }
                let count = self.plans.len() as u64;
                let is_taken = self.plans.contains_key(&*held.name);
                let name = if is_taken { held.other_name(count << 50).unwrap() } else { held.name.to_string() };
                let plan = ApprovalPlan {
                    id: PlanId { uid: format!("uid {count} of {name}").into(), version: "1".into() },
                    generation: 1,
                    is_own: plan_name::is_drawn(&name, &held.digest),
                    digest: held.digest.clone(),
                    valid: APPROVAL_VALID,
                    ..ApprovalPlan::default()
                };
                let id = plan.id.clone();
                self.deliver(&name, plan);
                Some(id)
            }
            ApprovalWrite::Status { name, id, status } => {
                let plan = self.plans.get_mut(&**name).filter(|plan| plan.id.uid == id.uid).expect("an existing Plan");
                if plan.id == *id {
                    plan.id.version = format!("{}+", id.version).into();
                    plan.status = (**status).clone();
                    Some(plan.id.clone())
                } else {
                    let present = plan.clone();
                    self.deliver(name, present);
                    None
                }
            }
        };
        Signal::ApprovalWritten(Box::new(write), written)
    }

    /// The names of the Plans in this state.
    fn in_state(&self, state: ApprovalState) -> Vec<String> {
        let plans = self.plans.iter().filter(|(_, plan)| plan.status.approval == Some(state));
        plans.map(|(name, _)| name.clone()).collect()
    }

    /// Approves everything that is offered, until nothing is.
    async fn approve_offers(&mut self) {
        for _ in 0..10 {
            let Some(name) = self.in_state(ApprovalState::Waiting).first().cloned() else { return };
            self.approve(&name).await;
        }
        panic!("the approvals do not end: {:?}", self.plans.keys());
    }

    fn condition(&self, name: &str, kind: &str) -> Option<String> {
        let condition = self.status[name].conditions.iter().find(|condition| condition.type_ == kind)?;
        Some(format!("{} {}", condition.status, condition.reason))
    }

    fn message(&self, name: &str) -> String {
        let ready = self.status[name].conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        ready.message.clone()
    }

    /// The Plans that the reconciler has created, by name.
    fn open_plan(&self, name: &str) -> &ApprovalPlan {
        self.reconciler.index().approvals().get(name).unwrap_or_else(|| panic!("{name}: {:?}", self.plans))
    }

    /// Delivers a Plan as the watch does.
    fn deliver(&mut self, name: &str, plan: ApprovalPlan) {
        self.plans.insert(name.to_owned(), plan.clone());
        self.reconciler.observe(Event::ApprovalApplied(name.into(), Box::new(plan)));
    }

    /// Delivers the deletion of a Plan.
    fn deliver_deleted(&mut self, name: &str) {
        self.plans.remove(name);
        self.reconciler.observe(Event::ApprovalDeleted(name.into()));
    }

    async fn approve(&mut self, name: &str) {
        let plan = self.open_plan(name).clone();
        let approved = ApprovalPlan { approved: true, decided_by: Some("eve".into()), generation: 2, ..plan };
        self.deliver(name, approved);
        self.run_for(5).await;
    }

    /// The reasons of the events of a Resource.
    fn events(&self, name: &str) -> Vec<&str> {
        let of_resource = format!(" event {name} ");
        self.log.iter().filter_map(|line| line.split_once(&of_resource)).map(|(_, reason)| reason).collect()
    }

    fn state(&self, name: &str) -> Option<ApprovalState> {
        self.plans[name].status.approval
    }

    fn only_plan(&self) -> String {
        assert_eq!(self.plans.len(), 1, "{:?}", self.plans);
        self.plans.keys().next().unwrap().clone()
    }

    pub fn value(&self, address: &str) -> Option<Value> {
        let stored = self.reconciler.records().get(&address.parse().unwrap())?;
        stored.record.current.as_ref()?.value.get("value").cloned()
    }
}

fn guarded(name: &str, value: i64, kinds: &[&str]) -> serde_json::Value {
    with(thing(name, value), "spec.approval", serde_json::json!({ "requireFor": kinds }))
}

async fn created(manifests: &[serde_json::Value]) -> Bench {
    let mut bench = Bench::new();
    for manifest in manifests {
        bench.observe(manifest.clone(), 1);
    }
    bench.react(Signal::Started);
    bench.run_for(5).await;
    bench
}

/// An object whose update waits for an approval, and the Plan of the update.
async fn with_held_update() -> (Bench, String) {
    let mut bench = created(&[guarded("a", 1, &["Update"])]).await;
    bench.observe(guarded("a", 2, &["Update"]), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    (bench, name)
}

#[tokio::test]
async fn an_update_waits_with_its_dependents_until_its_plan_is_approved() {
    let mut bench = created(&[guarded("a", 1, &["Update"]), dependent("b", "a"), thing("c", 1)]).await;
    assert_eq!(bench.recorded(), ["a", "b", "c"], "creates need no approval");
    bench.observe(guarded("a", 2, &["Update"]), 2);
    bench.observe(thing("c", 2), 2);
    bench.run_for(5).await;
    assert_eq!(bench.ready("a"), (2, "False ApprovalRequired".to_owned()));
    assert_eq!(bench.ready("b"), (1, "False Waiting".to_owned()));
    assert_eq!(bench.ready("c"), (2, "True Available".to_owned()), "the rest proceeds");
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    assert_eq!(bench.events("a"), ["Created", "ApprovalRequired"], "one event for one change that waits");
    assert_eq!(bench.events("b"), ["Created"], "it waits for another");
    let name = bench.only_plan();
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting));
    let changes = bench.plans[&name].status.changes.iter();
    let changes: Vec<String> = changes.map(|change| format!("{} {:?}", change.address, change.action)).collect();
    assert_eq!(changes, ["a Update", "b Update"], "the whole component");
    bench.approve(&name).await;
    assert_eq!((bench.value("a"), bench.value("b")), (Some(Value::from(2)), Some(Value::from(2))));
    assert_eq!(bench.ready("a"), (2, "True Available".to_owned()));
    assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
    assert_eq!(bench.plans[&name].status.decided_by.as_deref(), Some("eve"));
    let approver = |address: &str| {
        let stored = &bench.reconciler.records()[&address.parse().unwrap()];
        stored.record.history.entries().last().unwrap().cause.approved_by.to_string()
    };
    assert_eq!((approver("a").as_str(), approver("b").as_str()), ("eve", ""), "the history says who approved");
    // The approval is used up.
    bench.observe(guarded("a", 1, &["Update"]), 3);
    bench.run_for(5).await;
    bench.observe(guarded("a", 2, &["Update"]), 4);
    bench.run_for(5).await;
    assert_eq!(bench.plans.len(), 2, "the way back waits for an approval of its own: {:?}", bench.plans.keys());
}

/// A plan covers what became due together, whether it is connected or not.
#[tokio::test(start_paused = true)]
async fn objects_without_a_connection_are_approved_apart_while_a_plan_of_both_runs() {
    let mut bench = Bench::new();
    let answers = vec![ScriptedOutcome::Hold("created".to_owned())];
    bench.script("c", Operation::Create, answers);
    for manifest in [guarded("a", 1, &["Update"]), guarded("b", 1, &["Update"]), thing("c", 1)] {
        bench.observe(manifest, 1);
    }
    bench.react(Signal::Started);
    bench.run_until("the objects", |bench| bench.value("a").is_some() && bench.value("b").is_some()).await;
    for name in ["a", "b"] {
        bench.observe(guarded(name, 2, &["Update"]), 2);
    }
    bench.react(Signal::Wake);
    let is_covered = |bench: &Bench, name: &str| {
        bench.plans.values().any(|plan| {
            let mut changes = plan.status.changes.iter().map(|change| change.address.to_string());
            changes.next().as_deref() == Some(name) && changes.next().is_none()
        })
    };
    bench.run_until("a Plan of each", |bench| is_covered(bench, "a") && is_covered(bench, "b")).await;
}

#[tokio::test]
async fn a_destroy_waits_for_its_approval() {
    let mut bench = created(&[guarded("a", 1, &["Destroy"])]).await;
    bench.observe(deleting(guarded("a", 1, &["Destroy"])), 2);
    bench.run_for(5).await;
    assert_eq!(bench.recorded(), ["a"]);
    let blocked = bench.status["a"].conditions.iter().find(|one| one.type_ == "DeletionBlocked").unwrap();
    assert_eq!(blocked.reason, "ApprovalRequired");
    let name = bench.only_plan();
    bench.approve(&name).await;
    assert!(bench.recorded().is_empty());
    assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
}

#[tokio::test]
async fn an_approval_covers_exactly_its_changes() {
    let mut bench = created(&[guarded("a", 1, &["Update"])]).await;
    bench.observe(guarded("a", 2, &["Update"]), 2);
    bench.run_for(5).await;
    let first = bench.only_plan();
    bench.observe(guarded("a", 3, &["Update"]), 3);
    bench.run_for(5).await;
    assert_eq!(bench.state(&first), Some(ApprovalState::Superseded));
    let second = bench.plans.keys().find(|name| **name != first).unwrap().clone();
    // An approval that arrives too late approves nothing.
    let late = ApprovalPlan { approved: true, generation: 2, ..bench.plans[&first].clone() };
    bench.deliver(&first, late);
    bench.run_for(5).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    bench.approve(&second).await;
    assert_eq!(bench.value("a"), Some(Value::from(3)));
}

#[tokio::test]
async fn what_the_namespace_requires_an_author_cannot_lower() {
    let mut bench = created(&[thing("a", 1)]).await;
    bench.annotate(&[(REQUIRE_APPROVAL, "Update,Destroy")]);
    bench.observe(guarded("a", 2, &[]), 2);
    bench.run_for(5).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    // What cannot be read requires an approval of everything.
    bench.annotate(&[(REQUIRE_APPROVAL, "Upadte")]);
    bench.observe(thing("b", 1), 1);
    bench.run_for(5).await;
    assert_eq!(bench.recorded(), ["a"]);
    bench.annotate(&[]);
    bench.run_for(5).await;
    assert_eq!((bench.value("a"), bench.recorded().len()), (Some(Value::from(2)), 2));
    assert!(bench.plans.values().all(|plan| plan.status.approval == Some(ApprovalState::Superseded)));
}

#[tokio::test]
async fn changes_are_approved_before_they_are_due() {
    let (mut bench, name) = with_held_update().await;
    let due = bench.plans[&name].status.approvals[0].clone();
    bench.observe(guarded("a", 1, &["Update"]), 3);
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
    for (round, proposed) in [due.changes.clone(), Vec::<ChangeDigest>::new()].into_iter().enumerate() {
        let generation = |number: i64| number + 10 * i64::try_from(round).unwrap();
        let git = ApprovalPlan {
            id: PlanId { uid: format!("git-{}", proposed.len()).into(), ..PlanId::default() },
            digest: due.digest.as_str().into(),
            valid: jiff::SignedDuration::from_hours(1),
            proposed,
            approved: true,
            ..ApprovalPlan::default()
        };
        bench.deliver("from-git", git);
        bench.run_for(5).await;
        assert_eq!(bench.state("from-git"), Some(ApprovalState::Waiting));
        bench.observe(guarded("a", 7, &["Update"]), generation(4));
        bench.run_for(5).await;
        assert_eq!(bench.value("a"), Some(Value::from(1)), "another change is not approved");
        bench.observe(guarded("a", 2, &["Update"]), generation(5));
        bench.run_for(5).await;
        assert_eq!(bench.value("a"), Some(Value::from(2)), "{:#?}", bench.plans["from-git"]);
        assert_eq!(bench.state("from-git"), Some(ApprovalState::Applied));
        bench.annotate(&[]);
        bench.observe(thing("a", 1), generation(6));
        bench.run_for(5).await;
        assert_eq!(bench.value("a"), Some(Value::from(1)));
    }
}

/// Another replica has created the Plan, and was stopped before it could say what the Plan is about: until everything is
/// planned, nobody knows whether it still waits.
#[tokio::test]
async fn a_plan_that_shows_nothing_gets_no_status_before_everything_is_planned() {
    for is_deleted in [false, true] {
        let mut bench = Bench::new();
        bench.observe(guarded("a", 1, &["Create"]), 1);
        let id = PlanId { uid: "u".into(), ..PlanId::default() };
        let digest = "0".repeat(64).into();
        let created = ApprovalPlan { id, is_own: true, digest, valid: APPROVAL_VALID, ..ApprovalPlan::default() };
        bench.deliver("of-another-replica", created);
        bench.react(Signal::Started);
        let planned = bench.compute_due_plan().await;
        if is_deleted {
            bench.reconciler.observe(Event::ResourceDeleted("a".into()));
        }
        bench.react(Signal::Wake);
        assert!(
            !bench.pending.iter().any(|command| matches!(command, Command::WriteApproval(_))),
            "{:?}",
            bench.pending
        );
        bench.react(Signal::Planned(Box::new(planned)));
        bench.run_for(5).await;
        assert_eq!(bench.state("of-another-replica"), Some(ApprovalState::Superseded), "{is_deleted}");
    }
}

#[tokio::test]
async fn a_failed_change_keeps_its_approval() {
    let (mut bench, name) = with_held_update().await;
    let answers = vec![ScriptedOutcome::Fail { kind: Kind::default(), message: "no".to_owned() }];
    bench.script("a", Operation::Update, answers);
    bench.approve(&name).await;
    bench.run_for(120).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
    assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
    assert_eq!(bench.plans.len(), 1);
}

#[tokio::test]
async fn an_unused_approval_expires() {
    let mut bench = created(&[guarded("a", 1, &["Update"])]).await;
    let git = ApprovalPlan {
        id: PlanId { uid: "g".into(), ..PlanId::default() },
        digest: "0".repeat(64).into(),
        valid: jiff::SignedDuration::from_mins(10),
        approved: true,
        ..ApprovalPlan::default()
    };
    bench.deliver("from-git", git);
    bench.run_for(60).await;
    assert_eq!(bench.state("from-git"), Some(ApprovalState::Waiting));
    bench.run_for(600).await;
    assert_eq!(bench.state("from-git"), Some(ApprovalState::Expired));
}

#[tokio::test]
async fn a_protected_object_needs_no_approval_because_it_is_not_destroyed() {
    let protected = with(guarded("a", 1, &["Destroy"]), "spec.lifecycle.preventDestroy", true);
    let mut bench = created(std::slice::from_ref(&protected)).await;
    bench.observe(deleting(protected.clone()), 2);
    bench.run_for(5).await;
    assert_eq!(bench.condition("a", "DeletionBlocked").unwrap(), "True PreventDestroy");
    assert_eq!(bench.plans.len(), 0);
    bench.observe(deleting(with(protected, "spec.lifecycle.preventDestroy", false)), 3);
    bench.run_for(5).await;
    assert_eq!(bench.condition("a", "DeletionBlocked").unwrap(), "True ApprovalRequired");
    let name = bench.only_plan();
    bench.approve(&name).await;
    assert!(bench.recorded().is_empty());
}

#[tokio::test]
async fn an_annotation_approves_the_destroys_in_a_namespace_that_is_being_deleted() {
    let mut bench = created(&[guarded("a", 1, &["Destroy"])]).await;
    let terminating = |bench: &mut Bench, annotations: &[(&str, &str)], version| {
        let annotations = annotations.iter().map(|(name, value)| (*name, Value::from(*value)));
        let value = Value::map([("annotations", Value::map(annotations))]);
        bench.reconciler.observe(Event::Namespace { value, terminating: Some(Version(version)) });
    };
    terminating(&mut bench, &[], 1);
    bench.observe(deleting(guarded("a", 1, &["Destroy"])), 2);
    bench.run_for(5).await;
    assert_eq!((bench.recorded().len(), bench.plans.len()), (1, 0), "no Plan can be created");
    let ready = bench.status["a"].conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert!(ready.message.contains("purlin.dev/approve-destroys=true"), "{}", ready.message);
    terminating(&mut bench, &[(APPROVE_DESTROYS, "true")], 2);
    bench.run_for(5).await;
    assert!(bench.recorded().is_empty());
}

#[tokio::test]
async fn one_instance_of_a_family_waits_and_the_others_proceed() {
    let mut bench = created(&[with(guarded("a", 1, &["Destroy"]), "spec.count", 3)]).await;
    assert_eq!(bench.recorded(), ["a[0]", "a[1]", "a[2]"]);
    bench.observe(with(guarded("a", 2, &["Destroy"]), "spec.count", 1), 2);
    bench.run_for(5).await;
    assert_eq!(bench.recorded().len(), 3);
    assert_eq!((bench.value("a[0]"), bench.value("a[1]")), (Some(Value::from(2)), Some(Value::from(1))));
    let name = bench.only_plan();
    let held = &bench.plans[&name].status.approvals[0].changes;
    assert_eq!(held.iter().map(|change| change.address.to_string()).collect::<Vec<_>>(), ["a[1]", "a[2]"]);
    bench.approve(&name).await;
    assert_eq!(bench.recorded(), ["a[0]"]);
    assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
}

/// The create of a destroy-first replacement fails after the destroy. A new leader completes it without another approval.
#[tokio::test]
async fn a_replacement_that_has_begun_is_completed_after_a_restart() {
    let mut bench = created(&[guarded("a", 1, &["Replace"])]).await;
    bench.observe(with(guarded("a", 1, &["Replace"]), "spec.config.force", 2), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let answers = vec![ScriptedOutcome::Fail { kind: Kind::default(), message: "no".to_owned() }];
    bench.script("a", Operation::Create, answers);
    bench.approve(&name).await;
    bench.deliver_deleted(&name);
    bench.run_for(1).await;
    bench.reconciler.reset();
    bench.react(Signal::Started);
    bench.run_for(300).await;
    assert_eq!(bench.ready("a").1, "True Available");
}

#[tokio::test]
async fn without_its_plan_an_approved_change_waits_again() {
    let (mut bench, name) = with_held_update().await;
    let answers = vec![ScriptedOutcome::Fail { kind: Kind::default(), message: "no".to_owned() }; 4];
    bench.script("a", Operation::Update, answers);
    bench.approve(&name).await;
    bench.deliver_deleted(&name);
    bench.run_for(600).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting), "a Plan of its own, not approved");
}

#[tokio::test]
async fn each_part_of_a_component_that_falls_apart_gets_a_plan() {
    let mut both = dependent("c", "a");
    both["spec"]["dependsOn"] = serde_json::json!([{ "name": "b" }]);
    let mut bench = created(&[guarded("a", 1, &["Update"]), guarded("b", 1, &["Update"]), both.clone()]).await;
    bench.observe(guarded("a", 2, &["Update"]), 2);
    bench.observe(guarded("b", 2, &["Update"]), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    assert_eq!(bench.plans[&name].changes().len(), 2, "one Plan for the component");
    bench.observe(thing("c", 7), 2);
    bench.run_for(60).await;
    assert_eq!(bench.value("c"), Some(Value::from(7)));
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting), "it still has the changes of both");
    // `a` does not change, and is not planned with `b` anymore.
    bench.observe(guarded("b", 3, &["Update"]), 3);
    bench.run_for(10).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
    let open: Vec<String> = bench
        .in_state(ApprovalState::Waiting)
        .iter()
        .map(|name| bench.plans[name].changes()[0].address.to_string())
        .collect();
    assert_eq!(open, ["a", "b"]);
}

#[tokio::test]
async fn a_held_change_keeps_its_plan_when_its_dependents_are_gone() {
    let mut bench = created(&[guarded("a", 1, &["Destroy"]), dependent("b", "a")]).await;
    bench.observe(deleting(guarded("a", 1, &["Destroy"])), 1);
    bench.observe(deleting(dependent("b", "a")), 1);
    bench.run_for(60).await;
    assert_eq!(bench.recorded(), ["a"]);
    let name = bench.only_plan();
    bench.approve(&name).await;
    assert!(bench.recorded().is_empty());
}

#[tokio::test]
async fn a_restart_keeps_an_approval() {
    let (mut bench, name) = with_held_update().await;
    bench.reconciler.reset();
    let plan = ApprovalPlan { approved: true, generation: 2, ..bench.plans[&name].clone() };
    bench.deliver(&name, plan);
    bench.react(Signal::Started);
    bench.run_for(5).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
    assert_eq!((bench.only_plan(), bench.state(&name)), (name.clone(), Some(ApprovalState::Applied)));
}

/// A Plan without a status does not say what it is about: it may be the one of changes that are not planned yet.
#[tokio::test]
async fn a_restart_keeps_a_plan_that_has_no_status_yet() {
    let (mut bench, name) = with_held_update().await;
    let plan = ApprovalPlan { status: PlanStatus::default(), ..bench.plans[&name].clone() };
    bench.reconciler.reset();
    bench.deliver(&name, plan);
    bench.react(Signal::Started);
    bench.run_for(60).await;
    assert_eq!((bench.only_plan(), bench.state(&name)), (name.clone(), Some(ApprovalState::Waiting)));
}

/// Only a reading shows drift: until then, the correction is not planned. The Plan may come after the first plan.
#[tokio::test]
async fn a_restart_keeps_the_plan_of_a_correction_and_its_approval() {
    for case in 0..8 {
        let (is_approved, fails, is_late) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
        let mut bench = created(&[guarded("a", 1, &["Drift"])]).await;
        let address = Address::single("a");
        let object = bench.reconciler.records()[&address].record.current.clone().unwrap();
        bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(9)));
        bench.react(Signal::ReadObjects([address].into()));
        bench.run_for(5).await;
        let name = bench.only_plan();
        assert_eq!(bench.state(&name), Some(ApprovalState::Waiting));
        if fails {
            let answers = vec![ScriptedOutcome::Fail { kind: Kind::default(), message: "no".to_owned() }];
            bench.script("a", Operation::Read, answers);
        }
        let mut plan = bench.plans[&name].clone();
        if is_late {
            bench.deliver_deleted(&name);
        }
        bench.reconciler.reset();
        if is_approved {
            plan = ApprovalPlan { approved: true, generation: 2, ..plan };
        }
        if is_late {
            bench.react(Signal::Started);
            bench.run_for(5).await;
        }
        bench.deliver(&name, plan);
        bench.react(if is_late { Signal::Wake } else { Signal::Started });
        bench.run_for(120).await;
        let (state, value) = if is_approved { (ApprovalState::Applied, 1) } else { (ApprovalState::Waiting, 9) };
        assert_eq!((bench.only_plan(), bench.state(&name)), (name.clone(), Some(state)), "case {case}");
        assert_eq!(bench.world.objects()[object.id().unwrap()].1.get("value"), Some(&Value::from(value)));
    }
}

/// Two Plans cover a cascade together: its old changes, and the one of the object that has drifted since.
#[tokio::test]
async fn a_cascade_is_made_when_its_two_plans_are_approved() {
    for case in 0..8 {
        let [b, c] = [dependent("b", "a"), dependent("c", "b")]
            .map(|manifest| with(manifest, "spec.approval", serde_json::json!({ "requireFor": ["Update", "Drift"] })));
        let mut bench = created(&[guarded("a", 1, &["Update", "Drift"]), b, c]).await;
        bench.observe(guarded("a", 2, &["Update", "Drift"]), 2);
        bench.run_for(5).await;
        let first = bench.only_plan();
        let address = Address::single("c");
        let object = bench.reconciler.records()[&address].record.current.clone().unwrap();
        bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(9)));
        restart_if(case & 1 != 0, &mut bench);
        bench.react(Signal::ReadObjects([address].into()));
        bench.run_for(5).await;
        if bench.state(&first) == Some(ApprovalState::Waiting) {
            bench.approve(&first).await;
        }
        restart_if(case & 2 != 0, &mut bench);
        bench.run_for(120).await;
        for name in bench.in_state(ApprovalState::Waiting) {
            bench.approve(&name).await;
            restart_if(case & 4 != 0, &mut bench);
        }
        bench.run_for(120).await;
        let values = ["a", "b", "c"].map(|name| bench.value(name));
        assert_eq!(values, [(); 3].map(|()| Some(Value::from(2))), "case {case}: {:?}", bench.plans);
        let live = bench.world.objects()[object.id().unwrap()].1.get("value").cloned();
        assert_eq!(live, Some(Value::from(2)), "case {case}");
    }
}

fn restart_if(is_wanted: bool, bench: &mut Bench) {
    if is_wanted {
        bench.reconciler.reset();
        bench.react(Signal::Started);
    }
}

/// Nothing reads the object of a suspended Resource. Its correction may go on.
#[tokio::test]
async fn the_plan_of_a_correction_waits_while_its_resource_is_suspended() {
    let mut bench = created(&[guarded("a", 1, &["Drift"])]).await;
    let address = Address::single("a");
    let object = bench.reconciler.records()[&address].record.current.clone().unwrap();
    bench.world.put(object.id().unwrap(), &object.value.with("value", Value::from(9)));
    bench.react(Signal::ReadObjects([address].into()));
    bench.run_for(5).await;
    let name = bench.only_plan();
    let mut suspended = guarded("a", 1, &["Drift"]);
    suspended["spec"]["suspend"] = true.into();
    bench.observe(suspended, 1);
    bench.run_for(5).await;
    bench.reconciler.reset();
    bench.react(Signal::Started);
    bench.run_for(120).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting));
    bench.observe(guarded("a", 1, &["Drift"]), 1);
    bench.run_for(5).await;
    assert_eq!((bench.only_plan(), bench.state(&name)), (name.clone(), Some(ApprovalState::Waiting)));
}

/// Another replica wrote a status, or someone changed the metadata, which starts no read.
#[tokio::test]
async fn a_status_is_computed_from_the_present_version_of_the_plan() {
    let (mut bench, name) = with_held_update().await;
    let plan = ApprovalPlan { approved: true, generation: 2, ..bench.plans[&name].clone() };
    bench.deliver(&name, plan);
    let present = bench.plans.get_mut(&name).unwrap();
    present.id.version = "9".into();
    present.decided_by = Some("eve".into());
    bench.run_for(60).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
    assert_eq!(bench.plans[&name].status.decided_by.as_deref(), Some("eve"));
}

#[tokio::test]
async fn a_change_that_was_made_differs_from_no_approval() {
    let (mut bench, name) = with_held_update().await;
    let other = ChangeDigest { digest: "0".repeat(64), ..bench.plans[&name].changes()[0].clone() };
    let in_git = ApprovalPlan {
        approved: true,
        id: PlanId { uid: "git".into(), ..PlanId::default() },
        valid: APPROVAL_VALID,
        digest: digest_of([&other]).into(),
        proposed: vec![other],
        ..ApprovalPlan::default()
    };
    bench.deliver("git", in_git);
    bench.run_for(5).await;
    assert_eq!(bench.plans["git"].status.differences.len(), 1);
    bench.approve(&name).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
    assert!(bench.plans["git"].status.differences.is_empty(), "nothing is due anymore");
}

/// The write of its status may be delayed until the name exists again: whether its changes are still planned is unknown
/// then, and the Resource may be deleted before they are.
#[tokio::test]
async fn the_plan_of_a_resource_that_was_never_planned_ends_with_it() {
    let mut bench = created(&[]).await;
    bench.observe(guarded("a", 1, &["Create"]), 1);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let waiting = bench.plans[&name].clone();
    bench.reconciler.observe(Event::ResourceDeleted("a".into()));
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
    bench.observe(guarded("a", 1, &["Create"]), 1);
    bench.deliver(&name, waiting);
    bench.react(Signal::Wake);
    bench.reconciler.observe(Event::ResourceDeleted("a".into()));
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
}

/// An update that waits, and its Plan, which has a digest and does not list the changes.
async fn with_held_update_by_digest() -> (Bench, String) {
    let (mut bench, name) = with_held_update().await;
    let mut plan = bench.open_plan(&name).clone();
    plan.status.approvals[0].changes.clear();
    bench.deliver(&name, plan);
    (bench, name)
}

#[tokio::test]
async fn a_plan_whose_changes_are_not_listed_approves_them_by_its_digest() {
    let (mut bench, name) = with_held_update_by_digest().await;
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting));
    assert!(bench.plans[&name].status.approvals[0].changes.is_empty(), "the list is not written again and again");
    bench.approve(&name).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
    assert_ne!(bench.state(&name), Some(ApprovalState::Waiting));
}

#[tokio::test]
async fn an_approval_that_lists_no_changes_does_not_cover_others() {
    let (mut bench, name) = with_held_update_by_digest().await;
    bench.observe(guarded("a", 3, &["Update"]), 3);
    bench.run_for(5).await;
    bench.approve_offers().await;
    assert_eq!(bench.value("a"), Some(Value::from(3)), "another Plan was offered: {:?}", bench.plans.keys());
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
}
