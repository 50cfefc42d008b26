//! On which thread long computations run.

use futures::future::BoxFuture;

/// Where something is computed that may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// On a thread of its own, so that the threads that serve requests do not wait for it. The runtime bounds how many
    /// there are.
    Blocking,
    /// On the thread of the caller: a simulation has one thread, so that a seed decides all that happens.
    Caller,
}

impl Threads {
    /// Computes a future there; `None` when the runtime ends before that.
    ///
    /// # Panics
    /// When the future does.
    pub async fn compute<T: Send + 'static>(self, future: BoxFuture<'static, T>) -> Option<T> {
        if self == Self::Caller {
            return Some(future.await);
        }
        let runtime = tokio::runtime::Handle::current();
        match tokio::task::spawn_blocking(move || runtime.block_on(future)).await {
            Ok(result) => Some(result),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        }
    }
}
