//! Permits for calls, which limit concurrency in total, for each driver and for each provider configuration.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::ProviderUse;

/// The right to make calls, until it is dropped.
#[derive(Debug, Default)]
pub struct Permit {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Permit {
    /// Waits for a permit from each pool, in order. `Engine::pools` returns the pools of a type.
    pub async fn wait(pools: Vec<Arc<Semaphore>>) -> Self {
        let mut permits = Vec::with_capacity(pools.len());
        for pool in pools {
            // The semaphores live as long as the engine and are never closed.
            permits.extend(pool.acquire_owned().await);
        }
        Self { _permits: permits }
    }
}

/// A source of permits that does not wait.
pub trait Permits {
    /// Returns a permit for a step of this type, or `None` if none is available.
    fn try_take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Permit>;
}

/// The pools that had no permit available, for callers that wait for one.
#[derive(Debug, Default)]
pub struct ExhaustedPools(Vec<Arc<Semaphore>>);

impl ExhaustedPools {
    /// Takes a permit from each pool. If a pool is exhausted, records it and returns `None`.
    pub fn try_take(&mut self, pools: Vec<Arc<Semaphore>>) -> Option<Permit> {
        let mut permits = Vec::with_capacity(pools.len());
        for pool in pools {
            match Arc::clone(&pool).try_acquire_owned() {
                Ok(permit) => permits.push(permit),
                Err(_) => {
                    if !self.0.iter().any(|other| Arc::ptr_eq(other, &pool)) {
                        self.0.push(pool);
                    }
                    return None;
                }
            }
        }
        Some(Permit { _permits: permits })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Waits until one of the pools has a permit available; forever if there are no pools. The permit is released
    /// again, so another caller may take it first.
    pub async fn any_free(&self) {
        use futures::FutureExt as _;
        if self.0.is_empty() {
            return futures::future::pending().await;
        }
        let waits = self.0.iter().map(|pool| Arc::clone(pool).acquire_owned().boxed());
        drop(futures::future::select_all(waits).await);
    }
}
