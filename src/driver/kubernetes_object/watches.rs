//! Watches over the objects that are managed, so that what somebody else does to them shows at once: one for each kind,
//! place and service account. Only metadata is asked for, and of that only a digest is kept.
//!
//! A service account that may not watch is no error: its objects are read at their interval, and the right is tried
//! again now and then.

pub(crate) mod book;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use kube::core::WatchEvent;
use serde_json::Value as Json;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use self::book::{Book, Look, Scope, Seen, Subscribed};
use super::refusal::Failure;
use super::server::{Call, Server, Who, request};
use super::target::Target;
use crate::driver::{CallContext, Noticed, ObjectWatcher, Watched};
use crate::model::{Address, RecordedObject};

/// How many objects one answer of a list holds, as kubectl asks for.
const PAGE: u32 = 500;

/// The server ends a watch after this many seconds; a silent connection is noticed by then. Scopes differ by up to a
/// minute, so that they do not all come at once.
const WATCH_SECONDS: u64 = 240;

/// No watch outlasts this: then the connection is dead.
const LONGEST_WATCH: Duration = Duration::from_mins(6);

/// A list takes a server seconds at worst.
const LIST_TIME: Duration = Duration::from_mins(1);

/// Objects are subscribed one after the other when a controller starts; one list is to serve them all.
const GATHER: Duration = Duration::from_millis(300);

/// Between two attempts after trouble.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After a refusal: soon enough for a right that was given later, seldom enough to be no load.
const REFUSED_PAUSE: Duration = Duration::from_mins(5);

const LIST_ACCEPT: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const WATCH_ACCEPT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Where news go.
pub type Sink = Arc<dyn Fn(Noticed) + Send + Sync>;

/// All watches of one driver. Dropping it ends them.
pub(crate) struct Watches {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
}

struct Shared {
    server: Arc<Server>,
    sink: Sink,
    book: Mutex<Book>,
    running: Mutex<HashMap<Scope, Running>>,
}

/// The watch of one scope.
struct Running {
    task: AbortHandle,
    /// Rings when something is subscribed that the last list did not know of.
    list: Arc<Notify>,
    /// Whether it sees what happens.
    sees: bool,
}

/// A call of ours under way. However it ends, the watches know that it has.
pub(crate) struct OpenCall {
    shared: Arc<Shared>,
    scope: Scope,
    name: Arc<str>,
    left: Option<Look>,
}

impl OpenCall {
    /// What the call has left, as the server told it.
    pub(crate) fn left(mut self, object: &Json) {
        self.left = Look::of(&object["metadata"]);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let news = self.shared.book().end(&self.scope, &self.name, self.left.take());
        self.shared.tell(news);
    }
}

