//! Plans with more changes than their status can list.

use super::*;

#[tokio::test]
async fn a_plan_whose_changes_are_not_listed_approves_them_by_its_digest() {
    let (mut bench, name) = with_held_update().await;
    let mut plan = bench.open_plan(&name).clone();
    plan.status.approvals[0].changes.clear();
    bench.deliver(&name, plan);
    bench.run_for(5).await;
    assert_eq!(bench.state(&name), Some(ApprovalState::Waiting));
    assert!(bench.plans[&name].status.approvals[0].changes.is_empty(), "the list is not written again and again");
    bench.approve(&name).await;
    assert_eq!(bench.value("a"), Some(Value::from(2)));
    assert_ne!(bench.state(&name), Some(ApprovalState::Waiting));
}

#[tokio::test]
async fn an_approval_that_lists_no_changes_does_not_cover_others() {
    let (mut bench, name) = with_held_update().await;
    let mut plan = bench.open_plan(&name).clone();
    plan.status.approvals[0].changes.clear();
    bench.deliver(&name, plan);
    bench.observe(guarded("a", 3, &["Update"]), 3);
    bench.run_for(5).await;
    bench.approve_offers().await;
    assert_eq!(bench.value("a"), Some(Value::from(3)), "another Plan was offered: {:?}", bench.plans.keys());
    assert_eq!(bench.state(&name), Some(ApprovalState::Superseded));
}
