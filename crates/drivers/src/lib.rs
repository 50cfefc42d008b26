//! Drivers create, read, update and destroy the objects of the types that they serve.
//!
//! `contract` defines the traits, `call` the requests and responses, and `registry` maps a type to its driver.
//! [`Providers`] runs Terraform providers as drivers.
#![forbid(unsafe_code)]

pub mod hook;
pub mod offline;
pub mod publish;
pub mod published_files;
pub mod registry;

pub mod arguments;
mod call;
mod contract;
pub mod kubernetes_object;
mod masked;
pub mod provider;
pub mod terraform_data;

pub use arguments::unsupported_move;
pub use call::{
    ApplyRequest, ApplyResponse, CallContext, CallDelay, Masks, Observation, ReadinessError, StopRequest, Warnings,
};
pub use contract::{
    CreateRecovery, DataPlan, DataSources, Driver, FindCreated, HealthReport, ObjectChange, ObjectWatcher,
    SearchCreated, SearchResult, TakeOver, WatchedInstance,
};
pub use kubernetes_object::KubernetesObject;
pub use provider::{
    Confinement, FunctionCall, FunctionProblem, Preparation, ProviderInfo, ProviderOptions, Providers, Reattach,
    ReconstructedConfig, RunnerPods, RunnerSettings,
};
pub use publish::Publisher;
pub use published_files::PublishedFiles;
pub use registry::Registry;
pub use terraform_data::TerraformData;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::CallContext;
    use model::{RecordedObject, Value};

    /// A call for the Resource `web` in the namespace `shop`.
    pub(crate) fn context(type_name: &str) -> CallContext {
        CallContext {
            type_name: type_name.into(),
            provider: None,
            namespace: "shop".into(),
            address: "web".into(),
            service_account: "deployer".into(),
            deadline: process::Clock::now(&process::SystemClock) + jiff::SignedDuration::from_secs(20),
            operation_id: "op-1".into(),
            ..CallContext::default()
        }
    }

    pub(crate) fn recorded(value: Value) -> RecordedObject {
        RecordedObject { value, service_account: Arc::from("deployer"), ..RecordedObject::default() }
    }
}
