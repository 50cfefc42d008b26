//! The reasons why steps wait for each other.

use std::fmt;

use model::{Address, Step};

/// The rule that requires an edge. [`EdgeExplanation`] displays it with the two steps. It contains no addresses to save
/// memory, because a graph can have a million edges.
///
/// An edge leads from the waiting step to the step that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum EdgeReason {
    /// R1: an object changes after its dependencies.
    References,
    /// R2: an object is destroyed after its dependents.
    DependentsDestroyedFirst,
    /// R3: the new object is created after the old object is destroyed.
    DestroyBeforeCreate,
    /// R3: the old object is destroyed after the new object is created.
    CreateBeforeDestroy,
    /// R4: an object changes after its former dependent is destroyed.
    DependentDestroyedBeforeChange,
    /// R4, R6: an object that is destroyed late is kept until its former dependencies have changed.
    DependencyChangesFirst,
    /// R5: an object is destroyed after its dependents use the new object, or no longer depend on it.
    DependentChangesFirst,
    /// R5: an object without dependents is destroyed after its former dependent has changed.
    Released,
    /// R6: the usual order, because the safer order would cause a cycle.
    ReleaseFallback,
    /// R7: a deposed object is destroyed after its successor is up to date.
    SuccessorFirst,
    /// R7: a deposed object is destroyed after its former dependencies have changed.
    DeposedDestroyedLater,
    /// R7: an object is destroyed after the deposed object that depended on it.
    DeposedDestroyedFirst,
    /// R7: a deposed object is destroyed after the dependents of its successor have changed or are destroyed.
    DependentOfSuccessorFirst,
    /// R9: a new dependency of the new object exists before the old object is destroyed.
    NewDependencyFirst,
    /// R10: a change that would fail now runs after the steps that may resolve that.
    RemedyFirst,
    /// A step of the same object is running.
    StepRunning,
    /// An edge from a junction. The edge to the junction has the reason.
    Junction,
}

/// The reason of an edge and its two steps. Displayed as a sentence fragment.
#[derive(Clone, Copy, Debug)]
pub struct EdgeExplanation<'a> {
    pub reason: EdgeReason,
    /// The waiting step.
    pub from: &'a Step,
    /// The step that `from` waits for.
    pub to: &'a Step,
    /// The objects depend on each other only through other objects.
    pub indirect: bool,
    /// The object that requires `from` to be create-before-destroy, if it is inherited.
    pub required_by: Option<&'a Address>,
}

/// Displays an object. A deposed object has its key.
struct Name<'a>(&'a Step);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.deposed {
            None => write!(f, "{}", self.0.address),
            Some(key) => write!(f, "{} (deposed {key})", self.0.address),
        }
    }
}

impl fmt::Display for EdgeExplanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (Name(self.from), Name(self.to));
        let through = if self.indirect { " through other objects" } else { "" };
        match self.reason {
            EdgeReason::References => write!(f, "{from} depends on {to}{through}"),
            EdgeReason::DependentsDestroyedFirst => {
                write!(f, "{from} is destroyed after {to}, which depends on it{through}")
            }
            EdgeReason::DestroyBeforeCreate => write!(f, "{from} is created after the old object is destroyed"),
            EdgeReason::CreateBeforeDestroy => {
                write!(f, "{from} is create-before-destroy")?;
                if let Some(dependent) = self.required_by {
                    write!(f, " (required by {dependent})")?;
                }
                f.write_str(": the old object is destroyed last")
            }
            EdgeReason::DependentDestroyedBeforeChange => {
                write!(f, "{from} changes after {to}, which depended on it{through}, is destroyed")
            }
            EdgeReason::DependencyChangesFirst => {
                write!(f, "the old {from} is kept until {to}, on which it depended{through}, has changed")
            }
            EdgeReason::DependentChangesFirst => {
                write!(f, "the old {from} is kept until {to}, which depended on it{through}, has changed")
            }
            EdgeReason::Released => write!(f, "{from} is kept until {to}, which no longer depends on it, has changed"),
            EdgeReason::ReleaseFallback => {
                write!(f, "{from} no longer depends on {to}, which is destroyed first to avoid a cycle")
            }
            EdgeReason::SuccessorFirst => write!(f, "{from} is destroyed after {to} is up to date"),
            EdgeReason::DeposedDestroyedLater => {
                write!(f, "{from} is kept until {to}, on which it depended{through}, has changed")
            }
            EdgeReason::DeposedDestroyedFirst => {
                write!(f, "{from} is destroyed after {to}, which depended on it{through}")
            }
            EdgeReason::DependentOfSuccessorFirst => {
                write!(f, "{from} is destroyed after {to}, which depends on {}{through}", self.from.address)
            }
            EdgeReason::NewDependencyFirst => {
                write!(f, "the old {from} is kept until {to}, on which the new object depends{through}, exists")
            }
            EdgeReason::RemedyFirst => write!(f, "{from} waits for {to}, because it would fail before"),
            EdgeReason::StepRunning => write!(f, "another step of {from} is running"),
            EdgeReason::Junction => write!(f, "{from} runs after {to}"),
        }
    }
}
