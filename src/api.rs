//! The kinds of the API group `purlin.dev`: the only types with Kubernetes serde and schemars.
//!
//! Gives the Rust types, the CRDs made from them, condition types with their merge, and the names of our
//! finalizer and annotations. Holds no behaviour: `load` turns Resources into a `Config`, `controller` writes
//! their status.

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

/// The API group.
pub const GROUP: &str = "purlin.dev";

/// The one served version.
pub const VERSION: &str = "v1alpha1";

/// Group and version as manifests spell them.
pub const API_VERSION: &str = "purlin.dev/v1alpha1";

/// The kind of [`Resource`].
pub const KIND: &str = "Resource";

/// The kind of [`DataSource`].
pub const DATA_SOURCE_KIND: &str = "DataSource";

/// The finalizer that holds a Resource until its object is destroyed.
pub const FINALIZER: &str = "purlin.dev/destroy";

/// The finalizer that holds a `ProviderConfig` as long as a Resource uses it.
pub const IN_USE: &str = "purlin.dev/in-use";

/// Suspends an object while its value is `true`: the same switch as `spec.suspend`.
pub const PAUSED: &str = "purlin.dev/paused";

/// A new value asks for a fresh look at the object, outside its drift interval.
pub const RECONCILE_REQUESTED_AT: &str = "purlin.dev/reconcile-requested-at";

/// Where the object was recorded before: a name or an address, or several, the newest first.
pub const MOVED_FROM: &str = "purlin.dev/moved-from";

/// A new value asks for the object to be replaced.
pub const REPLACE_REQUESTED_AT: &str = "purlin.dev/replace-requested-at";

/// The UID of the Resource that the record was written for. Without it no record was ever written.
pub const RECORD: &str = "purlin.dev/record";
