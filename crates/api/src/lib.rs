//! The kinds of the API group `purlin.dev`, their CRDs, the condition types, and the names of Purlin's finalizers and
//! annotations.
//!
//! `load` turns Resources into a `Config`; `controller` writes their status.
#![forbid(unsafe_code)]

pub mod conditions;
pub mod data_source;
pub mod module;
pub mod origins;
pub mod plan;
pub mod plan_name;
pub mod provider;
pub mod raw;
pub mod resource;
pub mod runner;

use kube::Resource as _;
use model::Address;

mod annotations;
mod crds;
mod schema;

pub use annotations::{
    ANNOTATIONS, APPROVE_DESTROYS, Annotation, AnnotationValue, DECIDED_BY, MOVED_FROM, QUOTA, RECONCILE_REQUESTED_AT,
    RECORD, REPLACE_REQUESTED_AT, REQUIRE_APPROVAL,
};
pub use conditions::ConditionType;
pub use crds::{crds, data_source_crd, module_crd, plan_crd, provider_config_crd, provider_crd, resource_crd};
pub use data_source::{
    DataSource, DataSourceDrift, DataSourceLifecycle, DataSourceSpec, DataSourceStatus, DataSourceTimeouts,
};
pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use module::{
    GitSource, HttpSource, Module, ModuleDetails, ModuleObjects, ModulePending, ModuleProvider, ModuleRevision,
    ModuleSource, ModuleSpec, ModuleStatus, OciSource, RegistrySource, Status,
};
pub use origins::{Import, Moved};
pub use plan::{
    ApprovalState, ChangeDigest, ChangeProof, Omitted, PlanDiagnostic, PlanEdge, PlanGraph, PlanObject, PlanOutcome,
    PlanSpec, PlanStatus, PlanStep, PlanSummary, PlanUse, PlannedChange, Preview, PreviewRefresh, Prune,
    RequiredApproval,
};
pub use provider::{
    Provider, ProviderConfig, ProviderConfigSpec, ProviderConfigStatus, ProviderFiles, ProviderLimits, ProviderLock,
    ProviderPackage, ProviderSpec, ProviderStatus, ProviderVariable,
};
pub use raw::{Head, RawObject};
pub use resource::{
    Approval, DeletionPolicy, Dependency, Deposed, Drift, DriftAction, EffectiveLifecycle, Exec, Hook, HookFailure,
    HookPhase, Input, Instances, Job, KeyRef, Lifecycle, ManagementPolicy, NameRef, Pending, Publish, Requirement,
    Resource, ResourceSpec, ResourceStatus, Timeouts, TroubledInstance,
};
pub use runner::{ProviderRunner, RunnerKind, RunnerResources, RunnerToleration, RunnerVariable};

/// The URL path of the kind of what has the status of an object, in a namespace.
pub fn url_path(namespace: &str, address: &Address) -> String {
    let namespace = Some(namespace);
    match address.kind() {
        MODULE_KIND => Module::url_path(&(), namespace),
        DATA_SOURCE_KIND => DataSource::url_path(&(), namespace),
        _ => Resource::url_path(&(), namespace),
    }
}

pub const GROUP: &str = "purlin.dev";

pub const VERSION: &str = "v1alpha1";

pub const API_VERSION: &str = "purlin.dev/v1alpha1";

pub const KIND: &str = "Resource";

pub const DATA_SOURCE_KIND: &str = "DataSource";

pub const MODULE_KIND: &str = "Module";

pub const PROVIDER_KIND: &str = "Provider";

pub const PROVIDER_CONFIG_KIND: &str = "ProviderConfig";

pub const PLAN_KIND: &str = "Plan";

/// Finalizer: keeps a Resource until its object is destroyed.
pub const FINALIZER: &str = "purlin.dev/destroy";

/// Finalizer: keeps a `ProviderConfig` while a Resource uses it.
pub const IN_USE: &str = "purlin.dev/in-use";
