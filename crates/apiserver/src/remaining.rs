//! The status of a namespace that is being deleted: conditions about its remaining objects, as the real controller sets
//! them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Server;
use super::write::seconds;

/// The type of each condition, and its reason and message when nothing remains.
const QUIET: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

impl Server {
    /// Reports the remaining objects of a namespace in its conditions. Returns whether these changed. While Pods exist,
    /// which are deleted first, the conditions report that nothing remains: the real controller has not checked other
    /// types then.
    pub(crate) fn report_remaining(&mut self, now: Timestamp, name: &str) -> bool {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
        let contents = self.contents(name);
        let has_pods = contents.iter().any(|object| object.value["kind"] == "Pod");
        for object in contents.iter().filter(|_| !has_pods) {
            let kind = self.kind_of(&object.value).expect("its kind is served");
            *kinds.entry(format!("{}.{}", kind.plural, kind.group)).or_default() += 1;
            for finalizer in object.value["metadata"]["finalizers"].as_array().into_iter().flatten() {
                *finalizers.entry(finalizer.as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        let content = list_counts(&kinds, "has");
        let held = list_counts(&finalizers, "in");
        let conditions = QUIET.map(|(kind, reason, message)| match kind {
            "NamespaceContentRemaining" if !content.is_empty() => {
                (kind, "True", "SomeResourcesRemain", format!("Some resources are remaining: {content}"))
            }
            "NamespaceFinalizersRemaining" if !held.is_empty() => (
                kind,
                "True",
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {held}"),
            ),
            _ => (kind, "False", reason, message.to_owned()),
        });
        let Some(namespace) = self.object("", "namespaces", "", name).cloned() else { return false };
        let known = namespace.value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let conditions: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, status, reason, message)| {
                let same = known.iter().find(|condition| condition["type"] == kind && condition["status"] == status);
                let since =
                    same.map_or_else(|| Value::from(seconds(now)), |condition| condition["lastTransitionTime"].clone());
                json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason,
                    "message": message})
            })
            .collect();
        let mut value = namespace.value.clone();
        value["status"]["conditions"] = conditions.into();
        let changed = value != namespace.value;
        if changed {
            let kind = self.kind_of(&namespace.value).expect("it is built in");
            self.store.put(now, &kind.id(), value, namespace.owners.clone());
        }
        changed
    }
}

fn list_counts(counts: &BTreeMap<String, usize>, join: &str) -> String {
    counts
        .iter()
        .map(|(what, count)| format!("{what} {join} {count} resource instances"))
        .collect::<Vec<_>>()
        .join(", ")
}
