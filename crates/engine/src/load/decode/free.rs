//! The fields of a Resource whose content has no schema. They stay trees, which have lines and every digit of numbers.

use super::Kind;
use crate::load::tree::{Node, Tree};

/// The free fields. Each is absent where the spec lacks it.
#[derive(Default)]
pub struct FreeFields<'a> {
    /// `config`, or the `variables` of a Module.
    pub config: Option<&'a Tree>,
    pub count: Option<&'a Tree>,
    pub for_each: Option<&'a Tree>,
    pub enabled: Option<&'a Tree>,
    /// `lifecycle.preventDestroy`.
    pub prevent_destroy: Option<&'a Tree>,
    /// `import.identity`.
    pub identity: Option<&'a Tree>,
    /// `job.template` of each hook.
    pub jobs: Vec<Option<&'a Tree>>,
}

impl<'a> FreeFields<'a> {
    /// Returns the fields of the `spec` of this kind.
    pub fn of_tree(kind: Kind, spec: Option<&'a Tree>) -> Self {
        let Some(spec) = spec else { return Self::default() };
        let hooks = match spec.get("hooks").map(|hooks| &hooks.node) {
            Some(Node::List(hooks)) => hooks.as_slice(),
            _ => &[],
        };
        Self {
            config: field(spec, &[kind.arguments()]),
            count: field(spec, &["count"]),
            for_each: field(spec, &["forEach"]),
            enabled: set_field(spec, &["enabled"]),
            prevent_destroy: set_field(spec, &["lifecycle", "preventDestroy"]),
            identity: set_field(spec, &["import", "identity"]),
            jobs: hooks.iter().map(|hook| field(hook, &["job", "template"])).collect(),
        }
    }
}

fn field<'a>(tree: &'a Tree, path: &[&str]) -> Option<&'a Tree> {
    path.iter().try_fold(tree, |tree, key| tree.get(key))
}

/// The field if it is not null.
fn set_field<'a>(tree: &'a Tree, path: &[&str]) -> Option<&'a Tree> {
    field(tree, path).filter(|tree| tree.node != Node::Null)
}