impl Watches {
    pub(crate) fn new(server: Arc<Server>, sink: Sink) -> Self {
        let shared = Shared { server, sink, book: Mutex::default(), running: Mutex::default() };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    /// A call begins that makes or changes an object.
    pub(crate) fn begin(&self, context: &CallContext, target: &Target) -> OpenCall {
        let (scope, name) = (scope(&context.namespace, &context.service_account, target), target.name.as_str().into());
        self.shared.book().begin(&scope, &name);
        OpenCall { shared: Arc::clone(&self.shared), scope, name, left: None }
    }

    /// An object was read by us.
    pub(crate) fn looked(&self, context: &CallContext, target: &Target, object: &Json) {
        if let Some(look) = Look::of(&object["metadata"]) {
            let scope = scope(&context.namespace, &context.service_account, target);
            self.shared.book().looked(&scope, &target.name.as_str().into(), look);
        }
    }

    /// An object is about to be destroyed by us.
    pub(crate) fn forget(&self, context: &CallContext, target: &Target) {
        let scope = scope(&context.namespace, &context.service_account, target);
        self.shared.book().forget(&scope, &target.name.as_str().into());
    }

    /// Ends all watches.
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
        let work = follow(Arc::clone(&self.shared), scope.clone(), Arc::clone(&list));
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let task = tasks.spawn(work);
        running.insert(scope, Running { task, list, sees: false });
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
    fn watch(&self, whose: &Watched<'_>, object: &RecordedObject) {
        let Some(target) = object.value.get("object").and_then(Target::of_object) else { return };
        let recorded = object.value.get("object").and_then(Look::recorded);
        let scope = scope(whose.namespace, whose.service_account, &target);
        let subscriber = (whose.namespace.clone(), whose.address.clone());
        let known = self.shared.running().contains_key(&scope);
        let Subscribed { list, news, idle } =
            self.shared.book().subscribe(subscriber, scope.clone(), target.name.as_str().into(), recorded);
        if let Some(idle) = idle {
            self.stop(&idle);
        }
        if list || !known {
            self.start(scope);
        }
        self.shared.tell(news);
    }

    fn unwatch(&self, namespace: &Arc<str>, address: &Address) {
        let idle = self.shared.book().unsubscribe(&(namespace.clone(), address.clone()));
        if let Some(idle) = idle {
            self.stop(&idle);
        }
    }

    fn is_watching(&self, namespace: &Arc<str>, address: &Address) -> bool {
        // One lock after the other: elsewhere the book is looked into while the list of watches is held.
        let scope = self.shared.book().home(&(namespace.clone(), address.clone())).cloned();
        scope.is_some_and(|scope| self.shared.running().get(&scope).is_some_and(|running| running.sees))
    }
}

fn scope(namespace: &Arc<str>, service_account: &Arc<str>, target: &Target) -> Scope {
    Scope {
        account: (namespace.clone(), service_account.clone()),
        api_version: target.api_version.as_str().into(),
        kind: target.kind.as_str().into(),
        namespace: target.namespace.as_str().into(),
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        // The book changes by whole steps, none of which panics half way.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Scope, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a watch off the list, unless somebody needs it (again).
    fn take_idle(&self, scope: &Scope) -> Option<Running> {
        let mut running = self.running();
        if self.book().serves(scope) { None } else { running.remove(scope) }
    }

    fn tell(&self, news: impl IntoIterator<Item = Noticed>) {
        for noticed in news {
            (self.sink)(noticed);
        }
    }

    fn sees(&self, scope: &Scope, sees: bool) {
        if let Some(running) = self.running().get_mut(scope) {
            running.sees = sees;
        }
    }

    fn take(&self, scope: &Scope, event: &Json, deleted: bool) {
        let metadata = &event["metadata"];
        let Some(name) = metadata["name"].as_str() else { return };
        let seen = if deleted { Some(Seen::Deleted) } else { Look::of(metadata).map(Seen::There) };
        if let Some(seen) = seen {
            let news = self.book().saw(scope, name, seen);
            self.tell(news);
        }
    }
}

/// Why a watch does not go on.
enum Ended {
    /// There is something to list that the last list did not know of.
    List,
    /// The version from which it was to go on is too old.
    Stale,
    /// The service account may not.
    Refused,
    /// Something is in the way.
    Trouble(String),
}

/// Follows one scope for as long as somebody's object is in it.
async fn follow(shared: Arc<Shared>, scope: Scope, list: Arc<Notify>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(GATHER).await;
        if shared.take_idle(&scope).is_some() {
            return;
        }
        let began = tokio::time::Instant::now();
        let ended = list_and_watch(&shared, &scope, &list).await;
        let wait = match ended {
            Ended::List => continue,
            Ended::Stale => FIRST_PAUSE,
            Ended::Refused => {
                tracing::debug!(?scope, "may not be watched; its objects are read at their interval");
                REFUSED_PAUSE
            }
            Ended::Trouble(why) => {
                tracing::debug!(?scope, why, "a watch of objects was interrupted, it begins anew");
                if began.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                let longer = (pause * 2).min(LONGEST_PAUSE);
                std::mem::replace(&mut pause, longer)
            }
        };
        shared.sees(&scope, false);
        // Scopes that were interrupted together do not all come back together.
        tokio::time::sleep(wait + wait * u32::from(offset(&scope)) / 1024).await;
    }
}

/// A number of its own for each scope, up to 255.
fn offset(scope: &Scope) -> u8 {
    let mut hasher = DefaultHasher::new();
    scope.hash(&mut hasher);
    hasher.finish().to_le_bytes()[0]
}

async fn list_and_watch(shared: &Shared, scope: &Scope, list: &Notify) -> Ended {
    let server = &shared.server;
    let who = Who::ServiceAccount { namespace: &scope.account.0, name: &scope.account.1 };
    let kind = server.kind_in_any_version(&scope.api_version, &scope.kind, server.soon(LIST_TIME)).await;
    let kind = match kind {
        Ok(Some(kind)) => kind,
        // With its definition all its objects are gone; a reading will tell whether that is so.
        Ok(None) => return Ended::Trouble("the cluster has no such kind".to_owned()),
        Err(failure) => return ended(&failure),
    };
    let collection = kind.collection(&scope.namespace);
    let mut version = match read_list(shared, scope, who, &collection).await {
        Ok(version) => version,
        Err(failure) => {
            if matches!(&failure, Failure::Refused(refusal) if refusal.is_unknown_kind()) {
                server.forget_kind(&kind);
            }
            return ended(&failure);
        }
    };
    shared.sees(scope, true);
    loop {
        let seconds = WATCH_SECONDS + u64::from(offset(scope)) / 4;
        let path = format!(
            "{collection}?watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let watching = watch(shared, scope, who, path, &mut version);
        tokio::select! {
            biased;
            ended = tokio::time::timeout(LONGEST_WATCH, watching) => match ended {
                Ok(None) | Err(_) => {}
                Ok(Some(ended)) => return ended,
            },
            () = list.notified() => return Ended::List,
        }
    }
}

/// Reads all objects of the scope, page by page; gives the version from which a watch goes on.
async fn read_list(shared: &Shared, scope: &Scope, who: Who<'_>, collection: &str) -> Result<String, Failure> {
    shared.book().begin_list(scope);
    let mut page = String::new();
    loop {
        let path = format!("{collection}?limit={PAGE}{page}");
        let call = Call { accept: LIST_ACCEPT, ..Call::get(path) };
        let answer = shared.server.call(who, &call, shared.server.soon(LIST_TIME)).await?;
        for item in answer.body["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
            shared.take(scope, item, false);
        }
        let metadata = &answer.body["metadata"];
        match metadata["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => page = format!("&continue={token}"),
            None => {
                let gone = shared.book().end_list(scope);
                shared.tell(gone);
                return Ok(metadata["resourceVersion"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
}

/// Takes in what one watch tells. `None`: it came to its planned end, and another one goes on from `version`.
async fn watch(shared: &Shared, scope: &Scope, who: Who<'_>, path: String, version: &mut String) -> Option<Ended> {
    let Ok(request) = request(who, &Call { accept: WATCH_ACCEPT, ..Call::get(path) }) else {
        return Some(Ended::Trouble("no such path".to_owned()));
    };
    let client = match shared.server.client().await {
        Ok(client) => client,
        Err(failure) => return Some(ended(&failure)),
    };
    let events = match client.request_events::<Json>(request).await {
        Ok(events) => events,
        Err(kube::Error::Api(status)) if status.code == 410 => return Some(Ended::Stale),
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 405) => return Some(Ended::Refused),
        Err(error) => return Some(Ended::Trouble(error.to_string())),
    };
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let object = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                shared.take(scope, &object, false);
                object
            }
            Ok(WatchEvent::Deleted(object)) => {
                shared.take(scope, &object, true);
                object
            }
            Ok(WatchEvent::Bookmark(bookmark)) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            Ok(WatchEvent::Error(status)) if status.code == 410 => return Some(Ended::Stale),
            Ok(WatchEvent::Error(status)) => return Some(Ended::Trouble(status.message)),
            Err(error) => return Some(Ended::Trouble(error.to_string())),
        };
        if let Some(newer) = object["metadata"]["resourceVersion"].as_str() {
            newer.clone_into(version);
        }
    }
    None
}

fn ended(failure: &Failure) -> Ended {
    match failure {
        Failure::Refused(refusal) if matches!(refusal.code, 401 | 403 | 405) => Ended::Refused,
        Failure::Refused(refusal) if refusal.code == 410 => Ended::Stale,
        other => Ended::Trouble(format!("{other:?}")),
    }
}
