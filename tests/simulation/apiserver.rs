//! An API server in memory, for simulations of the whole controller.
//!
//! [`Server`] is pure: requests and the time come in, answers go out, and the same requests get the same answers. The
//! part [`network`] lies between it and the clients, and decides by a hook what becomes of each request and event.
//!
//! It keeps to the real server in what Purlin decides by: versions, conflicts, finalizers, generations, sub-resources,
//! server-side apply, the end of namespaces, selectors, pages, watches, and the words of refusals. The cluster tests
//! play the same requests to both (`tests/cluster/simulated.rs`). It is knowingly less in these:
//!
//! - `managedFields` are kept and decide, but are not shown; which lists have keys is told by names of fields, so the
//!   lists of custom objects are replaced as a whole.
//! - Built-in kinds have no schema: unknown fields are stored also where they should be refused, and only a few defaults
//!   are filled in. A Deployment or a Pod has what was sent.
//! - Custom objects are checked against their schema, but not against its rules in CEL; and all of an object is checked,
//!   not only what an update changes.
//! - There is no controller behind it but what a test calls: [`Server::tick_namespaces`], [`Server::tick_garbage`] and
//!   [`Server::tick_definitions`]. Nothing makes Pods, nothing times out, and a new namespace is empty.
//! - Events of the old and of the new API are different objects.
//! - Anybody may do anything but for what [`Access`] forbids; one may impersonate whom one likes.
//! - What happened is forgotten only when a test says so ([`Server::compact`]).
#![allow(dead_code, reason = "a test binary uses the part it needs")]

#[path = "apiserver/access.rs"]
mod access;
#[path = "apiserver/apply.rs"]
mod apply;
#[path = "apiserver/ask.rs"]
mod ask;
#[path = "apiserver/body.rs"]
mod body;
#[path = "apiserver/create.rs"]
mod create;
#[path = "apiserver/defaults.rs"]
mod defaults;
#[path = "apiserver/delete.rs"]
mod delete;
#[path = "apiserver/discovery.rs"]
mod discovery;
#[path = "apiserver/fields.rs"]
mod fields;
#[path = "apiserver/kinds.rs"]
mod kinds;
#[path = "apiserver/network.rs"]
mod network;
#[path = "apiserver/outside.rs"]
mod outside;
#[path = "apiserver/patch.rs"]
mod patch;
#[path = "apiserver/read.rs"]
mod read;
#[path = "apiserver/refusal.rs"]
mod refusal;
#[path = "apiserver/remaining.rs"]
mod remaining;
#[path = "apiserver/schema.rs"]
mod schema;
#[path = "apiserver/selectors.rs"]
mod selectors;
#[path = "apiserver/store.rs"]
mod store;
#[cfg(test)]
#[path = "apiserver/tests.rs"]
mod tests;
#[path = "apiserver/ticks.rs"]
mod ticks;
#[path = "apiserver/validate.rs"]
mod validate;
#[path = "apiserver/write.rs"]
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use ask::Ask;
use kinds::Kind;
use refusal::Refusal;
use store::Store;

#[allow(unused_imports, reason = "what those who simulate use")]
pub(crate) use {
    access::{Access, Forbidden},
    ask::Verb,
    kinds::Type,
    network::{Cluster, Fate, Network, Outcome, Quiet, Seen, WatchFate},
    read::{WatchEvent, WatchSpec},
    store::{Change, Happened, Object},
};

/// What the server says.
pub(crate) enum Answer {
    /// At once, and all.
    Full(Response<Bytes>),
    /// As it happens: [`Server::events`] tells what there is to say.
    Watch(WatchSpec),
}

/// An API server.
pub(crate) struct Server {
    /// By group, version and plural.
    kinds: BTreeMap<[Arc<str>; 3], Arc<Kind>>,
    store: Store,
    /// Who may do what.
    pub(crate) access: Access,
    /// How many uids and names have been given out.
    drawn: u64,
}

/// What a request does in earnest: the code, and the object that it leaves.
struct Done {
    code: u16,
    body: Body,
}

/// The body of an answer.
enum Body {
    Object(Arc<Object>),
    Json(Value),
    Text(Bytes),
}

