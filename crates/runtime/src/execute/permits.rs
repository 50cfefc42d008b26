//! Permits for calls, which limit concurrency in total, for each driver and for each provider configuration.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::Instant;

use model::{Namespace, ProviderUse};
use process::lock;

/// The right to make calls, until it is dropped.
#[derive(Debug, Default)]
pub struct Permit {
    _permits: Vec<PoolPermit>,
}

impl Permit {
    /// Waits for a permit from each pool, in order. `Engine::pools` returns the pools of a type.
    pub async fn wait(pools: Vec<Arc<Pool>>, namespace: &Namespace) -> Self {
        let mut permits = Vec::with_capacity(pools.len());
        for pool in pools {
            permits.extend(pool.acquire(namespace).await);
        }
        Self { _permits: permits }
    }
}

/// A source of permits that does not wait.
pub trait Permits {
    /// Returns a permit for a step of this type, or `None` if none is available.
    fn try_take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Permit>;

    /// Whether no step of any type can get a permit now.
    fn is_exhausted(&self) -> bool;
}

/// A limited number of permits that namespaces share.
///
/// A namespace may take a permit only if more are free than it has. One namespace alone can therefore have at most half
/// of the permits, and a namespace that has none finds one at once, however long the calls of the others take. This is
/// the dynamic threshold with which network switches share the memory of their queues.
#[derive(Debug)]
pub struct Pool {
    /// Whether several namespaces share the permits. Otherwise, the only one may take all.
    is_shared: bool,
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    free: usize,
    taken: BTreeMap<Namespace, usize>,
    /// In the order of arrival. None of them may take a permit now.
    waiting: VecDeque<(Namespace, oneshot::Sender<PoolPermit>)>,
    /// The number of waits that have ended, and their total time.
    waits: u64,
    waited: Duration,
}

/// How a pool is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    pub limit: usize,
    pub taken: usize,
    /// Requests that wait now.
    pub waiting: usize,
    /// The number of waits that have ended, and their total time.
    pub waits: u64,
    pub waited: Duration,
}

/// Counts a wait when it is dropped.
struct Wait<'a> {
    pool: &'a Pool,
    began: Instant,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.pool.state);
        state.waits += 1;
        state.waited += self.began.elapsed();
    }
}

/// One permit of a pool. It returns to the pool when it is dropped.
#[derive(Debug)]
pub struct PoolPermit {
    pool: Arc<Pool>,
    /// `None` if the permit has returned to the pool.
    namespace: Option<Namespace>,
}

impl Drop for PoolPermit {
    fn drop(&mut self) {
        let Some(namespace) = self.namespace.take() else { return };
        let mut state = lock(&self.pool.state);
        state.put_back(&namespace);
        self.pool.serve(&mut state);
    }
}

impl PoolState {
    fn allows(&self, is_shared: bool, namespace: &str) -> bool {
        let taken = self.taken.get(namespace).copied().unwrap_or_default();
        self.free > 0 && (!is_shared || taken == 0 || taken < self.free)
    }

    fn take(&mut self, namespace: &Namespace) {
        self.free -= 1;
        *self.taken.entry(namespace.clone()).or_default() += 1;
    }

    fn put_back(&mut self, namespace: &str) {
        self.free += 1;
        if let Some(taken) = self.taken.get_mut(namespace) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(namespace);
            }
        }
    }
}

impl Pool {
    /// Permits that several namespaces share.
    pub fn shared(size: usize) -> Arc<Self> {
        Self::new(size, true)
    }

    /// Permits of one namespace.
    pub fn exclusive(size: usize) -> Arc<Self> {
        Self::new(size, false)
    }

    fn new(size: usize, is_shared: bool) -> Arc<Self> {
        let (taken, waiting) = (BTreeMap::new(), VecDeque::new());
        let state = PoolState { free: size, taken, waiting, waits: 0, waited: Duration::ZERO };
        Arc::new(Self { is_shared, state: Mutex::new(state) })
    }

