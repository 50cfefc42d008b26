//! Who may do what: everybody everything, but for what is forbidden from outside.

use std::collections::BTreeMap;

use super::ask::Ask;
use super::kinds::Kind;
use super::refusal::Refusal;
use super::store::Store;

/// What somebody may not do. An empty field means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forbidden {
    /// In which namespace; objects of the cluster are in none, and only meant by the empty field.
    pub(crate) namespace: String,
    /// As RBAC has it: `get`, `patch`.
    pub(crate) verbs: Vec<String>,
    /// Plurals.
    pub(crate) resources: Vec<String>,
}

impl Forbidden {
    /// Everything.
    pub(crate) fn everything() -> Self {
        Self::default()
    }

    fn meets(&self, verb: &str, kind: &Kind, namespace: &str) -> bool {
        let any = |list: &[String], what: &str| list.is_empty() || list.iter().any(|other| other == what);
        any(&self.verbs, verb)
            && any(&self.resources, &kind.plural)
            && (self.namespace.is_empty() || self.namespace == namespace)
    }
}

/// The rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    forbidden: BTreeMap<String, Vec<Forbidden>>,
    /// Whether service accounts need a binding.
    bound: bool,
}

impl Access {
    /// From now on `user` may not do this. The client itself is the empty user.
    pub(crate) fn forbid(&mut self, user: &str, what: Forbidden) {
        self.forbidden.entry(user.to_owned()).or_default().push(what);
    }

    /// From now on `user` may do everything again.
    pub(crate) fn allow(&mut self, user: &str) {
        self.forbidden.remove(user);
    }

    /// Whether a service account may act in a namespace only while a RoleBinding there names it, and the Role that it
    /// refers to exists: then the end of a namespace takes its accounts' rights away as it does in earnest.
    pub(crate) fn need_bindings(&mut self, need: bool) {
        self.bound = need;
    }

    pub(crate) fn check(&self, store: &Store, ask: &Ask, kind: &Kind) -> Result<(), Refusal> {
        let verb = ask.verb.right();
        let place = &ask.place;
        let forbidden = self.forbidden.get(&*ask.user).into_iter().flatten();
        let refused = forbidden.into_iter().any(|one| one.meets(verb, kind, &place.namespace))
            || (self.bound && !is_bound(store, &ask.user, &place.namespace));
        if !refused {
            return Ok(());
        }
        let user = if ask.user.is_empty() { "system:serviceaccount:purlin-system:purlin" } else { &ask.user };
        // Of a namespace itself one speaks as being in it.
        let namespace =
            if kind.group.is_empty() && &*kind.plural == "namespaces" { &place.name } else { &place.namespace };
        Err(Refusal::forbidden(user, verb, kind, &place.subresource, namespace, &place.name))
    }
}

fn is_bound(store: &Store, user: &str, namespace: &str) -> bool {
    let Some((home, account)) = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
    else {
        return true;
    };
    let rbac = |plural: &str| ("rbac.authorization.k8s.io".into(), plural.into());
    let Some(bindings) = store.table(&rbac("rolebindings")) else { return false };
    bindings.objects.values().filter(|binding| binding.namespace() == namespace).any(|binding| {
        let subjects = binding.value["subjects"].as_array().into_iter().flatten();
        let mut subjects = subjects.filter(|subject| subject["kind"] == "ServiceAccount");
        let role = &binding.value["roleRef"];
        let exists = role["kind"] != "Role"
            || store.get(&rbac("roles"), namespace, role["name"].as_str().unwrap_or_default()).is_some();
        exists
            && subjects
                .any(|subject| subject["name"] == account && subject["namespace"].as_str().unwrap_or(namespace) == home)
    })
}
