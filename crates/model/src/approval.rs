//! Which changes need an approval.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::suggest::closest;
use super::{Action, Change, Path};

/// The kinds of changes that can need an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum ApprovalKind {
    /// The creation of an object.
    Create,
    /// An update in place.
    Update,
    /// A replacement.
    Replace,
    /// A destroy, also by a replacement.
    Destroy,
    /// The correction of a change that was made outside of Purlin.
    Drift,
}

impl ApprovalKind {
    pub const ALL: [Self; 5] = [Self::Create, Self::Update, Self::Replace, Self::Destroy, Self::Drift];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Replace => "Replace",
            Self::Destroy => "Destroy",
            Self::Drift => "Drift",
        }
    }

    /// The kinds of a change. A change needs an approval if one of them does.
    fn of(change: &Change) -> impl Iterator<Item = Self> {
        let kinds = match change.action {
            Action::Create => [Some(Self::Create), None],
            Action::Update => [Some(Self::Update), None],
            Action::Replace => [Some(Self::Replace), (!change.forget).then_some(Self::Destroy)],
            Action::Destroy => [Some(Self::Destroy), None],
            _ => [None, None],
        };
        let drift = kinds[0].and(change.drift.as_ref()).map(|_| Self::Drift);
        kinds.into_iter().flatten().chain(drift)
    }
}

impl fmt::Display for ApprovalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The kinds of changes that need an approval: of a Resource, or of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredApprovals(BTreeSet<ApprovalKind>);

impl RequiredApprovals {
    /// Every kind: what an unreadable requirement counts as.
    pub fn all() -> Self {
        Self(ApprovalKind::ALL.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn concern(&self, change: &Change) -> bool {
        ApprovalKind::of(change).any(|kind| self.0.contains(&kind))
    }
}

impl FromIterator<ApprovalKind> for RequiredApprovals {
    fn from_iter<I: IntoIterator<Item = ApprovalKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

/// With which approval a change is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangeApproval {
    /// The user who approved it; empty if unknown.
    pub by: Arc<str>,
    /// What the history says about the Plans that approve the change, so that it uses up their approval once it was made.
    pub uses: Arc<str>,
    /// The new object, if the change is a replacement.
    pub new_object: Option<Box<ApprovedObject>>,
}

/// The new object of an approved replacement. It is recorded when the replacement begins: then, no other object is
/// created in its place without another approval.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedObject {
    /// The digest of its create.
    pub digest: Arc<str>,
    /// The attributes that were unknown when the replacement was approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_paths: Vec<Path>,
    /// As those of the [`ChangeApproval`].
    pub by: Arc<str>,
    pub uses: Arc<str>,
}

/// Reads a list such as `Replace,Destroy`.
impl FromStr for RequiredApprovals {
    /// What is wrong with it, and the next step.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(parse_kind).collect()
    }
}

fn parse_kind(word: &str) -> Result<ApprovalKind, String> {
    ApprovalKind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| {
        let names = ApprovalKind::ALL.map(ApprovalKind::as_str);
        let hint = closest(word, names).map_or_else(|| names.join(", "), |name| format!("did you mean `{name}`?"));
        format!("`{word}` is not a kind of change (hint: {hint})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Drift};

    fn concerns(required: &str, change: &Change) -> bool {
        required.parse::<RequiredApprovals>().unwrap().concern(change)
    }

    #[test]
    fn a_destroy_by_a_replacement_needs_the_approval_of_destroys() {
        let mut change = Change::plain(Address::single("a"), "thing", Action::Replace);
        assert!(concerns("Destroy", &change) && concerns("Replace", &change) && !concerns("Create,Update", &change));
        change.forget = true;
        assert!(!concerns("Destroy", &change), "the old object remains");
    }

    #[test]
    fn a_correction_of_drift_needs_the_approval_of_drift_or_of_its_action() {
        let mut change = Change::plain(Address::single("a"), "thing", Action::Update);
        assert!(!concerns("Drift", &change));
        change.drift = Some(Drift::Missing);
        assert!(concerns("Drift", &change) && concerns("Update", &change));
        change.action = Action::NoOp;
        assert!(!concerns("Drift,Update", &change), "it is only reported");
    }

    #[test]
    fn a_list_is_checked() {
        assert_eq!("".parse(), Ok(RequiredApprovals::default()));
        let both = RequiredApprovals::from_iter([ApprovalKind::Replace, ApprovalKind::Destroy]);
        assert_eq!(" Replace, Destroy,".parse(), Ok(both));
        let error = "Repalce".parse::<RequiredApprovals>().unwrap_err();
        assert_eq!(error, "`Repalce` is not a kind of change (hint: did you mean `Replace`?)");
    }
}
