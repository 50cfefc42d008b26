//! What an operator sees of plugins: a log line and a measurement for each call, and the call that output belongs to.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use super::PluginError;
use super::method::Method;
use process::lock;

/// Measures plugins. `provider` is [`super::Launch::name`].
pub trait Observer: Debug + Send + Sync {
    /// The start of a process has ended, after this time.
    fn started(&self, provider: &str, succeeded: bool, took: Duration);

    /// A process in use has exited, or was killed because it did not respond.
    fn crashed(&self, provider: &str);

    /// A call has ended. `code` is `ok` or [`PluginError::code`].
    fn called(&self, provider: &str, method: &'static str, code: &'static str, took: Duration);
}

/// Measures nothing.
impl Observer for () {
    fn started(&self, _provider: &str, _succeeded: bool, _took: Duration) {}

    fn crashed(&self, _provider: &str) {}

    fn called(&self, _provider: &str, _method: &'static str, _code: &'static str, _took: Duration) {}
}

/// Logs and measures a call.
pub async fn observe<A>(
    observer: &dyn Observer,
    provider: &str,
    method: Method,
    call: impl Future<Output = Result<A, PluginError>>,
) -> Result<A, PluginError> {
    let began = Instant::now();
    let response = call.await;
    let took = began.elapsed();
    let code = response.as_ref().map_or_else(PluginError::code, |_| "ok");
    tracing::debug!(provider, call = method.name, code, seconds = took.as_secs_f64(), "provider call ended");
    observer.called(provider, method.name, code, took);
    response
}

/// The running calls of a process.
#[derive(Debug, Default)]
pub struct RunningCalls(Mutex<CallSpans>);

#[derive(Debug, Default)]
struct CallSpans {
    begun: u64,
    /// The span of each running call.
    running: BTreeMap<u64, Span>,
}

/// A running call, until it is dropped.
pub struct RunningCall<'a> {
    calls: &'a RunningCalls,
    number: u64,
}

impl RunningCalls {
    /// Adds a call, which belongs to the current span.
    pub fn begin(&self) -> RunningCall<'_> {
        let mut spans = lock(&self.0);
        spans.begun += 1;
        let number = spans.begun;
        spans.running.insert(number, Span::current());
        RunningCall { calls: self, number }
    }

    /// The span to which all running calls belong. With calls of several spans, it is not known which of them writes the
    /// output.
    pub fn common_span(&self) -> Span {
        let spans = lock(&self.0);
        let Some(first) = spans.running.values().next() else { return Span::none() };
        let is_common = spans.running.values().all(|span| span.id() == first.id());
        if is_common { first.clone() } else { Span::none() }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        lock(&self.calls.0).running.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_belongs_to_a_span_only_if_no_other_one_calls() {
        // Without a subscriber, spans have no identity.
        let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry());
        let (first, second) = (tracing::error_span!("first"), tracing::error_span!("second"));
        let calls = RunningCalls::default();
        assert!(calls.common_span().is_none());
        let of_first = first.in_scope(|| calls.begin());
        let again = first.in_scope(|| calls.begin());
        assert_eq!(calls.common_span(), first);
        let of_second = second.in_scope(|| calls.begin());
        assert!(calls.common_span().is_none());
        drop((of_first, again));
        assert_eq!(calls.common_span(), second);
        drop(of_second);
        assert!(calls.common_span().is_none());
    }
}
