//! Authors who cheat, users who reject and delete, and approvals in parts.

use super::*;

/// A Plan that a user writes.
fn written(digest: &str, proposed: Vec<ChangeDigest>, approved: bool) -> ApprovalPlan {
    ApprovalPlan {
        id: PlanId { uid: format!("{} {}", digest.len() + proposed.len(), &digest[..8]).into(), version: "1".into() },
        generation: 1,
        digest: digest.into(),
        valid: APPROVAL_VALID,
        proposed,
        approved,
        ..ApprovalPlan::default()
    }
}

/// An author knows the name of the Plan of a change from its preview, and creates one of this name and of an earlier
/// digest, which is approved.
#[tokio::test]
async fn a_plan_of_the_right_name_with_another_digest_neither_counts_nor_stands_in_the_way() {
    let (mut bench, name) = with_held_update().await;
    let harmless = bench.plans[&name].digest.clone();
    bench.observe(guarded("a", 1, &["Update"]), 3);
    bench.run_for(5).await;
    // The name that the Plan of the other change will have.
    let mut other = created(&[guarded("a", 1, &["Update"])]).await;
    other.observe(guarded("a", 9, &["Update"]), 2);
    other.run_for(5).await;
    let evil = other.only_plan();
    let forged = ApprovalPlan { is_own: plan_name::is_drawn(&evil, &harmless), ..written(&harmless, Vec::new(), true) };
    assert!(!forged.is_own);
    bench.deliver(&evil, forged);
    bench.observe(guarded("a", 9, &["Update"]), 4);
    bench.run_for(10).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)), "{:#?}", bench.plans);
    assert!(bench.plans[&evil].status.changes.is_empty(), "it does not show the other change");
    let waiting = bench.in_state(ApprovalState::Waiting);
    let offered: Vec<&String> = waiting.iter().filter(|name| **name != evil).collect();
    assert_eq!(offered.len(), 1, "{waiting:?}");
    assert!(bench.message("a").contains(&format!("`purlin approve {} ", offered[0])), "{}", bench.message("a"));
    let offered = offered[0].clone();
    bench.approve(&offered).await;
    assert_eq!(bench.value("a"), Some(Value::from(9)));
}

/// Its label is gone, or a user wrote it: the digest decides.
#[tokio::test]
async fn a_plan_with_the_digest_of_a_held_change_is_used_whatever_its_name() {
    let (mut bench, name) = with_held_update().await;
    let digest = bench.plans[&name].digest.clone();
    bench.deliver("from-git", written(&digest, Vec::new(), true));
    bench.run_for(5).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)), "at once");
    assert_eq!(bench.state("from-git"), Some(ApprovalState::Applied));
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
    // Both approve the same change, and it uses up both.
    bench.observe(guarded("a", 1, &["Update"]), 3);
    bench.run_for(5).await;
    let back = bench.in_state(ApprovalState::Waiting);
    let digest = bench.plans[&back[0]].digest.clone();
    bench.deliver("also", ApprovalPlan { approved: false, ..written(&digest, Vec::new(), false) });
    bench.run_for(5).await;
    let open = bench.open_plan("also").clone();
    bench.deliver("also", ApprovalPlan { approved: true, generation: 2, ..open });
    bench.approve(&back[0]).await;
    bench.run_for(5).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    bench.observe(guarded("a", 2, &["Update"]), 4);
    bench.run_for(5).await;
    bench.observe(guarded("a", 1, &["Update"]), 5);
    bench.run_for(5).await;
    assert_eq!(bench.ready("a"), (5, "True Available".to_owned()), "nothing was made in between");
    assert!(bench.in_state(ApprovalState::Approved).is_empty(), "{:#?}", bench.plans);
}

