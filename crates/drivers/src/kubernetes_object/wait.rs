//! Waits for a condition of an object with a watch, or by polling if watching is forbidden.

use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use kube::core::WatchEvent;
use serde_json::Value as Json;

use super::api_error::RequestError;
use super::server::{Call, Caller, Server, request};
use process::{error_code, is_refusal};

/// A silent watch is restarted after this time, after reading the object, since connections may die silently.
const LONGEST_WATCH: Duration = Duration::from_mins(4);

/// The polling interval, which doubles from the shortest to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The path of an object, and the identity that reads it.
pub(crate) struct ObjectRef<'a> {
    pub(crate) caller: Caller<'a>,
    pub(crate) collection: &'a str,
    pub(crate) name: &'a str,
}

impl ObjectRef<'_> {
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }
}

impl Server {
    /// Reads the object; `None` if it does not exist.
    pub(crate) async fn get(&self, place: &ObjectRef<'_>, deadline: Timestamp) -> Result<Option<Json>, RequestError> {
        match self.call(place.caller, &Call::get(place.path()), deadline).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(RequestError::Api(api_error)) if api_error.code == 404 && !api_error.is_unknown_kind() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Calls `judge` with each state of the object, from `start` on (`None` if it does not exist), until it returns a
    /// value. Intermediate states may be skipped, but never the last one.
    pub(crate) async fn wait_for<T>(
        &self,
        place: &ObjectRef<'_>,
        start: Option<Json>,
        deadline: Timestamp,
        judge: &mut (dyn FnMut(Option<&Json>) -> Option<T> + Send),
    ) -> Result<T, RequestError> {
        let mut state = start;
        let mut reads = 0;
        let mut may_watch = true;
        loop {
            if let Some(verdict) = judge(state.as_ref()) {
                return Ok(verdict);
            }
            if may_watch
                && let Some(version) = state.as_ref().and_then(|object| object["metadata"]["resourceVersion"].as_str())
            {
                match self.watch(place, version, deadline, judge).await? {
                    WatchOutcome::Judged(verdict) => return Ok(verdict),
                    WatchOutcome::Ended => {}
                    WatchOutcome::Refused => may_watch = false,
                }
            }
            reads += 1;
            self.pause(model::backoff(reads, SHORTEST_PAUSE, LONGEST_PAUSE), deadline).await?;
            state = match self.get(place, deadline).await {
                Ok(state) => state,
                // The server may be restarting.
                Err(RequestError::Api(api_error)) if api_error.is_server_error() || api_error.is_throttled() => state,
                Err(RequestError::Unreachable(_)) => state,
                Err(failure) => return Err(failure),
            };
        }
    }

    async fn watch<T>(
        &self,
        place: &ObjectRef<'_>,
        version: &str,
        deadline: Timestamp,
        judge: &mut (dyn FnMut(Option<&Json>) -> Option<T> + Send),
    ) -> Result<WatchOutcome<T>, RequestError> {
        let left = self.time_left(deadline).ok_or(RequestError::Timeout)?.min(LONGEST_WATCH);
        let path = format!(
            "{}?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={version}&timeoutSeconds={}",
            place.collection,
            place.name,
            left.as_secs() + 1
        );
        let Ok(request) = request(place.caller, &Call::get(path)) else { return Ok(WatchOutcome::Refused) };
        let client = self.client().await?;
        let watching = async {
            let events = match client.request_events::<Json>(request).await {
                Ok(events) => events,
                Err(error) if error_code(&error).is_some_and(is_refusal) => return WatchOutcome::Refused,
                Err(_) => return WatchOutcome::Ended,
            };
            pin_mut!(events);
            while let Some(event) = events.next().await {
                let verdict = match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => judge(Some(&object)),
                    Ok(WatchEvent::Deleted(_)) => judge(None),
                    Ok(WatchEvent::Bookmark(_)) => None,
                    // The resource version is probably too old; the next read returns the current state.
                    Ok(WatchEvent::Error(_)) | Err(_) => return WatchOutcome::Ended,
                };
                if let Some(verdict) = verdict {
                    return WatchOutcome::Judged(verdict);
                }
            }
            WatchOutcome::Ended
        };
        Ok(tokio::time::timeout(left, watching).await.unwrap_or(WatchOutcome::Ended))
    }
}

enum WatchOutcome<T> {
    Judged(T),
    Ended,
    Refused,
}