    pub fn usage(&self) -> PoolUsage {
        let state = lock(&self.state);
        let taken = state.taken.values().sum();
        let waiting = state.waiting.iter().filter(|(_, sender)| !sender.is_closed()).count();
        PoolUsage { limit: state.free + taken, taken, waiting, waits: state.waits, waited: state.waited }
    }

    /// Returns a permit if the namespace may take one now.
    pub fn try_take(self: &Arc<Self>, namespace: &Namespace) -> Option<PoolPermit> {
        self.try_take_from(&mut lock(&self.state), namespace)
    }

    /// Waits for a permit. Cancel safe. `None` never occurs while the pool exists.
    pub async fn acquire(self: &Arc<Self>, namespace: &Namespace) -> Option<PoolPermit> {
        let permit = {
            let mut state = lock(&self.state);
            if let Some(permit) = self.try_take_from(&mut state, namespace) {
                return Some(permit);
            }
            let (sender, permit) = oneshot::channel();
            state.waiting.push_back((namespace.clone(), sender));
            permit
        };
        let _wait = Wait { pool: self, began: Instant::now() };
        permit.await.ok()
    }

    fn try_take_from(self: &Arc<Self>, state: &mut PoolState, namespace: &Namespace) -> Option<PoolPermit> {
        let is_allowed = state.allows(self.is_shared, namespace);
        is_allowed.then(|| state.take(namespace))?;
        Some(PoolPermit { pool: Arc::clone(self), namespace: Some(namespace.clone()) })
    }

    /// Gives free permits to those who wait and may take one.
    fn serve(self: &Arc<Self>, state: &mut PoolState) {
        let mut at = 0;
        while state.free > 0 && at < state.waiting.len() {
            let (namespace, sender) = &state.waiting[at];
            if !sender.is_closed() && !state.allows(self.is_shared, namespace) {
                at += 1;
                continue;
            }
            let Some((namespace, sender)) = state.waiting.remove(at) else { return };
            let Some(permit) = self.try_take_from(state, &namespace) else { continue };
            if let Err(mut unwanted) = sender.send(permit) {
                // Its drop would lock the pool again.
                unwanted.namespace = None;
                state.put_back(&namespace);
            }
        }
    }
}

/// Takes permits for one namespace, and remembers the pools that had none, so that the caller can wait for one.
#[derive(Debug)]
pub struct ExhaustedPools {
    namespace: Namespace,
    pools: Vec<Arc<Pool>>,
    /// The permit that [`Self::any_free`] waited for. Without it, another namespace could take the permit before the
    /// caller, again and again.
    granted: Option<PoolPermit>,
}

