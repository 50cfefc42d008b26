//! Which replica holds which shard, by the Leases in the API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apiserver::{Cluster, Fate, Network, Outcome, RequestInfo, Server, Verb, WatchFate};
use jiff::SignedDuration;
use purlin::controller::shards::{Division, Shard};
use purlin::process::Clock as _;
use serde_json::Value;
use testkit::scripted::Recovery;
use tokio::time::{Instant, sleep};

use crate::judge::Judge;
use crate::kubectl::SHOP;
use crate::outside::Outside;
use crate::random::SimulatedClock;
use crate::replica::{Environment, HOME, Replica};

const SHARD: &str = "purlin-shard-";

/// The name of the Pod in the Lease of each shard. A shard without a holder is left out.
fn holders(server: &Server, division: Division) -> BTreeMap<Shard, String> {
    let leases = server.objects("coordination.k8s.io", "leases").filter(|lease| lease.namespace() == HOME);
    let of_shard = |lease: &Value| {
        let (count, shard) = lease["metadata"]["name"].as_str()?.strip_prefix(SHARD)?.split_once('-')?;
        let shard = shard.parse().ok().filter(|_| count == division.count().to_string())?;
        let (pod, _) = lease["spec"]["holderIdentity"].as_str()?.rsplit_once('_')?;
        Some((shard, pod.to_owned()))
    };
    leases.filter_map(|lease| of_shard(&lease.value)).collect()
}

impl Environment {
    fn division(&self) -> Division {
        Division::new(self.shards.load(Ordering::Relaxed))
    }

    /// The name of the Pod that holds the shard of a namespace.
    pub(crate) fn holder(&self, namespace: &str) -> Option<String> {
        let mut all = self.cluster.with(|server, _| holders(server, self.division()));
        all.remove(&self.division().shard(namespace))
    }

    /// Returns a line for every shard that no running replica holds, and for every replica without a fair share.
    pub(crate) fn unshared(&self, replicas: &[Replica]) -> Vec<String> {
        let all = self.cluster.with(|server, _| holders(server, self.division()));
        let mut counts: BTreeMap<&str, usize> = replicas.iter().map(|replica| (&*replica.pod.name, 0)).collect();
        let mut lines = Vec::new();
        for shard in self.division().all() {
            match all.get(&shard).and_then(|name| counts.get_mut(name.as_str())) {
                Some(count) => *count += 1,
                None => lines.push(format!("shard {shard} is held by {:?}, which does not run", all.get(&shard))),
            }
        }
        let total = self.division().all().count();
        let (fewest, most) = (total / counts.len().max(1), total.div_ceil(counts.len().max(1)));
        let is_unfair = |count: usize| count < fewest || count > most;
        let unfair = counts.iter().filter(|(_, count)| is_unfair(**count));
        lines.extend(unfair.map(|(name, count)| format!("{name} holds {count} of {total} shards")));
        lines
    }
}

/// Rejects the release of shards while its flag is set.
struct Rejecting(Arc<AtomicBool>);

impl Network for Rejecting {
    fn request(&mut self, client: &str, request: &RequestInfo) -> Fate {
        let of_shard = request.verb == Verb::Update && request.name.starts_with(SHARD);
        if !of_shard || client != "r1" || !self.0.load(Ordering::Relaxed) {
            return Fate::quick();
        }
        let (reason, message) = ("Forbidden".to_owned(), "a policy denied the request".to_owned());
        Fate { outcome: Outcome::Refuse { code: 403, reason, message, retry_after: None }, ..Fate::quick() }
    }

    fn watch_event(&mut self, _: &str, _: &RequestInfo, _: u64) -> WatchFate {
        WatchFate::Deliver(Duration::from_millis(1))
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_be_given_back_is_tried_again_with_the_next_renewal() {
    let (began, judge, rejects) = (Instant::now(), Judge::new(), Arc::new(AtomicBool::new(false)));
    let epoch = SimulatedClock::new(began, SignedDuration::ZERO).now();
    let cluster = Cluster::new(epoch, Rejecting(rejects.clone()));
    let outside = Outside::new(1, Recovery::Find, judge.clone());
    let env = Environment::new((1, began), (&[SHOP], 2), cluster, outside, judge);
    let mut replicas = vec![Replica::start(&env, "r1", SignedDuration::ZERO)];
    sleep(Duration::from_secs(10)).await;
    assert_eq!(env.unshared(&replicas), Vec::<String>::new());

    rejects.store(true, Ordering::Relaxed);
    replicas.push(Replica::start(&env, "r2", SignedDuration::ZERO));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(env.unshared(&replicas).len(), 2, "one has all, and the other one none");
    let before = env.cluster.requests();
    sleep(Duration::from_mins(1)).await;
    let requests = env.cluster.requests() - before;
    // Every two seconds, each replica reads the Leases and renews its own, and the first one tries to give a shard back.
    assert!(requests < 200, "{requests} requests in a minute");

    rejects.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(env.unshared(&replicas), Vec::<String>::new());
    for replica in replicas {
        replica.kill(&env).await;
    }
}
