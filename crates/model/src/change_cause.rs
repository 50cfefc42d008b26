//! Why an object changes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Address, Drift, TypeName};

macro_rules! causes {
    ($($name:ident: $text:literal,)+) => {
        /// Why an object changes, or why it is left unchanged. It is compared as a value; text is made where people read it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ChangeCause {
            $(#[doc = $text] $name,)+
            /// A change outside of Purlin that is reported and not corrected.
            Reported(Drift),
            /// `replaceTriggeredBy` names this object or attribute.
            Triggered { by: String, has_changed: bool },
            /// A data source is read after the change of this object.
            ChangesFirst(Address),
            /// The record had another address, or an object of another type.
            Moved { from: Option<Address>, former_type: Option<TypeName> },
            /// The object is no longer managed, but not destroyed.
            Kept { cause: Box<Self>, policy: KeptBy },
            /// Both causes apply.
            Both(Box<(Self, Self)>),
            /// The text of a cause that another process published.
            Published(String),
        }

        impl ChangeCause {
            const PLAIN: &[(Self, &str)] = &[$((Self::$name, $text),)+];

            /// The text of a cause without details.
            fn plain(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)+
                    _ => None,
                }
            }
        }
    };
}

causes! {
    Running: "a step of this object is running",
    NotSelected: "not selected",
    OtherSource: "from another source",
    Missing: "it no longer exists",
    OldDestroyed: "replacement: the old object is already destroyed",
    NotReadyYet: "it is not ready yet",
    Imported: "imported",
    Adopted: "adopts the existing object, which Purlin created for this Resource",
    Drifted: "it was changed outside of Purlin",
    OtherConfiguration: "the provider's configuration changed",
    HiddenDifference: "sensitive marks or provider data changed",
    WriteOnly: "a write-only argument changed",
    Tainted: "tainted",
    Requested: "requested",
    Interrupted: "interrupted",
    InterruptedComplete: "interrupted, but complete",
    Forced: "attributes force replacement",
    Deposed: "deposed by a replacement",
    EmptyRecord: "its record holds no object",
    DestroyAll: "all objects are destroyed",
    DestroySources: "all objects of the given sources are destroyed",
    DestroySelected: "selected, or depends on a selected object",
    ResourceDeleted: "the Resource is being deleted",
    RemovedByBlock: "removed by a block `removed`",
    Disabled: "disabled (`enabled: false`)",
    NotConfigured: "no longer configured",
    Dependencies: "its dependencies changed",
    CreateBeforeDestroy: "its create-before-destroy flag changed",
    PreventDestroy: "`preventDestroy` changed",
    DeletionPolicy: "its deletion policy changed",
    Triggers: "the state of its replacement triggers changed",
    ServiceAccount: "its service account changed",
    Hooks: "its hooks changed",
    HooksPending: "its hooks have not all run yet",
    OtherResource: "another Resource of the same name adopted it",
    Import: "`spec.import` changed",
    ConditionsPending: "its conditions are checked once all values are known",
    UnknownConfiguration: "its configuration is not known yet",
    UnknownPreconditions: "its preconditions are not known yet",
    SensitivePreview: "a preview sends no sensitive values to data sources",
    CopyRemoved: "a copy is no longer published",
    PublishedData: "its published data changed",
    CopyDrifted: "a published copy was changed outside of Purlin",
}

/// Why an object that is no longer managed is not destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptBy {
    Policies,
    DeletionPolicy,
    Configuration,
    Record,
}

impl fmt::Display for KeptBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policies => "the policy `Delete` is not set",
            Self::DeletionPolicy => "`deletionPolicy: Orphan`",
            Self::Configuration => "`destroy = false`",
            Self::Record => "as recorded",
        })
    }
}

impl ChangeCause {
    /// Reads a cause that another process published as text.
    pub fn published(text: &str) -> Self {
        if let Some((cause, _)) = Self::PLAIN.iter().find(|(_, plain)| *plain == text) {
            return cause.clone();
        }
        let forced = Self::Forced.to_string();
        match text.strip_suffix(&forced).and_then(|rest| rest.strip_suffix(", ")) {
            Some(first) => Self::Both(Box::new((Self::published(first), Self::Forced))),
            None => Self::Published(text.to_owned()),
        }
    }

    /// Both causes, of which one may be missing.
    pub fn both(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(Self::Both(Box::new((first, second)))),
            (first, second) => first.or(second),
        }
    }

    /// The cause without the attributes that force a replacement, where these say so themselves.
    pub fn unless_forced(&self) -> Option<&Self> {
        match self {
            Self::Forced => None,
            Self::Both(both) if both.1 == Self::Forced => Some(&both.0),
            _ => Some(self),
        }
    }

    /// Whether only a read has found that the record differs.
    pub fn is_of_read(&self) -> bool {
        matches!(self, Self::Drifted | Self::OtherConfiguration | Self::HiddenDifference)
    }
}

impl fmt::Display for ChangeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(drift) => drift.fmt(f),
            Self::Triggered { by, has_changed: false } => write!(f, "triggered by `{by}`"),
            Self::Triggered { by, has_changed: true } => write!(f, "triggered by `{by}`, which has changed"),
            Self::Moved { from, former_type } => match (from, former_type) {
                (Some(from), Some(former)) => write!(f, "moved from `{from}`, of type `{former}`"),
                (Some(from), None) => write!(f, "moved from `{from}`"),
                (None, former) => write!(f, "previous type `{}`", former.as_deref().unwrap_or_default()),
            },
            Self::ChangesFirst(address) => write!(f, "`{address}` changes first"),
            Self::Published(text) => f.write_str(text),
            Self::Kept { cause, policy } => write!(f, "{cause}; the object is kept ({policy})"),
            Self::Both(both) => write!(f, "{}, {}", both.0, both.1),
            _ => f.write_str(self.plain().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_cause_is_read_again() {
        let moved = ChangeCause::Moved { from: Some(Address::single("a")), former_type: None };
        let forced = ChangeCause::both(Some(moved), Some(ChangeCause::Forced)).unwrap();
        let read = ChangeCause::published(&forced.to_string());
        assert_eq!(read.to_string(), forced.to_string());
        assert_eq!(read.unless_forced().unwrap().to_string(), "moved from `a`");
        assert_eq!(ChangeCause::published(&ChangeCause::Running.to_string()), ChangeCause::Running);
    }
}
