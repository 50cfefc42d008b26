//! `managementPolicies`: blocks actions that are not allowed. Dependents proceed with the existing object.

use super::decision::Block;
use super::input::Node;
use crate::load::Policies;
use model::{Diagnostic, Path, Reason, Value, visible};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Create,
    Update,
    Replace,
}

impl Policy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Replace => "Replace",
        }
    }

    fn is_in(self, policies: Policies) -> bool {
        match self {
            Self::Create => policies.create,
            Self::Update => policies.update,
            Self::Replace => policies.replace,
        }
    }
}

/// The block of an object that needs an action that is not allowed. `None` if the action is allowed.
pub fn block_unless_allowed(node: Node<'_>, policy: Policy, why: &str) -> Option<Block> {
    let policies = node.instance.map_or_else(Policies::default, |instance| instance.policies);
    if policy.is_in(policies) {
        return None;
    }
    let must = match policy {
        Policy::Create => "created",
        Policy::Update => "updated",
        Policy::Replace => "replaced",
    };
    let name = policy.as_str();
    let what = format!("the object must be {must}, but the policy `{name}` is not set: {why}");
    let hint = match policy {
        Policy::Create if policies.only_observe() => {
            "set `spec.import.id` or `spec.import.identity` to the object to observe".to_owned()
        }
        Policy::Create => {
            format!("add `{name}` to `spec.managementPolicies`, or set `spec.import.id` or `spec.import.identity`")
        }
        Policy::Update => {
            format!("add `{name}` to `spec.managementPolicies`, or change the configuration to match the object")
        }
        Policy::Replace => format!("add `{name}` to `spec.managementPolicies`, or revert the change"),
    };
    let at = Path::default().name("spec").name("managementPolicies");
    let refused = Diagnostic::error(node.address, Reason::ActionForbiddenByPolicy, what);
    Some(Block::held(refused.at(at).hint(hint)))
}

/// The attributes that an update would change, as part of a message. A long list is shortened.
pub fn differences(prior: &Value, planned: &Value) -> String {
    const MAX_SHOWN: usize = 5;
    let mut paths = prior.differences(planned);
    // Unknown values are consequences of the other changes.
    if paths.iter().any(|path| !is_unknown(path, planned)) {
        paths.retain(|path| !is_unknown(path, planned));
    }
    let paths = visible::paths(paths, &[prior, planned]);
    let shown: Vec<String> = paths.iter().take(MAX_SHOWN).map(|path| format!("`{path}`")).collect();
    match paths.len().saturating_sub(MAX_SHOWN) {
        0 if shown.len() == 1 => format!("{} differs", shown[0]),
        0 => format!("{} differ", shown.join(", ")),
        more => format!("{} and {more} more differ", shown.join(", ")),
    }
}

fn is_unknown(path: &Path, planned: &Value) -> bool {
    planned.at(path).is_some_and(|value| matches!(value.unmarked(), Value::Unknown))
}
