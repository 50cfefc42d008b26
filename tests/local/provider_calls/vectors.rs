//! The histories of `tests/vectors/calls.jsonl.zst`, which `tests/vectors/calls` writes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

/// A configuration and its changes, with the calls of OpenTofu.
#[derive(Deserialize)]
pub(super) struct History {
    pub(super) name: String,
    /// The addresses of the providers by name.
    pub(super) providers: BTreeMap<String, String>,
    pub(super) steps: Vec<Step>,
}

/// The whole configuration after a change, and the calls that carry it out.
#[derive(Deserialize)]
pub(super) struct Step {
    /// `apply`, `refresh` or `destroy`.
    pub(super) command: String,
    /// The objects that are tainted before the command.
    #[serde(default)]
    pub(super) taint: Vec<String>,
    /// Provider configurations by provider.
    #[serde(default)]
    pub(super) configurations: BTreeMap<String, Json>,
    #[serde(default)]
    pub(super) objects: Option<Vec<Object>>,
    /// OpenTofu reported an error.
    #[serde(default)]
    pub(super) failed: bool,
    pub(super) calls: Vec<Call>,
}

#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) type_name: String,
    #[serde(default)]
    pub(super) data: bool,
    pub(super) config: Json,
    #[serde(default)]
    pub(super) depends_on: Vec<String>,
    #[serde(default)]
    pub(super) create_before_destroy: bool,
    #[serde(default)]
    pub(super) ignore_changes: Vec<String>,
    pub(super) import: Option<String>,
    pub(super) identity: Option<Json>,
    pub(super) moved_from: Option<String>,
}

/// A call with its messages as hexadecimal digits.
#[derive(Clone, Deserialize)]
pub(super) struct Call {
    pub(super) provider: String,
    /// As the protocol version of the provider names it.
    pub(super) method: String,
    pub(super) request: String,
    #[serde(default)]
    pub(super) response: String,
    /// How often OpenTofu made the same call with the same response.
    pub(super) count: usize,
    /// The name of the gRPC status if the call failed.
    pub(super) failure: Option<String>,
}

pub(super) fn histories() -> Vec<History> {
    let compressed = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/calls.jsonl.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(&compressed[..]).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

impl Step {
    pub(super) fn objects(&self) -> &[Object] {
        self.objects.as_deref().unwrap_or_default()
    }

    /// The manifests of the step, as YAML that is JSON.
    pub(super) fn manifests(&self, providers: &BTreeMap<String, String>) -> String {
        let provider =
            |(name, source): (&String, &String)| document("Provider", name, &serde_json::json!({ "source": source }));
        let configuration = |(name, config): (&String, &Json)| {
            document("ProviderConfig", name, &serde_json::json!({ "config": config }))
        };
        let providers = providers.iter().map(provider);
        let configurations = self.configurations.iter().map(configuration);
        providers.chain(configurations).chain(self.objects().iter().map(Object::manifest)).collect()
    }
}

impl Object {
    fn manifest(&self) -> String {
        let mut spec = serde_json::json!({ "type": self.type_name, "config": self.config });
        if !self.depends_on.is_empty() {
            let named = |name: &String| serde_json::json!({ "name": name });
            spec["dependsOn"] = self.depends_on.iter().map(named).collect();
        }
        if self.create_before_destroy {
            spec["lifecycle"]["createBeforeDestroy"] = Json::Bool(true);
        }
        if !self.ignore_changes.is_empty() {
            spec["lifecycle"]["ignoreChanges"] = serde_json::json!(self.ignore_changes);
        }
        if let Some(id) = &self.import {
            spec["import"]["id"] = Json::String(id.clone());
        }
        if let Some(identity) = &self.identity {
            spec["import"]["identity"] = identity.clone();
        }
        let mut metadata = serde_json::json!({ "name": self.name });
        if let Some(from) = &self.moved_from {
            metadata["annotations"]["purlin.dev/moved-from"] = Json::String(from.clone());
        }
        let kind = if self.data { "DataSource" } else { "Resource" };
        whole(kind, &metadata, &spec)
    }
}

fn document(kind: &str, name: &str, spec: &Json) -> String {
    whole(kind, &serde_json::json!({ "name": name }), spec)
}

fn whole(kind: &str, metadata: &Json, spec: &Json) -> String {
    let document =
        serde_json::json!({ "apiVersion": "purlin.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec });
    format!("---\n{document}\n")
}