impl Server {
    /// A server with the namespaces that each cluster has, and our CRDs.
    pub(crate) fn new(now: Timestamp) -> Self {
        let kinds = kinds::built_in().map(|kind| (kind.key(), Arc::new(kind))).collect();
        let mut server = Self { kinds, store: Store::default(), access: Access::default(), drawn: 0 };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            server.insert(now, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        for definition in definitions() {
            server.insert(now, definition.clone());
        }
        server
    }

    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.store.version()
    }

    /// Answers a request.
    pub(crate) fn respond(&mut self, now: Timestamp, request: &Request<Bytes>) -> Answer {
        self.answer(now, &Ask::of(request), None)
    }

    /// Answers a request that is read already. With `at`, reads are served as they were at that version.
    pub(crate) fn answer(&mut self, now: Timestamp, ask: &Ask, at: Option<u64>) -> Answer {
        match self.decide(now, ask, at) {
            Ok(Decided::Done(done)) => Answer::Full(written(ask, done)),
            Ok(Decided::Watch(spec)) => Answer::Watch(spec),
            Err(refusal) => Answer::Full(refused(&refusal)),
        }
    }

    fn decide(&mut self, now: Timestamp, ask: &Ask, at: Option<u64>) -> Result<Decided, Refusal> {
        let place = &ask.place;
        if place.plural.is_empty() {
            return self.discover(ask).map(Decided::Done);
        }
        let kind = self.kind(&place.group, &place.version, &place.plural).cloned();
        let Some(kind) = kind else {
            // A type of a group that CRDs define is a page that is not there; one of its own groups it answers for.
            let own = kinds::built_in().any(|kind| *kind.group == *place.group && *kind.version == *place.version);
            return Err(if own { Refusal::no_such_resource() } else { discovery::no_such_page() });
        };
        self.access.check(&self.store, ask, &kind)?;
        let everywhere = matches!(ask.verb, Verb::List | Verb::Watch) && kind.namespaced;
        let is_out_of_place = kind.namespaced == place.namespace.is_empty() && !everywhere;
        if is_out_of_place || !Self::has_subresource(&kind, &place.subresource) {
            return Err(if kind.custom { discovery::no_such_page() } else { Refusal::no_such_resource() });
        }
        match ask.verb {
            Verb::Get => self.get(ask, &kind, at).map(Decided::Done),
            Verb::List => self.list(ask, &kind, at).map(Decided::Done),
            Verb::Watch => self.watch(ask, &kind).map(Decided::Watch),
            Verb::Create => self.create(now, ask, &kind).map(Decided::Done),
            Verb::Update => self.update(now, ask, &kind).map(Decided::Done),
            Verb::Patch | Verb::Apply => self.patch(now, ask, &kind).map(Decided::Done),
            Verb::Delete => self.delete(now, ask, &kind).map(Decided::Done),
            Verb::DeleteCollection => self.delete_collection(now, ask, &kind).map(Decided::Done),
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

    /// The next number: for uids, drawn names and addresses.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }
}

/// Our CRDs. Reading them is dear, and a simulation makes many servers.
fn definitions() -> &'static [Value] {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    READ.get_or_init(|| {
        let texts = [
            include_str!("../../crds/resources.purlin.dev.yaml"),
            include_str!("../../crds/datasources.purlin.dev.yaml"),
            include_str!("../../crds/providers.purlin.dev.yaml"),
            include_str!("../../crds/providerconfigs.purlin.dev.yaml"),
        ];
        texts.iter().map(|text| serde_saphyr::from_str(text).expect("our CRDs are YAML")).collect()
    })
}

enum Decided {
    Done(Done),
    Watch(WatchSpec),
}

fn written(ask: &Ask, done: Done) -> Response<Bytes> {
    let object = |value: &Value| match ask.metadata_only && value["kind"] != "Status" {
        true => Bytes::from(read::metadata_of(value).to_string()),
        false => Bytes::from(value.to_string()),
    };
    let body = match done.body {
        Body::Object(found) if !ask.metadata_only => found.json(),
        Body::Object(found) => object(&found.value),
        Body::Json(value) => object(&value),
        Body::Text(text) => text,
    };
    response(done.code, body)
}

/// The answer to a request that is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response<Bytes> {
    // Where there is no API at all, the answer is plain text.
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
    *response.status_mut() = StatusCode::from_u16(code).expect("a code of HTTP");
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
