//! Drivers: what makes, changes, reads and destroys objects of the types it serves.
//!
//! - `contract`: what every driver does ([`Driver`]), and what only some do: [`DataSources`], [`TakeOver`],
//!   [`FindCreated`], [`ObjectWatcher`].
//! - `call`: what a call is given, and what a change answers.
//! - `registry`: which driver serves a type. Programs that serve types are hosted by [`Providers`], which prepares,
//!   configures and stops them.
//!
//! Nothing outside of this module and `execute` knows which driver an object has. Planning asks through
//! `plan::Ask`, which `execute` answers by calling the driver.

pub mod hook;
pub mod offline;
pub mod publish;
pub mod published_files;
pub mod registry;

mod arguments;
mod call;
mod contract;
pub mod kubernetes_object;
pub mod scripted;
pub mod provider;
pub mod terraform_data;
mod warnings;

pub(crate) use arguments::no_way;
pub use call::{ApplyRequest, ApplyResponse, CallContext, LastSeen, NotReady};
pub use contract::{
    CreateRecovery, DataSources, Driver, Expected, FindCreated, Noticed, ObjectWatcher, TakeOver, Watched,
};
pub use kubernetes_object::KubernetesObject;
pub use provider::{Preparation, ProviderFacts, ProviderOptions, Providers, Reattach, Reconstructed};
pub use publish::Publisher;
pub use published_files::PublishedFiles;
pub use registry::Registry;
pub use scripted::Scripted;
pub use terraform_data::TerraformData;
pub use warnings::Warnings;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::CallContext;
    use crate::model::{RecordedObject, Value};

    /// The surroundings of a call for the Resource `web` in the namespace `shop`.
    pub(crate) fn context(type_name: &str) -> CallContext {
        CallContext {
            type_name: type_name.into(),
            provider: None,
            namespace: "shop".into(),
            address: "web".into(),
            service_account: "deployer".into(),
            deadline: crate::process::Clock::now(&crate::process::SystemClock) + jiff::SignedDuration::from_secs(20),
            operation_id: "op-1".into(),
            warnings: super::Warnings::default(),
        }
    }

    /// A recorded object of the given value.
    pub(crate) fn recorded(value: Value) -> RecordedObject {
        RecordedObject { value, service_account: Arc::from("deployer"), ..RecordedObject::default() }
    }
}
