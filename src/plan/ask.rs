//! The questions that planning puts to drivers, and the replies.

use std::sync::Arc;

use crate::model::{
    Address, Diagnostics, DriverError, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider, ProviderUse,
    Record, RecordedObject, Schema, Value,
};

/// Names an open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub usize);

/// One question, to the driver of `type_name`.
#[derive(Clone, Debug)]
pub struct Ask {
    /// To be given back with the reply.
    pub id: AskId,
    /// For which object.
    pub address: Address,
    /// Whose driver is asked.
    pub type_name: Arc<str>,
    /// The provider, with its settings; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// As which service account.
    pub service_account: Arc<str>,
    /// What is asked.
    pub question: Question,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Read an object that is to be imported.
    Import(ImportRequest),
    /// Read a recorded object (current or leftover).
    Read(Arc<RecordedObject>),
    /// Whether any of the copies that a record names is not as it was written.
    Copies(Box<Record>),
    /// Check a configuration, then plan it when it is valid.
    Plan(PlanRequest),
    /// Check the configuration of a data source. When it is valid: read with it, or else say what reading will give.
    Data {
        /// The evaluated configuration.
        config: Value,
        /// Whether to read now; then all of it is known.
        read: bool,
    },
}

/// The reply to a question of the same kind.
#[derive(Clone, Debug)]
pub enum Reply {
    /// To `Import` and `Read`: warnings, and `None` when there is no such object. And under which configuration of the
    /// provider it was looked for.
    Object(Diagnostics, Result<Option<ObjectState>, DriverError>, Arc<str>),
    /// To `Copies`.
    Copies(bool),
    /// To `Plan`: what the check found, with the warnings of planning, and the answer if the check found no error.
    Planned(Diagnostics, Result<Option<PlanResponse>, DriverError>),
    /// To `Data`: what the check found, with the warnings of reading, and what was read if the check found no error. It has
    /// unknown places when it was not read.
    Data(Diagnostics, Result<Option<Value>, DriverError>),
}

/// Which types exist, and what they look like. Must not block.
pub trait Types: Sync {
    /// The schema of a type that some driver serves, or that the named provider does.
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// The same of a type of data sources.
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let _ = (type_name, provider);
        None
    }

    /// The type that a misspelt one most likely means: one of the provider, or any at all.
    fn closest(&self, type_name: &str, provider: Option<&Provider>, is_data: bool) -> Option<String> {
        let _ = (type_name, provider, is_data);
        None
    }

    /// Why a type of a provider has no schema, when that is not because the provider does not know it.
    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        let _ = provider;
        None
    }
}

/// The `Null` configuration of an object that is not configured any more.
pub const NO_CONFIG: Value = Value::Null;
