//! Changes that wait for an approval.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::scripted::Operation;

use super::changes::on;
use super::play::{Play, config_map, thing};
use super::values::hooked;
use crate::approver::{Approver, unfinished};
use crate::kubectl::SHOP;

impl Play {
    fn approver(&self) -> Approver {
        Approver::new(self.env.cluster.clone(), vec![SHOP])
    }

    /// Waits until a Plan waits for an approval, and approves it.
    pub(super) async fn approve(&self) {
        self.until("a Plan waits for an approval", || !self.approver().undecided().is_empty()).await;
        self.approver().approve_all(&self.env.judge);
    }

    /// Approves everything that waits until these objects exist. After a crash, a change can wait once more.
    async fn approve_until(&self, objects: &[&str]) {
        self.until("the approved changes are made", || {
            self.approver().approve_all(&self.env.judge);
            self.objects() == objects
        })
        .await;
        self.ends(objects).await;
    }

    /// Waits until one Plan waits for an approval, and returns it.
    async fn offered(&self) -> Value {
        self.until("a Plan waits for an approval", || self.approver().undecided().len() == 1).await;
        self.approver().undecided().pop().unwrap_or_default()
    }
}

/// A replica is paused for longer than its lease before it writes that an approval is seen. Another one carries out the
/// change, and the late write does not hide that.
pub(super) async fn late_approval_of_a_paused_replica(play: &Play) {
    play.start();
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Update"));
    play.until("a Plan waits for an approval", || !play.approver().undecided().is_empty()).await;
    if let Some(plan) = play.approver().undecided().first() {
        play.pause_before(&format!("patch {}/status status", Approver::path(plan)), Duration::from_secs(30));
    }
    play.approve().await;
    play.pass(Duration::from_secs(31)).await;
    let is_applied = play.env.cluster.with(|server, _| unfinished(server).is_empty());
    play.expect("the Plan remains applied", is_applied);
    play.ends(&["a v1 f0"]).await;
}

fn guarded(value: &str, force: &str, kind: &str) -> Value {
    thing(value, force, json!({ "approval": { "requireFor": [kind] } }))
}

pub(super) async fn update_approved(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.apply("b", &thing("${a.value}", "f0", Value::Null));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Update"));
    play.approve().await;
    play.ends(&["a v1 f0", "b v1 f0"]).await;
}

pub(super) async fn replacement_approved(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Replace"));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.apply("a", &guarded("v0", "f1", "Replace"));
    play.approve().await;
    play.ends(&["a v0 f1", "b ->a f0"]).await;
}

pub(super) async fn held_change_reverted(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Update"));
    play.until_says("a", "Synced", "ApprovalRequired").await;
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.ends(&["a v0 f0"]).await;
}

/// The move itself changes no object and needs no approval.
pub(super) async fn moved_and_update_approved(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.given().await;
    play.apply_with("b", &guarded("v1", "f0", "Update"), &json!({ "purlin.dev/moved-from": "a" }));
    play.until_says("b", "Synced", "MoveBlocked").await;
    play.delete("a");
    play.approve().await;
    play.ends(&["b v1 f0"]).await;
}

/// The hook runs only after the destroy is approved.
pub(super) async fn hook_before_approved_destroy(play: &Play) {
    let mut spec = hooked("BeforeDestroy");
    spec["approval"] = json!({ "requireFor": ["Destroy"] });
    play.apply("a", &spec);
    play.given().await;
    play.delete("a");
    play.until_says("a", "Synced", "ApprovalRequired").await;
    if play.has_created_a_job() {
        play.env.judge.object("the hook runs before the approval");
    }
    play.approve().await;
    play.with_jobs(&["a v0 f0"], play.ends(&[])).await;
}

/// While the old object is destroyed for an approved replacement, the author wants another new one.
pub(super) async fn changed_during_approved_replacement(play: &Play) {
    // A replica that has not received the change yet creates what was approved, and the update waits then.
    let wary = |value, force| thing(value, force, json!({ "approval": { "requireFor": ["Update", "Replace"] } }));
    play.apply("a", &wary("v0", "f0"));
    play.given().await;
    play.hold("a", Operation::Destroy);
    play.apply("a", &wary("v0", "f1"));
    play.approve().await;
    play.until_called("destroy a").await;
    play.apply("a", &wary("v1", "f1"));
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.approve_until(&["a v1 f1"]).await;
}

