//! `spec.publish` of a document.

use std::sync::Arc;

use super::Reading;
use crate::load::decode::DraftPublication;
use crate::load::tree::{Entry, Node, Tree};
use crate::model::Path;

impl Reading<'_> {
    pub(super) fn publish(&mut self, tree: &Tree) -> Vec<DraftPublication> {
        let at = Path::of(&["spec", "publish"]);
        let items = self.items(tree, &at);
        items.iter().enumerate().map(|(position, item)| self.publication(item, &at.index(position))).collect()
    }

    fn publication(&mut self, tree: &Tree, at: &Path) -> DraftPublication {
        let mut publication = DraftPublication::default();
        for entry in self.entries_at(tree, at) {
            match entry.key.as_ref() {
                "configMapRef" => publication.config_map = Some(self.name_ref(entry, at)),
                "secretRef" => publication.secret = Some(self.name_ref(entry, at)),
                "data" => {
                    let at = at.name("data");
                    for item in self.entries_at(&entry.value, &at) {
                        if !matches!(item.value.node, Node::String(_)) {
                            self.wrong(&item.value, at.name(item.key.clone()), "a string");
                        }
                    }
                    publication.data = Some(entry.value.clone());
                }
                _ => self.unknown_at(entry, at, &["configMapRef", "secretRef", "data"]),
            }
        }
        publication
    }

    fn name_ref(&mut self, entry: &Entry, at: &Path) -> Arc<str> {
        let at = at.name(entry.key.clone());
        let mut name = Arc::from("");
        for entry in self.entries_at(&entry.value, &at) {
            match entry.key.as_ref() {
                "name" => name = self.text_at(&entry.value, at.name("name")).unwrap_or_default(),
                _ => self.unknown_at(entry, &at, &["name"]),
            }
        }
        name
    }
}
