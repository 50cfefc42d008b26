//! Authorization: every user may do everything that a test does not forbid.

use std::collections::BTreeMap;

use super::kinds::{Kind, Type};
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::store::Store;

/// A rule of what a user may not do. An empty field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// A namespace. Cluster-scoped objects only match the empty field.
    pub namespace: String,
    /// Verbs of RBAC, such as `get` and `patch`.
    pub verbs: Vec<String>,
    /// Plurals.
    pub resources: Vec<String>,
}

impl Forbidden {
    pub fn everything() -> Self {
        Self::default()
    }

    fn meets(&self, verb: &str, kind: &Kind, namespace: &str) -> bool {
        is_empty_or_has(&self.verbs, verb)
            && is_empty_or_has(&self.resources, &kind.plural)
            && (self.namespace.is_empty() || self.namespace == namespace)
    }
}

fn is_empty_or_has(list: &[String], text: &str) -> bool {
    list.is_empty() || list.iter().any(|entry| entry == text)
}

#[derive(Clone, Debug, Default)]
pub struct Access {
    forbidden: BTreeMap<String, Vec<Forbidden>>,
    /// Whether ServiceAccounts need a RoleBinding.
    bound: bool,
}

impl Access {
    /// The client itself is the empty user.
    pub fn forbid(&mut self, user: &str, what: Forbidden) {
        self.forbidden.entry(user.to_owned()).or_default().push(what);
    }

    /// Removes all rules of a user.
    pub fn allow(&mut self, user: &str) {
        self.forbidden.remove(user);
    }

    /// Whether a ServiceAccount may act in a namespace only while a RoleBinding there names it and its Role exists. The
    /// deletion of a namespace then removes the permissions, as in a real cluster.
    pub fn need_bindings(&mut self, need: bool) {
        self.bound = need;
    }

    pub fn check(&self, store: &Store, request: &ApiRequest, kind: &Kind) -> Result<(), Refusal> {
        let verb = request.verb.right();
        let place = &request.place;
        let forbidden = self.forbidden.get(&*request.user).into_iter().flatten();
        let refused = forbidden.into_iter().any(|rule| rule.meets(verb, kind, &place.namespace))
            || (self.bound && !is_bound(store, &request.user, &place.namespace));
        if !refused {
            return Ok(());
        }
        let user = if request.user.is_empty() { "system:serviceaccount:purlin-system:purlin" } else { &request.user };
        // The message about a namespace says that it is in itself.
        let namespace =
            if kind.group.is_empty() && &*kind.plural == "namespaces" { &place.name } else { &place.namespace };
        Err(Refusal::forbidden(user, verb, kind, &place.subresource, namespace, &place.name))
    }
}

fn rbac(plural: &str) -> Type {
    ("rbac.authorization.k8s.io".into(), plural.into())
}

fn is_bound(store: &Store, user: &str, namespace: &str) -> bool {
    let Some((home, account)) = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
    else {
        return true;
    };
    let Some(bindings) = store.table(&rbac("rolebindings")) else { return false };
    let roles = rbac("roles");
    bindings.objects.values().filter(|binding| binding.namespace() == namespace).any(|binding| {
        let subjects = binding.value["subjects"].as_array().into_iter().flatten();
        let mut subjects = subjects.filter(|subject| subject["kind"] == "ServiceAccount");
        let role = &binding.value["roleRef"];
        let exists =
            role["kind"] != "Role" || store.get(&roles, namespace, role["name"].as_str().unwrap_or_default()).is_some();
        exists
            && subjects
                .any(|subject| subject["name"] == account && subject["namespace"].as_str().unwrap_or(namespace) == home)
    })
}
