//! The fields of a Resource whose content has no schema. They stay trees, which have lines and every digit of numbers.

use crate::load::intern::Interner;
use crate::load::tree::{Node, Tree};
use std::borrow::Cow;

/// The free fields. Each is absent where the spec lacks it.
#[derive(Default)]
pub struct FreeFields<'a> {
    pub config: Option<Cow<'a, Tree>>,
    pub count: Option<Cow<'a, Tree>>,
    pub for_each: Option<Cow<'a, Tree>>,
    pub enabled: Option<Cow<'a, Tree>>,
    /// `lifecycle.preventDestroy`.
    pub prevent_destroy: Option<Cow<'a, Tree>>,
    /// `import.identity`.
    pub identity: Option<Cow<'a, Tree>>,
    /// `job.template` of each hook.
    pub jobs: Vec<Option<Cow<'a, Tree>>>,
}

impl<'a> FreeFields<'a> {
    /// Returns the fields of the `spec` in a file.
    pub fn of_tree(spec: Option<&'a Tree>) -> Self {
        let Some(spec) = spec else { return Self::default() };
        let hooks = match spec.get("hooks").map(|hooks| &hooks.node) {
            Some(Node::List(hooks)) => hooks.as_slice(),
            _ => &[],
        };
        Self {
            config: field(spec, &["config"]),
            count: field(spec, &["count"]),
            for_each: field(spec, &["forEach"]),
            enabled: set_field(spec, &["enabled"]),
            prevent_destroy: set_field(spec, &["lifecycle", "preventDestroy"]),
            identity: set_field(spec, &["import", "identity"]),
            jobs: hooks.iter().map(|hook| field(hook, &["job", "template"])).collect(),
        }
    }

    /// Returns the fields of a `spec` from the API server.
    pub fn of_spec(spec: &api::ResourceSpec, interner: &mut Interner) -> Self {
        let prevent_destroy = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.prevent_destroy.as_ref());
        let identity = spec.import.as_ref().and_then(|import| import.identity.as_ref());
        let [count, for_each, enabled, prevent_destroy, identity] =
            [spec.count.as_ref(), spec.for_each.as_ref(), spec.enabled.as_ref(), prevent_destroy, identity]
                .map(|json| json.map(|json| Cow::Owned(Tree::from_json(json, interner))));
        let config = Some(Cow::Owned(Tree::from_json_map(&spec.config, interner)));
        let jobs = spec
            .hooks
            .iter()
            .map(|hook| Some(Cow::Owned(Tree::from_json_map(&hook.job.as_ref()?.template, interner))))
            .collect();
        Self { config, count, for_each, enabled, prevent_destroy, identity, jobs }
    }
}

fn field<'a>(tree: &'a Tree, path: &[&str]) -> Option<Cow<'a, Tree>> {
    path.iter().try_fold(tree, |tree, key| tree.get(key)).map(Cow::Borrowed)
}

/// The field if it is not null.
fn set_field<'a>(tree: &'a Tree, path: &[&str]) -> Option<Cow<'a, Tree>> {
    field(tree, path).filter(|tree| tree.node != Node::Null)
}
