//! Kubernetes objects that are late, fail, recover, or are deleted by clients that finalizers hold back.

use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::web;
use super::play::{Play, config_map};

/// A ConfigMap that depends on `a`.
fn dependent(name: &str) -> Value {
    let mut spec = config_map(name);
    spec["dependsOn"] = json!([{ "name": "a" }]);
    spec
}

impl Play {
    /// The Deployment of `a` exists with this image.
    async fn until_image(&self, image: &str) {
        self.until("the Deployment has the image", || {
            let found = self.cluster_object("a");
            found.is_some_and(|one| one.value.pointer("/spec/template/spec/containers/0/image") == Some(&image.into()))
        })
        .await;
    }

    /// The message of a condition of a Resource.
    fn message(&self, name: &str, condition: &str) -> String {
        let resource = self.resource(name);
        let all = resource["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["type"] == condition).unwrap_or_default();
        one["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The controllers of the finalizers of all ConfigMaps that are being deleted remove them.
    fn let_go(&self) {
        self.env.judge.note("the finalizers are removed");
        self.env.cluster.with(|server, now| {
            let all: Vec<_> = server.objects("", "configmaps").cloned().collect();
            for object in all.iter().filter(|one| one.value["metadata"]["deletionTimestamp"].is_string()) {
                let path = server.path_of(&object.value, true);
                server.modify(now, &path, &json!({ "metadata": { "finalizers": null } }));
            }
        });
    }

    fn uid(&self, address: &str) -> Option<String> {
        self.cluster_object(address).map(|object| object.uid().to_owned())
    }

    /// The object must still be the same.
    fn must_be(&self, address: &str, uid: Option<&str>) {
        if self.uid(address).as_deref() != uid {
            self.env.judge.object(&format!("the object of {address} was replaced"));
        }
    }
}

/// A Deployment that exceeds its deadlines is kept, and becomes ready when its Pods run, also after a restart.
pub(super) async fn deployment_late_then_ready(play: &Play) {
    play.empty().await;
    play.apply("a", &web("web:1", "10s"));
    play.apply("b", &dependent("b"));
    play.until_image("web:1").await;
    let uid = play.uid("a");
    play.fail_pods("a");
    play.until_says("a", "Stalled", "Degraded").await;
    play.pass(Duration::from_mins(1)).await;
    play.must_be("a", uid.as_deref());
    play.annotate("a", "purlin.dev/reconcile-requested-at", "now");
    play.pass(Duration::from_secs(5)).await;
    play.must_be("a", uid.as_deref());
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1", "b ConfigMap b a=b"]).await;
    play.must_be("a", uid.as_deref());
}

/// A rollout fails, and the user goes back to the previous image.
pub(super) async fn deployment_rolled_back(play: &Play) {
    play.apply("a", &web("web:1", "1m"));
    play.until_image("web:1").await;
    play.run_pods("a");
    play.given().await;
    let uid = play.uid("a");
    play.apply("a", &web("web:2", "1m"));
    play.until_image("web:2").await;
    play.fail_pods("a");
    play.until_says("a", "Stalled", "Degraded").await;
    play.apply("a", &web("web:1", "1m"));
    play.until_image("web:1").await;
    // The first status of the new generation still has the old condition.
    play.fail_pods("a");
    play.pass(Duration::from_secs(3)).await;
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
    play.must_be("a", uid.as_deref());
}

/// A Deployment loses its Pods. Nothing is changed, but a new dependent waits until they run again.
pub(super) async fn deployment_degrades(play: &Play) {
    play.apply("a", &web("web:1", "1m"));
    play.apply("b", &dependent("b"));
    play.until_image("web:1").await;
    play.run_pods("a");
    play.given().await;
    let uids = [play.uid("a"), play.uid("b")];
    play.fail_pods("a");
    play.until_says("a", "Ready", "Degraded").await;
    play.until_says("a", "Synced", "True").await;
    play.until_says("b", "Ready", "True").await;
    play.apply("c", &dependent("c"));
    play.until_says("c", "Ready", "DependencyNotReady").await;
    play.pass(Duration::from_secs(30)).await;
    if play.cluster_object("c").is_some() {
        play.env.judge.object("c was created while a is not ready");
    }
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1", "b ConfigMap b a=b", "c ConfigMap c a=b"]).await;
    play.must_be("a", uids[0].as_deref());
    play.must_be("b", uids[1].as_deref());
}

/// A ConfigMap that a finalizer of another controller keeps.
fn held() -> Value {
    let mut spec = config_map("held");
    spec["config"]["manifest"]["metadata"]["finalizers"] = json!(["example.com/hold"]);
    spec
}

/// Another client deletes the object, and a finalizer keeps it for a while.
pub(super) async fn object_terminating(play: &Play) {
    play.apply("a", &held());
    play.given().await;
    play.remove("a");
    play.until_says("a", "Ready", "Terminating").await;
    play.apply("b", &dependent("b"));
    play.until_says("b", "Ready", "DependencyNotReady").await;
    play.pass(Duration::from_secs(30)).await;
    play.change("a", &json!({ "metadata": { "finalizers": null } }));
    play.ends(&["a ConfigMap held a=b", "b ConfigMap b a=b"]).await;
}

/// A user deletes the Resource, and a finalizer keeps the object for a while.
pub(super) async fn object_held_while_deleted(play: &Play) {
    play.apply("a", &held());
    play.apply("b", &dependent("b"));
    play.given().await;
    play.delete("a");
    play.delete("b");
    play.until("Purlin deletes the object", || {
        play.cluster_object("a").is_none_or(|one| one.value["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    play.pass(Duration::from_secs(20)).await;
    if play.cluster_object("a").is_some() {
        play.change("a", &json!({ "metadata": { "finalizers": null } }));
    }
    play.ends(&[]).await;
}

/// An immutable ConfigMap with a generated name, which a finalizer of another controller keeps, and which is replaced by a
/// new one first.
fn held_and_fixed(text: &str) -> Value {
    let metadata = json!({ "generateName": "site-", "finalizers": ["example.com/hold"] });
    let mut spec = config_map("site");
    spec["config"]["manifest"]["metadata"] = metadata;
    spec["config"]["manifest"]["data"] = json!({ "text": text });
    spec["config"]["manifest"]["immutable"] = json!(true);
    spec["lifecycle"] = json!({ "createBeforeDestroy": true });
    spec
}

/// A finalizer keeps the old object of a replacement, which has created the new one. The status says so, also after a
/// restart.
pub(super) async fn replaced_object_held(play: &Play) {
    play.apply("a", &held_and_fixed("v0"));
    play.given().await;
    play.apply("a", &held_and_fixed("v1"));
    let says_why = || play.message("a", "Synced").contains("`example.com/hold`");
    play.until("the status names the finalizer", says_why).await;
    let before = play.message("a", "Synced");
    play.roll().await;
    play.pass(Duration::from_secs(20)).await;
    let after = play.message("a", "Synced");
    play.expect(&format!("the status is {before} again, and not {after}"), after == before);
    play.until("the status names the finalizer", says_why).await;
    play.let_go();
    play.ends(&["a ConfigMap site-* text=v1"]).await;
}

/// Another client changes what Purlin has written, while it waits for the Pods: of a new Deployment, and of an updated one.
pub(super) async fn deployment_changed_while_awaited(play: &Play) {
    play.empty().await;
    let tier = |play: &Play| play.cluster_object("a").map(|one| one.value["metadata"]["labels"]["tier"].clone());
    let other_label = json!({ "metadata": { "labels": { "tier": "other" } } });
    for (image, patch) in [("web:1", with_image("other")), ("web:2", other_label)] {
        let mut labelled = web(image, "1m");
        labelled["config"]["manifest"]["metadata"]["labels"] = json!({ "tier": "front" });
        play.apply("a", &labelled);
        play.until_image(image).await;
        play.until_says("a", "Ready", "False").await;
        play.begin_to_run_pods("a");
        play.change("a", &patch);
        play.run_pods("a");
        play.until_image(image).await;
        play.until("the label is set again", || tier(play) == Some("front".into())).await;
        play.run_pods("a");
        play.until_up_to_date().await;
    }
    play.ends(&["a Deployment web image=web:2"]).await;
}

/// A patch of the image of the Deployment by another client.
fn with_image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "web", "image": image }] } } } })
}

