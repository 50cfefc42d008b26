//! The checks of `spec.publish`.

use super::{Decoder, invalid, spec_path};
use crate::load::expression::{Template, Variable};
use crate::load::intern::Interner;
use crate::load::publication::{NAME_HINT, Publication, duplicate_target, invalid_name, reference_field};
use crate::load::tree::Tree;
use crate::load::{Inputs, Reference};
use model::kube_names::is_subdomain;
use model::{DataKind, DataRef, Diagnostics, Path};

impl Decoder<'_> {
    /// Checks what is to be published, and adds what it refers to.
    pub fn publications(
        &mut self,
        inputs: &Inputs,
        references: &mut Vec<Reference>,
        interner: &mut Interner,
    ) -> Vec<Publication> {
        // What expressions can read besides other objects.
        let variables: &'static [Variable] = match (&self.free.count, &self.free.for_each) {
            (Some(_), _) => &[Variable::Itself, Variable::Inputs, Variable::Count],
            (None, Some(_)) => &[Variable::Itself, Variable::Inputs, Variable::Each],
            (None, None) => &[Variable::Itself, Variable::Inputs],
        };
        let mut publications: Vec<Publication> = Vec::new();
        for (position, written) in self.spec.publish.iter().enumerate() {
            let at = spec_path(&["publish"]).index(position);
            let (kind, reference) = match (&written.config_map_ref, &written.secret_ref) {
                (Some(reference), None) => (DataKind::ConfigMap, reference),
                (None, Some(reference)) => (DataKind::Secret, reference),
                (both, _) => {
                    let what = if both.is_some() { "the entry has two targets" } else { "the entry has no target" };
                    self.invalid(at, what, "set either `configMapRef` or `secretRef`");
                    continue;
                }
            };
            let target = DataRef { kind, name: reference.name.as_str().into() };
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
            if written.data.is_empty() {
                self.invalid(at, "the entry publishes nothing", "add keys to `data`");
                continue;
            }
            for key in written.data.keys().filter(|key| !is_key(key)) {
                let what = format!("`{key}` is not a valid {} key", kind.as_str());
                self.invalid(at.name(key.as_str()), what, "keys consist of letters, digits, `-`, `_` and `.`");
            }
            let tree = Tree::strings(&written.data, interner);
            let (data, found, faults) = Template::parse(&tree, &at, variables, interner);
            references.extend(found);
            self.problems.extend(faults);
            self.refuse_undeclared(inputs, &data, &at);
            let publication = Publication { target, name, data, at };
            self.problems.extend(publication.check_name(self.free.count.is_some()));
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
        if !target.name.contains("${") {
            return match is_subdomain(&target.name) {
                true => Ok(None),
                false => Err(vec![invalid(at.clone(), invalid_name(target), NAME_HINT)]),
            };
        }
        let variables: &'static [Variable] = match (&self.free.count, &self.free.for_each) {
            (Some(_), _) => &[Variable::Count],
            (None, Some(_)) => &[Variable::Each],
            (None, None) => {
                let hint =
                    "only a Resource with `forEach` or `count` can use `${each.key}` or `${count.index}` in a name";
                return Err(vec![invalid(at.clone(), "the name must not be an expression", hint)]);
            }
        };
        let (template, found, mut problems) = Template::parse(&Tree::string(&target.name), at, variables, interner);
        problems.extend(found.into_iter().map(|reference| {
            let what =
                format!("the name depends on `{}`, but must be known before any object is created", reference.target);
            invalid(at.clone(), what, "use `${each.key}` or `${count.index}`")
        }));
        if problems.is_empty() { Ok(Some(template)) } else { Err(problems) }
    }
}

fn is_key(key: &str) -> bool {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    is_plain && !key.is_empty() && key.len() <= 253 && key != "." && !key.starts_with("..")
}
