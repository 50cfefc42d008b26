//! What a name in an expression refers to.

use std::sync::Arc;

use hcl::{Diagnostic, Name, Range, Step, Traversal};

use crate::address::{Key, Mode, ResourceName};

/// A reference: what it names, and how many of its steps that takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub subject: Subject,
    pub steps: usize,
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    Variable(Arc<str>),
    Local(Arc<str>),
    /// `module.a`, and what is written after it: a key and the name of an output.
    Module {
        call: Arc<str>,
        key: Option<Key>,
        output: Option<Arc<str>>,
    },
    /// With the key that is written after it.
    Resource(ResourceName, Option<Key>),
    CountIndex,
    EachKey,
    EachValue,
    Own,
    Path(PathName),
    Workspace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathName {
    Module,
    Root,
    Cwd,
}

const INVALID: &str = "Invalid reference";

impl Reference {
    pub fn parse(traversal: &Traversal) -> Result<Self, Diagnostic> {
        let reader = Reader { steps: &traversal.steps, range: traversal.range };
        let (subject, steps) = match traversal.root.text.as_str() {
            "var" => (Subject::Variable(reader.name(0, "var", "the name of a variable")?), 1),
            "local" => (Subject::Local(reader.name(0, "local", "the name of a local value")?), 1),
            "module" => reader.module()?,
            "resource" => reader.resource(Mode::Managed, 0)?,
            "data" => reader.resource(Mode::Data, 0)?,
            "ephemeral" => reader.resource(Mode::Ephemeral, 0)?,
            "count" => (reader.word("count", &[("index", Subject::CountIndex)])?, 1),
            "each" => (reader.word("each", &[("key", Subject::EachKey), ("value", Subject::EachValue)])?, 1),
            "self" => (Subject::Own, 0),
            "path" => {
                let names = [("module", PathName::Module), ("root", PathName::Root), ("cwd", PathName::Cwd)];
                (reader.word("path", &names.map(|(name, path)| (name, Subject::Path(path))))?, 1)
            }
            "terraform" | "tofu" => (reader.word("terraform", &[("workspace", Subject::Workspace)])?, 1),
            _ => reader.managed(&traversal.root)?,
        };
        Ok(Self { subject, steps, range: traversal.range })
    }
}

struct Reader<'a> {
    steps: &'a [Step],
    range: Range,
}

impl Reader<'_> {
    fn error(&self, detail: String) -> Diagnostic {
        Diagnostic::new(INVALID, detail, self.range)
    }

    fn name(&self, at: usize, root: &str, what: &str) -> Result<Arc<str>, Diagnostic> {
        match self.steps.get(at) {
            Some(Step::Attribute(name)) => Ok(name.text.as_str().into()),
            _ => Err(self.error(format!("`{root}` has to be followed by a dot and {what}."))),
        }
    }

    fn word(&self, root: &str, words: &[(&str, Subject)]) -> Result<Subject, Diagnostic> {
        let name = self.name(0, root, "a name")?;
        let found = words.iter().find(|(word, _)| *word == &*name).map(|(_, subject)| subject.clone());
        found.ok_or_else(|| {
            let names: Vec<String> = words.iter().map(|(word, _)| format!("`{root}.{word}`")).collect();
            let detail = format!("There is no `{root}.{name}`.");
            Diagnostic::new(format!("Invalid \"{root}\" attribute"), detail, self.range)
                .hint(format!("there is {}", names.join(", ")))
        })
    }

    fn key(&self, at: usize) -> Option<Key> {
        Key::of_step(self.steps.get(at)?)
    }

    fn module(&self) -> Result<(Subject, usize), Diagnostic> {
        let call = self.name(0, "module", "the name of a module call")?;
        let key = self.key(1);
        let next = 1 + usize::from(key.is_some());
        let output = match self.steps.get(next) {
            Some(Step::Attribute(name)) => Some(name.text.as_str().into()),
            _ => None,
        };
        let steps = next + usize::from(output.is_some());
        Ok((Subject::Module { call, key, output }, steps))
    }

    fn resource(&self, mode: Mode, at: usize) -> Result<(Subject, usize), Diagnostic> {
        let kind = self.name(at, mode.block(), "a resource type")?;
        let name = self.name(at + 1, &kind, "the name of a resource")?;
        let key = self.key(at + 2);
        Ok((Subject::Resource(ResourceName { mode, kind, name }, key), at + 2))
    }

    fn managed(&self, root: &Name) -> Result<(Subject, usize), Diagnostic> {
        match self.steps.first() {
            Some(Step::Attribute(name)) => {
                let resource = ResourceName {
                    mode: Mode::Managed,
                    kind: root.text.as_str().into(),
                    name: name.text.as_str().into(),
                };
                Ok((Subject::Resource(resource, self.key(1)), 1))
            }
            _ => {
                let detail = format!("`{}` is the name of nothing here.", root.text);
                let hint = format!("a variable is `var.{0}`, a local value `local.{0}`, and a text \"{0}\"", root.text);
                Err(self.error(detail).hint(hint))
            }
        }
    }
}
