//! Discovery of groups, versions and kinds, and health checks.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::{Body, Server, Success};

pub(crate) fn no_such_page() -> Refusal {
    Refusal::new(404, "", "404 page not found\n")
}

impl Server {
    pub(crate) fn discover(&self, request: &ApiRequest) -> Result<Success, Refusal> {
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let value = match parts.as_slice() {
            ["healthz" | "readyz" | "livez"] => {
                return Ok(Success { code: 200, body: Body::Text(Bytes::from_static(b"ok")) });
            }
            ["version"] => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}),
            ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            ["apis"] => {
                let mut groups: Vec<&str> = self.kinds.keys().map(|[group, _, _]| &**group).collect();
                groups.dedup();
                let groups = groups.into_iter().filter_map(|group| self.group(group));
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Value>()})
            }
            ["api", version] => self.version_of("", version).map_err(|_| Refusal::no_such_resource())?,
            ["apis", group] => {
                let mut group = self.group(group).ok_or_else(no_such_page)?;
                group["kind"] = json!("APIGroup");
                group["apiVersion"] = json!("v1");
                group
            }
            ["apis", group, version] => self.version_of(group, version)?,
            _ => return Err(no_such_page()),
        };
        Ok(Success { code: 200, body: Body::Json(value) })
    }

    fn group(&self, group: &str) -> Option<Value> {
        let mut versions: Vec<String> = Vec::new();
        for kind in self.kinds.values().filter(|kind| *kind.group == *group && !group.is_empty()) {
            if !versions.contains(&kind.version.to_string()) {
                versions.push(kind.version.to_string());
            }
        }
        let entries: Vec<Value> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
            .collect();
        let preferred = entries.first()?.clone();
        Some(json!({"name": group, "versions": entries, "preferredVersion": preferred}))
    }

    fn version_of(&self, group: &str, version: &str) -> Result<Value, Refusal> {
        let kinds = self.kinds.values().filter(|kind| *kind.group == *group && *kind.version == *version);
        let mut resources = BTreeMap::new();
        for kind in kinds {
            let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
            resources.insert(kind.plural.to_string(), resource(kind, &kind.plural, &verbs));
            if kind.status {
                let name = format!("{}/status", kind.plural);
                let entry = resource(kind, &name, &["get", "patch", "update"]);
                resources.insert(name, entry);
            }
        }
        if resources.is_empty() {
            return Err(no_such_page());
        }
        let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let resources = resources.into_values().collect::<Value>();
        Ok(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
        }))
    }
}

fn resource(kind: &Kind, name: &str, verbs: &[&str]) -> Value {
    json!({"name": name, "singularName": kind.name.to_lowercase(), "namespaced": kind.namespaced,
        "kind": &*kind.name, "verbs": verbs})
}