#[tokio::test]
async fn an_invalid_plan_approves_nothing_and_hides_no_other() {
    let (mut bench, name) = with_held_update().await;
    let digest = bench.plans[&name].digest.clone();
    bench.deliver_deleted(&name);
    let lying = ApprovalPlan { is_invalid: true, ..written(&digest, Vec::new(), true) };
    bench.deliver("lying", lying);
    bench.run_for(100).await;
    assert_eq!((bench.value("a"), bench.state("lying")), (Some(Value::from(1)), Some(ApprovalState::Invalid)));
    assert_eq!(bench.in_state(ApprovalState::Waiting), [name], "Purlin offers one that does not lie");
}

#[tokio::test]
async fn a_plan_that_lies_about_the_action_is_never_due() {
    let (mut bench, name) = with_held_update().await;
    let lie = ChangeDigest { action: model::Action::Create, ..bench.plans[&name].changes()[0].clone() };
    let digest = digest_of([&lie]);
    bench.deliver("lie", written(&digest, vec![lie], true));
    bench.run_for(10).await;
    assert_eq!(bench.value("a"), Some(Value::from(1)));
    let status = &bench.plans["lie"].status;
    assert!(status.approvals.is_empty() && status.approval == Some(ApprovalState::Waiting), "{status:#?}");
    assert_eq!(status.differences, ["a: to be updated, but the approval is for it to be created"]);
}

fn forced(name: &str, value: i64, force: i64) -> serde_json::Value {
    with(guarded(name, value, &["Replace"]), "spec.config.force", force)
}

