//! Classifies errors of the API server, such as immutable fields and field conflicts, and converts them to errors for
//! the user. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;

use model::{DriverError, ErrorKind, Path, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// The server returned an error.
    Api(Box<ApiError>),
    /// No cluster is configured, so no request was sent.
    NoCluster(String),
    /// There was no response; it is unknown whether the request took effect.
    Unreachable(String),
    /// The deadline passed.
    Timeout,
}

/// The `Status` that the server returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<Duration>,
}

/// A cause in the details of a `Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The request that failed, for the error message.
#[derive(Clone, Debug)]
pub(crate) struct ErrorContext<'a> {
    /// `create`, `update`, `delete`, `read`.
    pub(crate) verb: &'static str,
    /// The kind and name of the object, as shown to the user.
    pub(crate) object: String,
    /// The resource as in RBAC: `deployments.apps`.
    pub(crate) resource: String,
    /// The impersonated service account; empty for the identity of the process.
    pub(crate) service_account: &'a str,
    /// The namespace of the service account.
    pub(crate) namespace: &'a str,
    /// The namespace of the object; empty for a cluster-scoped object.
    pub(crate) object_namespace: String,
    /// The request contained sensitive values, which the server may quote.
    pub(crate) sensitive: bool,
}

impl ErrorContext<'_> {
    /// Whether the object is in the namespace of its Resource. Always false on files.
    fn is_in_own_namespace(&self) -> bool {
        !self.service_account.is_empty() && self.object_namespace == self.namespace
    }
}

impl ApiError {
    /// Parses an error response, which need not be a `Status`.
    pub(crate) fn new(code: u16, body: &Json, retry_after: Option<Duration>) -> Self {
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

    /// The request was throttled and had no effect.
    pub(crate) fn is_throttled(&self) -> bool {
        self.code == 429
    }

    /// The server failed; it is unknown whether the request took effect.
    pub(crate) fn is_server_error(&self) -> bool {
        self.code >= 500 && !self.is_schema_error()
    }

    /// The manifest does not match the schema of the kind. Some server versions return 500 for it.
    pub(crate) fn is_schema_error(&self) -> bool {
        self.message.contains("failed to create typed patch object") || self.message.contains("strict decoding error")
    }

    /// A new namespace does not have the service account `default` yet.
    pub(crate) fn is_service_account_missing(&self) -> bool {
        self.code == 403 && self.message.contains("error looking up service account")
    }

    /// The namespace of the object is being deleted and accepts no new objects.
    pub(crate) fn is_namespace_terminating(&self) -> bool {
        self.message.contains("because it is being terminated")
    }

    pub(crate) fn is_namespace_missing(&self) -> bool {
        self.code == 404 && self.message.starts_with("namespaces ")
    }

    /// Another object has the name.
    pub(crate) fn is_name_taken(&self) -> bool {
        self.code == 409 && (self.reason == "AlreadyExists" || !self.conflicts().is_empty())
    }

    /// The identity of the request lacks a permission.
    pub(crate) fn is_access_error(&self) -> bool {
        self.code == 403 && !self.is_webhook()
    }

    /// The quota of the namespace that the object would exceed.
    pub(crate) fn exceeded_quota(&self) -> Option<ExceededQuota<'_>> {
        self.message.split_once("exceeded quota: ").map(|(_, quota)| ExceededQuota(quota))
    }

    /// An admission webhook denied the request.
    pub(crate) fn is_webhook(&self) -> bool {
        self.message.contains("denied the request")
    }

    /// The immutable fields that the request would change, if the error has no other cause. An empty field means the
    /// whole object.
    pub(crate) fn immutable_fields(&self) -> Option<Vec<String>> {
        if self.is_uid_mismatch() {
            return None;
        }
        if self.code == 422 && !self.causes.is_empty() && !self.is_webhook() {
            let is_immutable = self.causes.iter().all(|cause| mentions_immutability(&cause.message));
            return is_immutable.then(|| self.causes.iter().map(|cause| cause.field.clone()).collect());
        }
        let webhook = matches!(self.code, 400 | 403 | 422) && self.is_webhook();
        (webhook && mentions_immutability(&self.message)).then(|| vec![String::new()])
    }

    /// The conflicts with other field managers, as (manager, field).
    pub(crate) fn conflicts(&self) -> Vec<(String, String)> {
        let ours = self.causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
        ours.map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or("another manager");
            (manager.to_owned(), cause.field.clone())
        })
        .collect()
    }

    /// The object with the UID of the request does not exist. An apply gets a conflict if no object has the name, and
    /// an error about an immutable field if another object has it.
    pub(crate) fn is_uid_mismatch(&self) -> bool {
        let text = self.message.to_lowercase();
        let precondition = text.contains("uid") && (text.contains("precondition") || text.contains("mismatch"));
        (self.code == 409 && precondition) || self.causes.iter().any(|cause| cause.field == "metadata.uid")
    }

    /// The server does not serve the kind, as opposed to a missing object.
    pub(crate) fn is_unknown_kind(&self) -> bool {
        self.code == 404 && self.message.contains("could not find the requested resource")
            || self.message.starts_with("404 page not found")
    }

    /// A dry run is not supported, because a webhook does not declare that it has no side effects.
    pub(crate) fn is_dry_run_unsupported(&self) -> bool {
        self.message.contains("does not support dry run")
    }
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The end of a message such as `few, requested: services=1, used: services=3, limited: services=3`.
pub(crate) struct ExceededQuota<'a>(&'a str);

