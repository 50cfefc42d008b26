//! Validation of objects.

use serde_json::{Map, Value};

use super::kinds::{Kind, Names};
use super::refusal::Cause;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                          'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                           '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                           'my_value',  or '12345', regex used for validation is \
                           '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The maximum size of a Secret or a ConfigMap.
const LARGEST: usize = 1024 * 1024;

/// Returns the errors of an object.
pub fn object(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        causes.extend(wrong_name(kind, name).map(|why| Cause::invalid("metadata.name", &name.into(), &why)));
    }
    for (_, value) in metadata["labels"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if text.len() > 63 {
            causes.push(Cause::new("FieldValueTooLong", "metadata.labels", "Too long: may not be more than 63 bytes"));
        } else if !text.is_empty() && !is_label_value(text) {
            causes.push(Cause::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
    for (at, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let text = finalizer.as_str().unwrap_or_default();
        let standard = matches!(text, "orphan" | "foregroundDeletion" | "kubernetes");
        // Only core kinds require a domain in finalizers. CRDs have a finalizer without a domain.
        let is_strict = !kind.custom && *kind.group != *"apiextensions.k8s.io";
        if !text.contains('/') && !standard && is_strict {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{at}]"), finalizer, why));
        }
    }
    match (&*kind.group, &*kind.plural) {
        ("", "secrets" | "configmaps") => causes.extend(data(object)),
        ("coordination.k8s.io", "leases") => causes.extend(lease(object)),
        _ => {}
    }
    causes
}

fn wrong_name(kind: &Kind, name: &str) -> Option<String> {
    let longest = match kind.names {
        Names::Subdomain | Names::Segment => 253,
        Names::Label | Names::Label1035 => 63,
    };
    if name.len() > longest && kind.names != Names::Segment {
        return Some(format!("must be no more than {longest} characters"));
    }
    let (fits, text) = match kind.names {
        Names::Subdomain => (name.split('.').all(is_label), SUBDOMAIN),
        Names::Label => (is_label(name), LABEL),
        Names::Label1035 => {
            (is_label(name) && name.starts_with(|letter: char| letter.is_ascii_lowercase()), LABEL_1035)
        }
        Names::Segment => (!name.contains(['/', '%']) && name != "." && name != "..", "may not contain '/'"),
    };
    (!fits).then(|| text.to_owned())
}

fn is_label(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_label_value(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        && text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric())
}

fn data(object: &Value) -> Option<Cause> {
    // The size of a Secret is that of the decoded data.
    let is_secret = object["kind"] == "Secret";
    let values = object["data"].as_object().into_iter().flat_map(Map::values);
    let lengths = values.map(|value| value.as_str().map_or(0, str::len));
    let sum: usize = lengths.map(|length| if is_secret { length / 4 * 3 } else { length }).sum();
    let why = "Too long: may not be more than 1048576 bytes";
    (sum > LARGEST).then(|| Cause::new("FieldValueTooLong", if is_secret { "data" } else { "" }, why))
}

fn lease(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let why = "must be greater than 0";
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &spec["leaseDurationSeconds"], why));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.leaseTransitions", &spec["leaseTransitions"], why));
    }
    causes
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the errors of a change: fields that must not change.
pub fn change(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for name in ["uid", "creationTimestamp", "deletionTimestamp"] {
        let (before, after) = (&old["metadata"][name], &new["metadata"][name]);
        if before != after {
            causes.push(Cause::invalid(format!("metadata.{name}"), after, "field is immutable"));
        }
    }
    if !old["metadata"]["deletionTimestamp"].is_null() {
        let before = finalizers(old);
        let new = finalizers(new).iter().filter(|finalizer| !before.contains(finalizer));
        let added: Vec<String> = new.map(ToString::to_string).collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    // The real server validates metadata twice, and reports each error twice.
    causes.extend_from_within(..);
    let fixed = |path: &str| (old.pointer(path) != new.pointer(path)).then(|| path[1..].replace('/', "."));
    match (&*kind.group, &*kind.plural) {
        ("", "secrets" | "configmaps") => {
            if kind.plural.as_ref() == "secrets" && old["type"] != new["type"] {
                causes.push(Cause::invalid("type", &new["type"], "field is immutable"));
            }
            if old["immutable"] == true {
                let why = "field is immutable when `immutable` is set";
                if new["immutable"] != true {
                    causes.push(Cause::forbidden("immutable", why));
                }
                let fields = ["/data", "/binaryData"].into_iter().filter_map(fixed);
                causes.extend(fields.map(|field| Cause::forbidden(field, why)));
            }
        }
        ("apps", "deployments") => {
            causes.extend(
                fixed("/spec/selector")
                    .map(|field| Cause::invalid(field, &new["spec"]["selector"], "field is immutable")),
            );
        }
        ("batch", "jobs") => {
            causes.extend(
                fixed("/spec/template")
                    .map(|field| Cause::invalid(field, &new["spec"]["template"], "field is immutable")),
            );
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            causes
                .extend(fixed("/roleRef").map(|field| Cause::invalid(field, &new["roleRef"], "cannot change roleRef")));
        }
        ("coordination.k8s.io", "leases") => {
            let (before, after) = (&old["spec"]["leaseTransitions"], &new["spec"]["leaseTransitions"]);
            if after.as_i64() < before.as_i64() && after.is_i64() {
                causes.push(Cause::invalid("spec.leaseTransitions", after, "must be greater than or equal to 0"));
            }
        }
        _ => {}
    }
    causes
}
