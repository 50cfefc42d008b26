//! Values that several tasks share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value whose changes tasks can wait for. It wakes them in the order in which they began to wait, so that simulated
/// runs are reproducible. `tokio::sync::watch` wakes them in a random order.
#[derive(Debug, Default)]
pub struct Observable<T> {
    content: Mutex<Content<T>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Content<T> {
    value: T,
    /// The number of changes.
    version: u64,
}

impl<T> Observable<T> {
    pub fn new(value: T) -> Self {
        Self { content: Mutex::new(Content { value, version: 0 }), changed: Notify::new() }
    }

    /// Returns what `read` returns. The value is locked meanwhile.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.content().value)
    }

    /// Changes the value. The tasks that wait are woken if `change` returns `true`.
    pub fn modify(&self, change: impl FnOnce(&mut T) -> bool) {
        let mut content = self.content();
        if change(&mut content.value) {
            content.version += 1;
            drop(content);
            self.changed.notify_waiters();
        }
    }

    /// Waits until the value fulfils a condition.
    pub async fn wait_for(&self, mut condition: impl FnMut(&T) -> bool) {
        self.until(|content| condition(&content.value)).await;
    }

    /// Waits for the next change after the version `seen`, and sets it to the current one. `None` stands for the time
    /// before the first value, so the wait ends at once.
    pub async fn changed(&self, seen: &mut Option<u64>) {
        self.until(|content| *seen != Some(content.version)).await;
        *seen = Some(self.content().version);
    }

    async fn until(&self, mut is_reached: impl FnMut(&Content<T>) -> bool) {
        loop {
            // It includes the changes from here on.
            let changed = self.changed.notified();
            if is_reached(&self.content()) {
                return;
            }
            changed.await;
        }
    }

    fn content(&self) -> MutexGuard<'_, Content<T>> {
        lock(&self.content)
    }
}

/// Locks a mutex, even if another thread panicked while it held the lock. Only for data that is consistent whenever the
/// lock is free.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn tasks_continue_in_the_order_in_which_they_began_to_wait() {
        let (value, woken) = (Observable::new(0), RefCell::new(Vec::new()));
        let wait = |task: u32| {
            let (value, woken) = (&value, &woken);
            async move {
                value.wait_for(|value| *value == 2).await;
                woken.borrow_mut().push(task);
            }
        };
        let mut all = Box::pin(join_all((0..20).map(wait)));
        for next in [1, 2] {
            assert_eq!(all.as_mut().now_or_never(), None);
            value.modify(|value| {
                *value = next;
                true
            });
        }
        all.await;
        assert_eq!(*woken.borrow(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn every_change_is_seen_once() {
        let (value, mut seen) = (Observable::new(0), None);
        value.changed(&mut seen).await;
        assert_eq!(value.changed(&mut seen).now_or_never(), None);
        value.modify(|_| false);
        assert_eq!(value.changed(&mut seen).now_or_never(), None);
        value.modify(|value| {
            *value += 1;
            true
        });
        value.changed(&mut seen).await;
        assert_eq!((value.read(|value| *value), value.changed(&mut seen).now_or_never()), (1, None));
    }
}
