//! Moves the sensitive values of provider configurations to Secrets.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::documents::{input_name, inputs};
use super::providers::ProviderMapping;
use super::variables::secret_document;
use model::{Provider, Value};

/// Moves the sensitive values of ProviderConfigs to Secrets and returns the Secrets. `marked` marks the sensitive
/// values; a configuration that it does not know stays unchanged.
pub fn extract(mapping: &mut ProviderMapping, marked: impl Fn(&Provider, &Value) -> Option<Value>) -> Vec<Json> {
    let mut secrets = Vec::new();
    let ProviderMapping { documents, uses, .. } = mapping;
    for document in documents.iter_mut().filter(|document| document["kind"] == "ProviderConfig") {
        let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(used) = uses.values().find(|used| *used.name == *name) else { continue };
        let settings = Value::from_json(document["spec"]["config"].clone());
        let Some(marked) = marked(&used.provider, &settings) else { continue };
        let mut found = BTreeMap::new();
        extract_value(&mut document["spec"]["config"], &marked, "", &mut found);
        if found.is_empty() {
            continue;
        }
        let secret = format!("{name}-settings");
        let mut all = document["spec"]["inputs"].as_array().cloned().unwrap_or_default();
        all.extend(inputs(&secret, &found.keys().collect::<Vec<_>>()));
        document["spec"]["inputs"] = Json::Array(all);
        secrets.push(secret_document(&secret, &found));
    }
    secrets
}

/// Replaces marked values by expressions that read them from inputs, and collects them by input name.
fn extract_value(written: &mut Json, marked: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}_{name}") };
    match (written, marked) {
        (Json::Null, _) => {}
        // An expression contains no value.
        (Json::String(text), Value::Sensitive(_)) if text.replace("$${", "").contains("${") => {}
        (written, Value::Sensitive(_)) => {
            let mut name = input_name(at);
            while found.contains_key(&name) {
                name.push('_');
            }
            let (text, expression) = match &*written {
                // The string is escaped.
                Json::String(text) => (text.replace("$${", "${"), format!("${{inputs.{name}}}")),
                other => (other.to_string(), format!("${{json.unmarshal(inputs.{name})}}")),
            };
            *written = Json::String(expression);
            found.insert(name, text);
        }
        (Json::Object(entries), Value::Map(marked)) => {
            for (name, written) in entries {
                if let Some(marked) = marked.get(name.as_str()) {
                    extract_value(written, marked, &below(name), found);
                }
            }
        }
        (Json::Array(items), Value::List(marked)) => {
            for (place, (written, marked)) in items.iter_mut().zip(marked.iter()).enumerate() {
                extract_value(written, marked, &below(&place.to_string()), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_values_become_inputs() {
        let mut written = json!({"token": "a$${b}", "login": [{"user": "me", "pin": 12}], "none": null});
        let secret = |value: Value| value.into_sensitive();
        let login = Value::map([("user", Value::from("me")), ("pin", secret(Value::from(12)))]);
        let marked = Value::map([
            ("token", secret(Value::from("a$${b}"))),
            ("login", Value::list([login])),
            ("none", secret(Value::Null)),
        ]);
        let mut found = BTreeMap::new();
        extract_value(&mut written, &marked, "", &mut found);
        let expected = json!({
            "token": "${inputs.token}",
            "login": [{"user": "me", "pin": "${json.unmarshal(inputs.login_0_pin)}"}],
            "none": null,
        });
        assert_eq!(written, expected);
        assert_eq!(found, BTreeMap::from([("token".into(), "a${b}".into()), ("login_0_pin".into(), "12".into())]));
    }
}
