//! The checks of `spec.publish`.

use std::sync::Arc;

use super::{Draft, spec};
use crate::api;
use crate::load::expression::{Template, Variable};
use crate::load::intern::Interner;
use crate::load::publication::{NAME_HINT, Publication, duplicate_target, invalid_name, is_subdomain, reference_field};
use crate::load::tree::{Node, Tree};
use crate::load::{Inputs, Reference};
use crate::model::{DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason};

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
            let (kind, name) = match (draft.config_map, draft.secret) {
                (Some(name), None) => (DataKind::ConfigMap, name),
                (None, Some(name)) => (DataKind::Secret, name),
                (both, _) => {
                    let what = if both.is_some() { "the entry has two targets" } else { "the entry has no target" };
                    self.problem(Reason::InvalidManifest, at, what, "set either `configMapRef` or `secretRef`");
                    continue;
                }
            };
            let target = DataRef { kind, name };
            let place = at.name(reference_field(kind)).name("name");
            let name = match self.target_name(&target, &place, interner) {
                Ok(name) => name,
                Err(problems) => {
                    self.problems.extend(problems);
                    continue;
                }
            };
            if publications.iter().any(|other| other.target == target) {
                self.problems.push(duplicate_target(&target, place));
                continue;
            }
            let at = at.name("data");
            let Some(tree) = draft.data.filter(|tree| !tree.entries().is_empty()) else {
                self.problem(Reason::InvalidManifest, at, "the entry publishes nothing", "add keys to `data`");
                continue;
            };
            for entry in tree.entries().iter().filter(|entry| !is_key(&entry.key)) {
                let what = format!("`{}` is not a valid {} key", entry.key, kind.as_str());
                let hint = "keys consist of letters, digits, `-`, `_` and `.`";
                self.problem(Reason::InvalidManifest, at.name(entry.key.clone()), what, hint);
            }
            let (data, found, faults) = Template::parse(&tree, &at, variables, interner);
            references.extend(found);
            self.problems.extend(faults);
            self.refuse_undeclared(inputs, &data, &at);
            let publication = Publication { target, name, data, at };
            self.problems.extend(publication.check_name(self.count.is_some()));
            publications.push(publication);
        }
        publications
    }

    /// What the name of a target is made of, where it is not the same for each instance.
    fn target_name(
        &self,
        target: &DataRef,
        at: &Path,
        interner: &mut Interner,
    ) -> Result<Option<Template>, Diagnostics> {
        let problem =
            |what: String, hint: &str| Diagnostic::general(Reason::InvalidManifest, what).at(at.clone()).hint(hint);
        if !target.name.contains("${") {
            let problem = || vec![problem(invalid_name(target), NAME_HINT)];
            return if is_subdomain(&target.name) { Ok(None) } else { Err(problem()) };
        }
        let variables: &'static [Variable] = match (&self.count, &self.for_each) {
            (Some(_), _) => &[Variable::Count],
            (None, Some(_)) => &[Variable::Each],
            (None, None) => {
                let hint =
                    "only a Resource with `forEach` or `count` can use `${each.key}` or `${count.index}` in a name";
                return Err(vec![problem("the name must not be an expression".to_owned(), hint)]);
            }
        };
        let text = Tree { line: 0, node: Node::String(target.name.clone()) };
        let (template, found, mut problems) = Template::parse(&text, at, variables, interner);
        problems.extend(found.into_iter().map(|reference| {
            let what =
                format!("the name depends on `{}`, but must be known before any object is created", reference.target);
            problem(what, "use `${each.key}` or `${count.index}`")
        }));
        if problems.is_empty() { Ok(Some(template)) } else { Err(problems) }
    }
}

fn is_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !key.is_empty() && key.len() <= 253 && key != "." && !key.starts_with("..") && key.bytes().all(plain)
}
