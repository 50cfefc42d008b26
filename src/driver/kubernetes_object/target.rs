//! Which object is meant: its kind, namespace and name; the mark of its owner; names that Purlin draws.

use std::fmt;

use crate::model::{Address, InstanceKey, Value};

/// The annotation that says for which Resource an object was made:
/// `<cluster-uid>/<namespace>/<name>/<instance>`.
pub const OWNER_ANNOTATION: &str = "purlin.dev/owner";

/// The characters that Kubernetes draws name suffixes from: no vowels and nothing that looks like another one.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// As many characters as Kubernetes itself appends to `metadata.generateName`.
const SUFFIX_LENGTH: usize = 5;

/// Names of most kinds may have up to 63 characters; a longer prefix is cut, as the API server does.
const LONGEST_PREFIX: usize = 63 - SUFFIX_LENGTH;

/// One object of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// `v1`, `apps/v1`.
    pub(crate) api_version: String,
    /// `ConfigMap`.
    pub(crate) kind: String,
    /// Empty for an object of the cluster.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Target {
    /// The object that `object` (as the server has it, or as planned) is; `None` while its place is not known.
    pub(crate) fn of_object(object: &Value) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let metadata = object.get("metadata")?;
        let namespace = match metadata.get("namespace") {
            None | Some(Value::Null) => String::new(),
            some => text(some)?,
        };
        Some(Self {
            api_version: text(object.get("apiVersion"))?,
            kind: text(object.get("kind"))?,
            namespace,
            name: text(metadata.get("name"))?,
        })
    }

    /// The API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// What makes it one and the same object: the version is only a view of it, and the UID changes when somebody
    /// else makes it anew.
    pub(crate) fn identity(&self) -> Value {
        let namespace = if self.namespace.is_empty() { Value::Null } else { Value::from(self.namespace.as_str()) };
        Value::map([
            ("group", Value::from(self.group())),
            ("kind", Value::from(self.kind.as_str())),
            ("name", Value::from(self.name.as_str())),
            ("namespace", namespace),
        ])
    }

    /// The id by which it can be imported.
    pub(crate) fn import_id(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        format!("{}/{}/{namespace}{}", self.api_version, self.kind, self.name)
    }

    /// Reads an import id: `v1/ConfigMap/shop/site`, `apps/v1/Deployment/shop/web`, `v1/Namespace/shop`.
    /// Without a namespace the field stays empty.
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
        let complete = !kind.is_empty() && !name.is_empty() && (rest.len() == 2 || !namespace.is_empty());
        complete.then(|| Self {
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

/// The owner mark of one instance. The instance is written as in its address, without brackets: nothing for a single
/// instance, `0` for an index, `"blue"` for a key.
pub(crate) fn owner_mark(scope: &str, namespace: &str, address: &str) -> String {
    let (name, instance) = match address.parse::<Address>() {
        Ok(Address { name, key: InstanceKey::None }) => (name.to_string(), String::new()),
        Ok(Address { name, key }) => {
            let text = key.to_string();
            (name.to_string(), text.trim_start_matches('[').trim_end_matches(']').to_owned())
        }
        Err(_) => (address.to_owned(), String::new()),
    };
    format!("{scope}/{namespace}/{name}/{instance}")
}

/// A name with `prefix`, with a suffix drawn from the given random bytes.
pub(crate) fn drawn_name(prefix: &str, entropy: [u8; 16]) -> String {
    let mut number = u128::from_le_bytes(entropy);
    let cut = prefix.char_indices().nth(LONGEST_PREFIX).map_or(prefix, |(end, _)| &prefix[..end]);
    let mut name = cut.to_owned();
    for _ in 0..SUFFIX_LENGTH {
        let letter = usize::try_from(number % SUFFIX_ALPHABET.len() as u128).unwrap_or_default();
        name.push(char::from(SUFFIX_ALPHABET[letter]));
        number /= SUFFIX_ALPHABET.len() as u128;
    }
    name
}

/// Whether a text has the form of an API version: `v1`, `v2beta1`.
fn is_version(text: &str) -> bool {
    let mut chars = text.strip_prefix('v').unwrap_or_default().chars();
    chars.next().is_some_and(|c| c.is_ascii_digit()) && chars.all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_ids_read_back_as_they_are_printed() {
        for id in ["v1/ConfigMap/shop/site", "apps/v1/Deployment/shop/web", "v1/Namespace/shop", "x.io/v1beta1/Thing/a"]
        {
            assert_eq!(Target::from_import_id(id).unwrap().import_id(), id);
        }
        for id in ["", "site", "ConfigMap/site", "v1/ConfigMap", "v1/ConfigMap//x", "v1/ConfigMap/a/b/c", "v1//x"] {
            assert_eq!(Target::from_import_id(id), None, "{id}");
        }
    }

    #[test]
    fn drawn_names_depend_on_the_random_bytes_only_and_stay_short() {
        assert_eq!(drawn_name("web-", [7; 16]), drawn_name("web-", [7; 16]));
        assert_ne!(drawn_name("web-", [7; 16]), drawn_name("web-", [8; 16]));
        let long = drawn_name(&"x".repeat(100), [7; 16]);
        assert_eq!(long.len(), 63);
        assert!(drawn_name("web-", [7; 16]).bytes().skip(4).all(|byte| SUFFIX_ALPHABET.contains(&byte)));
    }

    #[test]
    fn owner_marks_name_the_instance_unambiguously() {
        let mark = |address: &str| owner_mark("uid", "shop", address);
        assert_eq!(mark("web"), "uid/shop/web/");
        assert_eq!(mark("web[0]"), "uid/shop/web/0");
        assert_eq!(mark(r#"web["0"]"#), r#"uid/shop/web/"0""#);
    }

    #[test]
    fn versions_of_one_group_are_views_of_one_object() {
        let target = |id: &str| Target::from_import_id(id).unwrap();
        assert_eq!(target("x.io/v1/T/a/b").identity(), target("x.io/v2/T/a/b").identity());
        assert_ne!(target("x.io/v1/T/a/b").identity(), target("y.io/v1/T/a/b").identity());
    }
}
