//! Why a step waits for another.

use std::fmt;

use crate::model::{Address, Step};

/// The rule that an edge comes from: what cycle errors, `explain` and golden tests show, once [`Why`] has put the
/// two steps in. It holds no addresses, since the ends of the edge have them: a graph may have a million edges.
///
/// In the descriptions the edge leads from the step that waits to the step it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Because {
    /// R1: the object waits for what it refers to.
    References,
    /// R2: an object is destroyed after those that use it.
    DependentsGoFirst,
    /// R3: the new object is made once the old one is gone.
    OldGoesFirst,
    /// R3: the old object goes once the new one is made.
    NewComesFirst,
    /// R4: an object changes once its dependent that is to go is gone.
    DependentGoesFirst,
    /// R4, R6: an object that goes late stays until what it used has changed.
    DependencyChangesFirst,
    /// R5: an object goes once its dependents have moved over to its successor, or have let go of it.
    DependentMovesFirst,
    /// R5: an object that is not used any more goes once its former dependent has let go of it.
    Released,
    /// R6: the classic order, since the safer one would close a ring.
    FellBack,
    /// R7: a leftover goes once its successor is as it should be.
    SuccessorFirst,
    /// R7: a leftover goes once what it used has changed.
    LeftoverGoesLater,
    /// R7: an object is destroyed after the leftover that used it.
    LeftoverGoesFirst,
    /// R7: a leftover goes once the dependents of its object have changed, or are gone.
    DependentOfSuccessorFirst,
    /// R9: what the new object needs anew is there before the old one is given up.
    NewDependencyFirst,
    /// A step of the same object is running.
    StepRunning,
    /// The way on from a junction: the reason is on the edge that leads to it.
    Onward,
}

/// The reason of an edge with its two ends, printed as a sentence fragment.
#[derive(Clone, Copy, Debug)]
pub struct Why<'a> {
    /// The rule.
    pub because: Because,
    /// The step that waits.
    pub from: &'a Step,
    /// The step it waits for.
    pub to: &'a Step,
    /// The objects are related through others, not directly.
    pub indirect: bool,
    /// Who requires `from` to be create-before-destroy, if it does not ask for it itself.
    pub required_by: Option<&'a Address>,
}

/// An object as sentences name it: a leftover differs from its successor.
struct Name<'a>(&'a Step);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.deposed {
            None => write!(f, "{}", self.0.address),
            Some(key) => write!(f, "{} (deposed {key})", self.0.address),
        }
    }
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (Name(self.from), Name(self.to));
        let through = if self.indirect { " through others" } else { "" };
        match self.because {
            Because::References => write!(f, "{from} refers to {to}{through}"),
            Because::DependentsGoFirst => write!(f, "{from} goes only after {to}, which uses it{through}"),
            Because::OldGoesFirst => write!(f, "{from} is made anew only after the old one is gone"),
            Because::NewComesFirst => {
                write!(f, "{from} is create-before-destroy")?;
                if let Some(dependent) = self.required_by {
                    write!(f, " (required by {dependent})")?;
                }
                f.write_str(": the old object goes last")
            }
            Because::DependentGoesFirst => {
                write!(f, "{from} changes only after {to}, which used it{through}, is gone")
            }
            Because::DependencyChangesFirst => {
                write!(f, "the old {from} stays until {to}, which it used{through}, has changed")
            }
            Because::DependentMovesFirst => {
                write!(f, "the old {from} stays until {to}, which used it{through}, has changed")
            }
            Because::Released => write!(f, "{to} no longer uses {from}, which stays until {to} has let go of it"),
            Because::FellBack => {
                write!(f, "{from} no longer uses {to}, which goes first since the safer order would close a ring")
            }
            Because::SuccessorFirst => write!(f, "the leftover of {to} goes after {to} is as it should be"),
            Because::LeftoverGoesLater => {
                write!(f, "the leftover {from} stays until {to}, which it used{through}, has changed")
            }
            Because::LeftoverGoesFirst => {
                write!(f, "{from} goes only after the leftover {to}, which used it{through}")
            }
            Because::DependentOfSuccessorFirst => {
                write!(f, "the leftover {from} goes after {to}, which uses {}{through}", self.from.address)
            }
            Because::NewDependencyFirst => {
                write!(f, "the old {from} stays until {to}, which the new one needs{through}, is there")
            }
            Because::StepRunning => write!(f, "another step of {from} is running"),
            Because::Onward => write!(f, "{from} comes after {to}"),
        }
    }
}
