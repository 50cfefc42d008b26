//! Whether an object works. That is no part of its configuration: Purlin shows it, and changes nothing because of it.

use std::fmt;

/// The health of an object, as the driver last saw it. The texts are one line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// The object is ready.
    Current,
    /// The object is not ready, for this reason.
    InProgress(String),
    /// The object will not become ready without a change, for this reason.
    Failed(String),
    /// The object is being deleted. It exists until these finalizers are removed.
    Terminating(Vec<String>),
}

impl Health {
    pub fn is_current(&self) -> bool {
        *self == Self::Current
    }

    /// The health with a text in which `redact` has masked sensitive values.
    #[must_use]
    pub fn redacted(self, redact: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::InProgress(why) => Self::InProgress(redact(why)),
            Self::Failed(why) => Self::Failed(redact(why)),
            other => other,
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("ready"),
            Self::InProgress(why) | Self::Failed(why) => f.write_str(why),
            Self::Terminating(finalizers) => write!(f, "it is being deleted{}", held_by(finalizers)),
        }
    }
}

/// What keeps an object that is being deleted, to append to a text. Empty if nothing does.
pub fn held_by(finalizers: &[String]) -> String {
    match finalizers {
        [] => String::new(),
        [finalizer] => format!(", and the finalizer `{finalizer}` keeps it"),
        all => format!(", and the finalizers `{}` keep it", all.join("`, `")),
    }
}

/// What was seen of an object since it was last reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Another client changed the object, or may have.
    pub changed: bool,
    /// Another client deleted the object.
    pub deleted: bool,
    /// The object cannot be watched, and was not seen yet: only a read shows whether it exists.
    pub unwatched: bool,
    /// Its health, when it was seen for the first time, and when it has changed.
    pub health: Option<Health>,
}

impl Observed {
    /// Adds a later observation.
    pub fn add(&mut self, later: Self) {
        self.changed |= later.changed;
        self.deleted |= later.deleted;
        self.unwatched |= later.unwatched;
        self.health = later.health.or(self.health.take());
    }
}