impl ExceededQuota<'_> {
    /// Whether only these resources are exceeded, and are not if an object that counts for them is removed first.
    pub(crate) fn is_kept_by_exchange(&self, resources: &[String]) -> bool {
        let [requested, used, limited] = ["requested: ", " used: ", " limited: "].map(|part| self.amounts(part));
        !requested.is_empty()
            && requested.iter().all(|(resource, amount)| {
                let amounts = used.get(resource).copied().flatten().zip(limited.get(resource).copied().flatten());
                *amount == Some(1)
                    && resources.iter().any(|known| known == resource)
                    && amounts.is_some_and(|(used, limited)| used <= limited)
            })
    }

    /// The amounts of the resources in a part of the message.
    fn amounts(&self, part: &str) -> BTreeMap<&str, Option<u64>> {
        let text = self.0.split_once(part).map_or("", |(_, rest)| rest);
        let text = text.split(": ").next().unwrap_or_default();
        let entries = text.split(',').filter_map(|entry| entry.trim().split_once('='));
        entries.map(|(resource, amount)| (resource, amount.parse().ok())).collect()
    }
}

/// Whether a message says that a field cannot be changed. The strings come from the built-in kinds, the API server's
/// validation rules, and the conventions of CRD authors and webhooks.
fn mentions_immutability(message: &str) -> bool {
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

/// Converts a field of the server to a path relative to `spec.config`, cut off where the manifest ends: `spec.selector`
/// becomes `manifest.spec.selector`.
pub(crate) fn manifest_path(manifest: &Value, field: &str) -> Path {
    let mut path = Path::default().name("manifest");
    let mut here = manifest.clone();
    let mut rest = field;
    while !rest.is_empty() {
        let step = match here.unmarked() {
            // The longest matching key, since annotation keys contain dots.
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

/// The rest of a field name that starts with `key`.
fn after_key<'a>(field: &'a str, key: &str) -> Option<&'a str> {
    let field = field.strip_prefix('.').unwrap_or(field);
    let bracketed = field.strip_prefix('[').and_then(|rest| rest.strip_prefix(key)?.strip_prefix(']'));
    bracketed.or_else(|| field.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
}

fn index(field: &str) -> Option<(usize, &str)> {
    let (number, after) = field.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, after))
}

/// Whether the previously applied object sets the field of a conflict, such as `.data.key`,
/// `.spec.containers[name="web"].image` or `.metadata.finalizers[="x"]`.
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

/// Whether a selector (`name="web",protocol="TCP"`, `="x"`, `0`) matches an item of a list.
fn selects(selector: &str, item: &Value) -> bool {
    selector.split(',').all(|term| match term.split_once('=') {
        Some(("", expected)) => is_json(item, expected),
        // The server sets the default for a key that is missing in the manifest.
        Some((key, expected)) => item.get(key).is_none_or(|value| is_json(value, expected)),
        None => true,
    })
}

fn is_json(value: &Value, expected: &str) -> bool {
    serde_json::from_str::<Json>(expected).is_ok_and(|json| json == value.to_json())
}

/// The error for the user.
pub(crate) fn to_driver_error(failure: &RequestError, attempt: &ErrorContext<'_>) -> DriverError {
    let api_error = match failure {
        RequestError::NoCluster(why) => {
            let message = format!("cannot {} {}: {why}", attempt.verb, attempt.object);
            let hint = "set `KUBECONFIG` or `--kubeconfig`".to_owned();
            return DriverError { hint: Some(hint), ..plain(ErrorKind::Transient, message) };
        }
        RequestError::Unreachable(why) => {
            let message = format!("cannot {} {}: the API server does not respond: {why}", attempt.verb, attempt.object);
            return plain(ErrorKind::Transient, message);
        }
        RequestError::Timeout => {
            let message = format!("cannot {} {}: the deadline passed", attempt.verb, attempt.object);
            return plain(ErrorKind::Transient, message);
        }
        RequestError::Api(api_error) => api_error,
    };
    let conflicts = api_error.conflicts();
    if !conflicts.is_empty() {
        return conflict_error(&conflicts, attempt);
    }
    let (kind, hint) = classify(api_error, attempt);
    let message = format!("cannot {} {}: {}", attempt.verb, attempt.object, describe(api_error, attempt.sensitive));
    let path = match (kind, api_error.causes.as_slice()) {
        (ErrorKind::InvalidConfig, _) => Some(Path::default().name("manifest")),
        _ => None,
    };
    DriverError { kind, message, path, hint }
}

fn classify(api_error: &ApiError, attempt: &ErrorContext<'_>) -> (ErrorKind, Option<String>) {
    match api_error.code {
        401 => (ErrorKind::Transient, Some("check Purlin's credentials for this cluster".to_owned())),
        // The Resource is deleted with the namespace, so a retry cannot succeed.
        403 if api_error.is_namespace_terminating() && attempt.is_in_own_namespace() => (ErrorKind::Terminal, None),
        403 if is_temporary(api_error) => (ErrorKind::Transient, None),
        403 if api_error.is_webhook() => (ErrorKind::Terminal, None),
        403 => (ErrorKind::Forbidden, Some(role_hint(api_error, attempt))),
        _ if api_error.is_schema_error() => (ErrorKind::InvalidConfig, None),
        404 if api_error.is_namespace_missing() => (
            ErrorKind::Transient,
            Some("if a Resource creates the namespace, add that Resource to `dependsOn`".to_owned()),
        ),
        404 | 408 | 409 | 410 | 429 | 500.. => (ErrorKind::Transient, None),
        400 | 413 | 422 => (ErrorKind::InvalidConfig, None),
        _ => (ErrorKind::Terminal, None),
    }
}

/// Admission errors that may disappear: an exceeded quota, or a namespace that is being created or deleted.
fn is_temporary(api_error: &ApiError) -> bool {
    let texts = ["exceeded quota", "error looking up service account", "not yet ready to handle"];
    api_error.is_namespace_terminating() || texts.iter().any(|text| api_error.message.contains(text))
}

fn role_hint(api_error: &ApiError, attempt: &ErrorContext<'_>) -> String {
    if api_error.message.contains("cannot impersonate") {
        return "the ClusterRole of Purlin must allow it to impersonate service accounts".to_owned();
    }
    let account = if attempt.service_account.is_empty() {
        "the user of the kubeconfig".to_owned()
    } else {
        let elsewhere = match attempt.object_namespace == attempt.namespace {
            true => String::new(),
            false => format!(" of namespace `{}`", attempt.namespace),
        };
        format!("the service account `{}`{elsewhere}", attempt.service_account)
    };
    let role = if attempt.object_namespace.is_empty() {
        "a ClusterRole".to_owned()
    } else {
        format!("a Role in namespace `{}`", attempt.object_namespace)
    };
    format!("bind {role} to {account} that allows get, list, watch, create, patch and delete of `{}`", attempt.resource)
}

fn conflict_error(conflicts: &[(String, String)], attempt: &ErrorContext<'_>) -> DriverError {
    let named: Vec<String> =
        conflicts.iter().map(|(manager, field)| format!("`{field}` is managed by `{manager}`")).collect();
    let (manager, field) = &conflicts[0];
    DriverError {
        kind: ErrorKind::Terminal,
        message: format!("cannot {} {}: {}", attempt.verb, attempt.object, named.join(", ")),
        path: Some(Path::default().name("manifest")),
        hint: Some(format!("remove `{field}` from the manifest, or make `{manager}` release it")),
    }
}

/// The error message of the server on one line. After a request with sensitive values, only the fields and reasons are
/// shown, since the server quotes rejected values.
fn describe(api_error: &ApiError, sensitive: bool) -> String {
    let may_quote = sensitive && !matches!(api_error.code, 401 | 404 | 409 | 429) && !api_error.is_access_error();
    if may_quote {
        let causes: Vec<String> =
            api_error.causes.iter().map(|cause| format!("`{}` ({})", cause.field, cause.reason)).collect();
        let about = if causes.is_empty() { String::new() } else { format!(" because of {}", causes.join(", ")) };
        return format!(
            "the API server rejected it (HTTP {}){about}; its message is hidden because it may quote sensitive values",
            api_error.code
        );
    }
    if api_error.message.is_empty() {
        return format!("the API server returned HTTP {}", api_error.code);
    }
    let text = api_error.message.split_whitespace().collect::<Vec<_>>().join(" ");
    denial(&text).unwrap_or(text)
}

/// A missing permission in short: the message says elsewhere which object and which account it is about.
fn denial(text: &str) -> Option<String> {
    let (user, rest) = text.split_once("is forbidden: User \"")?.1.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"").filter(|(verb, _)| *verb != "impersonate")?;
    let (resource, rest) = rest.split_once('"')?;
    let user = match user.starts_with("system:serviceaccount:") {
        true => "the service account".to_owned(),
        false => format!("the user `{user}`"),
    };
    let why = rest.split_once(": ").map_or_else(String::new, |(_, why)| format!(": {why}"));
    Some(format!("{user} may not {verb} {resource}{why}"))
}

fn plain(kind: ErrorKind, message: String) -> DriverError {
    DriverError { kind, message, path: None, hint: None }
}

#[cfg(test)]
mod tests;
