//! Listens on the line between a replica and the API server, and tells the judge when the replica learns something and
//! when it asks for something to be written.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use serde_json::Value;
use tower::{BoxError, Service};

use crate::judge::{Judge, Place};

/// What a replica reads.
type Passed = UnsyncBoxBody<Bytes, BoxError>;

/// A line with a tap in it.
#[derive(Clone)]
pub(crate) struct Tap<S> {
    pub(crate) line: S,
    pub(crate) judge: Arc<Judge>,
    pub(crate) replica: Arc<str>,
}

/// What a request is about, as far as the judge cares.
enum About {
    Resources { watch: bool },
    Status(Place, String, Value),
    Record(String),
    Other,
}

impl<S, B> Service<Request<Body>> for Tap<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Passed>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Passed>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.line.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut line, judge, replica) = (self.line.clone(), self.judge.clone(), self.replica.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let about = about(&parts, &bytes);
            match &about {
                About::Status(place, uid, status) => judge.status_issued(&replica, place, uid, status),
                About::Record(secret) => judge.record_issued(&replica, secret),
                About::Resources { .. } | About::Other => {}
            }
            let answer = line.call(Request::from_parts(parts, Body::from(bytes))).await;
            if let About::Status(place, ..) = &about {
                let failed = !answer.as_ref().is_ok_and(|answer| answer.status().is_success());
                judge.status_ended(&replica, place, failed);
            }
            let answer = answer.map_err(Into::into)?.map(|body| body.map_err(Into::into).boxed_unsync());
            match about {
                About::Resources { watch } if answer.status().is_success() => {
                    Ok(answer.map(|body| heard(body, watch, judge, replica)))
                }
                _ => Ok(answer),
            }
        })
    }
}

fn about(parts: &http::request::Parts, body: &Bytes) -> About {
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    let query = parts.uri.query().unwrap_or_default();
    match (&parts.method, path.as_slice()) {
        (
            &Method::GET,
            ["apis", "purlin.dev", _, "resources"] | ["apis", "purlin.dev", _, "namespaces", _, "resources"],
        ) => About::Resources { watch: query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")) },
        (&Method::PATCH, ["apis", "purlin.dev", _, "namespaces", namespace, "resources", name, "status"]) => {
            let patch: Value = serde_json::from_slice(body).unwrap_or_default();
            let value = |path: &str| {
                let mut operations = patch.as_array()?.iter();
                operations.find(|one| one["path"] == path).map(|one| one["value"].clone())
            };
            let place = ((*namespace).to_owned(), (*name).to_owned());
            let uid = value("/metadata/uid").and_then(|uid| Some(uid.as_str()?.to_owned())).unwrap_or_default();
            About::Status(place, uid, value("/status").unwrap_or_default())
        }
        (&(Method::PUT | Method::PATCH), ["api", "v1", "namespaces", _, "secrets", name]) => {
            About::Record((*name).to_owned())
        }
        (&Method::POST, ["api", "v1", "namespaces", _, "secrets"]) => {
            let secret: Value = serde_json::from_slice(body).unwrap_or_default();
            About::Record(secret["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        }
        _ => About::Other,
    }
}

/// A body that tells the judge what of it the replica has read.
fn heard(body: Passed, watch: bool, judge: Arc<Judge>, replica: Arc<str>) -> Passed {
    let mut buffer = Vec::new();
    let body = body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            buffer.extend_from_slice(data);
            if watch {
                while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    hear_event(&line, &judge, &replica);
                }
            } else if let Ok(list) = serde_json::from_slice::<Value>(&buffer) {
                let items = list["items"].as_array().cloned().unwrap_or_default();
                judge.listed(&replica, items.into_iter().map(|item| (place(&item), item)).collect());
            }
        }
        frame
    });
    body.boxed_unsync()
}

fn hear_event(line: &[u8], judge: &Judge, replica: &Arc<str>) {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else { return };
    let object = event["object"].take();
    match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => judge.delivered(replica, place(&object), Some(object)),
        Some("DELETED") => judge.delivered(replica, place(&object), None),
        _ => {}
    }
}

fn place(resource: &Value) -> Place {
    let text = |name: &str| resource["metadata"][name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
