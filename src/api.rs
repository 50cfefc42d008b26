//! The kinds of the API group `purlin.dev`, their CRDs, the condition types, and the names of Purlin's finalizers and
//! annotations.
//!
//! `load` turns Resources into a `Config`; `controller` writes their status.

pub mod conditions;
pub mod data_source;
pub mod provider;
pub mod resource;

mod crds;
mod schema;

pub use conditions::ConditionType;
pub use crds::{crds, resource_crd};
pub use data_source::{
    DataSource, DataSourceDrift, DataSourceLifecycle, DataSourceSpec, DataSourceStatus, DataSourceTimeouts,
};
pub use provider::{
    Provider, ProviderConfig, ProviderConfigSpec, ProviderConfigStatus, ProviderFiles, ProviderLimits, ProviderLock,
    ProviderPackage, ProviderSpec, ProviderStatus, ProviderVariable,
};
pub use resource::{
    DeletionPolicy, Dependency, Deposed, Drift, DriftAction, EffectiveLifecycle, Exec, Hook, Import, Input, Instances,
    Job, KeyRef, Lifecycle, NameRef, Pending, Publish, Requirement, Resource, ResourceSpec, ResourceStatus, Timeouts,
    TroubledInstance,
};

pub const GROUP: &str = "purlin.dev";

pub const VERSION: &str = "v1alpha1";

pub const API_VERSION: &str = "purlin.dev/v1alpha1";

pub const KIND: &str = "Resource";

pub const DATA_SOURCE_KIND: &str = "DataSource";

/// Finalizer: keeps a Resource until its object is destroyed.
pub const FINALIZER: &str = "purlin.dev/destroy";

/// Finalizer: keeps a `ProviderConfig` while a Resource uses it.
pub const IN_USE: &str = "purlin.dev/in-use";

/// Annotation: `true` suspends the object, like `spec.suspend`.
pub const PAUSED: &str = "purlin.dev/paused";

/// Annotation: a new value requests an immediate refresh of the object.
pub const RECONCILE_REQUESTED_AT: &str = "purlin.dev/reconcile-requested-at";

/// Annotation: the former name or address of the object, or several, newest first.
pub const MOVED_FROM: &str = "purlin.dev/moved-from";

/// Annotation: a new value requests a replacement of the object.
pub const REPLACE_REQUESTED_AT: &str = "purlin.dev/replace-requested-at";

/// Annotation: the UID of the Resource for which the record was written. Without it, no record was written yet.
pub const RECORD: &str = "purlin.dev/record";
