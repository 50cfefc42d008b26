//! Parses requests: the verb, the object, the user, and the form of the response.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};

/// The group, type and object that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub group: String,
    pub version: String,
    /// Empty when the path ends with the version.
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    Apply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Apply,
    Delete,
    DeleteCollection,
    /// Discovery and health.
    Other,
}

impl Verb {
    /// The name that [`Forbidden`](super::Forbidden) and the network use. It distinguishes an apply from other patches.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }

    /// The verb of RBAC.
    pub fn right(self) -> &'static str {
        if self == Self::Apply { "patch" } else { self.as_str() }
    }
}

#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub verb: Verb,
    pub path: String,
    pub place: Place,
    pub query: BTreeMap<String, String>,
    pub patch: Option<PatchType>,
    /// Whether the response has only metadata.
    pub metadata_only: bool,
    /// The impersonated user; empty for the client itself.
    pub user: Arc<str>,
    /// The field manager.
    pub manager: String,
    pub body: Bytes,
}

impl ApiRequest {
    pub fn of(request: &Request<Bytes>) -> Self {
        let headers = request.headers();
        let query = request.uri().query().unwrap_or_default();
        let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .filter(|(key, _)| !key.is_empty())
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        let path = request.uri().path().to_owned();
        let place = place(&path).unwrap_or_default();
        let patch = match text(headers, header::CONTENT_TYPE).split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Some(PatchType::Json),
            "application/merge-patch+json" => Some(PatchType::Merge),
            "application/apply-patch+yaml" => Some(PatchType::Apply),
            _ => None,
        };
        let verb = verb(request.method(), &place, &query, patch);
        // The default field manager is the first part of the user agent.
        let agent = text(headers, header::USER_AGENT).split('/').next().unwrap_or_default();
        let manager = query.get("fieldManager").map_or(agent, String::as_str).to_owned();
        Self {
            verb,
            place,
            path,
            patch: patch.filter(|_| *request.method() == Method::PATCH),
            metadata_only: text(headers, header::ACCEPT).contains("as=PartialObjectMetadata"),
            user: headers.get("Impersonate-User").and_then(|user| user.to_str().ok()).unwrap_or_default().into(),
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager },
            query,
            body: request.body().clone(),
        }
    }

    pub fn query(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn is(&self, name: &str) -> bool {
        matches!(self.query(name), "true" | "1")
    }
}

fn text(headers: &header::HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn verb(method: &Method, place: &Place, query: &BTreeMap<String, String>, patch: Option<PatchType>) -> Verb {
    if place.plural.is_empty() {
        return Verb::Other;
    }
    let named = !place.name.is_empty();
    let watch = matches!(query.get("watch").map(String::as_str), Some("true" | "1"));
    match *method {
        Method::GET if named => Verb::Get,
        Method::GET if watch => Verb::Watch,
        Method::GET => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH if patch == Some(PatchType::Apply) => Verb::Apply,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => Verb::Other,
    }
}

/// Parses a path. `None` if it is no API.
pub fn place(path: &str) -> Option<Place> {
    let mut parts = path.trim_matches('/').split('/');
    let (group, version) = match parts.next()? {
        "api" => ("", parts.next()?),
        "apis" => (parts.next()?, parts.next()?),
        _ => return None,
    };
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        // The subresources of a namespace look like types in it.
        ["namespaces", namespace, plural, ..] if !matches!(*plural, "status" | "finalize") => (*namespace, &rest[2..]),
        rest => ("", rest),
    };
    Some(Place {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: rest.first().copied().unwrap_or_default().to_owned(),
        namespace: namespace.to_owned(),
        name: rest.get(1).copied().unwrap_or_default().to_owned(),
        subresource: rest.get(2..).unwrap_or_default().join("/"),
    })
}
