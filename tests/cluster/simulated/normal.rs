//! Makes responses of two servers comparable: values that always differ are replaced by the same names in both.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The names, versions and UIDs in the responses of one server so far.
pub(super) struct Names {
    namespace: String,
    versions: Vec<String>,
    uids: Vec<String>,
    /// The last version and UID of each object, by name.
    last: BTreeMap<String, (String, String)>,
    next_page: String,
    /// Generated names, with their prefixes.
    generated: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            versions: Vec::new(),
            uids: Vec::new(),
            last: BTreeMap::new(),
            next_page: String::new(),
            generated: BTreeMap::new(),
        }
    }

    /// Replaces `{ns}`, `{rv:NAME}`, `{uid:NAME}` and `{continue}` by values from the responses.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{ns}", &self.namespace).replace("{continue}", &self.next_page);
        for (name, (version, uid)) in &self.last {
            text = text.replace(&format!("{{rv:{name}}}"), version).replace(&format!("{{uid:{name}}}"), uid);
        }
        text
    }

    /// Returns a response without values that depend on the server.
    pub(super) fn normal(&mut self, code: u16, mut bodies: Vec<Value>, watches: bool) -> Value {
        if watches {
            // The times of bookmarks depend on the clock.
            bodies.retain(|event| event["type"] != "BOOKMARK");
        }
        for body in &mut bodies {
            self.note(body);
            self.value(body, "");
        }
        let text = Value::from(bodies).to_string();
        let text = self.uids.iter().enumerate().fold(text, |text, (at, uid)| text.replace(uid, &format!("uid-{at}")));
        let text = self.generated.iter().fold(text, |text, (name, prefix)| text.replace(name, &format!("{prefix}*")));
        json!({"code": code, "bodies": serde_json::from_str::<Value>(&text).expect("JSON")})
    }

    /// Records the version, UID and generated name of an object.
    fn note(&mut self, body: &Value) {
        let metadata = &body["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        if let Some(token) = metadata["continue"].as_str() {
            token.clone_into(&mut self.next_page);
        }
        if !text("generateName").is_empty() {
            self.generated.insert(text("name"), text("generateName"));
        }
        if !text("uid").is_empty() && !text("resourceVersion").is_empty() {
            self.last.insert(text("name"), (text("resourceVersion"), text("uid")));
        }
    }

    fn value(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Object(map) => self.object(map, name),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, name)),
            Value::String(text) => match name {
                "resourceVersion" => *text = self.version(text),
                "uid" => self.uid(text),
                "message" if text.contains("recondition") || text.contains("esource version") => {
                    *text = without_numbers(text);
                }
                "creationTimestamp" | "deletionTimestamp" => "TIME".clone_into(text),
                "continue" if !text.is_empty() => "MORE".clone_into(text),
                _ => {}
            },
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, name: &str) {
        ignore(map, name);
        let is_list = map.get("items").is_some();
        for (field, value) in map.iter_mut() {
            if field == "metadata" && is_list {
                // Other clients write to the real server at the same time, so the version of a list is arbitrary.
                value["resourceVersion"] = "LIST".into();
            }
            if is_list && field == "metadata" {
                if value["continue"].as_str().is_some_and(|token| !token.is_empty()) {
                    value["continue"] = "MORE".into();
                }
                continue;
            }
            self.value(value, field);
        }
    }

    fn version(&mut self, text: &str) -> String {
        let at = self.versions.iter().position(|known| known == text).unwrap_or_else(|| {
            self.versions.push(text.to_owned());
            self.versions.len() - 1
        });
        format!("version-{at}")
    }

    fn uid(&mut self, text: &str) {
        // UIDs that a test chooses are the same in both.
        let is_chosen = text.starts_with("00000000-1111") || text.len() < 36;
        if !is_chosen && !self.uids.iter().any(|known| known == text) {
            self.uids.push(text.to_owned());
        }
    }
}

/// Removes fields that the simulated server does not have and Purlin does not need.
fn ignore(map: &mut Map<String, Value>, name: &str) {
    // The simulated server tracks field managers too, but does not return them, because Purlin ignores them.
    map.remove("managedFields");
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match (kind.as_str(), name) {
        ("Deployment", _) => {
            // A controller writes the status, and the real server sets many defaults. Only the applied fields are
            // compared.
            map.remove("status");
            let spec = map.get("spec").cloned().unwrap_or_default();
            let container = |container: &Value| json!({"name": container["name"], "image": container["image"]});
            let containers = spec["template"]["spec"]["containers"].as_array().into_iter().flatten().map(container);
            let spec = json!({
                "replicas": spec["replicas"], "selector": spec["selector"], "containers": containers.collect::<Value>(),
            });
            map.insert("spec".to_owned(), spec);
            let annotations = map.get_mut("metadata").and_then(Value::as_object_mut);
            drop(annotations.and_then(|metadata| metadata.remove("annotations")));
        }
        ("Service", _) => {
            // Addresses are random.
            if let Some(spec) = map.get_mut("spec") {
                spec["clusterIP"] = "IP".into();
                spec["clusterIPs"] = json!(["IP"]);
            }
        }
        // Fields of an older version of the API.
        ("Event", _) => map.retain(|name, _| !name.starts_with("deprecated")),
        ("APIGroup", _) => drop(map.remove("serverAddressByClientCIDRs")),
        _ => {}
    }
}

/// Replaces the numbers in a message, which are versions.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let end = |word: &mut String, out: &mut String| {
        let is_number = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit());
        out.push_str(if is_number { "N" } else { word });
        word.clear();
    };
    for letter in text.chars() {
        if letter.is_alphanumeric() || letter == '-' {
            word.push(letter);
        } else {
            end(&mut word, &mut out);
            out.push(letter);
        }
    }
    end(&mut word, &mut out);
    out
}
