//! The fields of a Resource whose content has no schema. They stay trees, which have lines and every digit of numbers.

use crate::load::intern::Interner;
use crate::load::tree::{Node, Tree};
use std::borrow::Cow;

/// The free fields. Each is absent where the spec lacks it.
#[derive(Default)]
pub(in crate::load) struct FreeFields<'a> {
    pub(super) config: Option<Cow<'a, Tree>>,
    pub(super) count: Option<Cow<'a, Tree>>,
    pub(super) for_each: Option<Cow<'a, Tree>>,
    pub(super) enabled: Option<Cow<'a, Tree>>,
    /// `lifecycle.preventDestroy`.
    pub(super) prevent_destroy: Option<Cow<'a, Tree>>,
    /// `import.identity`.
    pub(super) identity: Option<Cow<'a, Tree>>,
    /// `job.template` of each hook.
    pub(super) jobs: Vec<Option<Cow<'a, Tree>>>,
}

impl<'a> FreeFields<'a> {
    /// Returns the fields of the `spec` in a file.
    pub(in crate::load) fn of_tree(spec: Option<&'a Tree>) -> Self {
        let Some(spec) = spec else { return Self::default() };
        let get = |path: &[&str]| path.iter().try_fold(spec, |tree, key| tree.get(key)).map(Cow::Borrowed);
        let get_set = |path: &[&str]| get(path).filter(|tree| tree.node != Node::Null);
        let hooks = match spec.get("hooks").map(|hooks| &hooks.node) {
            Some(Node::List(hooks)) => hooks.as_slice(),
            _ => &[],
        };
        let job = |hook: &'a Tree| hook.get("job")?.get("template").map(Cow::Borrowed);
        Self {
            config: get(&["config"]),
            count: get(&["count"]),
            for_each: get(&["forEach"]),
            enabled: get_set(&["enabled"]),
            prevent_destroy: get_set(&["lifecycle", "preventDestroy"]),
            identity: get_set(&["import", "identity"]),
            jobs: hooks.iter().map(job).collect(),
        }
    }

    /// Returns the fields of a `spec` from the API server.
    pub(in crate::load) fn of_spec(spec: &api::ResourceSpec, interner: &mut Interner) -> Self {
        let mut tree =
            |json: &Option<serde_json::Value>| json.as_ref().map(|json| Cow::Owned(Tree::from_json(json, interner)));
        let (count, for_each, enabled) = (tree(&spec.count), tree(&spec.for_each), tree(&spec.enabled));
        let prevent_destroy = spec.lifecycle.as_ref().and_then(|lifecycle| tree(&lifecycle.prevent_destroy));
        let identity = spec.import.as_ref().and_then(|import| tree(&import.identity));
        let mut map =
            |json: &serde_json::Map<String, serde_json::Value>| Some(Cow::Owned(Tree::from_json_map(json, interner)));
        let config = map(&spec.config);
        let jobs = spec.hooks.iter().map(|hook| hook.job.as_ref().and_then(|job| map(&job.template))).collect();
        Self { config, count, for_each, enabled, prevent_destroy, identity, jobs }
    }
}
