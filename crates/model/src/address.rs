//! Addresses: `name`, `name[0]`, `name["key"]`, and the keys of deposed objects.

use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::kube_names::is_label;
use super::names::Name;
use super::qualified;
use super::shared::{self, Text};

/// The instance of a family. Sorted as: none, all, indexes by value, keys by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InstanceKey {
    /// A Resource without `count` and `forEach`.
    #[default]
    #[serde(rename = "n")]
    None,
    /// All instances of a family. Only a dependency can have this key. It is displayed like [`Self::None`] and never
    /// parsed, because the same name can become a family later, and this must not change the meaning of a record.
    #[serde(rename = "a")]
    All,
    /// An instance of a Resource with `count`.
    #[serde(rename = "i")]
    Index(u64),
    /// An instance of a Resource with `forEach`.
    #[serde(rename = "k")]
    Key(#[serde(deserialize_with = "shared::text")] Arc<str>),
}

/// An address without its key: what names a Resource, a DataSource, or a block of a Terraform configuration. All instances share it.
/// A module call has one too; its instances are module instances.
///
/// Sorted by name, and in a configuration by the text of the block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stem {
    /// The `metadata.name` of a Resource, `data.` and the name of a DataSource, or the name of a Module and `/`. So objects of
    /// different kinds with the same name are kept apart. All blocks of a configuration have one name: that of its Module, which
    /// is empty on files.
    pub name: Name,
    /// What the configuration calls it: `module.a[0].aws_vpc.main`. `None`: it is no block of a configuration.
    pub part: Option<Arc<str>>,
}

/// The address of an object in a namespace, in configuration and in records.
///
/// Sorted by stem, then by instance key. This is the "address order" of the ordering rules.
///
/// It is a string in text. In records, it is its fields: in the string, an object and all instances of a family look the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub stem: Stem,
    pub key: InstanceKey,
}

/// The prefix of DataSources in addresses.
const DATA: &str = "data.";

/// What ends the name of a Module in addresses: `network/aws_vpc.main`.
const OF_MODULE: char = '/';

impl Stem {
    /// A block of a configuration.
    pub fn in_configuration(name: Name, part: impl Into<Arc<str>>) -> Self {
        Self { name, part: Some(part.into()) }
    }

    /// The address without a key.
    pub fn single(self) -> Address {
        Address { stem: self, key: InstanceKey::None }
    }

    /// The address of all instances.
    pub fn family(self) -> Address {
        Address { stem: self, key: InstanceKey::All }
    }

    /// The address of an instance.
    pub fn instance(self, key: InstanceKey) -> Address {
        Address { stem: self, key }
    }

    /// What tells it from others with the same name: what the configuration calls it, or the name.
    pub fn text(&self) -> &Arc<str> {
        self.part.as_ref().unwrap_or(self.name.text())
    }

    /// Reads its text as records have it. A name and a block of a configuration differ in their form. What users write is not read
    /// like this: they would name blocks of a configuration where only Resources are meant.
    pub fn parse(text: Arc<str>) -> Self {
        let (module, part) = split_module(&text);
        match part.strip_prefix(DATA).unwrap_or(part).contains('.') {
            false => Self { name: text.into(), part: None },
            true if module.is_empty() => Self::in_configuration(Name::default(), text),
            true => Self::in_configuration(shared::share(module).into(), shared::share(part)),
        }
    }
}

/// Splits the name of a Module, with what ends it, from what comes after it. Without one, the name is empty.
fn split_module(text: &str) -> (&str, &str) {
    let end = text.find(OF_MODULE).filter(|end| is_label(&text[..*end]));
    text.split_at(end.map_or(0, |end| end + OF_MODULE.len_utf8()))
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            None => f.write_str(&self.name),
            Some(part) => write!(f, "{}{part}", self.name),
        }
    }
}

impl From<Name> for Stem {
    fn from(name: Name) -> Self {
        Self { name, part: None }
    }
}

impl From<&str> for Stem {
    fn from(name: &str) -> Self {
        Name::from(name).into()
    }
}

impl From<Arc<str>> for Stem {
    fn from(name: Arc<str>) -> Self {
        Name::from(name).into()
    }
}

impl From<String> for Stem {
    fn from(name: String) -> Self {
        Name::from(name).into()
    }
}

impl Address {
    /// Returns the address of a DataSource without `count` and `forEach`.
    pub fn data(name: &str) -> Self {
        Stem::from(Name::from(format!("{DATA}{name}"))).single()
    }

    /// Returns the address of a Module.
    pub fn module(name: &str) -> Self {
        Stem::from(Name::from(format!("{name}{OF_MODULE}"))).single()
    }

    /// What has the status of the object: its Resource or DataSource, or the Module of its configuration.
    pub fn name(&self) -> &Name {
        &self.stem.name
    }

