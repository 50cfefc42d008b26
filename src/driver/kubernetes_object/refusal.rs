//! What the API server's refusals mean: which are immutable fields, which are conflicts of ownership, and what the
//! user is told. Pure.

use std::time::Duration;

use serde_json::Value as Json;

use crate::model::{DriverError, ErrorKind, Path, Value};

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server answered no.
    Refused(Box<Refusal>),
    /// There was no answer; whether the request had an effect is open.
    Unreachable(String),
    /// The time for the call was over.
    OutOfTime,
}

/// The server's `Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<Duration>,
}

/// One of its causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// What was attempted, for the text of an error.
#[derive(Clone, Debug)]
pub(crate) struct Attempt<'a> {
    /// `create`, `update`, `delete`, `read`.
    pub(crate) verb: &'static str,
    /// The object in words.
    pub(crate) object: String,
    /// The resource in RBAC's words: `deployments.apps`.
    pub(crate) resource: String,
    /// As which service account; empty for the process's own user.
    pub(crate) service_account: &'a str,
    /// The namespace of that service account.
    pub(crate) namespace: &'a str,
    /// The namespace of the object; empty for one of the cluster.
    pub(crate) place: String,
    /// The request held something sensitive, which the server may quote.
    pub(crate) sensitive: bool,
}

impl Attempt<'_> {
    /// Whether the object is in the namespace of its Resource. Locally a Resource is a file, which stays.
    fn goes_with_namespace(&self) -> bool {
        !self.service_account.is_empty() && self.place == self.namespace
    }
}

impl Refusal {
    /// Reads a response; one that is no `Status` is told by its code alone.
    pub(crate) fn new(code: u16, body: &Json, retry_after: Option<Duration>) -> Self {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let causes = body["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let seconds = body["details"]["retryAfterSeconds"].as_u64().map(Duration::from_secs);
        Self {
            code,
            reason: text(&body["reason"]),
            message: text(&body["message"]),
            causes: causes
                .iter()
                .map(|cause| Cause {
                    reason: text(&cause["reason"]),
                    message: text(&cause["message"]),
                    field: text(&cause["field"]),
                })
                .collect(),
            retry_after: retry_after.or(seconds),
        }
    }

    /// The request was refused for now, and had no effect.
    pub(crate) fn is_throttled(&self) -> bool {
        self.code == 429
    }

    /// The server had a problem of its own; whether the request had an effect is open.
    pub(crate) fn is_server_trouble(&self) -> bool {
        self.code >= 500 && !self.is_schema_error()
    }

    /// A manifest that does not fit the kind's schema; some versions answer it with 500.
    fn is_schema_error(&self) -> bool {
        self.message.contains("failed to create typed patch object") || self.message.contains("strict decoding error")
    }

    /// A namespace that has just been made has no service account `default` for its Pods yet.
    pub(crate) fn is_too_early(&self) -> bool {
        self.code == 403 && self.message.contains("error looking up service account")
    }

    /// The namespace of the object is being deleted, and takes in nothing new.
    fn is_namespace_going(&self) -> bool {
        self.message.contains("because it is being terminated")
    }

    /// A webhook, not the API server itself, said no.
    pub(crate) fn is_webhook(&self) -> bool {
        self.message.contains("denied the request")
    }

    /// The fields that cannot be changed in place, if that is all that the refusal is about. An empty field means
    /// the object as a whole.
    pub(crate) fn immutable_fields(&self) -> Option<Vec<String>> {
        if self.is_uid_mismatch() {
            return None;
        }
        if self.code == 422 && !self.causes.is_empty() && !self.is_webhook() {
            let all = self.causes.iter().all(|cause| tells_of_immutability(&cause.message));
            return all.then(|| self.causes.iter().map(|cause| cause.field.clone()).collect());
        }
        let webhook = matches!(self.code, 400 | 403 | 422) && self.is_webhook();
        (webhook && tells_of_immutability(&self.message)).then(|| vec![String::new()])
    }

    /// Which other managers own fields that the request would change: (manager, field).
    pub(crate) fn conflicts(&self) -> Vec<(String, String)> {
        let ours = self.causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
        ours.map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or("another manager");
            (manager.to_owned(), cause.field.clone())
        })
        .collect()
    }

    /// The object named by the request's UID is not there (any more). An apply meets it in two forms: a conflict
    /// when there is no object of that name, and a change of an immutable field when there is another one.
    pub(crate) fn is_uid_mismatch(&self) -> bool {
        let text = self.message.to_lowercase();
        let precondition = text.contains("uid") && (text.contains("precondition") || text.contains("mismatch"));
        (self.code == 409 && precondition) || self.causes.iter().any(|cause| cause.field == "metadata.uid")
    }

    /// The server does not know the kind at this place, rather than the object.
    pub(crate) fn is_unknown_kind(&self) -> bool {
        self.code == 404 && self.message.contains("could not find the requested resource")
            || self.message.starts_with("404 page not found")
    }

    /// A dry run is not possible, since some webhook does not say that it has no side effects.
    pub(crate) fn is_dry_run_unsupported(&self) -> bool {
        self.message.contains("does not support dry run")
    }
}

