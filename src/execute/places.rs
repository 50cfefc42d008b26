//! Places: how many calls may be under way at once, in all and of each driver and provider configuration.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Engine;
use crate::model::ProviderUse;

/// The right to make calls, until it is dropped.
#[derive(Debug, Default)]
pub struct Place {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Place {
    /// Waits for a place in every pool that a call for the type needs.
    pub async fn wait(engine: &Engine, type_name: &str, provider: Option<&ProviderUse>) -> Self {
        let mut permits = Vec::with_capacity(3);
        for pool in engine.slots(type_name, provider) {
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
    /// A place in every pool that a call for the type needs; otherwise the pool that is full is remembered.
    pub fn take(&mut self, engine: &Engine, type_name: &str, provider: Option<&ProviderUse>) -> Option<Place> {
        let mut permits = Vec::with_capacity(3);
        for pool in engine.slots(type_name, provider) {
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
