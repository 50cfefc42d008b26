//! The threads on which long computations run.

use futures::future::BoxFuture;

/// The thread of a long computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A blocking thread of the runtime, so that the threads that serve requests do not wait. The runtime limits the
    /// number of blocking threads.
    Blocking,
    /// The thread of the caller. A simulation has only one thread, so that it is deterministic.
    Caller,
}

impl Threads {
    /// Runs a future on the thread. Returns `None` if the runtime shuts down first.
    ///
    /// # Panics
    /// Panics if the future panics.
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

    /// Runs a function that may take long. The other tasks of the thread continue on another one.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Blocking => tokio::task::block_in_place(work),
            Self::Caller => work(),
        }
    }
}
