//! `managementPolicies`: what must be done and may not is a block that says so. Dependents go on with what is there.

use super::draft::Block;
use super::scene::Subject;
use crate::load::Policies;
use crate::model::{Diagnostic, Path, Reason, Value};

/// What a policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
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

/// The block of an object for which something must be done that is not allowed.
pub(super) fn refuse(subject: Subject<'_>, policy: Policy, why: &str) -> Option<Block> {
    let policies = subject.instance.map_or_else(Policies::default, |instance| instance.policies);
    if policy.is_in(policies) {
        return None;
    }
    let must = match policy {
        Policy::Create => "created",
        Policy::Update => "updated",
        Policy::Replace => "replaced",
    };
    let name = policy.as_str();
    let what = format!("the object would have to be {must}, and the policy `{name}` is not given: {why}");
    let hint = match policy {
        Policy::Create if policies.only_observe() => {
            "set `spec.import.id` to the id of the object to observe".to_owned()
        }
        Policy::Create => format!("add `{name}` to `spec.managementPolicies`, or set `spec.import.id`"),
        Policy::Update => format!("add `{name}` to `spec.managementPolicies`, or describe the object as it is"),
        Policy::Replace => format!("add `{name}` to `spec.managementPolicies`, or take the change back"),
    };
    let at = Path::default().name("spec").name("managementPolicies");
    let refused = Diagnostic::error(subject.address, Reason::ActionNotAllowed, what);
    Some(Block::held(refused.at(at).hint(hint)))
}

/// The places at which an update would change an object, as a sentence: a few of many are enough.
pub(super) fn differences(prior: &Value, planned: &Value) -> String {
    const MOST_TOLD: usize = 5;
    let mut paths = prior.differences(planned);
    // What the provider will only tell is a consequence.
    if paths.iter().any(|path| !is_unknown(path, planned)) {
        paths.retain(|path| !is_unknown(path, planned));
    }
    let told: Vec<String> = paths.iter().take(MOST_TOLD).map(|path| format!("`{path}`")).collect();
    match paths.len().saturating_sub(MOST_TOLD) {
        0 if told.len() == 1 => format!("{} differs", told[0]),
        0 => format!("{} differ", told.join(", ")),
        more => format!("{} and {more} more differ", told.join(", ")),
    }
}

fn is_unknown(path: &Path, planned: &Value) -> bool {
    planned.at(path).is_some_and(|value| matches!(value.unmarked(), Value::Unknown))
}