/// Another client changes a Deployment that is not ready, so that it stays so. That is found at its time limit, and later when
/// a user asks to read it.
pub(super) async fn deployment_changed_while_late(play: &Play) {
    play.empty().await;
    let mut late = web("web:1", "10s");
    late["timeouts"]["update"] = json!("10s");
    play.apply("a", &late);
    play.until_image("web:1").await;
    play.until_closed().await;
    play.change("a", &with_image("other"));
    play.until_image("web:1").await;
    play.fail_pods("a");
    play.until_says("a", "Stalled", "Degraded").await;
    play.pass(Duration::from_secs(20)).await;
    play.change("a", &with_image("other"));
    play.fail_pods("a");
    play.annotate("a", "purlin.dev/reconcile-requested-at", "now");
    play.until_image("web:1").await;
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
}

impl Play {
    /// Creates a Deployment with this field, stops the controller before it is ready, and starts it again after another
    /// client has changed the image.
    async fn restart_after_change(&self, field: &str, value: Value) {
        self.empty().await;
        let mut spec = web("web:1", "1m");
        spec[field] = value;
        self.apply("a", &spec);
        self.until_image("web:1").await;
        self.until_closed().await;
        self.stop().await;
        self.change("a", &with_image("other"));
        self.start();
    }
}

