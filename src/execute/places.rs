//! Places: how many calls may be under way at once, in all and of each driver and provider configuration.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::ProviderUse;

/// The right to make calls, until it is dropped.
#[derive(Debug, Default)]
pub struct Place {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Place {
    /// Waits for a place in each of the pools, in their order; `Engine::slots` gives them.
    pub async fn wait(pools: Vec<Arc<Semaphore>>) -> Self {
        let mut permits = Vec::with_capacity(pools.len());
        for pool in pools {
            // The semaphores live as long as the engine and are never closed.
            permits.extend(pool.acquire_owned().await);
        }
        Self { _permits: permits }
    }
}

/// Gives out places, without waiting.
pub trait Places {
    /// A place for a step of this type; `None` when there is none now.
    fn take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Place>;
}

/// The pools of places in which nothing was free, for those who wait.
#[derive(Debug, Default)]
pub struct Full(Vec<Arc<Semaphore>>);

impl Full {
    /// A place in each of the pools; otherwise the pool that is full is remembered.
    pub fn take(&mut self, pools: Vec<Arc<Semaphore>>) -> Option<Place> {
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
        Some(Place { _permits: permits })
    }

    /// Whether no pool was full.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Waits until one of the pools has a free place; for ever when there is none. It is not kept: it is taken, or lost to
    /// others, with the next request.
    pub async fn any_free(&self) {
        use futures::FutureExt as _;
        if self.0.is_empty() {
            return futures::future::pending().await;
        }
        let waits = self.0.iter().map(|pool| Arc::clone(pool).acquire_owned().boxed());
        drop(futures::future::select_all(waits).await);
    }
}
