//! The checks of `spec.inputs`, and of the expressions that read them.

use super::{invalid, spec_path};
use crate::load::expression::{self, Template, Variable};
use crate::load::inputs::{Input, Inputs};
use crate::load::publication::{NAME_HINT, invalid_name};
use model::kube_names::is_subdomain;
use model::suggest::closest;
use model::{DataKind, DataRef, Diagnostic, Diagnostics, Path, Reason};

/// Checks the declarations. An invalid entry still declares its name, so that it is reported once.
pub fn decode(written: &[api::Input], problems: &mut Diagnostics) -> Inputs {
    let mut declared: Vec<Input> = Vec::new();
    for (position, input) in written.iter().enumerate() {
        let at = spec_path(&["inputs"]).index(position);
        if input.name.len() > 63 || !expression::is_identifier(&input.name) {
            let hint = "use at most 63 letters, digits and `_`, starting with a letter";
            problems.push(invalid(at.name("name"), format!("`{}` is not a valid input name", input.name), hint));
        } else if declared.iter().any(|other| *other.name == *input.name) {
            let what = format!("duplicate input `{}`", input.name);
            problems.push(invalid(at.name("name"), what, "give each input a unique name"));
            continue;
        }
        let none = api::KeyRef::default();
        let (kind, place, reference) = match (&input.config_map_key_ref, &input.secret_key_ref) {
            (Some(reference), None) => (DataKind::ConfigMap, "configMapKeyRef", reference),
            (None, Some(reference)) => (DataKind::Secret, "secretKeyRef", reference),
            (both, _) => {
                let what = if both.is_some() { "the input has two sources" } else { "the input has no source" };
                problems.push(invalid(at.clone(), what, "set either `configMapKeyRef` or `secretKeyRef`"));
                (DataKind::ConfigMap, "", &none)
            }
        };
        for (field, text) in [("name", &reference.name), ("key", &reference.key)] {
            if text.is_empty() && !place.is_empty() {
                problems.push(invalid(at.name(place).name(field), "required field is missing", ""));
            }
        }
        let object = DataRef { kind, name: reference.name.as_str().into() };
        let is_valid = object.name.is_empty() || is_subdomain(&object.name);
        if !is_valid {
            problems.push(invalid(at.name(place).name("name"), invalid_name(&object), NAME_HINT));
        }
        declared.push(Input {
            name: input.name.as_str().into(),
            // No request may contain an invalid name.
            object: if is_valid { object } else { DataRef { kind, name: "".into() } },
            key: reference.key.as_str().into(),
            optional: reference.optional,
            position,
        });
    }
    Inputs::declared(declared)
}

/// Reports every use of an input that is not declared. `at`: the path of the template.
pub fn refuse_undeclared(inputs: &Inputs, template: &Template, at: &Path, problems: &mut Diagnostics) {
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
        let problem = Diagnostic::general(Reason::InvalidExpression, format!("there is no input `{name}`"));
        problems.push(problem.at(place).hint(hint));
    }
}