/// `b` has no approval, so that `a` cannot be replaced, and `c` waits with it. One more approval completes all. After a crash
/// while they are replaced, `c` may be created for the old `a`, and be replaced once more.
pub(super) async fn approved_in_parts(play: &Play) {
    let more = |kind: &str| json!({ "approval": { "requireFor": [kind] } });
    play.apply("a", &guarded("v0", "f0", "Replace"));
    play.apply("b", &on("a", "f0", more("Update")));
    play.apply("c", &thing("v0", "${a.id}", more("Replace")));
    play.given().await;
    play.apply("a", &guarded("v0", "f1", "Replace"));
    let plan = play.offered().await;
    play.approver().approve_some(&plan, &["a", "c"], &play.env.judge);
    play.pass(Duration::from_secs(20)).await;
    play.expect("nothing is replaced yet", play.objects() == ["a v0 f0", "b ->a f0", "c v0 ->a"]);
    play.approve_until(&["a v0 f1", "b ->a f0", "c v0 ->a"]).await;
    let is_over = play.env.cluster.with(|server, _| unfinished(server).is_empty());
    play.expect("each approval has ended", is_over);
}

/// The controller restarts while a correction of drift waits for an approval, and a user approves it while no controller runs.
/// The Plan stays the same.
pub(super) async fn correction_held_over_restarts(play: &Play) {
    let mut spec = config_map("a");
    spec["approval"] = json!({ "requireFor": ["Drift"] });
    play.apply("a", &spec);
    play.given().await;
    play.change("a", &json!({ "data": { "a": "other" } }));
    let plan = play.offered().await;
    play.roll().await;
    play.pass(Duration::from_secs(20)).await;
    play.expect("the Plan is still offered", play.offered().await["metadata"]["uid"] == plan["metadata"]["uid"]);
    play.stop().await;
    play.approve().await;
    play.start();
    play.ends(&["a ConfigMap a a=b"]).await;
    let states: Vec<Value> = play.env.cluster.with(|server, _| {
        server.objects("purlin.dev", "plans").map(|plan| plan.value["status"]["approval"].clone()).collect()
    });
    play.expect(&format!("the only Plan is applied: {states:?}"), states == ["Applied"]);
}

/// An author deletes the Plan of a change, and puts an approved Plan with an earlier digest under its name.
pub(super) async fn name_taken(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Update"));
    let earlier = play.offered().await;
    play.apply("a", &guarded("v2", "f0", "Update"));
    let is_other = |plan: &Value| plan["spec"]["digest"] != earlier["spec"]["digest"];
    play.until("the other change is offered", || play.approver().undecided().iter().all(is_other)).await;
    let plan = play.offered().await;
    play.approver().take_name(&plan, &earlier, &play.env.judge);
    play.pass(Duration::from_secs(10)).await;
    play.expect("the earlier approval does not count", play.objects() == ["a v0 f0"]);
    play.approve_until(&["a v2 f0"]).await;
}

/// A Plan with nothing but the digest is used as soon as it comes.
pub(super) async fn digest_alone(play: &Play) {
    play.apply("a", &guarded("v0", "f0", "Update"));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Update"));
    let plan = play.offered().await;
    play.approver().approve_in_git(&plan, false, &play.env.judge);
    play.ends(&["a v1 f0"]).await;
}

/// An author gets the change of `b` approved, which reads an `a` that does not exist yet. Then another `a` is created, which
/// needs no approval.
pub(super) async fn another_source_after_the_approval(play: &Play) {
    let reader = |value: &str| guarded(value, "f0", "Update");
    play.apply("b", &reader("v0"));
    play.given().await;
    play.apply("a", &guarded("v1", "f0", "Create"));
    play.apply("b", &reader("${a.id == '' ? '' : a.value}"));
    let plan = play.offered().await;
    play.approver().approve_some(&plan, &["b"], &play.env.judge);
    play.apply("a", &thing("v2", "f0", json!({})));
    play.pass(Duration::from_secs(20)).await;
    play.expect("b does not become what was not shown", play.objects() == ["a v2 f0", "b v0 f0"]);
    play.approve_until(&["a v2 f0", "b v2 f0"]).await;
}
