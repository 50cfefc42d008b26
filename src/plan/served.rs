//! Whether anything serves an object: its type, and its provider with its settings.

use std::sync::Arc;

use super::draft::{Block, Draft};
use super::scene::{Id, Scene};
use super::seen::Seen;
use crate::load::{BUILT_IN, Provided, Unsettled};
use crate::model::{Diagnostic, Path, ProviderUse, Reason};

/// Why nothing serves the type of an object.
pub(super) fn unserved(scene: &Scene<'_>, id: Id) -> Diagnostic {
    let subject = scene.subjects[id];
    let (address, type_name) = (subject.address, subject.type_name());
    let word = if address.is_data() { "data source" } else { "type" };
    let meant = || scene.types.closest(&type_name, subject.provider().map(AsRef::as_ref), address.is_data());
    let meant = || meant().map(|meant| format!("did you mean `{meant}`?"));
    let Some(provider) = subject.provider() else {
        let what = format!("no provider serves the {word} `{type_name}`");
        let problem = Diagnostic::error(address, Reason::UnknownType, what).at(Path::of(&["spec", "type"]));
        // What begins like a built-in type is one that there is not.
        let begins = type_name.split_once('_').map_or(&*type_name, |(begins, _)| begins);
        let add = || {
            let add = format!("add a Provider named `{begins}`, or name a ProviderConfig in `spec.providerConfigRef`");
            (!BUILT_IN.iter().any(|known| known.starts_with(begins))).then_some(add)
        };
        return Diagnostic { hint: meant().or_else(add), ..problem };
    };
    match scene.types.fault(provider) {
        Some(error) => {
            let what = format!("the provider `{}` cannot be used: {}", provider.name, error.message);
            let problem = Diagnostic::error(address, Reason::ProviderNotReady, what);
            Diagnostic { hint: error.hint, ..problem }
        }
        None => {
            let what = format!("the provider `{}` has no {word} `{type_name}`", provider.name);
            let lists = || format!("`purlin provider schema {}` lists the {word}s that it has", provider.name);
            let hint = meant().unwrap_or_else(lists);
            Diagnostic::error(address, Reason::UnknownType, what).at(Path::of(&["spec", "type"])).hint(hint)
        }
    }
}

/// The provider of an object with its settings. As long as the last operation on what they refer to is not settled, it is
/// not known whether they hold.
pub(super) fn settled(seen: &Seen<'_, '_>, provided: &Provided) -> Result<Arc<ProviderUse>, Unsettled> {
    let holds = provided.references().iter().all(|reference| seen.unsettled(&reference.target).is_empty());
    if holds { provided.settle(seen) } else { Err(Unsettled::Unknown) }
}

/// A provider whose settings hang on what is still to be done is configured when that is done.
pub(super) fn unsettled(seen: &Seen<'_, '_>, id: Id, unsettled: Unsettled) -> Draft {
    let scene = seen.scene;
    let subject = scene.subjects[id];
    let block = match unsettled {
        Unsettled::Broken(problems) => {
            let here = |problem| Diagnostic { address: Some(subject.address.clone()), ..problem };
            let diagnostics = problems.into_iter().map(here).collect();
            Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }
        }
        Unsettled::Unknown => {
            let provided = subject.instance.and_then(|instance| instance.provider.as_ref());
            let targets = provided.into_iter().flat_map(|provided| provided.references());
            let targets = targets.map(|reference| &reference.target);
            let changes = |id: &Id| seen.draft(*id).is_none_or(|draft| draft.changed);
            let changing = targets.clone().filter_map(|target| scene.resolve(target)).filter(changes);
            let waits: Vec<Id> = changing.chain(targets.flat_map(|target| seen.unsettled(target))).collect();
            let name = provided.map(|provided| provided.name().clone()).unwrap_or_default();
            let what = format!("waits for the settings of its provider `{name}`, which are known only after a step");
            let unknown = Diagnostic::warning(subject.address, Reason::DependencyNotReady, what);
            Block::broken(unknown).waiting_for(waits)
        }
    };
    Draft::blocked(block, subject.current())
}
