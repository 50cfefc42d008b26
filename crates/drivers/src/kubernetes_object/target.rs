//! Identifies objects by kind, namespace and name. Formats owner annotations and generates names.

use std::fmt;

use model::{Address, InstanceKey, Value, kube_names};

/// The annotation with the Resource that owns an object: `<cluster-uid>/<namespace>/<name>/<instance>`.
pub const OWNER_ANNOTATION: &str = "purlin.dev/owner";

/// Names of most kinds have at most 63 characters. A longer prefix is truncated, as the API server does.
const LONGEST_PREFIX: usize = 63 - kube_names::SUFFIX_LENGTH;

/// The identifier of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// `v1`, `apps/v1`.
    pub(crate) api_version: String,
    /// `ConfigMap`.
    pub(crate) kind: String,
    /// Empty for a cluster-scoped object.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Target {
    /// The identifier of an existing or planned object; `None` if it is not fully known.
    pub(crate) fn of_object(object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let namespace = match metadata.get("namespace") {
            None | Some(Value::Null) => String::new(),
            Some(namespace) => namespace.as_str()?.to_owned(),
        };
        Some(Self {
            api_version: object.get("apiVersion")?.as_str()?.to_owned(),
            kind: object.get("kind")?.as_str()?.to_owned(),
            namespace,
            name: metadata.get("name")?.as_str()?.to_owned(),
        })
    }

    pub(crate) fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// The identity of the object. It has no API version, since all versions show the same object, and no UID, since a
    /// UID changes when the object is recreated.
    pub(crate) fn identity(&self) -> Value {
        let namespace = if self.namespace.is_empty() { Value::Null } else { Value::from(self.namespace.as_str()) };
        Value::map([
            ("group", Value::from(self.group())),
            ("kind", Value::from(self.kind.as_str())),
            ("name", Value::from(self.name.as_str())),
            ("namespace", namespace),
        ])
    }

    /// The identity, or both possible ones if only the server knows whether the kind has a namespace.
    pub(crate) fn possible_identities(self, namespace: &str) -> Vec<Value> {
        if !self.namespace.is_empty() {
            return vec![self.identity()];
        }
        let namespaced = Self { namespace: namespace.to_owned(), ..self.clone() };
        vec![namespaced.identity(), self.identity()]
    }

    pub(crate) fn import_id(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        format!("{}/{}/{namespace}{}", self.api_version, self.kind, self.name)
    }

    /// Parses an import ID such as `v1/ConfigMap/shop/site`, `apps/v1/Deployment/shop/web` or `v1/Namespace/shop`. The
    /// namespace may be omitted.
    pub(crate) fn from_import_id(id: &str) -> Option<Self> {
        let parts: Vec<&str> = id.split('/').collect();
        let (api_version, rest) = match parts.as_slice() {
            [version, rest @ ..] if is_version(version) => ((*version).to_owned(), rest),
            [group, version, rest @ ..] if is_version(version) => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (kind, namespace, name) = match rest {
            [kind, name] => (kind, "", name),
            [kind, namespace, name] => (kind, *namespace, name),
            _ => return None,
        };
        let has_valid_namespace = rest.len() == 2 || kube_names::is_label(namespace);
        let complete =
            kube_names::is_api_version(&api_version) && kube_names::is_kind(kind) && kube_names::is_name(name);
        (complete && has_valid_namespace).then(|| Self {
            api_version,
            kind: (*kind).to_owned(),
            namespace: namespace.to_owned(),
            name: (*name).to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} `{}{slash}{}`", self.kind, self.namespace, self.name)
    }
}

/// The group of an apiVersion; empty for the core group.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The owner annotation of an instance. The instance key is written without brackets: empty for a single instance, `0`
/// for an index, `"blue"` for a key.
pub(crate) fn owner_annotation(scope: &str, namespace: &str, address: &str) -> String {
    let (name, instance) = match address.parse::<Address>() {
        Ok(Address { stem, key: InstanceKey::None }) => (stem.to_string(), String::new()),
        Ok(Address { stem, key }) => {
            let text = key.to_string();
            (stem.to_string(), text.trim_start_matches('[').trim_end_matches(']').to_owned())
        }
        Err(_) => (address.to_owned(), String::new()),
    };
    format!("{scope}/{namespace}/{name}/{instance}")
}

/// Generates a name from `prefix` and a suffix that is derived from the random bytes.
pub(crate) fn generated_name(prefix: &str, entropy: [u8; 16]) -> String {
    let cut = prefix.char_indices().nth(LONGEST_PREFIX).map_or(prefix, |(end, _)| &prefix[..end]);
    format!("{cut}{}", kube_names::generated_suffix(entropy))
}

/// Whether a string has the form of an API version, such as `v1` or `v2beta1`.
fn is_version(text: &str) -> bool {
    let mut chars = text.strip_prefix('v').unwrap_or_default().chars();
    chars.next().is_some_and(|c| c.is_ascii_digit()) && chars.all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_ids_are_parsed_and_formatted() {
        for id in ["v1/ConfigMap/shop/site", "apps/v1/Deployment/shop/web", "v1/Namespace/shop", "x.io/v1beta1/Thing/a"]
        {
            assert_eq!(Target::from_import_id(id).unwrap().import_id(), id);
        }
        for id in ["", "site", "ConfigMap/site", "v1/ConfigMap", "v1/ConfigMap//x", "v1/ConfigMap/a/b/c", "v1//x"] {
            assert_eq!(Target::from_import_id(id), None, "{id}");
        }
    }

    #[test]
    fn generated_names_depend_only_on_the_random_bytes_and_are_short() {
        assert_eq!(generated_name("web-", [7; 16]), generated_name("web-", [7; 16]));
        assert_ne!(generated_name("web-", [7; 16]), generated_name("web-", [8; 16]));
        let long = generated_name(&"x".repeat(100), [7; 16]);
        assert_eq!(long.len(), 63);
    }

    fn mark(address: &str) -> String {
        owner_annotation("uid", "shop", address)
    }

    #[test]
    fn owner_annotations_identify_the_instance() {
        assert_eq!(mark("web"), "uid/shop/web/");
        assert_eq!(mark("web[0]"), "uid/shop/web/0");
        assert_eq!(mark(r#"web["0"]"#), r#"uid/shop/web/"0""#);
    }

    fn target(id: &str) -> Target {
        Target::from_import_id(id).unwrap()
    }

    #[test]
    fn all_versions_of_a_group_have_the_same_identity() {
        assert_eq!(target("x.io/v1/T/a/b").identity(), target("x.io/v2/T/a/b").identity());
        assert_ne!(target("x.io/v1/T/a/b").identity(), target("y.io/v1/T/a/b").identity());
    }
}
