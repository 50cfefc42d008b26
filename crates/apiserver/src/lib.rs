//! An in-memory API server, for simulations of the whole controller.
//!
//! [`Server`] is pure: it receives requests and the time, and returns responses; the same requests have the same
//! responses. The module [`network`] is between the server and the clients. It decides the fate of each request and
//! event.
//!
//! The server behaves like the real one where Purlin depends on it: versions, conflicts, finalizers, generations,
//! subresources, server-side apply, the deletion of namespaces, selectors, pages, watches, and error messages. The
//! cluster tests send the same requests to both (`tests/cluster/simulated.rs`). Known differences:
//!
//! - `managedFields` are stored and effective, but not returned. The names of fields decide which lists have keys, so
//!   the lists of custom objects are replaced as a whole.
//! - Built-in kinds have no schema: the server stores unknown fields also where it should reject them, and sets only a
//!   few defaults. A Deployment or a Pod has exactly the fields that were sent.
//! - Custom objects are validated against their schema, but not against its CEL rules. An update validates the whole
//!   object, not only the changed fields.
//! - No controllers run except those that a test calls: [`Server::tick_namespaces`], [`Server::tick_garbage`] and
//!   [`Server::tick_definitions`]. No Pods are created, nothing times out, and a new namespace is empty.
//! - Events of the old and of the new API are different objects.
//! - Every client may do everything that [`Access`] does not forbid, and impersonate every user.
//! - The change log is only compacted when a test calls [`Server::compact`].
#![forbid(unsafe_code)]

mod access;
mod apply;
mod body;
mod create;
mod defaults;
mod delete;
mod discovery;
mod fields;
mod kinds;
mod network;
mod outside;
mod patch;
mod read;
mod refusal;
mod remaining;
mod request;
mod schema;
mod selectors;
mod store;
#[cfg(test)]
mod tests;
mod ticks;
mod validate;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use jiff::Timestamp;
use process::lock;
use serde_json::{Value, json};

use kinds::Kind;
use refusal::Refusal;
use request::ApiRequest;
use store::Store;

pub use {
    access::{Access, Forbidden},
    kinds::Type,
    network::{Cluster, Fate, Network, NoFaults, Outcome, RequestInfo, WatchFate},
    read::{WatchEvent, WatchSpec},
    request::Verb,
    store::{Change, ChangeKind, Object},
};

pub enum ServerResponse {
    Full(Response<Bytes>),
    /// A stream of events, which [`Server::events`] returns.
    Watch(WatchSpec),
}

#[derive(Clone)]
pub struct Server {
    /// By group, version and plural.
    kinds: BTreeMap<[Arc<str>; 3], Arc<Kind>>,
    store: Store,
    pub access: Access,
    /// Whether an admission policy adds the finalizer of Purlin to new Resources.
    pub adds_finalizer: bool,
    /// The last number that was used for a UID, a name or an IP address.
    drawn: u64,
}

/// A successful response.
struct Success {
    code: u16,
    body: Body,
}

enum Body {
    Object(Arc<Object>),
    Json(Value),
    Text(Bytes),
}

impl Server {
    /// Creates a server with the namespaces of every cluster and the CRDs of Purlin.
    ///
    /// It is built once for each time: each play and each history begins with one.
    pub fn new(now: Timestamp) -> Self {
        static BUILT: Mutex<BTreeMap<Timestamp, Server>> = Mutex::new(BTreeMap::new());
        lock(&BUILT).entry(now).or_insert_with(|| Self::build(now)).clone()
    }