/// Whether a message says that a field cannot be changed. The texts are those of the built-in kinds, of the API
/// server's own rules, and of the conventions that CRD authors and webhooks follow.
fn tells_of_immutability(message: &str) -> bool {
    const TEXTS: &[&str] = &[
        "immutable",
        "may not change once set",
        "may not be changed",
        "may not be updated",
        "may not be modified",
        "may not be unset",
        "may not change fields other than",
        "cannot be changed",
        "cannot be updated",
        "cannot be modified",
        "cannot change roleref",
        "can not be changed",
        "can not be unset",
        "must not be changed",
        "not allowed to be changed",
        "self == oldself",
    ];
    let message = message.to_lowercase();
    let updates_to = message.contains("updates to ") && message.contains("forbidden");
    updates_to || TEXTS.iter().any(|text| message.contains(text))
}

/// The path of a server's field name below `spec.config`, cut where the manifest has nothing: `spec.selector` gives
/// `manifest.spec.selector`.
pub(crate) fn manifest_path(manifest: &Value, field: &str) -> Path {
    let mut path = Path::default().name("manifest");
    let mut here = manifest.clone();
    let mut rest = field;
    while !rest.is_empty() {
        let step = match here.unmarked() {
            // The longest key that fits: annotation keys have dots of their own.
            Value::Map(map) => map
                .iter()
                .filter_map(|(key, item)| Some((key, item, after_key(rest, key)?)))
                .max_by_key(|(key, _, _)| key.len())
                .map(|(key, item, after)| (path.name(key.clone()), item.clone(), after)),
            Value::List(items) => index(rest)
                .and_then(|(index, after)| items.get(index).map(|item| (path.index(index), item.clone(), after))),
            _ => None,
        };
        let Some((longer, item, after)) = step else { break };
        (path, here, rest) = (longer, item, after);
    }
    path
}

/// What follows `key` in a field name that goes on with it.
fn after_key<'a>(field: &'a str, key: &str) -> Option<&'a str> {
    let field = field.strip_prefix('.').unwrap_or(field);
    let bracketed = field.strip_prefix('[').and_then(|rest| rest.strip_prefix(key)?.strip_prefix(']'));
    bracketed.or_else(|| field.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
}

fn index(field: &str) -> Option<(usize, &str)> {
    let (number, after) = field.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, after))
}

/// Whether `applied` (what was sent the last time) sets the field that a conflict names: `.data.key`,
/// `.spec.containers[name="web"].image`, `.metadata.finalizers[="x"]`.
pub(crate) fn sets(applied: &Value, field: &str) -> bool {
    if field.is_empty() {
        return true;
    }
    match applied.unmarked() {
        Value::Map(map) => map.iter().any(|(key, item)| after_key(field, key).is_some_and(|rest| sets(item, rest))),
        Value::List(items) => {
            let Some((selector, rest)) = field.strip_prefix('[').and_then(|field| field.split_once(']')) else {
                return false;
            };
            items.iter().any(|item| selects(selector, item) && sets(item, rest))
        }
        _ => false,
    }
}

/// Whether an item of a list is the one that a selector (`name="web",protocol="TCP"`, `="x"`, `0`) names.
fn selects(selector: &str, item: &Value) -> bool {
    let is =
        |value: &Value, wanted: &str| serde_json::from_str::<Json>(wanted).is_ok_and(|json| json == value.to_json());
    selector.split(',').all(|term| match term.split_once('=') {
        Some(("", wanted)) => is(item, wanted),
        // A key that the manifest leaves out has its default on the server, which the selector names.
        Some((key, wanted)) => item.get(key).is_none_or(|value| is(value, wanted)),
        None => true,
    })
}