/// Another client changes an object that is not ready while no controller runs. It is reported, and not set right.
pub(super) async fn deployment_changed_while_stopped(play: &Play) {
    play.restart_after_change("drift", json!({ "action": "Report" })).await;
    play.until_says("a", "Drifted", "True").await;
    play.pass(Duration::from_secs(20)).await;
    play.until_image("other").await;
    play.until_says("a", "Ready", "False").await;
    play.change("a", &with_image("web:1"));
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
}

/// The same, if changes of this kind wait for an approval.
pub(super) async fn deployment_changed_while_stopped_and_approved(play: &Play) {
    play.restart_after_change("approval", json!({ "requireFor": ["Drift"] })).await;
    play.until_says("a", "Synced", "ApprovalRequired").await;
    play.pass(Duration::from_secs(20)).await;
    play.until_image("other").await;
    play.approve().await;
    play.until_image("web:1").await;
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
}

/// Another client deletes a Deployment that is not ready, and whose drift is only reported. A new one is created again,
/// because its create was not complete.
pub(super) async fn awaited_object_lost(play: &Play) {
    play.empty().await;
    let mut reported = web("web:1", "1m");
    reported["drift"] = json!({ "action": "Report" });
    play.apply("a", &reported);
    play.until_image("web:1").await;
    play.until_closed().await;
    play.stop().await;
    let first = play.uid("a");
    play.remove("a");
    play.start();
    play.until("it is created again", || play.uid("a").is_some_and(|uid| Some(uid) != first)).await;
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
}

/// The Resources and records are restored in another cluster, where their objects do not exist.
pub(super) async fn restored_in_another_cluster(play: &Play) {
    play.apply("a", &config_map("a"));
    play.apply("b", &web("web:1", "1m"));
    play.until("the Deployment exists", || play.cluster_object("b").is_some()).await;
    play.run_pods("b");
    play.given().await;
    play.stop().await;
    play.remove("a");
    play.remove("b");
    play.become_another_cluster(&["a", "b"]);
    play.start();
    for name in ["a", "b"] {
        play.until_says(name, "Ready", "ObjectMissingAfterConfigChange").await;
        play.annotate(name, "purlin.dev/replace-requested-at", "now");
    }
    play.until("the Deployment exists", || play.cluster_object("b").is_some()).await;
    play.run_pods("b");
    play.ends(&["a ConfigMap a a=b", "b Deployment web image=web:1"]).await;
}
