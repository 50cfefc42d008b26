//! `spec.hooks` of a document.

use super::Reading;
use crate::load::hook;
use crate::load::tree::{Node, Tree};
use crate::model::Path;

impl Reading<'_> {
    pub(super) fn hooks(&mut self, tree: &Tree) -> Vec<hook::HookSpec> {
        let list = Path::of(&["spec", "hooks"]);
        let items = self.items(tree, &list);
        let mut hooks = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let before = self.problems.len();
            let mut hook = self.hook(item, &list.index(index));
            hook.invalid = self.problems.len() > before;
            hooks.push(hook);
        }
        hooks
    }

    fn hook(&mut self, tree: &Tree, at: &Path) -> hook::HookSpec {
        let mut hook = hook::HookSpec::default();
        let Node::Map(entries) = &tree.node else {
            self.wrong(tree, at.clone(), "a map with `name`, `when` and `exec`");
            return hook;
        };
        for entry in entries {
            let place = match entry.key.as_ref() {
                "name" => &mut hook.name,
                "when" => &mut hook.when,
                "onFailure" => &mut hook.on_failure,
                "exec" => {
                    hook.exec = self.only_field(&entry.value, &at.name("exec"), "command");
                    continue;
                }
                "job" => {
                    hook.job = self.only_field(&entry.value, &at.name("job"), "template");
                    continue;
                }
                _ => {
                    self.unknown_at(entry, at, &["exec", "job", "name", "onFailure", "when"]);
                    continue;
                }
            };
            match &entry.value.node {
                Node::String(text) => *place = Some(text.clone()),
                _ => self.wrong(&entry.value, at.name(entry.key.clone()), "a string"),
            }
        }
        hook
    }

    /// The value of the one field that a map has.
    fn only_field(&mut self, tree: &Tree, at: &Path, name: &str) -> Option<Tree> {
        let Node::Map(entries) = &tree.node else {
            self.wrong(tree, at.clone(), &format!("a map with `{name}`"));
            return None;
        };
        for entry in entries.iter().filter(|entry| *entry.key != *name) {
            self.unknown_at(entry, at, &[name]);
        }
        let value = tree.get(name).cloned();
        // A misspelled field was reported already.
        if value.is_none() && entries.is_empty() {
            self.problem(tree.line, at.name(name), "required field is missing", None);
        }
        value
    }
}
