//! The checks of `spec.inputs`, and of the expressions that read them.

use std::sync::Arc;

use super::{Draft, spec};
use crate::api;
use crate::load::expression::{self, Template, Variable};
use crate::load::inputs::{Input, Inputs};
use crate::load::suggest::closest;
use crate::model::{DataKind, DataRef, Path, Reason};

/// An entry of `spec.inputs`, as written.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct DraftInput {
    pub(in crate::load) name: Arc<str>,
    pub(in crate::load) config_map: Option<DraftKeyRef>,
    pub(in crate::load) secret: Option<DraftKeyRef>,
}

/// `configMapKeyRef` or `secretKeyRef`.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct DraftKeyRef {
    pub(in crate::load) name: Arc<str>,
    pub(in crate::load) key: Arc<str>,
    pub(in crate::load) optional: bool,
}

impl From<&api::Input> for DraftInput {
    fn from(input: &api::Input) -> Self {
        let reference = |reference: &api::KeyRef| DraftKeyRef {
            name: reference.name.as_str().into(),
            key: reference.key.as_str().into(),
            optional: reference.optional,
        };
        Self {
            name: input.name.as_str().into(),
            config_map: input.config_map_key_ref.as_ref().map(reference),
            secret: input.secret_key_ref.as_ref().map(reference),
        }
    }
}

impl Draft {
    /// Checks the declarations. An invalid entry still declares its name, so that it is reported once.
    pub(super) fn inputs(&mut self) -> Inputs {
        let mut declared: Vec<Input> = Vec::new();
        for (position, draft) in std::mem::take(&mut self.inputs).into_iter().enumerate() {
            let at = spec(&["inputs"]).index(position);
            if draft.name.len() > 63 || !expression::is_identifier(&draft.name) {
                let hint = "use at most 63 letters, digits and `_`, starting with a letter";
                let what = format!("`{}` is not a valid input name", draft.name);
                self.problem(Reason::InvalidManifest, at.name("name"), what, hint);
            } else if declared.iter().any(|other| other.name == draft.name) {
                let what = format!("duplicate input `{}`", draft.name);
                self.problem(Reason::InvalidManifest, at.name("name"), what, "give each input a unique name");
                continue;
            }
            let (kind, place, reference) = match (draft.config_map, draft.secret) {
                (Some(reference), None) => (DataKind::ConfigMap, "configMapKeyRef", reference),
                (None, Some(reference)) => (DataKind::Secret, "secretKeyRef", reference),
                (both, _) => {
                    let what = if both.is_some() { "the input has two sources" } else { "the input has no source" };
                    let hint = "set either `configMapKeyRef` or `secretKeyRef`";
                    self.problem(Reason::InvalidManifest, at, what, hint);
                    (DataKind::ConfigMap, "", DraftKeyRef::default())
                }
            };
            for (field, text) in [("name", &reference.name), ("key", &reference.key)] {
                if text.is_empty() && !place.is_empty() {
                    let at = spec(&["inputs"]).index(position).name(place).name(field);
                    self.problem(Reason::InvalidManifest, at, "required field is missing", "");
                }
            }
            let object = DataRef { kind, name: reference.name };
            let DraftKeyRef { key, optional, .. } = reference;
            declared.push(Input { name: draft.name, object, key, optional, position });
        }
        Inputs::declared(declared)
    }

    /// Refuses every reading of an input that is not declared. `at`: where the template stands.
    pub(super) fn refuse_undeclared(&mut self, inputs: &Inputs, template: &Template, at: &Path) {
        for (below, name) in template.reads(Variable::Inputs) {
            let Some(name) = name.filter(|name| !inputs.declared.iter().any(|input| input.name == *name)) else {
                continue;
            };
            let mut place = at.clone();
            place.0.extend(below.0);
            let names = inputs.declared.iter().map(|input| input.name.as_ref());
            let hint = match closest(&name, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "declare it in `spec.inputs`".to_owned(),
            };
            self.problem(Reason::InvalidExpression, place, format!("there is no input `{name}`"), &hint);
        }
    }
}
