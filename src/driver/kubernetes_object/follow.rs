//! Follows one object until it is as it should be: by a watch, or by asking again and again where watching is not
//! allowed.

use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use kube::core::WatchEvent;
use serde_json::Value as Json;

use super::refusal::Failure;
use super::server::{Call, Server, Who, request};

/// A watch that reports nothing for so long is opened anew, after a look at the object: connections die silently.
const LONGEST_WATCH: Duration = Duration::from_mins(4);

/// Between two questions where watching is not allowed: at first as often as a person would not notice, later as
/// seldom as a server would not.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where the object is.
pub(crate) struct Place<'a> {
    pub(crate) who: Who<'a>,
    pub(crate) collection: &'a str,
    pub(crate) name: &'a str,
}

impl Place<'_> {
    /// The path of the object itself.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }
}

impl Server {
    /// The object as it is now; `None` when there is none.
    pub(crate) async fn look(&self, place: &Place<'_>, deadline: Timestamp) -> Result<Option<Json>, Failure> {
        match self.call(place.who, &Call::get(place.path()), deadline).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(Failure::Refused(refusal)) if refusal.code == 404 && !refusal.is_unknown_kind() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Shows every state of an object to `judge`, from `start` on (`None`: there is no object), until it gives
    /// something. States that follow each other quickly may be left out, the last one never.
    pub(crate) async fn follow<T>(
        &self,
        place: &Place<'_>,
        start: Option<Json>,
        deadline: Timestamp,
        judge: &mut (dyn FnMut(Option<&Json>) -> Option<T> + Send),
    ) -> Result<T, Failure> {
        let mut state = start;
        let mut pause = SHORTEST_PAUSE;
        let mut may_watch = true;
        loop {
            if let Some(verdict) = judge(state.as_ref()) {
                return Ok(verdict);
            }
            if may_watch
                && let Some(version) = state.as_ref().and_then(|object| object["metadata"]["resourceVersion"].as_str())
            {
                match self.watch(place, version, deadline, judge).await? {
                    Watched::Judged(verdict) => return Ok(verdict),
                    Watched::Ended => {}
                    Watched::Refused => may_watch = false,
                }
            }
            self.pause(pause, deadline).await?;
            pause = (pause * 2).min(LONGEST_PAUSE);
            state = match self.look(place, deadline).await {
                Ok(state) => state,
                // Reading may be forbidden where writing is not; and a server that restarts comes back.
                Err(Failure::Refused(refusal)) if refusal.is_server_trouble() || refusal.is_throttled() => state,
                Err(Failure::Unreachable(_)) => state,
                Err(failure) => return Err(failure),
            };
        }
    }

    async fn watch<T>(
        &self,
        place: &Place<'_>,
        version: &str,
        deadline: Timestamp,
        judge: &mut (dyn FnMut(Option<&Json>) -> Option<T> + Send),
    ) -> Result<Watched<T>, Failure> {
        let left = self.time_left(deadline).ok_or(Failure::OutOfTime)?.min(LONGEST_WATCH);
        let path = format!(
            "{}?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={version}&timeoutSeconds={}",
            place.collection,
            place.name,
            left.as_secs() + 1
        );
        let Ok(request) = request(place.who, &Call::get(path)) else { return Ok(Watched::Refused) };
        let client = self.client().await?;
        let watching = async {
            let events = match client.request_events::<Json>(request).await {
                Ok(events) => events,
                Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 405) => return Watched::Refused,
                Err(_) => return Watched::Ended,
            };
            pin_mut!(events);
            while let Some(event) = events.next().await {
                let verdict = match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => judge(Some(&object)),
                    Ok(WatchEvent::Deleted(_)) => judge(None),
                    Ok(WatchEvent::Bookmark(_)) => None,
                    // Mostly a version that is too old: a fresh look tells.
                    Ok(WatchEvent::Error(_)) | Err(_) => return Watched::Ended,
                };
                if let Some(verdict) = verdict {
                    return Watched::Judged(verdict);
                }
            }
            Watched::Ended
        };
        Ok(tokio::time::timeout(left, watching).await.unwrap_or(Watched::Ended))
    }
}

enum Watched<T> {
    Judged(T),
    Ended,
    Refused,
}
