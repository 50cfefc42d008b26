//! The permits that the steps of one namespace request.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::permits::{Permit, Pool};

/// Takes permits for the steps of one namespace, and waits for those that are not available. A wait keeps its place from
/// turn to turn of the reconciler as long as each turn requests the permit.
pub struct PermitRequests {
    namespace: Arc<str>,
    waits: Vec<RequestedPermit>,
    /// The permit that [`Self::any_granted`] waited for, reserved for the next request of these pools. Otherwise another
    /// namespace would take it before the caller, again and again.
    granted: Option<(Vec<Arc<Pool>>, Permit)>,
}

/// A permit that was not available when it was requested.
struct RequestedPermit {
    pools: Vec<Arc<Pool>>,
    /// It keeps what it has of the first pools while it waits for the last one. If a step that ends gave its permits to
    /// several waiting namespaces, one of each pool, then none of them could start.
    granted: BoxFuture<'static, Permit>,
    /// Whether the present turn has requested it.
    is_requested: bool,
}

impl PermitRequests {
    pub fn new(namespace: Arc<str>) -> Self {
        Self { namespace, waits: Vec::new(), granted: None }
    }

    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// Takes a permit from each pool. `None`: not all have one, and [`Self::any_granted`] waits for them.
    pub fn try_take(&mut self, pools: Vec<Arc<Pool>>) -> Option<Permit> {
        if let Some((_, permit)) = self.granted.take_if(|(granted, _)| are_same(granted, &pools)) {
            return Some(permit);
        }
        if let Some(at) = self.waits.iter().position(|wait| are_same(&wait.pools, &pools)) {
            let wait = &mut self.waits[at];
            wait.is_requested = true;
            let permit = (&mut wait.granted).now_or_never()?;
            self.waits.remove(at);
            return Some(permit);
        }
        let permit = Permit::try_take(&pools, &self.namespace);
        if permit.is_none() {
            let granted = Permit::wait(pools.clone(), Arc::clone(&self.namespace)).boxed();
            self.waits.push(RequestedPermit { pools, granted, is_requested: true });
        }
        permit
    }

    /// Whether nothing waits for a permit.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.granted.is_none()
    }

    /// Ends a turn: what it did not request is released.
    pub fn end_turn(&mut self) {
        self.granted = None;
        self.waits.retain_mut(|wait| std::mem::take(&mut wait.is_requested));
    }

    /// Waits until a permit that was requested is available, and reserves it until the end of the next turn. Waits forever
    /// if there is none, or if one is reserved. Cancel safe.
    pub async fn any_granted(&mut self) {
        if self.waits.is_empty() || self.granted.is_some() {
            return futures::future::pending().await;
        }
        let waits = self.waits.iter_mut().map(|wait| &mut wait.granted);
        let (permit, at, _) = futures::future::select_all(waits).await;
        self.granted = Some((self.waits.remove(at).pools, permit));
    }
}

fn are_same(one: &[Arc<Pool>], other: &[Arc<Pool>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::permits::PoolPermit;

    fn name(text: &str) -> Arc<str> {
        Arc::from(text)
    }

    fn all(pool: &Arc<Pool>, namespace: &str) -> Vec<PoolPermit> {
        std::iter::from_fn(|| pool.try_take(&name(namespace))).collect()
    }

    #[test]
    fn a_reserved_permit_is_kept_until_the_end_of_the_turn() {
        let pool = Pool::shared(1);
        let held = all(&pool, "a");
        let mut requests = PermitRequests::new(name("b"));
        assert!(requests.try_take(vec![Arc::clone(&pool)]).is_none());
        requests.end_turn();
        assert!(requests.any_granted().now_or_never().is_none());
        drop(held);
        assert!(requests.any_granted().now_or_never().is_some());
        // The caller looks for more events before the turn.
        assert!(requests.any_granted().now_or_never().is_none());
        assert!(!requests.is_empty() && pool.try_take(&name("c")).is_none(), "it is reserved");
        let taken = requests.try_take(vec![Arc::clone(&pool)]);
        assert!(taken.is_some() && requests.is_empty());
        drop(taken);

        let held = all(&pool, "a");
        assert!(requests.try_take(vec![Arc::clone(&pool)]).is_none());
        requests.end_turn();
        drop(held);
        assert!(requests.any_granted().now_or_never().is_some());
        requests.end_turn();
        assert!(requests.is_empty() && pool.try_take(&name("c")).is_some(), "the turn did not request it");
    }

    #[test]
    fn a_request_keeps_its_place_while_every_turn_repeats_it() {
        let pool = Pool::shared(1);
        let held = all(&pool, "a");
        let [mut first, mut second] = ["b", "c"].map(|namespace| PermitRequests::new(name(namespace)));
        for _ in 0..2 {
            for requests in [&mut first, &mut second] {
                assert!(requests.try_take(vec![Arc::clone(&pool)]).is_none());
                requests.end_turn();
                assert!(requests.any_granted().now_or_never().is_none());
            }
        }
        drop(held);
        assert!(second.any_granted().now_or_never().is_none());
        assert!(first.any_granted().now_or_never().is_some());
    }

    /// A step that ends frees a permit of each pool. They go to the same namespace.
    #[test]
    fn namespaces_that_wait_for_different_pools_do_not_block_each_other() {
        let (driver, total) = (Pool::shared(2), Pool::shared(2));
        let pools = || vec![Arc::clone(&driver), Arc::clone(&total)];
        let take = |namespace: &str| PermitRequests::new(name(namespace)).try_take(pools()).unwrap();
        let mut running = vec![take("a"), take("b")];
        let mut waiting: Vec<_> = (0..10).map(|number| PermitRequests::new(name(&format!("waits-{number}")))).collect();
        for requests in &mut waiting {
            assert!(requests.try_take(pools()).is_none());
            requests.end_turn();
        }
        let mut started = 0;
        while let Some(ended) = running.pop() {
            drop(ended);
            for requests in &mut waiting {
                if requests.any_granted().now_or_never().is_some() {
                    running.push(requests.try_take(pools()).unwrap());
                    requests.end_turn();
                    started += 1;
                }
            }
        }
        assert_eq!(started, waiting.len());
    }
}
