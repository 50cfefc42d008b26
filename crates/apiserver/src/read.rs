//! Reads: one object, lists in pages, and watches.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::kinds::{Kind, Type};
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::selectors::Selectors;
use super::store::{ChangeKind, Object, key};
use super::{Body, Server, Success};

/// The annotation in which a test stores the log of a Pod.
const POD_LOG: &str = "simulation/log";

#[derive(Clone, Debug)]
pub struct WatchSpec {
    pub what: Type,
    /// Empty for all namespaces.
    pub namespace: String,
    selectors: Selectors,
    /// The version after which events are delivered.
    pub from: u64,
    /// The existing objects, which are delivered first.
    pub initial: Vec<WatchEvent>,
    pub bookmarks: bool,
    /// The timeout of the stream in seconds.
    pub timeout: Option<u64>,
    metadata_only: bool,
    api_version: String,
    kind: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub version: u64,
    pub happened: ChangeKind,
    pub object: Arc<Object>,
}

impl WatchSpec {
    /// An event as a line of the stream.
    pub fn line(&self, event: &WatchEvent) -> Bytes {
        let happened = match event.happened {
            ChangeKind::Added => "ADDED",
            ChangeKind::Modified => "MODIFIED",
            ChangeKind::Deleted => "DELETED",
        };
        let object = match self.metadata_only {
            true => Bytes::from(metadata_of(&event.object.value).to_string()),
            false => event.object.json(),
        };
        let mut line = Vec::with_capacity(object.len() + 40);
        line.extend_from_slice(format!("{{\"type\":\"{happened}\",\"object\":").as_bytes());
        line.extend_from_slice(&object);
        line.extend_from_slice(b"}\n");
        line.into()
    }

    /// A bookmark as a line of the stream.
    pub fn bookmark(&self, version: u64) -> Bytes {
        let mut object = json!({
            "kind": &*self.kind, "apiVersion": self.api_version,
            "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null},
        });
        if self.metadata_only {
            object = metadata_of(&object);
        }
        Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
    }

    /// An error as a line of the stream.
    pub fn error(refusal: &Refusal) -> Bytes {
        Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": refusal.body()})))
    }

    fn covers(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || object.namespace() == self.namespace) && self.selectors.fit(&object.value)
    }
}

impl Server {
    pub(crate) fn get(&mut self, request: &ApiRequest, kind: &Arc<Kind>, at: Option<u64>) -> Result<Success, Refusal> {
        let place = &request.place;
        let found = match at {
            None => self.store.get(&kind.id(), &place.namespace, &place.name).cloned(),
            Some(version) => self.as_of(kind, version)?.remove(&key(&place.namespace, &place.name)),
        };
        let found = found.ok_or_else(|| Refusal::not_found(kind, &place.name))?;
        let body = match place.subresource.as_str() {
            "log" => {
                let log = found.value["metadata"]["annotations"][POD_LOG].as_str().unwrap_or_default();
                Body::Text(Bytes::from(log.to_owned()))
            }
            _ => Body::Object(found),
        };
        Ok(Success { code: 200, body })
    }

    fn as_of(&self, kind: &Kind, version: u64) -> Result<BTreeMap<Arc<str>, Arc<Object>>, Refusal> {
        if version < self.store.compacted() {
            return Err(Refusal::expired(format!(
                "The provided continue parameter is too old to display a consistent list result. You must start a new \
                 list without the continue parameter. (version {version}, compacted {})",
                self.store.compacted()
            )));
        }
        Ok(self.store.table(&kind.id()).map(|table| table.at(version)).unwrap_or_default())
    }

    pub(crate) fn list(&mut self, request: &ApiRequest, kind: &Arc<Kind>, at: Option<u64>) -> Result<Success, Refusal> {
        let selectors = Selectors::parse(kind, request.query("labelSelector"), request.query("fieldSelector"))?;
        let limit = request.query("limit").parse::<usize>().ok().filter(|limit| *limit > 0);
        let goes_on = token(request.query("continue"))?;
        let asked = request.query("resourceVersion").parse::<u64>().unwrap_or(0);
        if asked > self.store.version() {
            let message = format!("Too large resource version: {asked}, current: {}", self.store.version());
            return Err(Refusal::new(504, "Timeout", message));
        }
        let exact = request.query("resourceVersionMatch") == "Exact";
        let at = match (&goes_on, at) {
            (Some((version, _)), _) => Some(*version),
            (None, Some(at)) => Some(at.max(asked)),
            (None, None) => exact.then_some(asked),
        };
        let version = at.unwrap_or(self.store.version());
        let old = match at {
            Some(at) if at != self.store.version() => Some(self.as_of(kind, at)?),
            _ => None,
        };
        let nothing = BTreeMap::new();
        let id = kind.id();
        let objects = match &old {
            Some(old) => old,
            None => self.store.table(&id).map_or(&nothing, |table| &table.objects),
        };
        let prefix =
            if request.place.namespace.is_empty() { String::new() } else { format!("{}/", request.place.namespace) };
        let start = goes_on.map_or_else(|| Bound::Included(prefix.clone()), |(_, after)| Bound::Excluded(after));
        let start = match &start {
            Bound::Included(start) => Bound::Included(start.as_str()),
            Bound::Excluded(start) => Bound::Excluded(start.as_str()),
            Bound::Unbounded => Bound::Unbounded,
        };
        let range = objects.range::<str, _>((start, Bound::Unbounded));
        let mut fitting =
            range.take_while(|(key, _)| key.starts_with(&prefix)).filter(|(_, object)| selectors.fit(&object.value));
        let page: Vec<_> = fitting.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
        let left = limit.map_or(0, |_| fitting.count());
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if let Some((last, _)) = page.last().filter(|_| left > 0) {
            metadata["continue"] = URL_SAFE_NO_PAD.encode(json!({"rv": version, "start": last}).to_string()).into();
            if selectors.is_empty() {
                metadata["remainingItemCount"] = left.into();
            }
        }
        if kind.custom && !request.metadata_only && metadata.get("continue").is_none() {
            metadata["continue"] = "".into();
        }
        let body = if request.metadata_only {
            let items = page.iter().map(|(_, object)| metadata_of(&object.value).to_string());
            list_body("meta.k8s.io/v1", "PartialObjectMetadataList", &metadata, items)
        } else {
            let items = page.iter().map(|(_, object)| item(kind, object));
            list_body(&kind.api_version(), &format!("{}List", kind.name), &metadata, items)
        };
        Ok(Success { code: 200, body: Body::Text(body) })
    }

