//! Which ServiceAccount an object of a cluster acts as.

use std::sync::Arc;

use super::{invalid, spec_path};
use crate::load::intern::Interner;
use model::{Diagnostic, Namespace};

/// The ServiceAccounts that the objects of a cluster act as.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// The account of objects that name none.
    pub default: Arc<str>,
    /// The account of the controller itself, which no object may name: its author would act as the controller. `None`
    /// if this process has none.
    pub own: Option<ServiceAccount>,
}

/// The name of a ServiceAccount in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

impl From<&str> for ServiceAccounts {
    fn from(default: &str) -> Self {
        Self { default: default.into(), own: None }
    }
}

impl ServiceAccounts {
    /// Returns the account that an object names, or the default one. Instead of the controller's own account, returns an
    /// error and an empty name, as which no request is made.
    pub(crate) fn choose(
        &self,
        namespace: Option<&str>,
        named: Option<&str>,
        interner: &mut Interner,
    ) -> (Arc<str>, Option<Diagnostic>) {
        let name = named.map_or_else(|| self.default.clone(), |name| interner.get(name));
        let is_own = self.own.as_ref().is_some_and(|own| (namespace, &name) == (Some(&*own.namespace), &own.name));
        if !is_own {
            return (name, None);
        }
        let what = match named {
            Some(_) => format!("`{name}` is the service account of the controller"),
            None => format!("the default service account `{name}` is that of the controller"),
        };
        let error = invalid(spec_path(&["serviceAccountName"]), what, "name another service account of the namespace");
        (Arc::default(), Some(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_acts_as_the_controller() {
        let own = ServiceAccount { namespace: "purlin-system".into(), name: "purlin".into() };
        let choose = |default: &str, namespace: &str, named: Option<&str>| {
            let accounts = ServiceAccounts { own: Some(own.clone()), ..default.into() };
            let (name, error) = accounts.choose(Some(namespace), named, &mut Interner::default());
            (name.to_string(), error.map(|error| error.to_string()).unwrap_or_default())
        };
        let accepted = |name: &str| (name.to_owned(), String::new());
        assert_eq!(choose("default", "purlin-system", None), accepted("default"));
        assert_eq!(choose("default", "purlin-system", Some("deployer")), accepted("deployer"));
        assert_eq!(choose("purlin", "shop", Some("purlin")), accepted("purlin"));
        assert_eq!(choose("purlin", "shop", None), accepted("purlin"));

        let hint = "(hint: name another service account of the namespace)";
        let refused = |what: &str| (String::new(), format!("spec.serviceAccountName: {what} {hint}"));
        let named = refused("`purlin` is the service account of the controller");
        assert_eq!(choose("default", "purlin-system", Some("purlin")), named);
        let default = refused("the default service account `purlin` is that of the controller");
        assert_eq!(choose("purlin", "purlin-system", None), default);
    }
}