impl ExhaustedPools {
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace, pools: Vec::new(), granted: None }
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Takes a permit from each pool. If a pool is exhausted, records it and returns `None`.
    pub fn try_take(&mut self, pools: Vec<Arc<Pool>>) -> Option<Permit> {
        let mut permits = Vec::with_capacity(pools.len());
        for pool in pools {
            let granted = self.granted.take_if(|permit| Arc::ptr_eq(&permit.pool, &pool));
            match granted.or_else(|| pool.try_take(&self.namespace)) {
                Some(permit) => permits.push(permit),
                None => {
                    if !self.lacks(&pool) {
                        self.pools.push(pool);
                    }
                    return None;
                }
            }
        }
        Some(Permit { _permits: permits })
    }

    /// Whether a permit of this pool was requested in vain since the last [`Self::clear`].
    pub fn lacks(&self, pool: &Arc<Pool>) -> bool {
        self.pools.iter().any(|other| Arc::ptr_eq(other, pool))
    }

    /// Whether nothing waits for a permit.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.granted.is_none()
    }

    pub fn clear(&mut self) {
        self.pools.clear();
    }

    /// Waits until one of the pools has a permit available, and reserves it for the next [`Self::try_take`]. A permit
    /// that was reserved before and not taken is released, without a wait. Waits forever if there are no pools. Cancel
    /// safe.
    pub async fn any_free(&mut self) {
        if self.granted.take().is_some() {
            return;
        }
        if self.pools.is_empty() {
            return futures::future::pending().await;
        }
        let waits = self.pools.iter().map(|pool| pool.acquire(&self.namespace).boxed());
        let (permit, _, _) = futures::future::select_all(waits).await;
        self.granted = permit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Namespace {
        text.into()
    }

    fn all(pool: &Arc<Pool>, namespace: &str) -> Vec<PoolPermit> {
        std::iter::from_fn(|| pool.try_take(&name(namespace))).collect()
    }

    #[test]
    fn a_namespace_takes_at_most_half_of_what_is_free() {
        let pool = Pool::shared(64);
        let held: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(|namespace| all(&pool, namespace)).into();
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        assert_eq!(counts, [32, 16, 8, 4, 2, 1, 1], "the last one takes the last permit");
        assert!(pool.try_take(&name("h")).is_none());
        drop(held);
        assert_eq!(lock(&pool.state).free, 64);
        assert!(lock(&pool.state).taken.is_empty());
    }

    #[test]
    fn the_only_namespace_of_a_pool_takes_all() {
        let pool = Pool::exclusive(3);
        assert_eq!(all(&pool, "a").len(), 3);
        assert_eq!(all(&Pool::shared(1), "a").len(), 1);
    }

    #[test]
    fn a_permit_goes_to_a_namespace_that_may_take_it() {
        let pool = Pool::shared(4);
        let mut a = all(&pool, "a");
        let b = all(&pool, "b");
        let c = all(&pool, "c");
        assert_eq!((a.len(), b.len(), c.len()), (2, 1, 1));
        let (first, second) = (name("a"), name("d"));
        let mut greedy = Box::pin(pool.acquire(&first));
        let mut modest = Box::pin(pool.acquire(&second));
        assert!(greedy.as_mut().now_or_never().is_none() && modest.as_mut().now_or_never().is_none());
        assert_eq!((pool.usage().taken, pool.usage().waiting, pool.usage().waits), (4, 2, 0));
        a.pop();
        assert!(greedy.as_mut().now_or_never().is_none(), "it arrived first, and has one already");
        let granted = modest.as_mut().now_or_never().flatten();
        assert!(granted.is_some());
        drop((granted, a, b));
        assert!(greedy.as_mut().now_or_never().flatten().is_some());
        assert_eq!((pool.usage().limit, pool.usage().waiting, pool.usage().waits), (4, 0, 2));
    }

    #[test]
    fn a_wait_that_is_cancelled_loses_no_permit() {
        let pool = Pool::shared(1);
        let held = all(&pool, "a");
        let (b, c) = (name("b"), name("c"));
        let mut cancelled = Box::pin(pool.acquire(&b));
        let mut granted = Box::pin(pool.acquire(&b));
        let mut next = Box::pin(pool.acquire(&c));
        for wait in [&mut cancelled, &mut granted, &mut next] {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        drop(cancelled);
        drop(held);
        assert!(next.as_mut().now_or_never().is_none(), "the permit waits for the caller before it");
        drop(granted);
        assert!(next.as_mut().now_or_never().flatten().is_some());
    }

    #[test]
    fn a_reserved_permit_is_kept_for_the_next_request() {
        let pool = Pool::shared(1);
        let held = all(&pool, "a");
        let mut waiting = ExhaustedPools::new(name("b"));
        assert!(waiting.try_take(vec![Arc::clone(&pool)]).is_none() && waiting.lacks(&pool));
        assert!(waiting.any_free().now_or_never().is_none());
        drop(held);
        assert!(waiting.any_free().now_or_never().is_some());
        waiting.clear();
        assert!(!waiting.lacks(&pool) && !waiting.is_empty() && pool.try_take(&name("c")).is_none(), "it is reserved");
        let taken = waiting.try_take(vec![Arc::clone(&pool)]);
        assert!(taken.is_some() && waiting.is_empty());
        drop(taken);
        assert!(waiting.try_take(vec![Arc::clone(&pool)]).is_some());
    }
}