    pub(crate) fn watch(&self, request: &ApiRequest, kind: &Arc<Kind>) -> Result<WatchSpec, Refusal> {
        let asked = request.query("resourceVersion");
        let from = match asked {
            "" => None,
            text => Some(text.parse::<u64>().map_err(|_| {
                Refusal::internal(&format!("resourceVersion: Invalid value: \"{asked}\": strconv.ParseUint: parsing \"{asked}\": invalid syntax"))
            })?),
        };
        let mut spec = WatchSpec {
            what: kind.id(),
            namespace: request.place.namespace.clone(),
            selectors: Selectors::parse(kind, request.query("labelSelector"), request.query("fieldSelector"))?,
            from: from.unwrap_or(0),
            initial: Vec::new(),
            bookmarks: request.is("allowWatchBookmarks"),
            timeout: request.query("timeoutSeconds").parse().ok(),
            metadata_only: request.metadata_only,
            api_version: kind.api_version(),
            kind: kind.name.clone(),
        };
        // A watch without a version begins with the existing objects.
        if spec.from == 0 {
            spec.from = self.store.version();
            let objects = self.store.table(&spec.what).into_iter().flat_map(|table| table.objects.values());
            let events = objects.filter(|object| spec.covers(object)).map(|object| WatchEvent {
                version: object.version,
                happened: ChangeKind::Added,
                object: object.clone(),
            });
            spec.initial = events.collect();
        }
        Ok(spec)
    }

    /// Returns the error if a watch cannot start at this version.
    pub fn check_version(&self, version: u64) -> Option<Refusal> {
        (version < self.store.compacted()).then(|| too_old(version, self.store.compacted()))
    }

    /// The events of a watch after `version`.
    ///
    /// # Errors
    /// If the log is compacted beyond `version`.
    pub fn events(&self, watch: &WatchSpec, version: u64) -> Result<Vec<WatchEvent>, Refusal> {
        // A running watch continues as long as it misses no change of its type.
        if self.store.table(&watch.what).is_some_and(|table| version < table.forgotten) {
            return Err(too_old(version, self.store.compacted()));
        }
        let changes = self.store.table(&watch.what).into_iter().flat_map(|table| table.since(version));
        let events = changes.filter_map(|change| {
            let was = change.before.as_ref().is_some_and(|before| watch.covers(before));
            let is = change.happened != ChangeKind::Deleted && watch.covers(&change.object);
            let (happened, object) = match (was, is) {
                (false, false) => return None,
                (false, true) => (ChangeKind::Added, change.object.clone()),
                (true, true) => (ChangeKind::Modified, change.object.clone()),
                (true, false) if change.happened == ChangeKind::Deleted => (ChangeKind::Deleted, change.object.clone()),
                // It exists, but no longer matches: the event has its last state that matched.
                (true, false) => {
                    let before = change.before.as_ref().expect("it matched before");
                    let object = Object::new(before.value.clone(), change.version, before.owners.clone());
                    (ChangeKind::Deleted, object)
                }
            };
            Some(WatchEvent { version: change.version, happened, object })
        });
        Ok(events.collect())
    }
}

fn too_old(version: u64, compacted: u64) -> Refusal {
    Refusal::expired(format!("too old resource version: {version} ({})", compacted + 1))
}

/// An item of a list. Items of built-in kinds have no `apiVersion` and `kind`.
fn item(kind: &Kind, object: &Object) -> String {
    if kind.custom {
        return String::from_utf8(object.json().to_vec()).expect("JSON is UTF-8");
    }
    let map = object.value.as_object().expect("an object");
    let fields = map.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"));
    let fields: Vec<String> = fields.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
    format!("{{{}}}", fields.join(","))
}

fn list_body(api_version: &str, kind: &str, metadata: &Value, items: impl Iterator<Item = String>) -> Bytes {
    let items: Vec<String> = items.collect();
    let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[");
    Bytes::from(format!("{head}{}]}}", items.join(",")))
}

/// Only the metadata of an object.
pub fn metadata_of(value: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]})
}

fn token(text: &str) -> Result<Option<(u64, String)>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    decode_token(text).map(Some).ok_or_else(|| Refusal::bad_request("continue key is not valid"))
}

fn decode_token(text: &str) -> Option<(u64, String)> {
    let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    Some((token["rv"].as_u64()?, token["start"].as_str()?.to_owned()))
}
