//! The addresses of modules, resources and their instances, in the form that Terraform shows.

use std::fmt;
use std::sync::Arc;

use hcl::{Literal, Step, Traversal};

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

impl ResourceName {
    /// The local name of the provider, unless the block names another one: the first word of the type.
    pub fn implied_provider(&self) -> Arc<str> {
        self.kind.split('_').next().unwrap_or_default().into()
    }
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

/// What `moved` and `removed` blocks name: a module, a resource, or an instance of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The calls on the way. One without a key stands for all instances of the call.
    pub module: ModulePath,
    /// The resource, and which instance of it; every one without a key. Without a resource it is the module.
    pub resource: Option<(ResourceName, Option<Key>)>,
}

impl Target {
    /// Reads the address of a resource, a module, or an instance of one. `None` if it is something else.
    ///
    /// ```
    /// let parsed = hcl::parse_traversal(hcl::Source::new(hcl::FileId(0), "", "module.a[\"x\"].aws_vpc.b[0]"));
    /// let target = configuration::Target::parse(&parsed.value.unwrap()).unwrap();
    /// assert_eq!(target.to_string(), "module.a[\"x\"].aws_vpc.b[0]");
    /// ```
    pub fn parse(traversal: &Traversal) -> Option<Self> {
        let mut words = Words { root: Some(&traversal.root.text), steps: &traversal.steps };
        let mut path = Vec::new();
        loop {
            let mode = match words.word()? {
                "module" => {
                    path.push(ModuleStep { name: words.word()?.into(), key: words.key() });
                    if words.steps.is_empty() {
                        return Some(Self { module: ModulePath(path.into()), resource: None });
                    }
                    continue;
                }
                "data" => Mode::Data,
                "ephemeral" => Mode::Ephemeral,
                "resource" => Mode::Managed,
                "var" | "local" | "each" | "count" | "self" | "path" | "terraform" => return None,
                kind => return words.resource(path, Mode::Managed, kind),
            };
            let kind = words.word()?;
            return words.resource(path, mode, kind);
        }
    }
}

/// The parts of an address that are left to read.
struct Words<'a> {
    root: Option<&'a str>,
    steps: &'a [Step],
}

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<&'a str> {
        if let Some(root) = self.root.take() {
            return Some(root);
        }
        let (Step::Attribute(name), rest) = self.steps.split_first()? else { return None };
        self.steps = rest;
        Some(&name.text)
    }

    fn key(&mut self) -> Option<Key> {
        let (first, rest) = self.steps.split_first()?;
        let key = Key::of_step(first)?;
        self.steps = rest;
        Some(key)
    }

    fn resource(mut self, path: Vec<ModuleStep>, mode: Mode, kind: &str) -> Option<Target> {
        let name = ResourceName { mode, kind: kind.into(), name: self.word()?.into() };
        let key = self.key();
        self.steps.is_empty().then(|| Target { module: ModulePath(path.into()), resource: Some((name, key)) })
    }
}

impl Key {
    /// The key that an index is.
    pub(crate) fn of_step(step: &Step) -> Option<Self> {
        match step {
            Step::Index { key: Literal::Number(digits), .. } => digits.parse().ok().map(Key::Int),
            Step::Index { key: Literal::String(text), .. } => Some(Key::Text(text.as_str().into())),
            _ => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resource {
            None => write!(f, "{}", self.module),
            Some((name, key)) => {
                f.write_str(&self.module.join(name))?;
                write_key(f, key.as_ref())
            }
        }
    }
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
