//! The errors of the server: objects of the kind Status, with the messages of the real server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds::Kind;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub details: Value,
}

/// An error of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub field: String,
    pub message: String,
}

impl Cause {
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, field: field.into(), message: message.into() }
    }

    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let colon = if why.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{why}"))
    }

    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }
}

impl Refusal {
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: Value::Null }
    }

    fn with(self, details: Value) -> Self {
        Self { details, ..self }
    }

    pub fn with_details(self, details: Value) -> Self {
        self.with(details)
    }

    /// An internal error, which has no reason.
    pub fn internal(message: &str) -> Self {
        Self::new(500, "", message)
    }

    /// Whether it is a plain-text page instead of a Status.
    pub fn is_page(&self) -> bool {
        self.reason.is_empty() && self.code == 404
    }

    /// A PUT without a required resourceVersion. The error names the resource instead of the kind.
    pub fn unversioned(kind: &Kind, name: &str) -> Self {
        let cause = Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        let message = format!("{} \"{name}\" is invalid: {}: {}", kind.resource(), cause.field, cause.message);
        let mut details = about(kind, name);
        details["causes"] = json!([cause_json(&cause)]);
        Self::new(422, "Invalid", message).with(details)
    }

    /// A failed precondition of a deletion. The error names the kind instead of the resource.
    pub fn unmet(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        let mut details = about(kind, name);
        details["kind"] = json!(&*kind.name);
        Self::new(409, "Conflict", message).with(details)
    }

    /// Errors in the options of a request.
    pub fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let details = json!({
            "group": "meta.k8s.io", "kind": options, "causes": causes.iter().map(cause_json).collect::<Value>(),
        });
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {}", texts.join(", "));
        Self::new(422, "Invalid", message).with(details)
    }

    pub fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", kind.resource())).with(about(kind, name))
    }

    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", kind.resource()))
            .with(about(kind, name))
    }

    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
        Self::new(409, "Conflict", message).with(about(kind, name))
    }

    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for cause in causes {
            let text = format!("{}: {}", cause.field, cause.message);
            // Equal causes occur only once in the message.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let what = match texts.as_slice() {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        let mut details =
            json!({"name": name, "kind": &*kind.name, "causes": causes.iter().map(cause_json).collect::<Value>()});
        if !kind.group.is_empty() {
            details["group"] = json!(&*kind.group);
        }
        if name.is_empty() {
            details.as_object_mut().expect("an object").remove("name");
        }
        Self::new(422, "Invalid", format!("{} \"{name}\" is invalid: {what}", kind.qualified())).with(details)
    }

    /// The group exists, but not the type or the subresource.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with(json!({}))
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(json!({}))
    }

    pub fn forbidden(user: &str, verb: &str, kind: &Kind, subresource: &str, namespace: &str, name: &str) -> Self {
        let slash = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        let place = match namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let message = format!(
            "{}{named} is forbidden: User \"{user}\" cannot {verb} resource \"{}{slash}\" in API group \"{}\" {place}",
            kind.resource(),
            kind.plural,
            kind.group,
        );
        Self::new(403, "Forbidden", message).with(about(kind, name))
    }

    pub fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut details = about(kind, name);
        details["causes"] = json!([{
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated"),
        }]);
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
        Self::new(403, "Forbidden", message).with(details)
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Fields of other managers, each with the display name of its manager.
    pub fn apply_conflicts(conflicts: &[(String, String)]) -> Self {
        let message = match conflicts {
            [(manager, field)] => format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
            more => {
                let managers: BTreeSet<&str> = more.iter().map(|(manager, _)| manager.as_str()).collect();
                let conflicts = managers.into_iter().map(|manager| {
                    let fields = more.iter().filter(|(other, _)| other == manager);
                    let fields: String = fields.map(|(_, field)| format!("\n- {field}")).collect();
                    format!("conflicts with {manager}:{fields}")
                });
                format!("Apply failed with {} conflicts: {}", more.len(), conflicts.collect::<Vec<_>>().join("\n"))
            }
        };
        let causes = conflicts.iter().map(|(manager, field)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
        });
        Self::new(409, "Conflict", message).with(json!({"causes": causes.collect::<Value>()}))
    }
}

fn cause_json(cause: &Cause) -> Value {
    json!({"reason": cause.reason, "message": cause.message, "field": cause.field})
}

/// The details that name the object of an error.
pub fn about(kind: &Kind, name: &str) -> Value {
    let mut details = json!({"kind": &*kind.plural});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !kind.group.is_empty() {
        details["group"] = json!(&*kind.group);
    }
    details
}
