//! The threads on which long computations run.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

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

/// Limits how many of the computations of one owner use a processor at the same time.
#[derive(Clone, Debug)]
pub struct ProcessorShare(Arc<Semaphore>);

impl ProcessorShare {
    /// Half of the processors, and at least one: what an owner computes leaves the other half to others.
    pub fn half() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new((processors / 2).max(1))
    }

    fn new(size: usize) -> Self {
        Self(Arc::new(Semaphore::new(size)))
    }

    /// Runs a future. While it waits, for example for a call, it uses nothing of the share.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            // The semaphore is never closed.
            let permit = self.0.acquire().await;
            let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
            drop(permit);
            match polled {
                Poll::Ready(result) => return result,
                Poll::Pending => woken().await,
            }
        }
    }
}

/// Waits until something wakes the task.
async fn woken() {
    let mut is_first = true;
    poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_future_that_waits_uses_nothing_of_the_share() {
        let share = ProcessorShare::new(1);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = Box::pin(share.run(receiver));
        assert!(waiting.as_mut().now_or_never().is_none());
        let (inner, polled) = (share.clone(), share.run(async { 1 }).now_or_never());
        assert_eq!(polled, Some(1), "the other one waits for a message");
        let nested = share.run(async move { inner.0.available_permits() }).now_or_never();
        assert_eq!(nested, Some(0), "a future that computes has a permit");
        sender.send(2).unwrap();
        assert_eq!(waiting.now_or_never(), Some(Ok(2)));
        assert_eq!(share.0.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_future_is_polled_again_when_it_is_woken() {
        let (share, (sender, receiver)) = (ProcessorShare::new(1), oneshot::channel());
        let (received, sent) = tokio::join!(share.run(receiver), async { sender.send(3) });
        assert_eq!((received, sent), (Ok(3), Ok(())));
    }
}