    /// Whether this is the address of a DataSource, or of a data source of Terraform's.
    pub fn is_data(&self) -> bool {
        match &self.stem.part {
            Some(part) => qualified::in_module(part).starts_with(DATA),
            None => self.stem.name.starts_with(DATA),
        }
    }

    /// Returns the `metadata.name` of the Resource, DataSource or Module.
    pub fn object_name(&self) -> &str {
        let name = self.stem.name.strip_suffix(OF_MODULE).unwrap_or(&self.stem.name);
        if self.is_qualified() { name } else { name.strip_prefix(DATA).unwrap_or(name) }
    }

    /// Whether this is the address of a Module.
    pub fn is_module(&self) -> bool {
        self.stem.part.is_none() && self.stem.name.ends_with(OF_MODULE)
    }

    /// Whether this is an object of a Terraform configuration, or a module call.
    pub fn is_qualified(&self) -> bool {
        self.stem.part.is_some()
    }

    /// The module calls around an object of a configuration, without the keys of the last one: `module.a` and
    /// `module.a[0].module.b` around `module.a[0].module.b["x"].aws_vpc.main`.
    pub fn groups(&self) -> impl Iterator<Item = Stem> {
        let calls = self.stem.part.as_deref().into_iter().flat_map(qualified::calls);
        calls.map(|call| Stem::in_configuration(self.stem.name.clone(), call))
    }

    /// The kind of what has the status of the object.
    pub fn kind(&self) -> &'static str {
        match () {
            () if self.stem.name.ends_with(OF_MODULE) => "Module",
            () if self.is_data() => "DataSource",
            () => "Resource",
        }
    }

    /// Returns the address of what has neither `count` nor `forEach`.
    pub fn single(stem: impl Into<Stem>) -> Self {
        stem.into().single()
    }

    /// Returns the address of all instances of a family.
    pub fn family(stem: impl Into<Stem>) -> Self {
        stem.into().family()
    }

    /// Returns the address as in expressions, where the plain name refers to all instances of a family.
    #[must_use]
    pub fn as_reference(&self) -> Self {
        let key = if self.key == InstanceKey::All { InstanceKey::None } else { self.key.clone() };
        Self { stem: self.stem.clone(), key }
    }

    /// Whether it is that of a Resource or DataSource without instances.
    pub fn is_single(&self) -> bool {
        self.stem.part.is_none() && self.key == InstanceKey::None
    }

    pub fn is_instance(&self) -> bool {
        matches!(self.key, InstanceKey::Index(_) | InstanceKey::Key(_))
    }

    /// Returns the name in expressions, where `_` replaces `-`.
    pub fn identifier(&self) -> String {
        self.stem.name.replace('-', "_")
    }

    /// The address as one word of a shell, for a command that a user copies.
    pub fn shell_word(&self) -> String {
        match self.key {
            InstanceKey::None => self.to_string(),
            _ => format!("'{}'", self.to_string().replace('\'', "'\\''")),
        }
    }
}

impl InstanceKey {
    /// Reads what stands in brackets.
    pub(crate) fn parse(inner: &str) -> Option<Self> {
        match inner.starts_with('"') {
            true => serde_json::from_str::<String>(inner).ok().map(|key| Self::Key(key.into())),
            false => inner.parse().ok().map(Self::Index),
        }
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None | Self::All => Ok(()),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_ref())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.stem, self.key)
    }
}

/// The error of a string that is not an address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a valid address (hint: write `name`, `name[0]` or `name[\"key\"]`, `data.name` for a DataSource, and \
     `name/ADDRESS` for an object of a Module)"
)]
pub struct InvalidAddress(pub String);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        let (module, inner) = split_module(text);
        if let Some((part, key)) = qualified::split(inner) {
            return Ok(Stem::in_configuration(module.into(), part).instance(key));
        }
        if !module.is_empty() && inner.is_empty() {
            return Ok(Self::single(module));
        }
        let (name, rest) = match text.find('[') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        if !is_label(name.strip_prefix(DATA).unwrap_or(name)) {
            return Err(invalid());
        }
        let key = if rest.is_empty() {
            InstanceKey::None
        } else {
            let inner = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(invalid)?;
            InstanceKey::parse(inner).ok_or_else(invalid)?
        };
        Ok(Stem::from(Name::from(name)).instance(key))
    }
}

impl Serialize for Stem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(text)| Self::parse(text))
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => (&self.stem, &self.key).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            let (stem, key) = Deserialize::deserialize(deserializer)?;
            return Ok(Self { stem, key });
        }
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Returns the entries of all objects with a name, in address order: the instances of a Resource, or all objects of a Module.
pub fn in_family<'m, T>(
    map: &'m BTreeMap<Address, T>,
    name: &'m Name,
) -> impl Iterator<Item = (&'m Address, &'m T)> + use<'m, T> {
    map.range(Address::single(name.clone())..).take_while(move |(address, _)| address.name() == name)
}

