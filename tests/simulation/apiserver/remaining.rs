//! What the status of a namespace that is being deleted says of the objects in it, in the words of the real controller.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Server;
use super::write::seconds;

/// Type, and the reason and the message of a condition that has nothing to say.
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
    /// Makes the conditions of a namespace say what is left in it; whether they said something else. While there are Pods,
    /// which go before all others, they say that nothing is left: the real controller has not looked further.
    pub(super) fn tell_remaining(&mut self, now: Timestamp, name: &str) -> bool {
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
        let told = |all: &BTreeMap<String, usize>, join: &str| {
            all.iter().map(|(what, count)| format!("{what} {join} {count} resource instances")).collect::<Vec<_>>()
        };
        let content = told(&kinds, "has").join(", ");
        let held = told(&finalizers, "in").join(", ");
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
        let since = |kind: &str, status: &str| {
            let same = known.iter().find(|one| one["type"] == kind && one["status"] == status);
            same.map_or_else(|| Value::from(seconds(now)), |one| one["lastTransitionTime"].clone())
        };
        let conditions: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, status, reason, message)| {
                json!({"type": kind, "status": status, "lastTransitionTime": since(kind, status), "reason": reason,
                    "message": message})
            })
            .collect();
        let mut value = namespace.value.clone();
        value["status"]["conditions"] = conditions.into();
        let news = value != namespace.value;
        if news {
            let kind = self.kind_of(&namespace.value).expect("it is built in");
            self.store.put(now, &kind.id(), value, namespace.owners.clone());
        }
        news
    }
}
