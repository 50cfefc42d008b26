//! The checks of `spec.import`.

use super::{Decoder, spec_path};
use crate::load::intern::Interner;
use crate::load::tree::Tree;
use crate::load::{FamilyImport, Repetition, Template};
use model::{ImportRequest, Path, Value};

impl Decoder<'_> {
    /// `import` of a single object, or of each instance of a family, which the repetition gets.
    pub fn import(&mut self, repetition: Option<&mut Repetition>, interner: &mut Interner) -> Option<ImportRequest> {
        match repetition.filter(|repetition| repetition.repeat.is_some()) {
            Some(repetition) => repetition.import = self.family_import(interner),
            None => return self.single_import(interner),
        }
        None
    }

    /// `import` of a single object: by an ID or by an identity.
    fn single_import(&mut self, interner: &mut Interner) -> Option<ImportRequest> {
        let import = self.spec.import.as_ref()?;
        self.check_import_fields();
        let at = spec_path(&["import", "id"]);
        if import.id.as_deref().is_some_and(|id| id.contains("${")) {
            let hint = "write the literal id; only a Resource with `forEach` or `count` can use `${each.key}` or \
                        `${count.index}` in it";
            self.invalid(at, "the id must not be an expression", hint);
        }
        let Some(tree) = self.free.identity.take() else {
            return Some(ImportRequest::Id(import.id.as_deref().unwrap_or_default().into()));
        };
        let at = spec_path(&["import", "identity"]);
        let (template, _, faults) = Template::parse(tree, &at, &[], interner);
        self.problems.extend(faults);
        let identity = template.as_literal().filter(|identity| matches!(identity, Value::Map(map) if !map.is_empty()));
        if identity.is_none() {
            let hint = "write a map of the attributes that identify the object in the provider";
            self.invalid(at, "must be a non-empty map without expressions", hint);
        }
        Some(ImportRequest::Identity(identity.cloned().unwrap_or_default()))
    }

    /// `import` of a family: the ID or the identity of each instance.
    fn family_import(&mut self, interner: &mut Interner) -> Option<FamilyImport> {
        let import = self.spec.import.as_ref()?;
        self.check_import_fields();
        if let Some(tree) = self.free.identity.take() {
            return Some(self.parse_import(tree, &spec_path(&["import", "identity"]), true, interner));
        }
        let id = import.id.as_deref().unwrap_or_default();
        Some(self.parse_import(&Tree::string(id), &spec_path(&["import", "id"]), false, interner))
    }

    fn parse_import(&mut self, tree: &Tree, at: &Path, is_identity: bool, interner: &mut Interner) -> FamilyImport {
        let variables = self.variables();
        let (template, references, faults) = Template::parse(tree, at, variables, interner);
        self.problems.extend(faults);
        for reference in references {
            let what =
                format!("depends on `{}`, but the object to import must be known before the plan", reference.target);
            self.invalid(at.clone(), what, "use `${each.key}`, `${each.value}` or `${count.index}`");
        }
        if template.as_literal().is_some() {
            let what = "the instances of a Resource with `count` or `forEach` cannot all import the same object";
            let hint = "use `${each.key}` or `${count.index}`, such as `id: \"db-${each.key}\"`";
            self.invalid(at.clone(), what, hint);
        }
        FamilyImport { template, is_identity }
    }

    /// An `import` of nothing must not create an object.
    fn check_import_fields(&mut self) {
        let id = self.spec.import.as_ref().and_then(|import| import.id.as_deref());
        match (id, &self.free.identity) {
            (None | Some(""), None) => {
                let at = spec_path(&["import", "id"]);
                self.invalid(at, "the id must not be empty", "omit `import` to create the object");
            }
            (Some(_), Some(_)) => {
                self.invalid(spec_path(&["import"]), "`id` and `identity` are mutually exclusive", "keep one of them");
            }
            _ => {}
        }
    }
}
