//! Condition reasons. They are API: one list, one meaning each, one documentation page (`docs/reasons.md`).

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why an object is in the state it is in, as a condition's `reason` and the `reason` of a blocked change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Every reason, in the order of this list.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The CamelCase word that the API shows.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// What it means, in a sentence: the text of the documentation page.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

reasons! {
    /// The object is as its Resource describes it.
    Available,
    /// A change is under way or will start without anybody's doing.
    Progressing,
    /// The object is being destroyed, or will be as soon as its dependents are gone.
    Deleting,
    /// The manifest could not be read or decoded.
    InvalidManifest,
    /// The Resource names a type that no driver serves.
    UnknownType,
    /// An expression does not parse, or failed when it was evaluated.
    InvalidExpression,
    /// The Resource needs a `Provider` or `ProviderConfig` that does not exist.
    ProviderNotFound,
    /// The provider cannot be installed, started or configured.
    ProviderNotReady,
    /// The kernel cannot keep a provider from the files of the controller's Pod.
    NotConfined,
    /// The provider warns of something in the configuration, or in the change that it was asked to plan.
    ProviderWarning,
    /// The configuration does not fit the type's schema, or the driver refused it.
    InvalidConfig,
    /// `count`, `forEach` or `enabled` does not tell which objects there are to be.
    InvalidRepetition,
    /// The Resource stands for no object (`enabled: false`).
    Disabled,
    /// The Resource stands for no object: `count` is 0, or `forEach` is empty.
    NoInstances,
    /// The object refers to itself.
    SelfReference,
    /// Objects refer to each other in a ring.
    DependencyCycle,
    /// The object refers to a Resource that does not exist.
    DependencyNotFound,
    /// A `ConfigMap` or Secret of `spec.inputs`, or its key, does not exist.
    InputNotFound,
    /// A dependency is not ready, or cannot be planned, yet.
    DependencyNotReady,
    /// A dependency's step failed, so this one was skipped.
    DependencyFailed,
    /// A precondition of the object does not hold. It is checked again when what it reads changes, and after a while.
    PreconditionFailed,
    /// A postcondition of the object does not hold. The object stays as it is, what depends on it waits, and the old
    /// object of a create-first replacement is kept.
    PostconditionFailed,
    /// A hook failed. After a create the object is replaced; before a destroy the object stays. It is tried again.
    HookFailed,
    /// Something that this change needs to be planned or carried out stands in its way.
    Waiting,
    /// The driver's call failed. It is tried again with back-off.
    OperationFailed,
    /// The driver's call failed and trying again cannot help; a change of the object is needed.
    OperationRefused,
    /// A replacement destroyed the old object, and the new one could not be created yet.
    ReplacementFailed,
    /// New objects keep failing: replacement is stopped until the object changes.
    CreateKeepsFailing,
    /// Too many old objects are left over: no further create-before-destroy replacement.
    TooManyLeftovers,
    /// A crash left it open whether an object was created, and the driver cannot tell.
    CreateOutcomeUnknown,
    /// An earlier operation of another process is still open.
    OperationInProgress,
    /// The call takes longer than its limit. Purlin waits for its answer: nothing else is done about the object.
    TimeLimitExceeded,
    /// The record could not be written, so nothing more is done about the object. It is tried again.
    RecordNotWritten,
    /// The Resource says that it has a record, and there is none.
    RecordMissing,
    /// The record of this name is of another type.
    RecordOfOtherType,
    /// The record cannot be read: it is damaged, a part of it is missing, or a newer version of Purlin wrote it.
    RecordUnreadable,
    /// The API server does not hand out the record at the moment. It is read again until it does.
    RecordNotRead,
    /// Two Resources manage one and the same object.
    IdentityConflict,
    /// An object of that name exists and is not managed by this Resource.
    AlreadyExists,
    /// A `ConfigMap` or Secret to publish to exists and is not managed by this Resource.
    PublishConflict,
    /// The object to import does not exist.
    ImportNotFound,
    /// Somebody else has changed the object. `spec.drift.action` decides what becomes of it.
    Drifted,
    /// The object does not exist any more, and by `spec.drift.action: Report` it is not made anew.
    Gone,
    /// The object is missing, but the provider's configuration is another one than that which last saw it.
    GoneAfterConfigChange,
    /// So many objects are gone at once that they are not made anew before somebody says so.
    MassDisappearance,
    /// Deletion is prevented by `lifecycle.preventDestroy`.
    PreventDestroy,
    /// A move cannot be made: there is an object already, nobody knows which one is meant, or its Resource still wants it.
    MoveBlocked,
    /// The object cannot be destroyed while another one uses it.
    StillUsed,
    /// Create-before-destroy cannot work, since both objects would have one identity.
    FixedIdentity,
    /// `managementPolicies` does not allow what would have to be done.
    ActionNotAllowed,
    /// Suspended by `spec.suspend` or the annotation `purlin.dev/paused`.
    Suspended,
    /// The plan is about other objects (`--target`), so this one is left as it is.
    NotSelected,
    /// The service account may not do what is needed.
    Forbidden,
    /// The source of the desired state could not be read whole, so nothing is destroyed as an orphan.
    SourceIncomplete,
    /// One of Purlin's own CRDs is being deleted, so nothing is destroyed.
    CustomResourceDefinitionDeleted,
    /// The API server does not say whether one of Purlin's own CRDs is being deleted, so nothing is destroyed. It is asked
    /// again.
    CustomResourceDefinitionUnknown,
    /// The namespace is terminating, so nothing is created in it.
    NamespaceTerminating,
    /// There is a record but no Resource.
    Abandoned,
    /// An inherited create-before-destroy overrides an explicit `false`.
    CreateBeforeDestroyForced,
    /// A released object goes back to the classic order, since the safer one would close a ring.
    ReleaseFellBack,
    /// Records depend on each other in a ring; the oldest edge is ignored.
    RecordedCycle,
    /// An orphaned object that stays used an object that is destroyed.
    OrphanUsesDestroyed,
    /// Something had to wait for this run's results; another run will plan it.
    RunAgain,
    /// The driver broke its contract: what it planned or made contradicts the configuration, the plan or itself.
    DriverFault,
    /// A fault of Purlin itself.
    InternalError,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
