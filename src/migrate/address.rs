//! Terraform's addresses: modules with their keys, types and names.

use std::fmt;

use crate::model::InstanceKey;

/// The key of a module or of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Of `count`.
    Index(u64),
    /// Of `for_each`.
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

impl From<Option<&Key>> for InstanceKey {
    fn from(key: Option<&Key>) -> Self {
        match key {
            None => Self::None,
            Some(Key::Index(index)) => Self::Index(*index),
            Some(Key::Key(key)) => Self::Key(key.as_str().into()),
        }
    }
}

/// One step of a path of modules: its name, and its key when there are several of it.
pub type ModuleStep = (String, Option<Key>);

/// A resource of a state, with all of its instances: `module.a["k"].TYPE.NAME`; `data.TYPE.NAME` of what is only read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceAddress {
    /// From the outermost module on; empty in the root module.
    pub module: Vec<ModuleStep>,
    /// It is a data source.
    pub is_data: bool,
    /// The resource type.
    pub type_name: String,
    /// Its name in the module.
    pub name: String,
}

impl ResourceAddress {
    /// The names of its modules, as configuration names them.
    pub fn modules(&self) -> Vec<&str> {
        module_names(&self.module)
    }

    /// The same as configuration names it: without the keys of modules.
    pub fn in_configuration(&self) -> String {
        let modules: String = self.module.iter().map(|(name, _)| format!("module.{name}.")).collect();
        format!("{modules}{}{}.{}", self.mode(), self.type_name, self.name)
    }

    /// What stands before its type.
    fn mode(&self) -> &'static str {
        if self.is_data { "data." } else { "" }
    }

    /// How many modules of the path it shares with another one, from the outermost on.
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

/// The names of a path of modules.
pub fn module_names(path: &[ModuleStep]) -> Vec<&str> {
    path.iter().map(|(name, _)| name.as_str()).collect()
}

/// Splits an address at its dots, not at those in keys: each part with its key. `None`: it is none.
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

/// A key and what comes after its bracket.
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

/// A path of modules, `module.a["k"].module.b`. `None`: it is none.
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
    fn addresses_are_split_at_dots_outside_of_keys() {
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
