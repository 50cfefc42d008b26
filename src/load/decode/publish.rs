//! The checks of `spec.publish`.

use std::sync::Arc;

use super::{Draft, spec};
use crate::api;
use crate::load::expression::{Template, Variable};
use crate::load::intern::Interner;
use crate::load::publish::Publication;
use crate::load::tree::Tree;
use crate::load::{Inputs, Reference};
use crate::model::{DataKind, DataRef, Reason};

/// An entry of `spec.publish`, as written.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct DraftPublication {
    pub(in crate::load) config_map: Option<Arc<str>>,
    pub(in crate::load) secret: Option<Arc<str>>,
    pub(in crate::load) data: Option<Tree>,
}

impl DraftPublication {
    pub(super) fn of(publish: &api::Publish, interner: &mut Interner) -> Self {
        let name = |reference: &api::NameRef| Arc::from(reference.name.as_str());
        let data = publish.data.iter().map(|(key, text)| (key.clone(), text.as_str().into())).collect();
        Self {
            config_map: publish.config_map_ref.as_ref().map(name),
            secret: publish.secret_ref.as_ref().map(name),
            data: Some(Tree::from_json_map(&data, interner)),
        }
    }
}

impl Draft {
    /// Checks what is to be published, and adds what it refers to.
    pub(super) fn publications(
        &mut self,
        inputs: &Inputs,
        references: &mut Vec<Reference>,
        interner: &mut Interner,
    ) -> Vec<Publication> {
        // What expressions can read besides other objects.
        let variables: &'static [Variable] = match (&self.count, &self.for_each) {
            (Some(_), _) => &[Variable::Itself, Variable::Inputs, Variable::Count],
            (None, Some(_)) => &[Variable::Itself, Variable::Inputs, Variable::Each],
            (None, None) => &[Variable::Itself, Variable::Inputs],
        };
        let mut publications: Vec<Publication> = Vec::new();
        for (position, draft) in std::mem::take(&mut self.publish).into_iter().enumerate() {
            let at = spec(&["publish"]).index(position);
            let (kind, place, name) = match (draft.config_map, draft.secret) {
                (Some(name), None) => (DataKind::ConfigMap, "configMapRef", name),
                (None, Some(name)) => (DataKind::Secret, "secretRef", name),
                (both, _) => {
                    let what = if both.is_some() { "it has two targets" } else { "it has no target" };
                    self.problem(Reason::InvalidManifest, at, what, "give it either `configMapRef` or `secretRef`");
                    continue;
                }
            };
            let target = DataRef { kind, name };
            if !is_subdomain(&target.name) {
                let what = format!("`{}` cannot be the name of a {}", target.name, kind.as_str());
                let hint = "names consist of lower-case letters, digits, `-` and `.`";
                self.problem(Reason::InvalidManifest, at.name(place).name("name"), what, hint);
                continue;
            }
            if publications.iter().any(|other| other.target == target) {
                let what = format!("{target} is published twice");
                self.problem(Reason::InvalidManifest, at.name(place).name("name"), what, "put all keys into one entry");
                continue;
            }
            let at = at.name("data");
            let Some(tree) = draft.data.filter(|tree| !tree.entries().is_empty()) else {
                self.problem(Reason::InvalidManifest, at, "nothing is published", "name the keys under `data`");
                continue;
            };
            for entry in tree.entries().iter().filter(|entry| !is_key(&entry.key)) {
                let what = format!("`{}` cannot be a key of a {}", entry.key, kind.as_str());
                let hint = "keys consist of letters, digits, `-`, `_` and `.`";
                self.problem(Reason::InvalidManifest, at.name(entry.key.clone()), what, hint);
            }
            let (data, found, faults) = Template::parse(&tree, &at, variables, interner);
            references.extend(found);
            self.problems.extend(faults);
            self.refuse_undeclared(inputs, &data, &at);
            publications.push(Publication { target, data, at });
        }
        publications
    }
}

fn is_subdomain(name: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn is_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !key.is_empty() && key.len() <= 253 && key != "." && !key.starts_with("..") && key.bytes().all(plain)
}
