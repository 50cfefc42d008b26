//! Why a step waits for another.

use std::fmt;

use crate::model::Address;

/// The reason of an edge: what cycle errors, `explain` and golden tests show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// R1: the step's object refers to the other one, directly or through others.
    References { dependent: Address, dependency: Address },
    /// R2: dependents are destroyed before what they use.
    DependentsGoFirst { dependent: Address, dependency: Address },
    /// R3: the old object goes before the new one is made.
    DestroyedBeforeCreated(Address),
    /// R3: the new object is made before the old one goes.
    CreatedBeforeDestroyed(Address),
    /// R4: what an object used changes only once that object, which goes, is gone.
    DependentGoesBeforeChange { dependent: Address, dependency: Address },
    /// R4 for create-before-destroy: the old dependent goes only after its dependencies have changed.
    DependencyChangesFirst { dependent: Address, dependency: Address },
    /// R5: an object goes only after its dependents have moved over to its successor.
    DependentMovesFirst { dependent: Address, dependency: Address },
    /// R5: the dependent needs what comes after the destroy.
    DestroyedBeforeDependentChanges { dependent: Address, dependency: Address },
    /// R5, R6: an object that is not used any more goes only after its former dependent let go of it.
    Released { dependent: Address, dependency: Address },
    /// R7: a leftover goes after its successor is as it should be.
    LeftoverGoesLater(Address),
    /// R7: an order between a leftover and another object.
    Leftover { leftover: Address, other: Address },
    /// R9: what the new object needs anew is there before the old one is given up.
    NewDependencyFirst { dependent: Address, dependency: Address },
    /// A step of the same object is running.
    StepRunning(Address),
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