    fn build(now: Timestamp) -> Self {
        let kinds = kinds::built_in().map(|kind| (kind.key(), Arc::new(kind))).collect();
        let mut server =
            Self { kinds, store: Store::default(), access: Access::default(), adds_finalizer: false, drawn: 0 };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        for definition in definitions() {
            server.insert(now, definition.clone());
        }
        server
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    pub fn respond(&mut self, now: Timestamp, request: &Request<Bytes>) -> ServerResponse {
        self.answer(now, &ApiRequest::of(request), None)
    }

    /// Handles a parsed request. With `at`, a read returns the state at that version.
    pub fn answer(&mut self, now: Timestamp, request: &ApiRequest, at: Option<u64>) -> ServerResponse {
        match self.decide(now, request, at) {
            Ok(Handled::Done(done)) => ServerResponse::Full(written(request, done)),
            Ok(Handled::Watch(spec)) => ServerResponse::Watch(spec),
            Err(refusal) => ServerResponse::Full(refused(&refusal)),
        }
    }

    fn decide(&mut self, now: Timestamp, request: &ApiRequest, at: Option<u64>) -> Result<Handled, Refusal> {
        let place = &request.place;
        if place.plural.is_empty() {
            return self.discover(request).map(Handled::Done);
        }
        let kind = self.kind(&place.group, &place.version, &place.plural).cloned();
        let Some(kind) = kind else {
            // The server returns a plain-text 404 for types of groups that CRDs define, and a Status for its own
            // groups.
            let is_built_in =
                kinds::built_in().any(|kind| *kind.group == *place.group && *kind.version == *place.version);
            return Err(if is_built_in { Refusal::no_such_resource() } else { discovery::no_such_page() });
        };
        self.access.check(&self.store, request, &kind)?;
        let everywhere = matches!(request.verb, Verb::List | Verb::Watch) && kind.namespaced;
        let is_out_of_place = kind.namespaced == place.namespace.is_empty() && !everywhere;
        if is_out_of_place || !Self::has_subresource(&kind, &place.subresource) {
            return Err(if kind.custom { discovery::no_such_page() } else { Refusal::no_such_resource() });
        }
        match request.verb {
            Verb::Get => self.get(request, &kind, at).map(Handled::Done),
            Verb::List => self.list(request, &kind, at).map(Handled::Done),
            Verb::Watch => self.watch(request, &kind).map(Handled::Watch),
            Verb::Create => self.create(now, request, &kind).map(Handled::Done),
            Verb::Update => self.update(now, request, &kind).map(Handled::Done),
            Verb::Patch | Verb::Apply => self.patch(now, request, &kind).map(Handled::Done),
            Verb::Delete => self.delete(now, request, &kind).map(Handled::Done),
            Verb::DeleteCollection => self.delete_collection(now, request, &kind).map(Handled::Done),
            Verb::Other => Err(Refusal::method_not_allowed()),
        }
    }

    fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&[group.into(), version.into(), plural.into()])
    }

    fn has_subresource(kind: &Kind, subresource: &str) -> bool {
        match subresource {
            "" => true,
            "status" => kind.status,
            "finalize" => kind.group.is_empty() && &*kind.plural == "namespaces",
            "log" => kind.group.is_empty() && &*kind.plural == "pods",
            _ => false,
        }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }
}

/// The CRDs of Purlin. Parsing them is slow, and a simulation creates many servers.
fn definitions() -> &'static [Value] {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    READ.get_or_init(|| {
        let texts = [
            include_str!("../../../crds/resources.purlin.dev.yaml"),
            include_str!("../../../crds/datasources.purlin.dev.yaml"),
            include_str!("../../../crds/modules.purlin.dev.yaml"),
            include_str!("../../../crds/plans.purlin.dev.yaml"),
            include_str!("../../../crds/providers.purlin.dev.yaml"),
            include_str!("../../../crds/providerconfigs.purlin.dev.yaml"),
        ];
        texts.iter().map(|text| serde_saphyr::from_str(text).expect("the CRDs are YAML")).collect()
    })
}

enum Handled {
    Done(Success),
    Watch(WatchSpec),
}

fn written(request: &ApiRequest, done: Success) -> Response<Bytes> {
    let body = match done.body {
        Body::Object(object) if !request.metadata_only => object.json(),
        Body::Object(object) => json_body(request, &object.value),
        Body::Json(value) => json_body(request, &value),
        Body::Text(text) => text,
    };
    response(done.code, body)
}

fn json_body(request: &ApiRequest, value: &Value) -> Bytes {
    match request.metadata_only && value["kind"] != "Status" {
        true => Bytes::from(read::metadata_of(value).to_string()),
        false => Bytes::from(value.to_string()),
    }
}

pub fn refused(refusal: &Refusal) -> Response<Bytes> {
    // The response for a path that is no API is plain text.
    if refusal.is_page() {
        return response(refusal.code, Bytes::from(refusal.message.clone()));
    }
    let mut response = response(refusal.code, Bytes::from(refusal.body().to_string()));
    if let Some(seconds) = refusal.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn response(code: u16, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).expect("an HTTP status code");
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