/// An approved replacement whose create fails, and the name of its Plan.
async fn half_replaced() -> (Bench, String) {
    let mut bench = created(&[forced("a", 1, 1)]).await;
    bench.observe(forced("a", 1, 2), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let answers = vec![ScriptedOutcome::Fail { kind: Kind::default(), message: "no".to_owned() }];
    bench.script("a", Operation::Create, answers);
    let plan = bench.open_plan(&name).clone();
    bench.deliver(&name, ApprovalPlan { approved: true, generation: 2, decided_by: Some("eve".into()), ..plan });
    bench.run_for(1).await;
    let record = &bench.reconciler.records()[&"a".parse().unwrap()].record;
    assert!(record.replacement_pending && record.approved_object.is_some(), "{record:#?}");
    (bench, name)
}

/// While the new object is missing, the author wants another one. It waits, after a restart too; the approved one is
/// created without another approval.
#[tokio::test]
async fn the_second_half_of_a_replacement_creates_only_what_was_approved() {
    for restarts in [false, true] {
        let (mut bench, name) = half_replaced().await;
        bench.observe(forced("a", 66, 2), 3);
        bench.run_for(1).await;
        if restarts {
            bench.deliver_deleted(&name);
            bench.reconciler.reset();
            bench.react(Signal::Started);
        }
        bench.run_for(300).await;
        assert_eq!(bench.value("a"), None, "restarts: {restarts}");
        assert_eq!(bench.ready("a"), (3, "False ApprovalRequired".to_owned()));
        bench.observe(forced("a", 1, 2), 4);
        bench.run_for(300).await;
        assert_eq!((bench.value("a"), bench.ready("a").1.as_str()), (Some(Value::from(1)), "True Available"));
        let record = &bench.reconciler.records()[&"a".parse().unwrap()].record;
        assert!(!record.replacement_pending && record.approved_object.is_none());
        let last = record.history.entries().last().unwrap();
        assert_eq!(&*last.cause.approved_by, "eve", "the history says who approved it");
        if !restarts {
            assert_eq!(bench.state(&name), Some(ApprovalState::Applied));
        }
    }
}

#[tokio::test]
async fn another_new_object_needs_an_approval_of_its_own() {
    let (mut bench, name) = half_replaced().await;
    bench.observe(forced("a", 66, 2), 3);
    bench.run_for(300).await;
    let waiting = bench.in_state(ApprovalState::Waiting);
    let change = &bench.plans[&waiting[0]].status.approvals[0].changes[0];
    assert_eq!((waiting.len(), change.action), (1, model::Action::Create));
    bench.approve(&waiting[0]).await;
    bench.run_for(60).await;
    assert_eq!((bench.value("a"), bench.state(&waiting[0])), (Some(Value::from(66)), Some(ApprovalState::Applied)));
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
}

/// `n2` and `n5` follow the replacement of `n0`; `n2` has no approval. All of them wait, no approval is used up without its
/// change, and one more approval completes all three.
#[tokio::test]
async fn an_approval_is_used_up_only_by_its_own_change() {
    let manifests = [
        with(thing("n0", 1), "spec.config.force", 1),
        with(thing("n2", 0), "spec.config.value", "${n0.id}"),
        with(thing("n5", 0), "spec.config.force", "${n0.id}"),
    ];
    let mut bench = created(&manifests).await;
    bench.annotate(&[(REQUIRE_APPROVAL, "Update,Replace,Destroy")]);
    bench.observe(with(thing("n0", 1), "spec.config.force", 2), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let changes = bench.plans[&name].changes().to_vec();
    assert_eq!(changes.len(), 3, "{changes:#?}");
    let two: Vec<ChangeDigest> = changes.into_iter().filter(|change| &**change.address.name() != "n2").collect();
    bench.deliver("two", written(&digest_of(&two), two, true));
    bench.run_for(60).await;
    assert_eq!(bench.state("two"), Some(ApprovalState::Approved));
    assert_eq!(bench.ready("n0"), (2, "False Waiting".to_owned()));
    assert_eq!(
        bench.ready("n5"),
        (1, "False Waiting".to_owned()),
        "it is not ready beside an object that is about to go"
    );
    let waiting = bench.in_state(ApprovalState::Waiting);
    let missing: Vec<String> =
        waiting.iter().flat_map(|name| bench.plans[name].names().map(ToString::to_string)).collect();
    assert_eq!(missing, ["n2"]);
    bench.approve_offers().await;
    bench.run_for(60).await;
    let applied = bench.in_state(ApprovalState::Applied);
    assert!(applied.contains(&"two".to_owned()) && applied.len() == 2, "{:#?}", bench.plans);
    for name in ["n0", "n2", "n5"] {
        assert_eq!(bench.ready(name).1, "True Available");
        let stored = &bench.reconciler.records()[&name.parse().unwrap()];
        assert!(!stored.record.history.entries().last().unwrap().cause.approval.is_empty(), "{name}");
    }
    let object = bench.reconciler.records()[&"n0".parse().unwrap()].record.current.clone().unwrap();
    assert_eq!(bench.value("n2"), object.id().map(Value::from));
}

#[tokio::test]
async fn a_rejected_change_is_stalled_until_its_resource_changes_or_its_plan_is_deleted() {
    let mut bench = created(&[guarded("a", 1, &["Update"]), dependent("b", "a")]).await;
    bench.observe(guarded("a", 2, &["Update"]), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let plan = bench.open_plan(&name).clone();
    bench.deliver(&name, ApprovalPlan { rejected: true, decided_by: Some("eve".into()), generation: 2, ..plan });
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Rejected));
    assert_eq!(bench.condition("a", "Ready").unwrap(), "False Rejected");
    assert_eq!(bench.condition("a", "Stalled").unwrap(), "True Rejected");
    assert_eq!((bench.condition("a", "Reconciling"), bench.condition("a", "ApprovalRequired")), (None, None));
    assert_eq!(
        bench.message("a"),
        format!(
            "the update was rejected by eve, so the object stays as it is (hint: change the Resource, or delete the Plan to \
             decide again: `kubectl delete plan {name} -n shop`)"
        )
    );
    assert_eq!(bench.message("b"), "depends on `a`, whose change was rejected");
    // As the hint says.
    bench.deliver_deleted(&name);
    bench.run_for(5).await;
    assert_eq!(bench.condition("a", "Ready").unwrap(), "False ApprovalRequired");
    assert_eq!(bench.in_state(ApprovalState::Waiting), [name.as_str()]);
    let plan = bench.open_plan(&name).clone();
    bench.deliver(&name, ApprovalPlan { rejected: true, generation: 2, ..plan });
    bench.observe(guarded("a", 3, &["Update"]), 3);
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
    assert_eq!(bench.condition("a", "Ready").unwrap(), "False ApprovalRequired");
}

#[tokio::test]
async fn a_plan_that_a_user_deletes_comes_back_later_and_the_status_says_so() {
    let (mut bench, name) = with_held_update().await;
    bench.run_for(60).await;
    bench.deliver_deleted(&name);
    bench.run_for(30).await;
    assert!(bench.plans.is_empty(), "{:?}", bench.plans.keys());
    assert!(bench.message("a").contains("Purlin creates it again within a minute"), "{}", bench.message("a"));
    bench.run_for(40).await;
    assert_eq!(bench.only_plan(), name);
    assert!(bench.message("a").contains(&format!("`purlin approve {name} -n shop`")), "{}", bench.message("a"));
    bench.approve(&name).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
}

/// A literal in the place of an unknown value.
#[tokio::test]
async fn an_unknown_value_is_no_blank_cheque() {
    let follower = with(guarded("b", 0, &["Update"]), "spec.config.value", "${a.id}");
    let mut bench = created(&[with(thing("a", 1), "spec.config.force", 1), follower.clone()]).await;
    let before = bench.value("b");
    bench.observe(with(thing("a", 1), "spec.config.force", 2), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    // The approval and the edit arrive together.
    let plan = bench.open_plan(&name).clone();
    bench.deliver(&name, ApprovalPlan { approved: true, generation: 2, ..plan });
    bench.observe(with(follower.clone(), "spec.config.value", "evil"), 2);
    bench.run_for(30).await;
    assert_eq!(bench.value("b"), before);
    assert_eq!(bench.ready("b").1, "False ApprovalRequired");
    bench.observe(follower, 3);
    bench.run_for(30).await;
    bench.approve_offers().await;
    let id = bench.reconciler.records()[&"a".parse().unwrap()].record.current.as_ref().unwrap().id().map(Value::from);
    assert_eq!((bench.value("b"), bench.ready("b").1.as_str()), (id, "True Available"));
}

/// The approved change of `b`, which reads `a`: `a` does not exist yet, and needs no approval any more.
async fn approved_reader() -> (Bench, Option<Value>) {
    let reader = guarded("b", 0, &["Update"]);
    let mut bench = created(&[with(reader.clone(), "spec.config.value", "0")]).await;
    bench.observe(guarded("a", 1, &["Create"]), 1);
    bench.observe(with(reader, "spec.config.value", "${a.id}: ${a.value}"), 2);
    bench.run_for(5).await;
    let name = bench.only_plan();
    let of_b = bench.plans[&name].changes().iter().filter(|change| &**change.address.name() == "b");
    let of_b: Vec<ChangeDigest> = of_b.cloned().collect();
    assert_eq!(of_b.len(), 1);
    bench.deliver("of-b", written(&digest_of(&of_b), of_b, true));
    let before = bench.value("b");
    (bench, before)
}

/// The author creates another `a` than the one that was shown.
#[tokio::test]
async fn an_approval_covers_what_an_unknown_value_is_made_of() {
    let (mut bench, before) = approved_reader().await;
    bench.observe(thing("a", 66), 2);
    bench.run_for(30).await;
    assert_eq!((bench.value("a"), bench.value("b")), (Some(Value::from(66)), before), "{:#?}", bench.plans);
    assert_eq!(bench.ready("b").1, "False ApprovalRequired");
    assert_eq!(bench.plans["of-b"].status.differences, ["b: other attributes change than were approved"]);
}

#[tokio::test]
async fn an_unknown_value_becomes_what_was_approved() {
    let (mut bench, _) = approved_reader().await;
    bench.observe(thing("a", 1), 2);
    bench.run_for(30).await;
    assert_eq!((bench.state("of-b"), bench.ready("b").1.as_str()), (Some(ApprovalState::Applied), "True Available"));
}
