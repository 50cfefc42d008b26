//! Terraform addresses: modules with their keys, types and names.

use std::fmt;

use model::InstanceKey;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// From `count`.
    Index(u64),
    /// From `for_each`.
    Key(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str())),
        }
    }
}

/// The key of an instance; `None` without `count` and `for_each`.
pub fn instance_key(key: Option<&Key>) -> InstanceKey {
    match key {
        None => InstanceKey::None,
        Some(Key::Index(index)) => InstanceKey::Index(*index),
        Some(Key::Key(key)) => InstanceKey::Key(key.as_str().into()),
    }
}

/// One step of a module path: the name, and the key if the module has `count` or `for_each`.
pub type ModuleStep = (String, Option<Key>);

/// The address of a resource, without instance key: `module.a["k"].TYPE.NAME`, or `data.TYPE.NAME` for a data source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceAddress {
    /// The outermost module first. Empty in the root module.
    pub module: Vec<ModuleStep>,
    pub is_data: bool,
    pub type_name: String,
    pub name: String,
}

impl ResourceAddress {
    /// The names of its modules, without keys.
    pub fn modules(&self) -> Vec<&str> {
        module_names(&self.module)
    }

    /// The address in the configuration: without the keys of modules.
    pub fn in_configuration(&self) -> String {
        let modules: String = self.module.iter().map(|(name, _)| format!("module.{name}.")).collect();
        format!("{modules}{}{}.{}", self.mode(), self.type_name, self.name)
    }

    /// The prefix of the type.
    fn mode(&self) -> &'static str {
        if self.is_data { "data." } else { "" }
    }

    /// The number of leading modules that both paths have in common.
    pub fn shared_modules(&self, other: &Self) -> usize {
        self.module.iter().zip(&other.module).take_while(|(a, b)| a == b).count()
    }
}

impl fmt::Display for ResourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, key) in &self.module {
            write!(f, "module.{name}")?;
            key.as_ref().map_or(Ok(()), |key| write!(f, "{key}"))?;
            f.write_str(".")?;
        }
        write!(f, "{}{}.{}", self.mode(), self.type_name, self.name)
    }
}

pub fn module_names(path: &[ModuleStep]) -> Vec<&str> {
    path.iter().map(|(name, _)| name.as_str()).collect()
}

/// Splits an address at its dots, except those in keys, into names with keys. `None`: the syntax is invalid.
pub fn parts(text: &str) -> Option<Vec<(String, Option<Key>)>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inner) => {
                let (key, after) = key(inner)?;
                (Some(key), after)
            }
        };
        if name.is_empty() {
            return None;
        }
        found.push((name.to_owned(), key));
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(found),
            None => return None,
        }
    }
}

/// Parses a key. Returns it with the rest after the closing bracket.
fn key(text: &str) -> Option<(Key, &str)> {
    if !text.starts_with('"') {
        let (digits, after) = text.split_once(']')?;
        return Some((Key::Index(digits.parse().ok()?), after));
    }
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (literal, after) = text.split_at(end + 2);
    Some((Key::Key(serde_json::from_str(literal).ok()?), after.strip_prefix(']')?))
}

/// Parses a module path: `module.a["k"].module.b`. `None`: the syntax is invalid.
pub fn module(text: &str) -> Option<Vec<ModuleStep>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let parts = parts(text)?;
    let pairs = parts.chunks(2).map(|pair| match pair {
        [(word, None), step] if word == "module" => Some(step.clone()),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_at_dots_outside_keys() {
        let modules = module(r#"module.app["eu.west]\""].module.disks[2]"#).unwrap();
        let app = ("app".to_owned(), Some(Key::Key("eu.west]\"".into())));
        assert_eq!(modules, [app, ("disks".to_owned(), Some(Key::Index(2)))]);
        let (type_name, name) = ("random_pet".to_owned(), "this".to_owned());
        let address = ResourceAddress { module: modules, is_data: false, type_name, name };
        assert_eq!(address.to_string(), r#"module.app["eu.west]\""].module.disks[2].random_pet.this"#);
        assert_eq!(address.in_configuration(), "module.app.module.disks.random_pet.this");
        let data = ResourceAddress { is_data: true, ..address };
        assert_eq!(data.in_configuration(), "module.app.module.disks.data.random_pet.this");
        assert_eq!(module(""), Some(Vec::new()));
        for text in ["module", "module.a.b", "a.b", "module.a[", "module.a[x]", "module..a"] {
            assert_eq!(module(text), None, "{text}");
        }
    }
}
