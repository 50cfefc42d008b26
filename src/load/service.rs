//! Which provider serves which Resource.
//!
//! A Resource is served by the `ProviderConfig` that `spec.providerConfigRef` names, else by the one named like the
//! prefix of its type, else by the `Provider` of that name without settings. What the settings refer to, every Resource
//! under them refers to as well: so a provider is configured after what its settings need, and what they need is
//! destroyed after the last object under them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Instance, Provided, ProviderConfig, ProviderSpec};
use crate::model::{Diagnostic, Path, Reason};

/// Types that Purlin itself serves: no prefix of theirs names a provider.
pub const BUILT_IN: [&str; 2] = ["terraform_data", "kubernetes_object"];

/// The name of the `ProviderConfig` that a Resource has, if there is one of that name.
pub fn config_name(instance: &Instance) -> Arc<str> {
    instance.provider_config.clone().unwrap_or_else(|| prefix(&instance.type_name).into())
}

/// What a type begins with: the name of its provider.
pub(super) fn prefix(type_name: &str) -> &str {
    type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix)
}

/// Who serves whom, each worked out once.
pub(super) struct Service<'a> {
    providers: &'a BTreeMap<Arc<str>, Arc<ProviderSpec>>,
    configs: &'a BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    known: BTreeMap<Arc<str>, Option<Arc<Provided>>>,
}

impl<'a> Service<'a> {
    pub(super) fn new(
        providers: &'a BTreeMap<Arc<str>, Arc<ProviderSpec>>,
        configs: &'a BTreeMap<Arc<str>, Arc<ProviderConfig>>,
    ) -> Self {
        Self { providers, configs, known: BTreeMap::new() }
    }

    /// Says what serves a Resource, unless that is known already.
    pub(super) fn serve(&mut self, instance: &mut Arc<Instance>) {
        if instance.provider.is_some() {
            return;
        }
        if instance.provider_config.is_none() && BUILT_IN.contains(&&*instance.type_name) {
            return;
        }
        let name = config_name(instance);
        match self.provided(&name) {
            Some(provided) => {
                let own = Arc::make_mut(instance);
                if !provided.references().is_empty() {
                    let mut references = own.references.to_vec();
                    references.extend(provided.references().iter().cloned());
                    references.sort();
                    own.references = references.into();
                }
                own.provider = Some(provided);
            }
            None if instance.provider_config.is_some() => {
                let what = format!("there is no ProviderConfig `{name}`");
                let at = Path::default().name("spec").name("providerConfigRef").name("name");
                let hint = "create it, or correct the name; the object goes on by itself then";
                let problem = Diagnostic::error(&instance.address, Reason::ProviderNotFound, what).at(at).hint(hint);
                let problem = problem.from_source(instance.source.clone());
                let own = Arc::make_mut(instance);
                // Whoever asks again has the same answer.
                if !own.problems.iter().any(|known| known.reason == Reason::ProviderNotFound) {
                    own.problems.push(problem);
                }
            }
            None => {}
        }
    }

    fn provided(&mut self, name: &Arc<str>) -> Option<Arc<Provided>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let config = self.configs.get(name).cloned();
        let bare = || self.providers.contains_key(name).then(|| Arc::new(ProviderConfig::without_settings(name)));
        let provided = config.or_else(bare).map(|config| Arc::new(Provided::new(config, self.providers)));
        self.known.insert(name.clone(), provided.clone());
        provided
    }
}
