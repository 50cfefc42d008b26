//! API discovery: maps apiVersion and kind to the path of the collection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value as Json;
use tokio::sync::Mutex as AsyncMutex;

/// A kind as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiKind {
    /// `v1`, `apps/v1`.
    pub(crate) api_version: String,
    /// `deployments`.
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl ApiKind {
    /// The path of the collection; `namespace` is ignored for a cluster-scoped kind.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = group_version_path(&self.api_version);
        let plural = &self.plural;
        if self.namespaced { format!("{root}/namespaces/{namespace}/{plural}") } else { format!("{root}/{plural}") }
    }

    /// The resource as in RBAC: `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        match self.api_version.rsplit_once('/') {
            Some((group, _)) => format!("{}.{group}", self.plural),
            None => self.plural.clone(),
        }
    }
}

/// The discovery path of a group and version.
pub(crate) fn group_version_path(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

/// Parses an `APIResourceList` into kinds by name, without subresources.
pub(crate) fn kinds_of(api_version: &str, list: &Json) -> BTreeMap<String, ApiKind> {
    let resources = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kinds = resources.iter().filter_map(|resource| {
        let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
        let kind = ApiKind {
            api_version: api_version.to_owned(),
            plural: plural.to_owned(),
            namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
        };
        Some((resource["kind"].as_str()?.to_owned(), kind))
    });
    kinds.collect()
}

/// Parses an `APIGroup` into its versions, the preferred one first.
pub(crate) fn versions_of(group: &Json) -> Vec<String> {
    let preferred = group["preferredVersion"]["groupVersion"].as_str();
    let versions = group["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut ordered: Vec<String> = preferred.into_iter().map(str::to_owned).collect();
    for version in versions.iter().filter_map(|version| version["groupVersion"].as_str()) {
        if !ordered.iter().any(|known| known == version) {
            ordered.push(version.to_owned());
        }
    }
    ordered
}

/// Whether CRDs may add kinds to the group. Built-in groups have no dot or are listed here.
pub(crate) fn may_gain_kinds(group: &str) -> bool {
    const BUILT_IN: &[&str] = &[
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ];
    group.contains('.') && !BUILT_IN.contains(&group)
}

/// How many API versions are cached. A cluster serves far fewer, unless a tenant creates and deletes definitions.
const MAX_CACHED: usize = 1000;

/// The cached kinds. A missing kind is not cached, so that a kind that is installed later is found.
#[derive(Default)]
pub(crate) struct Kinds {
    known: Mutex<BTreeMap<String, Arc<BTreeMap<String, ApiKind>>>>,
    /// For each API version that is being discovered.
    locks: Mutex<BTreeMap<String, Weak<AsyncMutex<()>>>>,
}

impl Kinds {
    pub(crate) fn get(&self, api_version: &str, kind: &str) -> Option<ApiKind> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(api_version)?.get(kind).cloned()
    }

    pub(crate) fn put(&self, api_version: &str, kinds: BTreeMap<String, ApiKind>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert(api_version.to_owned(), Arc::new(kinds));
    }

    /// The lock that a discovery of this API version holds. A slow response delays only those who need it.
    pub(crate) fn lock_of(&self, api_version: &str) -> Arc<AsyncMutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(api_version).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        locks.insert(api_version.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// Invalidates a group and version after the server rejected one of its paths.
    pub(crate) fn forget(&self, api_version: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(api_version);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_read_without_sub_resources() {
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true}]});
        let kinds = kinds_of("apps/v1", &list);
        assert_eq!(kinds.len(), 1);
        assert_eq!(kinds["Deployment"].collection("shop"), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(kinds["Deployment"].resource(), "deployments.apps");
        let list = json!({"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": false}]});
        assert_eq!(kinds_of("v1", &list)["Namespace"].collection("shop"), "/api/v1/namespaces");
    }

    #[test]
    fn the_preferred_version_comes_first() {
        let group = json!({"preferredVersion": {"groupVersion": "x.io/v2"},
            "versions": [{"groupVersion": "x.io/v1"}, {"groupVersion": "x.io/v2"}]});
        assert_eq!(versions_of(&group), ["x.io/v2", "x.io/v1"]);
    }

    #[test]
    fn only_groups_of_crds_gain_kinds() {
        assert!(may_gain_kinds("gateway.networking.k8s.io") && may_gain_kinds("cert-manager.io"));
        assert!(!may_gain_kinds("") && !may_gain_kinds("apps") && !may_gain_kinds("networking.k8s.io"));
    }
}
