//! Shows how a request of Purlin differs from those of OpenTofu.

use serde_json::Value as Json;

/// The paths at which two requests differ, with both values.
pub(super) fn differences(purlin: &Json, opentofu: &Json) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(purlin), Some(opentofu), &mut found);
    found
}

fn compare(path: &str, purlin: Option<&Json>, opentofu: Option<&Json>, found: &mut Vec<String>) {
    match (purlin, opentofu) {
        (one, other) if one == other => {}
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            let added = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(added) {
                compare(&format!("{path}/{name}"), one.get(name), other.get(name), found);
            }
        }
        (Some(Json::Array(one)), Some(Json::Array(other))) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}/{index}"), Some(one), Some(other), found);
            }
        }
        (one, other) => {
            let text = |value: Option<&Json>| value.map_or_else(|| "absent".to_owned(), Json::to_string);
            found.push(format!("{path}: {} (OpenTofu: {})", text(one), text(other)));
        }
    }
}
