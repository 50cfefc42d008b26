//! The body of a request and its options.

use serde_json::Value;

use super::fields::Manager;
use super::kinds::Kind;
use super::refusal::{Cause, Refusal};
use super::request::{ApiRequest, PatchType};

/// The maximum size of a body in bytes.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

pub(crate) fn of(request: &ApiRequest) -> Result<Value, Refusal> {
    if request.body.len() > LARGEST_BODY {
        let message = format!("Request entity too large: limit is {LARGEST_BODY}");
        return Err(Refusal::new(413, "RequestEntityTooLarge", message));
    }
    serde_json::from_slice(&request.body).map_err(|error| {
        Refusal::bad_request(format!("the object provided is unrecognized (must be of type Object): {error}"))
    })
}

/// Checks that a body matches the path.
pub(crate) fn fits(kind: &Kind, request: &ApiRequest, value: &Value) -> Result<(), Refusal> {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let named = value["kind"].as_str().unwrap_or_default();
    if (kind.custom || request.patch.is_some()) && (api_version.is_empty() || named.is_empty()) {
        let what = if named.is_empty() { "Kind" } else { "apiVersion" };
        return Err(Refusal::bad_request(format!("Object '{what}' is missing in '{value}'")));
    }
    if !api_version.is_empty() && api_version != kind.api_version() {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if !named.is_empty() && *named != *kind.name {
        if kind.custom {
            let cause = Cause::invalid("kind", &value["kind"], &format!("must be {}", kind.name));
            let name = value["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Refusal::invalid(kind, name, &[cause]));
        }
        let (version, group) = (&kind.version, kind.group.split('.').next().filter(|group| !group.is_empty()));
        return Err(Refusal::bad_request(format!(
            "{named} in version \"{version}\" cannot be handled as a {}: converting ({version}.{named}) to ({}.{}): unknown \
             conversion",
            kind.name,
            group.unwrap_or("core"),
            kind.name
        )));
    }
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && namespace != request.place.namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

pub(crate) fn is_dry(request: &ApiRequest) -> Result<bool, Refusal> {
    match request.query("dryRun") {
        "" => Ok(false),
        "All" => Ok(true),
        other => {
            let why = "Unsupported value: \"".to_owned() + other + "\": supported values: \"All\"";
            let cause = Cause::new("FieldValueNotSupported", "dryRun", why);
            Err(Refusal::invalid_options("PatchOptions", &[cause]))
        }
    }
}

pub(crate) fn manager(request: &ApiRequest, kind: &Kind) -> Manager {
    Manager {
        name: request.manager.clone(),
        applies: request.patch == Some(PatchType::Apply),
        api_version: kind.api_version(),
        subresource: request.place.subresource.clone(),
    }
}
