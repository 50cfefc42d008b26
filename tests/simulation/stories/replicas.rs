//! Handover between replicas, and faults of a replica.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::scripted::Operation;
use tokio::time::Instant;

use super::changes::{CHAIN, apply_chain, on};
use super::cluster::web;
use super::play::{Play, plain, thing};
use crate::kubectl::{SHOP, path};

/// A Resource changes while the leader shuts down.
pub(super) async fn handed_over(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    play.apply("a", &plain("v1", "f1"));
    play.roll().await;
    play.ends(&["a v1 f1"]).await;
}

/// The leader shuts down while it creates the second object of a chain.
pub(super) async fn handed_over_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("b", Operation::Create);
    apply_chain(play, &Value::Null);
    play.until_called("create b").await;
    futures::join!(play.roll(), async {
        play.pass(Duration::from_secs(3)).await;
        play.release();
    });
    play.ends(&CHAIN).await;
}

/// A turn panics while a call runs: the call continues, its result is recorded, and other changes are planned and
/// applied.
pub(super) async fn turn_panics_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.panic_next_turn();
    play.apply("b", &plain("v0", "f0"));
    play.until_panicked().await;
    play.apply("c", &plain("v0", "f0"));
    // The reconciler restarts after its back-off while the call runs.
    play.until_says("c", "Ready", "True").await;
    play.release();
    play.ends(&["a v0 f0", "b v0 f0", "c v0 f0"]).await;
}

/// The leader has no connection for longer than its lease lasts while it replaces an object. Another replica is
/// standby.
pub(super) async fn lease_lost_while_it_calls(play: &Play) {
    let create_first = || json!({ "lifecycle": { "createBeforeDestroy": true } });
    play.start();
    play.apply("a", &thing("v0", "f0", create_first()));
    play.apply("b", &on("a", "f0", Value::Null));
    play.given().await;
    play.hold("a", Operation::Create);
    play.apply("a", &thing("v0", "f1", create_first()));
    play.until_called("create a").await;
    play.cut_off(Duration::from_secs(30));
    play.pass(Duration::from_secs(20)).await;
    play.release();
    play.ends(&["a v0 f1", "b ->a f0"]).await;
}

/// The only replica has no connection for longer than its lease lasts. When it leads again, it applies other changes
/// while its call still runs.
pub(super) async fn lease_regained_while_it_calls(play: &Play) {
    play.empty().await;
    play.hold("a", Operation::Create);
    play.apply("a", &plain("v0", "f0"));
    play.until_called("create a").await;
    play.cut_off(Duration::from_secs(30));
    play.apply("b", &plain("v0", "f0"));
    play.until_says("b", "Ready", "True").await;
    play.release();
    play.ends(&["a v0 f0", "b v0 f0"]).await;
}

/// A status that an earlier leader has written arrives after that of the present one.
pub(super) async fn late_status_of_an_earlier_leader(play: &Play) {
    play.apply("a", &plain("v0", "f0"));
    play.given().await;
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "Progressing", "message": "creating the object",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = format!("{}/status", path(SHOP, "a"));
    let late = json!({ "status": { "conditions": [ready] } });
    play.env.cluster.with(|server, now| server.modify(now, &status, &late));
    play.ends(&["a v0 f0"]).await;
}

/// The leader shuts down at once although an object is not ready yet. The next leader waits for the object.
pub(super) async fn handed_over_before_it_is_ready(play: &Play) {
    play.empty().await;
    play.apply("a", &web("web:1", "3m"));
    play.until_says("a", "Ready", "False").await;
    play.pass(Duration::from_secs(5)).await;
    let began = Instant::now();
    play.roll().await;
    if began.elapsed() > Duration::from_mins(1) {
        play.env.judge.object(&format!("the shutdown took {:?}", began.elapsed()));
    }
    play.until_says("a", "Ready", "False").await;
    play.pass(Duration::from_secs(5)).await;
    play.run_pods("a");
    play.ends(&["a Deployment web image=web:1"]).await;
}
