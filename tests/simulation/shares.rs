//! Which replica holds which shard, by the Leases in the API server.

use std::collections::BTreeMap;

use purlin::controller::shards::{Division, Shard};
use serde_json::Value;

use crate::apiserver::Server;
use crate::replica::{Environment, HOME, Replica};

const SHARD: &str = "purlin-shard-";

/// The name of the Pod in the Lease of each shard. A shard without a holder is left out.
fn holders(server: &Server) -> BTreeMap<Shard, String> {
    let leases = server.objects("coordination.k8s.io", "leases").filter(|lease| lease.namespace() == HOME);
    let of_shard = |lease: &Value| {
        let shard = lease["metadata"]["name"].as_str()?.strip_prefix(SHARD)?.parse().ok()?;
        let (pod, _) = lease["spec"]["holderIdentity"].as_str()?.rsplit_once('_')?;
        Some((shard, pod.to_owned()))
    };
    leases.filter_map(|lease| of_shard(&lease.value)).collect()
}

impl Environment {
    fn division(&self) -> Division {
        Division::new(self.shards)
    }

    /// The name of the Pod that holds the shard of a namespace.
    pub(crate) fn holder(&self, namespace: &str) -> Option<String> {
        let mut all = self.cluster.with(|server, _| holders(server));
        all.remove(&self.division().shard(namespace))
    }

    /// Returns a line for every shard that no running replica holds, and for every replica without a fair share.
    pub(crate) fn unshared(&self, replicas: &[Replica]) -> Vec<String> {
        let all = self.cluster.with(|server, _| holders(server));
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
