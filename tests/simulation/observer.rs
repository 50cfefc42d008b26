//! Observes the connection between a replica and the API server, and reports to the judge when the replica receives a
//! Resource, and when it requests a write.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::judge::{Judge, Place};

type ObservedBody = UnsyncBoxBody<Bytes, BoxError>;

/// A connection whose requests and responses are reported to the judge.
#[derive(Clone)]
pub(crate) struct Observer<S> {
    pub(crate) line: S,
    pub(crate) judge: Arc<Judge>,
    pub(crate) replica: Arc<str>,
}

/// The part of a request that the judge needs.
enum RequestSubject {
    Resources { watch: bool },
    Status(Place, String, Value),
    Record(String),
    Other,
}

impl<S, B> Service<Request<Body>> for Observer<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ObservedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ObservedBody>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.line.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut line, judge, replica) = (self.line.clone(), self.judge.clone(), self.replica.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let about = about(&parts, &bytes);
            let objection = match &about {
                RequestSubject::Status(place, uid, status) => judge.status_issued(&replica, place, uid, status),
                RequestSubject::Record(_) | RequestSubject::Resources { .. } | RequestSubject::Other => None,
            };
            let issued = Instant::now();
            let intended = match &about {
                RequestSubject::Record(secret) if !judge.is_taken_over(&bytes) => Some(secret),
                _ => None,
            };
            if let Some(secret) = intended {
                judge.record_issued(&replica, secret, issued);
            }
            let answer = line.call(Request::from_parts(parts, Body::from(bytes))).await;
            // A write without an answer may have been carried out.
            let is_refused = answer.as_ref().is_ok_and(|answer| answer.status().is_client_error());
            if let Some(secret) = intended {
                judge.record_answered(&replica, secret, issued, is_refused);
            }
            if let Some(objection) = objection.filter(|_| !is_refused) {
                judge.object(&objection);
            }
            if let RequestSubject::Status(place, ..) = &about {
                let failed = !answer.as_ref().is_ok_and(|answer| answer.status().is_success());
                judge.status_ended(&replica, place, failed);
            }
            let answer = answer.map_err(Into::into)?.map(|body| body.map_err(Into::into).boxed_unsync());
            match about {
                RequestSubject::Resources { watch } if answer.status().is_success() => {
                    Ok(answer.map(|body| observed(body, watch, judge, replica)))
                }
                _ => Ok(answer),
            }
        })
    }
}

fn about(parts: &http::request::Parts, body: &Bytes) -> RequestSubject {
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    let query = parts.uri.query().unwrap_or_default();
    match (&parts.method, path.as_slice()) {
        (
            &Method::GET,
            ["apis", "purlin.dev", _, "resources"] | ["apis", "purlin.dev", _, "namespaces", _, "resources"],
        ) => RequestSubject::Resources { watch: query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")) },
        (&Method::PATCH, ["apis", "purlin.dev", _, "namespaces", namespace, "resources", name, "status"]) => {
            let patch: Value = serde_json::from_slice(body).unwrap_or_default();
            let value = |path: &str| {
                let mut operations = patch.as_array()?.iter();
                operations.find(|one| one["path"] == path).map(|one| one["value"].clone())
            };
            let place = ((*namespace).to_owned(), (*name).to_owned());
            let uid = value("/metadata/uid").and_then(|uid| Some(uid.as_str()?.to_owned())).unwrap_or_default();
            RequestSubject::Status(place, uid, value("/status").unwrap_or_default())
        }
        (&(Method::PUT | Method::PATCH), ["api", "v1", "namespaces", _, "secrets", name]) => {
            RequestSubject::Record((*name).to_owned())
        }
        (&Method::POST, ["api", "v1", "namespaces", _, "secrets"]) => {
            let secret: Value = serde_json::from_slice(body).unwrap_or_default();
            RequestSubject::Record(secret["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        }
        _ => RequestSubject::Other,
    }
}

/// Reports each part of a body to the judge when the replica reads it.
fn observed(body: ObservedBody, watch: bool, judge: Arc<Judge>, replica: Arc<str>) -> ObservedBody {
    let mut buffer = Vec::new();
    let body = body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            buffer.extend_from_slice(data);
            if watch {
                while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    observe_event(&line, &judge, &replica);
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

fn observe_event(line: &[u8], judge: &Judge, replica: &Arc<str>) {
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
