//! Watches managed objects, so that changes by other clients are detected immediately, and their health is known. There
//! is one watch for each kind, namespace and service account. It keeps a digest of the metadata and the health, and
//! requests only metadata if the kind has no status.
//!
//! If a service account may not watch, its objects are read at their refresh interval, and the watch is retried.

pub(crate) mod index;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use kube::core::WatchEvent;
use serde_json::Value as Json;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use self::index::{ObjectVersion, ObservedState, Scope, Subscription, WatchIndex};
use super::api_error::RequestError;
use super::kstatus;
use super::server::{Call, Caller, METADATA_LIST, Server, request};
use super::target::Target;
use crate::{CallContext, ObjectChange, ObjectWatcher, WatchedInstance};
use model::{Address, Health, Namespace, RecordedObject};
use process::{error_code, is_refusal};

/// The page size of lists, as in kubectl.
const PAGE: u32 = 500;

/// The server ends a watch after this many seconds, which bounds the time until a dead connection is detected. Each
/// scope adds up to a minute, so that the watches do not all restart together.
const WATCH_SECONDS: u64 = 240;

/// After this time the connection counts as dead.
const LONGEST_WATCH: Duration = Duration::from_mins(6);

/// The time limit of a list request.
const LIST_TIME: Duration = Duration::from_mins(1);

/// Collects the subscriptions at the start of a controller, so that one list serves them all.
const SUBSCRIBE_DEBOUNCE: Duration = Duration::from_millis(300);

/// The pause after an error, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after a forbidden request, until the service account may have been granted access.
const FORBIDDEN_PAUSE: Duration = Duration::from_mins(5);

const METADATA_WATCH: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const WHOLE: &str = "application/json";

/// Receives the changes of watched objects.
pub type Sink = Arc<dyn Fn(ObjectChange) + Send + Sync>;

/// All watches of one driver. Dropping it stops them.
pub(crate) struct Watches {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
}

struct Shared {
    server: Arc<Server>,
    sink: Sink,
    index: Mutex<WatchIndex>,
    running: Mutex<HashMap<Scope, RunningWatch>>,
}

struct RunningWatch {
    task: AbortHandle,
    /// Notified when an object is subscribed after the last list.
    list: Arc<Notify>,
    /// Whether the watch is established.
    connected: bool,
}

/// A call of this driver in flight. Dropping it reports the end of the call to the watches.
pub(crate) struct CallGuard {
    shared: Arc<Shared>,
    scope: Scope,
    name: Arc<str>,
    left: Option<(ObjectVersion, Health)>,
}

impl CallGuard {
    /// Sets the object that the call returned.
    pub(crate) fn finish(mut self, object: &Json) {
        self.left = ObjectVersion::of(&object["metadata"]).map(|version| (version, kstatus::of_live(object)));
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let change = self.shared.index().end(&self.scope, &self.name, self.left.take());
        self.shared.report(change);
    }
}