/// Returns the entries of all instances of a stem, in address order.
pub fn in_stem<'m, T>(
    map: &'m BTreeMap<Address, T>,
    stem: &'m Stem,
) -> impl Iterator<Item = (&'m Address, &'m T)> + use<'m, T> {
    map.range(Address::single(stem.clone())..).take_while(move |(address, _)| address.stem == *stem)
}

/// The key of a deposed object: eight hexadecimal digits, as in Terraform. The caller generates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeposedKey(pub u32);

impl fmt::Display for DeposedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for DeposedKey {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u32::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for DeposedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeposedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_addresses_can_be_parsed() {
        for text in ["web", "web[0]", r#"web["blue"]"#, r#"web["a\"]["]"#, "data.web", r#"data.web["a"]"#, "data"] {
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "Web", "web[", "web[x]", "web[-1]", "web[\"a]", "a.b.c", "data.", "data.a.", ".a", "a.-b"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_of_terraform_have_the_module_and_the_type_in_the_name() {
        let parsed = |text: &str| text.parse::<Address>().map(|address| (address.stem.to_string(), address.key));
        for (text, name, expected) in [
            ("aws_vpc.main", "aws_vpc.main", InstanceKey::None),
            ("aws_vpc.main[0]", "aws_vpc.main", InstanceKey::Index(0)),
            (r#"data.aws_ami.A_b-1["x.y]"]"#, "data.aws_ami.A_b-1", InstanceKey::Key("x.y]".into())),
            ("module.a", "module.a", InstanceKey::None),
            ("module.a[0].module.b[1]", "module.a[0].module.b", InstanceKey::Index(1)),
            (
                r#"module.a["x.module.y"].module.b[3].t.n["k"]"#,
                r#"module.a["x.module.y"].module.b[3].t.n"#,
                InstanceKey::Key("k".into()),
            ),
            ("module.a.data.t.n", "module.a.data.t.n", InstanceKey::None),
        ] {
            assert_eq!(parsed(text), Ok((name.to_owned(), expected)));
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
            assert!(Stem::parse(name.into()).single().is_qualified());
        }
        for text in ["module.", "module.a.", "module.a[x].t.n", "module.a.t", "t.n.m", "t.n[", "data.t.n.m"] {
            assert!(parsed(text).is_err(), "{text}");
        }
        let single = |text: &str| Stem::parse(text.into()).single();
        assert!(single("module.a[0].data.t.n").is_data() && !single("module.data.t.n").is_data());
        let inner = single(r#"module.a["]."].module.b[3].t.n"#);
        let groups: Vec<String> = inner.groups().map(|group| group.to_string()).collect();
        assert_eq!(groups, ["module.a", r#"module.a["]."].module.b"#]);
        assert!(!Address::single("web").is_qualified() && !Address::data("web").is_qualified());
    }

    #[test]
    fn the_objects_of_a_module_have_its_name() {
        for (text, name, part) in [
            ("network/", "network/", None),
            ("network/aws_vpc.main", "network/", Some("aws_vpc.main")),
            (r#"network/module.a["x/y"].t.n["a/b"]"#, "network/", Some(r#"module.a["x/y"].t.n"#)),
            (r#"module.a["x/y"].t.n"#, "", Some(r#"module.a["x/y"].t.n"#)),
            ("network", "network", None),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((&**address.name(), address.stem.part.as_deref()), (name, part));
            assert_eq!(address.to_string(), text);
            assert_eq!(Stem::parse(address.stem.to_string().into()), address.stem);
        }
        for text in ["/t.n", "Net/t.n", "network/web", "network/[0]", "network//", "a/b/t.n"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        let all: BTreeMap<Address, usize> = ["net", "net-2", "net/", "net/t.a", "net/t.b[0]", "net/t.b[1]", "neu"]
            .map(|text| (text.parse().unwrap(), text.len()))
            .into();
        assert_eq!(in_family(&all, &"net".into()).count(), 1);
        assert_eq!(in_family(&all, &"net/".into()).count(), 4);
        assert_eq!(in_stem(&all, &Stem::parse("net/t.b".into())).count(), 2);
    }

    #[test]
    fn a_data_source_differs_from_a_resource_with_the_same_name() {
        let (resource, data) = (Address::single("web"), Address::data("web"));
        assert_ne!(resource, data);
        assert!(data.is_data() && !resource.is_data() && !Address::single("data").is_data());
        assert_eq!((data.object_name(), data.kind(), data.identifier()), ("web", "DataSource", "data.web".to_owned()));
    }

    #[test]
    fn indexes_are_sorted_by_value() {
        let mut all: Vec<Address> = ["b", "a[10]", "a[9]", "a"].iter().map(|t| t.parse().unwrap()).collect();
        all.sort();
        assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "a[9]", "a[10]", "b"]);
    }
}