/// What the user is told.
pub(crate) fn error(failure: &Failure, attempt: &Attempt<'_>) -> DriverError {
    let refusal = match failure {
        Failure::Unreachable(why) => {
            let message = format!("cannot {} {}: the API server does not answer: {why}", attempt.verb, attempt.object);
            return plain(ErrorKind::Transient, message);
        }
        Failure::OutOfTime => {
            let message = format!("cannot {} {}: the time for it is over", attempt.verb, attempt.object);
            return plain(ErrorKind::Transient, message);
        }
        Failure::Refused(refusal) => refusal,
    };
    let conflicts = refusal.conflicts();
    if !conflicts.is_empty() {
        return conflict_error(&conflicts, attempt);
    }
    let (kind, hint) = judge(refusal, attempt);
    let message = format!("cannot {} {}: {}", attempt.verb, attempt.object, told(refusal, attempt.sensitive));
    let path = match (kind, refusal.causes.as_slice()) {
        (ErrorKind::InvalidConfig, _) => Some(Path::default().name("manifest")),
        _ => None,
    };
    DriverError { kind, message, path, hint }
}

fn judge(refusal: &Refusal, attempt: &Attempt<'_>) -> (ErrorKind, Option<String>) {
    match refusal.code {
        401 => (ErrorKind::Transient, Some("check the credentials that Purlin has for this cluster".to_owned())),
        // The Resource goes with it: no later call can do better.
        403 if refusal.is_namespace_going() && attempt.goes_with_namespace() => (ErrorKind::Terminal, None),
        403 if passes_by_itself(refusal) => (ErrorKind::Transient, None),
        403 if refusal.is_webhook() => (ErrorKind::Terminal, None),
        403 => (ErrorKind::Forbidden, Some(role_hint(refusal, attempt))),
        _ if refusal.is_schema_error() => (ErrorKind::InvalidConfig, None),
        404 if refusal.message.starts_with("namespaces ") => {
            (ErrorKind::Transient, Some("if a Resource makes the namespace, name that one in `dependsOn`".to_owned()))
        }
        404 | 408 | 409 | 410 | 429 | 500.. => (ErrorKind::Transient, None),
        400 | 413 | 422 => (ErrorKind::InvalidConfig, None),
        _ => (ErrorKind::Terminal, None),
    }
}

/// Refusals of admission that a later call may not meet: a full quota, a namespace that is still being set up or
/// already being deleted.
fn passes_by_itself(refusal: &Refusal) -> bool {
    let texts = ["exceeded quota", "error looking up service account", "not yet ready to handle"];
    refusal.is_namespace_going() || texts.iter().any(|text| refusal.message.contains(text))
}

fn role_hint(refusal: &Refusal, attempt: &Attempt<'_>) -> String {
    if refusal.message.contains("cannot impersonate") {
        return "Purlin's own ClusterRole must allow it to impersonate service accounts and their groups".to_owned();
    }
    let who = if attempt.service_account.is_empty() {
        "the user of the kubeconfig".to_owned()
    } else {
        format!("the service account `{}` of namespace `{}`", attempt.service_account, attempt.namespace)
    };
    let role = if attempt.place.is_empty() {
        "a ClusterRole".to_owned()
    } else {
        format!("a Role of namespace `{}`", attempt.place)
    };
    format!("bind {role} to {who} that allows get, list, watch, create, patch and delete of `{}`", attempt.resource)
}

fn conflict_error(conflicts: &[(String, String)], attempt: &Attempt<'_>) -> DriverError {
    let named: Vec<String> =
        conflicts.iter().map(|(manager, field)| format!("`{field}` is managed by `{manager}`")).collect();
    let (manager, field) = &conflicts[0];
    DriverError {
        kind: ErrorKind::Terminal,
        message: format!("cannot {} {}: {}", attempt.verb, attempt.object, named.join(", ")),
        path: Some(Path::default().name("manifest")),
        hint: Some(format!("leave `{field}` out of the manifest, or let `{manager}` give it up")),
    }
}

/// The server's words on one line. After a request that held something sensitive only the names of fields and the
/// kind of mistake are told, since the server quotes what it refuses.
fn told(refusal: &Refusal, sensitive: bool) -> String {
    let may_quote = sensitive && !matches!(refusal.code, 401 | 404 | 409 | 429) && !is_access_refusal(refusal);
    if may_quote {
        let causes: Vec<String> =
            refusal.causes.iter().map(|cause| format!("`{}` ({})", cause.field, cause.reason)).collect();
        let about = if causes.is_empty() { String::new() } else { format!(" because of {}", causes.join(", ")) };
        return format!(
            "the API server refused it (HTTP {}){about}; its text may quote sensitive values",
            refusal.code
        );
    }
    if refusal.message.is_empty() {
        return format!("the API server answered with HTTP {}", refusal.code);
    }
    refusal.message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_access_refusal(refusal: &Refusal) -> bool {
    refusal.code == 403 && !refusal.is_webhook()
}

fn plain(kind: ErrorKind, message: String) -> DriverError {
    DriverError { kind, message, path: None, hint: None }
}

#[cfg(test)]
mod tests;
