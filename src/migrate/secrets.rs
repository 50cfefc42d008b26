//! Settings of providers that must not stand in a manifest: what their provider calls sensitive comes from a Secret.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::documents::{input_name, inputs, secret_document};
use super::providers::Chosen;
use crate::model::{Provider, Value};

/// Puts what is sensitive in the ProviderConfigs into Secrets, which are given. `marked` says what that is; what it does
/// not know of is left as it is.
pub fn take(chosen: &mut Chosen, marked: impl Fn(&Provider, &Value) -> Option<Value>) -> Vec<Json> {
    let mut secrets = Vec::new();
    let Chosen { documents, uses, .. } = chosen;
    for document in documents.iter_mut().filter(|document| document["kind"] == "ProviderConfig") {
        let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(used) = uses.values().find(|used| *used.name == *name) else { continue };
        let settings = Value::from_json(document["spec"]["config"].clone());
        let Some(marked) = marked(&used.provider, &settings) else { continue };
        let mut found = BTreeMap::new();
        move_out(&mut document["spec"]["config"], &marked, "", &mut found);
        if found.is_empty() {
            continue;
        }
        let secret = format!("{name}-settings");
        document["spec"]["inputs"] = inputs(&secret, &found.keys().collect::<Vec<_>>());
        secrets.push(secret_document(&secret, &found));
    }
    secrets
}

/// Replaces what is marked by expressions that give it back, and gives it by the names of their inputs.
fn move_out(written: &mut Json, marked: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}_{name}") };
    match (written, marked) {
        (Json::Null, _) => {}
        (written, Value::Sensitive(_)) => {
            let mut name = input_name(at);
            while found.contains_key(&name) {
                name.push('_');
            }
            let (text, expression) = match &*written {
                // It was written such that nothing in it is an expression.
                Json::String(text) => (text.replace("$${", "${"), format!("${{inputs.{name}}}")),
                other => (other.to_string(), format!("${{json.unmarshal(inputs.{name})}}")),
            };
            *written = Json::String(expression);
            found.insert(name, text);
        }
        (Json::Object(entries), Value::Map(marked)) => {
            for (name, written) in entries {
                if let Some(marked) = marked.get(name.as_str()) {
                    move_out(written, marked, &below(name), found);
                }
            }
        }
        (Json::Array(items), Value::List(marked)) => {
            for (place, (written, marked)) in items.iter_mut().zip(marked.iter()).enumerate() {
                move_out(written, marked, &below(&place.to_string()), found);
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
    fn what_is_marked_moves_out_and_comes_back_by_an_expression() {
        let mut written = json!({"token": "a$${b}", "login": [{"user": "me", "pin": 12}], "none": null});
        let secret = |value: Value| value.into_sensitive();
        let login = Value::map([("user", Value::from("me")), ("pin", secret(Value::from(12)))]);
        let marked = Value::map([
            ("token", secret(Value::from("a$${b}"))),
            ("login", Value::list([login])),
            ("none", secret(Value::Null)),
        ]);
        let mut found = BTreeMap::new();
        move_out(&mut written, &marked, "", &mut found);
        let expected = json!({
            "token": "${inputs.token}",
            "login": [{"user": "me", "pin": "${json.unmarshal(inputs.login_0_pin)}"}],
            "none": null,
        });
        assert_eq!(written, expected);
        assert_eq!(found, BTreeMap::from([("token".into(), "a${b}".into()), ("login_0_pin".into(), "12".into())]));
    }
}
