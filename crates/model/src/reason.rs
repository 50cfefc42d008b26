//! Condition reasons. They are a part of the API; `docs/reasons.md` documents each of them.

use std::fmt;
use std::str::FromStr;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The `reason` of a condition or of a blocked change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Returns the meaning, as `docs/reasons.md` has it.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

reasons! {
    /// The object matches its Resource.
    Available,
    /// A change is in progress, or will start without any action by the user.
    Progressing,
    /// The object is being destroyed, or will be destroyed after its dependents.
    Deleting,
    /// The Kubernetes object matches its Resource, but is not ready: it has failed, it is late, or it is no longer ready.
    /// Purlin changes nothing because of it, and shows the object as ready as soon as it is.
    Degraded,
    /// Another client deletes the object, and finalizers keep it. Its dependents wait. Purlin creates it again when it is
    /// gone.
    Terminating,
    /// The manifest could not be read or decoded.
    InvalidManifest,
    /// The files of a Module cannot be fetched or read. Nothing of it is changed meanwhile. Purlin retries.
    SourceFailed,
    /// The Resource names a type that no driver serves.
    UnknownType,
    /// An expression does not parse, or its evaluation failed.
    InvalidExpression,
    /// The Resource needs a `Provider` or `ProviderConfig` that does not exist.
    ProviderNotFound,
    /// The provider cannot be installed, started or configured.
    ProviderNotReady,
    /// The kernel cannot restrict the provider's access to the files of the controller's Pod.
    SandboxUnavailable,
    /// The provider returned a warning about the configuration or about the planned change.
    ProviderWarning,
    /// The configuration does not match the type's schema, or the driver rejected it.
    InvalidConfig,
    /// The objects of the Resource cannot be determined from `count`, `forEach` or `enabled`.
    InvalidRepetition,
    /// The Resource has no object, because it is disabled (`enabled: false`).
    Disabled,
    /// The Resource has no objects: `count` is 0, or `forEach` is empty.
    NoInstances,
    /// The object depends on itself.
    SelfReference,
    /// Objects depend on each other in a cycle.
    DependencyCycle,
    /// The object depends on a Resource that does not exist.
    DependencyNotFound,
    /// A ConfigMap, Secret or key in `spec.inputs` does not exist.
    InputNotFound,
    /// A dependency is not ready yet, cannot be planned yet, or its step failed.
    DependencyNotReady,
    /// A precondition of the object is false. Purlin checks it again when a value in it changes, and after a delay.
    PreconditionFailed,
    /// A postcondition of the object is false. The object stays unchanged and its dependents wait. A
    /// create-before-destroy replacement keeps the old object.
    PostconditionFailed,
    /// A hook failed. After a create, Purlin replaces the object; before a destroy, it keeps the object and retries.
    HookFailed,
    /// Another change or condition must be resolved before this change can be planned or applied.
    Waiting,
    /// The driver's call failed. Purlin retries it with back-off.
    OperationFailed,
    /// The driver's call failed, and a retry cannot succeed until the Resource changes.
    OperationRejected,
    /// A replacement destroyed the old object, and the new object could not be created yet.
    ReplacementFailed,
    /// The creation of new objects failed repeatedly. Purlin stops the replacement until the Resource changes.
    RepeatedCreateFailures,
    /// The object has too many deposed objects for another create-before-destroy replacement.
    TooManyDeposedObjects,
    /// Purlin was interrupted during a create, and the driver cannot determine whether the object was created.
    CreateOutcomeUnknown,
    /// An earlier operation of another process has not finished.
    OperationInProgress,
    /// The call exceeded its time limit. Purlin waits for its response and does nothing else with the object.
    TimeLimitExceeded,
    /// The record could not be written. Purlin retries the write and does nothing else with the object.
    RecordNotWritten,
    /// The annotation `purlin.dev/record` or the family index names a record that does not exist, or the index was lost.
    RecordMissing,
    /// The record with this name has another type.
    RecordTypeMismatch,
    /// The record cannot be read: it is damaged or incomplete, or a newer version of Purlin wrote it.
    RecordUnreadable,
    /// The API server currently does not return the record. Purlin retries the read.
    RecordUnavailable,
    /// Two Resources manage the same object, or `spec.import` names another object than the one that the Resource manages or
    /// describes.
    IdentityConflict,
    /// Objects exchange their names: each takes the name of another one, so none of the names becomes free.
    NameCycle,
    /// An object with this name exists and is not managed by this Resource.
    AlreadyExists,
    /// A ConfigMap or Secret to publish to exists and is not managed by this Resource.
    PublishConflict,
    /// A field was removed from the manifest of a Kubernetes object, but stays because another field manager owns it too.
    FieldKept,
    /// The object to import does not exist.
    ImportNotFound,
    /// The object was changed outside of Purlin. `spec.drift.action` configures the response.
    Drifted,
    /// The object no longer exists, and `spec.drift.action: Report` keeps Purlin from creating it again.
    ObjectMissing,
    /// The object was not found, but the provider configuration has changed since the last successful read.
    ObjectMissingAfterConfigChange,
    /// Many objects are missing at the same time. Purlin does not create them again without confirmation by the user.
    ManyObjectsMissing,
    /// The change waits for the approval of a Plan, with everything that depends on it.
    ApprovalRequired,
    /// The change was rejected, and nothing is changed until the Resource changes.
    Rejected,
    /// `lifecycle.preventDestroy` prevents the destruction of the object.
    PreventDestroy,
    /// The object cannot be moved: the new address has an object already, the source of the move is ambiguous, or the
    /// Resource of the source still exists.
    MoveBlocked,
    /// The object cannot be destroyed while another object depends on it.
    InUse,
    /// Create-before-destroy is impossible, because the old and the new object would have the same identity.
    CreateBeforeDestroyImpossible,
    /// `managementPolicies` does not allow the required action.
    ActionForbiddenByPolicy,
    /// `spec.suspend` suspends the object: Purlin neither checks nor changes it.
    Suspended,
    /// `--target` does not select the object, or its manifest is not in the given files or not part of a preview, so it
    /// stays unchanged.
    NotSelected,
    /// The ServiceAccount lacks a required permission.
    Forbidden,
    /// On files, a manifest is missing, but another one has an error, a file could not be read, or a source contains no
    /// Resource. So Purlin does not destroy the object.
    SourceIncomplete,
    /// On files, the sources of the last apply to the same records have been exchanged, or a manifest takes over an object
    /// whose other manifest still exists. This may be another environment.
    OtherEnvironment,
    /// One of Purlin's CRDs is being deleted, so Purlin does not destroy objects.
    CustomResourceDefinitionTerminating,
    /// Purlin could not check whether one of its CRDs is being deleted, so it does not destroy objects. It retries the
    /// check.
    CustomResourceDefinitionUnknown,
    /// The namespace is terminating, so Purlin does not create objects in it.
    NamespaceTerminating,
    /// The namespace has reached a quota: the number of objects, the size of their records, or the steps per minute. Creates,
    /// updates and replacements wait, and nothing is destroyed or lost because of it.
    QuotaExceeded,
    /// The object has a record but no Resource.
    Abandoned,
    /// An inherited create-before-destroy overrides an explicit `false`.
    CreateBeforeDestroyForced,
    /// An object without references is destroyed in the usual order, because a later destroy would cause a cycle.
    ReleaseOrderFallback,
    /// Records depend on each other in a cycle. Purlin ignores the oldest edge.
    RecordedCycle,
    /// An orphaned object that Purlin keeps depends on an object that is destroyed.
    OrphanDependsOnDestroyed,
    /// The Plan was computed. Its status has the changes.
    PlanComputed,
    /// The driver violated its contract: its plan or its result contradicts the configuration, the plan or itself.
    DriverFault,
    /// A bug in Purlin.
    InternalError,
}

impl Reason {
    /// Whether an object that could not be planned for this reason is worth another attempt although nothing that Purlin
    /// watches has changed.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::OperationFailed
                | Self::Forbidden
                | Self::AlreadyExists
                | Self::IdentityConflict
                | Self::NameCycle
                | Self::DriverFault
                | Self::ProviderNotReady
                | Self::InternalError
                | Self::PreconditionFailed
                | Self::PostconditionFailed
                | Self::QuotaExceeded
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a string that is not a reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reason")]
pub struct UnknownReason(String);

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let known = Self::ALL.iter().find(|reason| reason.as_str() == text);
        known.copied().ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