impl Watches {
    pub(crate) fn new(server: Arc<Server>, sink: Sink) -> Self {
        let shared = Shared { server, sink, index: Mutex::default(), running: Mutex::default() };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    /// Starts a call that creates or changes an object.
    pub(crate) fn begin(&self, context: &CallContext, target: &Target) -> CallGuard {
        let (scope, name) = (scope(&context.namespace, &context.service_account, target), target.name.as_str().into());
        self.shared.index().begin(&scope, &name);
        CallGuard { shared: Arc::clone(&self.shared), scope, name, left: None }
    }

    /// Updates the known state of an object after a read.
    pub(crate) fn record_read(&self, context: &CallContext, target: &Target, object: &Json) {
        if let Some(version) = ObjectVersion::of(&object["metadata"]) {
            let scope = scope(&context.namespace, &context.service_account, target);
            let health = kstatus::of_live(object);
            let change = self.shared.index().record_read(&scope, &target.name.as_str().into(), version, health);
            self.shared.report(change);
        }
    }

    /// Unsubscribes an object before the driver destroys it.
    pub(crate) fn forget(&self, context: &CallContext, target: &Target) {
        let scope = scope(&context.namespace, &context.service_account, target);
        self.shared.index().forget(&scope, &target.name.as_str().into());
    }

    pub(crate) fn close(&self) {
        self.shared.running().clear();
        self.tasks().abort_all();
    }

    fn start(&self, scope: Scope) {
        let mut running = self.shared.running();
        if let Some(running) = running.get(&scope) {
            return running.list.notify_one();
        }
        let list = Arc::new(Notify::new());
        let work = run_watch(Arc::clone(&self.shared), scope.clone(), Arc::clone(&list));
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let task = tasks.spawn(work);
        running.insert(scope, RunningWatch { task, list, connected: false });
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, scope: &Scope) {
        if let Some(running) = self.shared.take_idle(scope) {
            running.task.abort();
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.close();
    }
}

impl ObjectWatcher for Watches {
    fn watch(&self, instance: &WatchedInstance<'_>, object: &RecordedObject) {
        let Some(target) = object.value.get("object").and_then(Target::of_object) else { return };
        let recorded = object.value.get("object").and_then(ObjectVersion::recorded);
        let scope = scope(instance.namespace, instance.service_account, &target);
        let subscriber = (instance.namespace.clone(), instance.address.clone());
        let known = self.shared.running().contains_key(&scope);
        let Subscription { needs_list, change, idle_scope } =
            self.shared.index().subscribe(subscriber, scope.clone(), target.name.as_str().into(), recorded);
        if let Some(idle) = idle_scope {
            self.stop(&idle);
        }
        if needs_list || !known {
            self.start(scope);
        }
        self.shared.report(change);
    }

    fn unwatch(&self, namespace: &Namespace, address: &Address) {
        let idle = self.shared.index().unsubscribe(&(namespace.clone(), address.clone()));
        if let Some(idle) = idle {
            self.stop(&idle);
        }
    }

    fn reports_health(&self) -> bool {
        true
    }

    fn is_watching(&self, namespace: &Namespace, address: &Address) -> bool {
        // The locks are taken one after the other: other code locks the index while it holds the list of watches.
        let scope = self.shared.index().scope_of(&(namespace.clone(), address.clone())).cloned();
        scope.is_some_and(|scope| self.shared.running().get(&scope).is_some_and(|running| running.connected))
    }
}

fn scope(namespace: &Namespace, service_account: &Arc<str>, target: &Target) -> Scope {
    Scope {
        account: (namespace.clone(), service_account.clone()),
        api_version: target.api_version.as_str().into(),
        kind: target.kind.as_str().into(),
        namespace: target.namespace.as_str().into(),
    }
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, WatchIndex> {
        // Updates of the index are atomic, so a poisoned lock is consistent.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Scope, RunningWatch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the watch of a scope without subscriptions.
    fn take_idle(&self, scope: &Scope) -> Option<RunningWatch> {
        let mut running = self.running();
        if self.index().is_used(scope) { None } else { running.remove(scope) }
    }

    fn report(&self, changes: impl IntoIterator<Item = ObjectChange>) {
        for change in changes {
            (self.sink)(change);
        }
    }

    fn report_unseen(&self, scope: &Scope) {
        let unseen = self.index().unseen(scope);
        self.report(unseen);
    }

    fn set_connected(&self, scope: &Scope, connected: bool) {
        if let Some(running) = self.running().get_mut(scope) {
            running.connected = connected;
        }
    }

    fn observe(&self, scope: &Scope, event: &Json, deleted: bool) {
        let metadata = &event["metadata"];
        let Some(name) = metadata["name"].as_str().filter(|name| self.index().knows(scope, name)) else { return };
        let state = if deleted {
            Some(ObservedState::Deleted)
        } else {
            ObjectVersion::of(metadata)
                .map(|version| ObservedState::Present(version, kstatus::health(&scope.api_version, &scope.kind, event)))
        };
        if let Some(seen) = state {
            let change = self.index().observe(scope, name, seen);
            self.report(change);
        }
    }
}

/// Why a watch ended.
enum WatchEnd {
    /// An object was subscribed after the last list.
    Relist,
    /// The resource version is too old.
    Stale,
    /// The service account may not list or watch.
    Forbidden,
    /// The cluster does not serve the kind.
    Unserved,
    /// Any other error.
    Error(String),
}

impl WatchEnd {
    fn of(code: Option<u16>, why: String) -> Self {
        match code {
            Some(410) => Self::Stale,
            Some(code) if is_refusal(code) => Self::Forbidden,
            _ => Self::Error(why),
        }
    }
}

/// Watches a scope as long as it has subscriptions.
async fn run_watch(shared: Arc<Shared>, scope: Scope, list: Arc<Notify>) {
    let mut failures = 0;
    loop {
        tokio::time::sleep(SUBSCRIBE_DEBOUNCE).await;
        if shared.take_idle(&scope).is_some() {
            return;
        }
        let began = tokio::time::Instant::now();
        let ended = list_and_watch(&shared, &scope, &list).await;
        let wait = match ended {
            WatchEnd::Relist => continue,
            WatchEnd::Stale => FIRST_PAUSE,
            WatchEnd::Forbidden => {
                tracing::debug!(?scope, "watching is forbidden; objects are read at their refresh interval");
                shared.report_unseen(&scope);
                FORBIDDEN_PAUSE
            }
            // All objects of a kind are deleted with its definition. A read confirms it.
            WatchEnd::Unserved => {
                shared.report_unseen(&scope);
                LONGEST_PAUSE
            }
            WatchEnd::Error(why) => {
                tracing::debug!(?scope, why, "a watch was interrupted and restarts");
                if began.elapsed() > LONGEST_PAUSE {
                    failures = 0;
                }
                failures += 1;
                model::backoff(failures, FIRST_PAUSE, LONGEST_PAUSE)
            }
        };
        shared.set_connected(&scope, false);
        // The jitter keeps scopes that were interrupted together from restarting together.
        tokio::time::sleep(wait + wait * u32::from(jitter(&scope)) / 1024).await;
    }
}

/// A stable pseudo-random number for each scope, up to 255.
fn jitter(scope: &Scope) -> u8 {
    let mut hasher = DefaultHasher::new();
    scope.hash(&mut hasher);
    hasher.finish().to_le_bytes()[0]
}

async fn list_and_watch(shared: &Shared, scope: &Scope, list: &Notify) -> WatchEnd {
    let server = &shared.server;
    let caller = Caller::ServiceAccount { namespace: &scope.account.0, name: &scope.account.1 };
    let kind = server.kind_in_any_version(caller, &scope.api_version, &scope.kind, server.deadline_in(LIST_TIME)).await;
    let kind = match kind {
        Ok(Some(kind)) => kind,
        Ok(None) => return WatchEnd::Unserved,
        Err(failure) => return watch_end(&failure),
    };
    let collection = kind.collection(&scope.namespace);
    let mut version = match read_list(shared, scope, caller, &collection).await {
        Ok(version) => version,
        Err(failure) => {
            if matches!(&failure, RequestError::Api(api_error) if api_error.is_unknown_kind()) {
                server.forget_kind(&kind);
            }
            return watch_end(&failure);
        }
    };
    shared.set_connected(scope, true);
    loop {
        let seconds = WATCH_SECONDS + u64::from(jitter(scope)) / 4;
        let path = format!(
            "{collection}?watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let watching = watch(shared, scope, caller, path, &mut version);
        tokio::select! {
            biased;
            ended = tokio::time::timeout(LONGEST_WATCH, watching) => match ended {
                Ok(None) | Err(_) => {}
                Ok(Some(ended)) => return ended,
            },
            () = list.notified() => return WatchEnd::Relist,
        }
    }
}

/// Lists all objects of the scope and returns the resource version from which to watch.
async fn read_list(
    shared: &Shared,
    scope: &Scope,
    caller: Caller<'_>,
    collection: &str,
) -> Result<String, RequestError> {
    shared.index().begin_list(scope);
    let mut page = String::new();
    loop {
        let path = format!("{collection}?limit={PAGE}{page}");
        let call = Call { accept: list_accept(scope), ..Call::get(path) };
        let answer = shared.server.call(caller, &call, shared.server.deadline_in(LIST_TIME)).await?;
        for item in answer.body["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
            shared.observe(scope, item, false);
        }
        match answer.next_page() {
            Some(token) => page = format!("&continue={token}"),
            None => {
                let deleted = shared.index().end_list(scope);
                shared.report(deleted);
                return Ok(answer.body["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
}

/// Processes the events of a watch. `None` if the server ended it normally; the next watch continues from `version`.
async fn watch(
    shared: &Shared,
    scope: &Scope,
    caller: Caller<'_>,
    path: String,
    version: &mut String,
) -> Option<WatchEnd> {
    let Ok(request) = request(caller, &Call { accept: watch_accept(scope), ..Call::get(path) }) else {
        return Some(WatchEnd::Error("invalid path".to_owned()));
    };
    let client = match shared.server.client().await {
        Ok(client) => client,
        Err(failure) => return Some(watch_end(&failure)),
    };
    let events = match client.request_events::<Json>(request).await {
        Ok(events) => events,
        Err(error) => return Some(WatchEnd::of(error_code(&error), error.to_string())),
    };
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let object = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                shared.observe(scope, &object, false);
                object
            }
            Ok(WatchEvent::Deleted(object)) => {
                shared.observe(scope, &object, true);
                object
            }
            Ok(WatchEvent::Bookmark(bookmark)) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            Ok(WatchEvent::Error(status)) => return Some(WatchEnd::of(Some(status.code), status.message)),
            Err(error) => return Some(WatchEnd::Error(error.to_string())),
        };
        if let Some(newer) = object["metadata"]["resourceVersion"].as_str() {
            newer.clone_into(version);
        }
    }
    None
}

fn list_accept(scope: &Scope) -> &'static str {
    if kstatus::has_status(&scope.api_version, &scope.kind) { WHOLE } else { METADATA_LIST }
}

fn watch_accept(scope: &Scope) -> &'static str {
    if kstatus::has_status(&scope.api_version, &scope.kind) { WHOLE } else { METADATA_WATCH }
}

fn watch_end(failure: &RequestError) -> WatchEnd {
    let code = match failure {
        RequestError::Api(api_error) => Some(api_error.code),
        _ => None,
    };
    WatchEnd::of(code, format!("{failure:?}"))
}
