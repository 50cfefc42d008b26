//! Shards that move between replicas. Two namespaces of users are in different shards; the third shard is that of the
//! cluster.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use purlin::controller::shards::Division;
use purlin::model::{BUCKETS, Value as Plain};
use testkit::scripted::Operation;
use tokio::time::Instant;

use super::play::{Play, plain};
use crate::convergence::all_records;
use crate::kubectl::{NAMESPACES, SHOP, create_namespace};

const YARD: &str = NAMESPACES[1];

/// How long it takes to apply a change.
const SOON: Duration = Duration::from_secs(5);
/// How long it takes at most until another replica applies a change: a lease, two attempts, and the change.
const AFTER_A_LEASE: Duration = Duration::from_secs(15 + 2 * 2).saturating_add(SOON);

/// Creates `a` in one namespace and `x` in the other one.
fn apply_both(play: &Play, value: &str) {
    play.apply("a", &plain(value, "f0"));
    play.apply_in(YARD, "x", &plain(value, "f0"));
}

/// Starts a second replica. The first one keeps the shards of both namespaces if it calls in them meanwhile, or else gives
/// that of `a` back.
async fn two_replicas(play: &Play, calls: bool) {
    play.env.cluster.with(|server, now| create_namespace(server, now, YARD));
    if calls {
        ["a", "x"].into_iter().for_each(|name| play.hold(name, Operation::Create));
    }
    apply_both(play, "v0");
    play.until_called("create a").await;
    play.until_called("create x").await;
    play.start();
    play.until("each replica has its share", || play.unshared().is_empty()).await;
    if calls {
        play.release();
    }
    play.given().await;
}

impl Play {
    /// Checks a condition that faults may change.
    pub(super) fn expect(&self, what: &str, is_true: bool) {
        if !self.is_disturbed && !is_true {
            self.env.judge.object(&format!("expected: {what}"));
        }
    }

    /// Waits until objects have these values, and checks how long that takes without a fault.
    async fn expect_within(&self, limit: Duration, expected: &[(&str, &str)]) {
        let began = Instant::now();
        let exist = || {
            let all = self.env.outside.world.objects();
            let has = |(address, value): &(&str, &str)| {
                let is = |(other, object): &(Arc<str>, Plain)| {
                    **other == **address && object.get("value").and_then(Plain::as_str) == Some(value)
                };
                all.values().any(is)
            };
            expected.iter().all(has)
        };
        self.until(&format!("{expected:?}"), exist).await;
        let took = began.elapsed();
        self.expect(&format!("{expected:?} within {limit:?} instead of {took:?}"), took <= limit);
    }
}

/// A replica joins while another one calls in both namespaces. That one gives a shard back when its call has ended, and
/// starts nothing more there before.
pub(super) async fn joined_while_it_calls(play: &Play) {
    two_replicas(play, true).await;
    ["a", "x"].into_iter().for_each(|name| play.hold(name, Operation::Update));
    apply_both(play, "v1");
    play.until_called("update a").await;
    play.until_called("update x").await;
    let (shop, yard) = (play.env.holder(SHOP), play.env.holder(YARD));
    play.start();
    // Longer than until the next attempt of the first replica.
    play.pass(Duration::from_secs(3)).await;
    play.apply("b", &plain("v0", "f0"));
    play.pass(Duration::from_millis(500)).await;
    play.expect("the shard is kept while its call runs", play.env.holder(SHOP) == shop);
    play.expect("nothing more starts", !play.strikes.was_called("create b"));
    play.release();
    play.ends(&["a v1 f0", "b v0 f0", "x v1 f0"]).await;
    play.expect("one shard has moved", play.env.holder(SHOP) != shop && play.env.holder(YARD) == yard);
}

/// A replica shuts down while it calls. Another one takes its shards as soon as the call has ended.
pub(super) async fn left_while_it_calls(play: &Play) {
    two_replicas(play, true).await;
    play.hold("a", Operation::Update);
    play.apply("a", &plain("v1", "f0"));
    play.until_called("update a").await;
    let Some(name) = play.begin_shutdown() else { return };
    play.apply_in(YARD, "x", &plain("v1", "f0"));
    play.pass(Duration::from_secs(2)).await;
    play.release();
    play.until_stopped(&name).await;
    play.expect_within(SOON, &[("a", "v1"), ("x", "v1")]).await;
    play.ends(&["a v1 f0", "x v1 f0"]).await;
}

/// A replica is paused for longer than its lease while it calls. Another one takes its shards and applies other changes
/// there. When the first one continues, it learns the result of its call, and gets its share again.
pub(super) async fn paused_while_it_calls(play: &Play) {
    two_replicas(play, true).await;
    play.hold("a", Operation::Update);
    play.apply("a", &plain("v1", "f0"));
    play.until_called("update a").await;
    play.pause(Duration::from_secs(19));
    play.apply("b", &plain("v0", "f0"));
    play.apply_in(YARD, "x", &plain("v1", "f0"));
    play.pass(Duration::from_secs(1)).await;
    play.release();
    play.expect_within(AFTER_A_LEASE, &[("b", "v0"), ("x", "v1")]).await;
    play.ends(&["a v1 f0", "b v0 f0", "x v1 f0"]).await;
}

/// A replica is paused while it calls, and the others are replaced by one with another number of shards. The shard of
/// that number which the paused one once gave back had other namespaces in it, so it is no evidence that its calls have
/// ended.
pub(super) async fn paused_while_the_number_of_shards_changes(play: &Play) {
    two_replicas(play, false).await;
    play.hold("x", Operation::Update);
    play.apply_in(YARD, "x", &plain("v1", "f0"));
    play.until_called("update x").await;
    play.pause(Duration::from_mins(1));
    play.kill_last().await;
    let before = Division::new(2).shard(SHOP);
    let takes_its_number = |count: &u16| *count != 2 && Division::new(*count).shard(YARD) == before;
    let count = (1..=BUCKETS).find(takes_its_number).expect("some division");
    play.env.shards.store(count, Ordering::Relaxed);
    play.start();
    play.pass(Duration::from_secs(50)).await;
    let records = play.env.cluster.with(|server, _| all_records(server));
    let is_open = records.iter().any(|record| **record.address.name() == *"x" && record.intent.is_some());
    play.expect("no other replica resolves the call", is_open);
    play.release();
    play.pass(Duration::from_secs(15)).await;
    play.stop().await;
    play.ends(&["a v0 f0", "x v1 f0"]).await;
}

/// A replica is killed while it calls in its namespace. Changes in the namespace of another replica do not wait; the
/// others wait for a lease.
pub(super) async fn killed_while_it_calls(play: &Play) {
    two_replicas(play, false).await;
    play.expect("each replica has a namespace", play.env.holder(SHOP) != play.env.holder(YARD));
    play.hold("x", Operation::Update);
    play.apply_in(YARD, "x", &plain("v1", "f0"));
    play.until_called("update x").await;
    play.kill().await;
    play.release();
    play.apply("a", &plain("v1", "f0"));
    play.apply_in(YARD, "y", &plain("v0", "f0"));
    play.expect_within(SOON, &[("a", "v1")]).await;
    play.expect_within(AFTER_A_LEASE, &[("x", "v1"), ("y", "v0")]).await;
    play.ends(&["a v1 f0", "x v1 f0", "y v0 f0"]).await;
}
