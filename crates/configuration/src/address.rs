//! The addresses of modules, resources and their instances, in the form that Terraform shows.

use std::fmt;
use std::sync::Arc;

/// What stands in brackets after the name of something that is repeated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// An index of `count`.
    Int(u64),
    /// A key of `for_each`.
    Text(Arc<str>),
}

/// A module call in the path of a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleStep {
    /// The name of the call.
    pub name: Arc<str>,
    /// Which instance of it.
    pub key: Option<Key>,
}

/// The calls from the root module to a module instance. Empty for the root module.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModulePath(pub Arc<[ModuleStep]>);

impl ModulePath {
    /// The path of an instance of a call in this module.
    #[must_use]
    pub fn child(&self, name: &str, key: Option<Key>) -> Self {
        let last = ModuleStep { name: name.into(), key };
        Self(self.0.iter().cloned().chain([last]).collect())
    }

    /// The name of something in this module.
    pub fn join(&self, what: impl fmt::Display) -> String {
        if self.0.is_empty() { what.to_string() } else { format!("{self}.{what}") }
    }
}

/// What kind of object a block describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A `resource` block.
    Managed,
    /// A `data` block.
    Data,
    /// An `ephemeral` block.
    Ephemeral,
}

impl Mode {
    /// The type of the block.
    pub fn block(self) -> &'static str {
        match self {
            Mode::Managed => "resource",
            Mode::Data => "data",
            Mode::Ephemeral => "ephemeral",
        }
    }
}

/// A resource block, as it is named in its own module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName {
    /// The kind of block.
    pub mode: Mode,
    /// The resource type, such as `aws_vpc`.
    pub kind: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// A resource block in an instance of its module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceAddress {
    /// The module instance.
    pub module: ModulePath,
    /// The resource in it.
    pub resource: ResourceName,
}

/// One object of a resource block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceAddress {
    /// The block.
    pub resource: ResourceAddress,
    /// Which instance of it.
    pub key: Option<Key>,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Int(index) => write!(f, "[{index}]"),
            Key::Text(key) => {
                let key = key.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                write!(f, "[\"{}\"]", key.replace("${", "$${").replace("%{", "%%{"))
            }
        }
    }
}

fn write_key(f: &mut fmt::Formatter<'_>, key: Option<&Key>) -> fmt::Result {
    key.map_or(Ok(()), |key| write!(f, "{key}"))
}

impl fmt::Display for ModulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            write!(f, "{}module.{}", if position == 0 { "" } else { "." }, step.name)?;
            write_key(f, step.key.as_ref())?;
        }
        Ok(())
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.mode {
            Mode::Managed => "",
            Mode::Data => "data.",
            Mode::Ephemeral => "ephemeral.",
        };
        write!(f, "{prefix}{}.{}", self.kind, self.name)
    }
}

impl fmt::Display for ResourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.module.join(&self.resource))
    }
}

impl fmt::Display for InstanceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource)?;
        write_key(f, self.key.as_ref())
    }
}
