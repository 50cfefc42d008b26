//! Finds the type and the configured provider of an object.

use std::sync::Arc;

use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, PlanInput};
use crate::load::{BUILT_IN, ConfigurationError, ProviderBinding};
use model::{Diagnostic, Path, ProviderUse, Reason, Words};

/// How the hint begins that a provider is missing.
const ADD_PROVIDER: &str = "add a Provider";

/// Whether an object cannot be planned because the provider of its type is missing.
pub fn is_missing(problem: &Diagnostic) -> bool {
    problem.reason == Reason::UnknownType && problem.hint.as_deref().is_some_and(|hint| hint.starts_with(ADD_PROVIDER))
}

/// Why no driver serves the type of an object.
pub fn unserved(input: &PlanInput<'_>, id: Id) -> Diagnostic {
    let node = input.nodes[id];
    let (address, type_name) = (node.address, node.type_name());
    let word = if address.is_data() { "data source" } else { "type" };
    let Some(provider) = node.provider() else {
        let what = format!("no provider serves the {word} `{type_name}`");
        let problem = Diagnostic::error(address, Reason::UnknownType, what).at(Path::of(&["spec", "type"]));
        let provider = || match Words::of(address) {
            Words::Manifest => suggest_provider(&type_name),
            Words::Terraform => Some("name its provider in `required_providers`".to_owned()),
        };
        return Diagnostic { hint: suggest_type(input, id).or_else(provider), ..problem };
    };
    match input.types.fault(provider) {
        Some(error) => {
            let what = format!("the provider `{}` cannot be used: {}", provider.name, error.message);
            let problem = Diagnostic::error(address, Reason::ProviderNotReady, what);
            let binding = node.instance.and_then(|instance| instance.provider.as_ref());
            let place = binding.and_then(|binding| binding.place()).cloned();
            Diagnostic { hint: error.hint, ..problem }.from_source(place)
        }
        None => {
            let what = format!("the provider `{}` has no {word} `{type_name}`", provider.name);
            let hint = suggest_type(input, id)
                .unwrap_or_else(|| format!("run `purlin provider schema {}` to list its {word}s", provider.name));
            Diagnostic::error(address, Reason::UnknownType, what).at(Path::of(&["spec", "type"])).hint(hint)
        }
    }
}

fn suggest_type(input: &PlanInput<'_>, id: Id) -> Option<String> {
    let node = input.nodes[id];
    let closest = input.types.closest(&node.type_name(), node.provider().map(AsRef::as_ref), node.address.is_data())?;
    Some(format!("did you mean `{closest}`?"))
}

fn suggest_provider(type_name: &str) -> Option<String> {
    let prefix = type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix);
    // A type with the prefix of a built-in type is a misspelled one, not one of a provider.
    if BUILT_IN.iter().any(|known| known.starts_with(prefix)) {
        return None;
    }
    Some(format!("{ADD_PROVIDER} named `{prefix}`, or name a ProviderConfig in `spec.providerConfigRef`"))
}

/// The provider of an object with its configuration. The configuration is unknown while the last operation on one of
/// its dependencies is unresolved.
pub fn configured_provider(
    scope: &EvalScope<'_, '_>,
    provided: &ProviderBinding,
) -> Result<Arc<ProviderUse>, ConfigurationError> {
    let holds = provided.references().iter().all(|reference| scope.unresolved(&reference.target).is_empty());
    if holds { provided.configure(scope) } else { Err(ConfigurationError::Unknown) }
}

/// The decision about an object whose provider configuration is unknown or invalid.
pub fn provider_unavailable(scope: &EvalScope<'_, '_>, id: Id, error: ConfigurationError) -> Decision {
    let input = scope.input;
    let node = input.nodes[id];
    let block = match error {
        ConfigurationError::Invalid(problems) => {
            let diagnostics = problems
                .into_iter()
                .map(|problem| Diagnostic { address: Some(node.address.clone()), ..problem })
                .collect();
            Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }
        }
        ConfigurationError::Unknown => {
            let provided = node.instance.and_then(|instance| instance.provider.as_ref());
            let targets = provided.into_iter().flat_map(|provided| provided.references());
            let targets = targets.map(|reference| &reference.target);
            let changing = targets
                .clone()
                .filter_map(|target| input.resolve(target))
                .filter(|id| scope.decision(*id).is_none_or(|decision| decision.changed));
            let waits: Vec<Id> = changing.chain(targets.flat_map(|target| scope.unresolved(target))).collect();
            let name = provided.map(|provided| provided.name().clone()).unwrap_or_default();
            let what =
                format!("waits for the configuration of its provider `{name}`, which is known only after a step");
            let unknown = Diagnostic::warning(node.address, Reason::DependencyNotReady, what);
            Block::broken(unknown).waiting_for(waits)
        }
    };
    Decision::blocked(block, node.current())
}
